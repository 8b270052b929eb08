// SPDX-License-Identifier: MIT
// Shortlists in model files; see shortlist.h and docs/internals/FORMAT.md, section 2.6. The lists themselves
// are idlists.c's.
#include "format/shortlist.h"

#include <string.h>

#include "base/mem.h"
#include "format/idlists.h"
#include "format/modelfile.h"

#define KEY "dragoman.shortlist."
#define VERSION 1

static const char *const keys[] = {KEY "version", KEY "sources",  KEY "targets", KEY "vocabulary",
                                   KEY "copy",    KEY "frequent", KEY "data",    KEY "next"};

// ---- whole lists ------------------------------------------------------------------------------

void dgm_shortlist_close(dgm_shortlist **s)
{
    dgm_shortlist *l = *s;
    if (!l) return;
    dgm_free(l->at);
    dgm_free(l->ids);
    dgm_free(l->frequent);
    dgm_free(l->next_at);
    dgm_free(l->next_ids);
    dgm_free(l);
    *s = NULL;
}

dgm_status dgm_shortlist_open(dgm_shortlist **s, int sources, int targets, uint64_t entries,
                              int frequent, dgm_error *err)
{
    dgm_shortlist *l = *s = dgm_calloc(1, sizeof *l);
    if (!l) return dgm_no_memory(err);
    l->sources = sources;
    l->targets = targets;
    l->at = dgm_calloc((size_t)sources + 1, sizeof *l->at);
    l->ids = dgm_calloc(entries, sizeof *l->ids);
    l->frequent = dgm_calloc((size_t)frequent, sizeof *l->frequent);
    if (l->at && l->ids && l->frequent) return DGM_OK;
    dgm_shortlist_close(s);
    return dgm_no_memory(err);
}

dgm_status dgm_shortlist_open_next(dgm_shortlist *l, uint64_t entries, dgm_error *err)
{
    l->next_at = dgm_calloc((size_t)l->targets + 1, sizeof *l->next_at);
    l->next_ids = dgm_calloc(entries, sizeof *l->next_ids);
    return l->next_at && l->next_ids ? DGM_OK : dgm_no_memory(err);
}

int dgm_shortlist_longest(const dgm_shortlist *s)
{
    uint64_t most = 0;
    for (int i = 0; i < s->sources; i++)
        if (s->at[i + 1] - s->at[i] > most) most = s->at[i + 1] - s->at[i];
    return (int)most;
}

// ---- views ------------------------------------------------------------------------------------

bool dgm_shortlist_present(const dgm_gguf *g)
{
    return dgm_gguf_find(g, KEY "version") != NULL;
}

static dgm_status index_all(dgm_shortlist_view *v, size_t size, size_t next_size, dgm_error *err)
{
    const dgm_idlists rows = {
        KEY "data", "source token", v->data, size, v->sources, v->targets, DGM_SHORTLIST_BEST_MAX};
    const dgm_idlists next = {KEY "next", "target token", v->next, next_size,
                              v->targets, v->targets,     DGM_SHORTLIST_NEXT_MAX};
    v->row = dgm_malloc(((size_t)v->sources + 1) * sizeof *v->row);
    if (!v->row) return dgm_no_memory(err);
    DGM_TRY(dgm_idlists_index(&rows, v->row, &v->longest, err));
    if (!v->next) return DGM_OK;
    v->next_row = dgm_malloc(((size_t)v->targets + 1) * sizeof *v->next_row);
    return v->next_row ? dgm_idlists_index(&next, v->next_row, &v->next_longest, err)
                       : dgm_no_memory(err);
}

static dgm_status read_header(dgm_shortlist_view *v, const dgm_gguf *g, size_t *size,
                              size_t *next_size, dgm_error *err)
{
    uint32_t version = 0, sources = 0, targets = 0;
    DGM_TRY(dgm_gguf_get_u32(g, KEY "version", DGM_REQUIRED, 1, UINT32_MAX, &version, err));
    DGM_FAIL_IF(version > VERSION, err, DGM_ERR_VERSION,
                "the shortlist is newer than this program (version %u, this program reads %d)",
                version, VERSION);
    DGM_TRY(dgm_gguf_get_u32(g, KEY "sources", DGM_REQUIRED, 1, DGM_SPEC_VOCAB_MAX, &sources, err));
    DGM_TRY(dgm_gguf_get_u32(g, KEY "targets", DGM_REQUIRED, 1, DGM_SPEC_VOCAB_MAX, &targets, err));
    const char *wanted = NULL;
    char found[17];
    DGM_TRY(dgm_gguf_get_string(g, KEY "vocabulary", DGM_REQUIRED, &wanted, err));
    DGM_TRY(dgm_vocabulary_hash(g, &v->sources, &v->targets, found, err));
    DGM_FAIL_IF((int)sources != v->sources || (int)targets != v->targets, err, DGM_ERR_FORMAT,
                "the shortlist is for vocabularies of %u and %u tokens, the model has %d and %d",
                sources, targets, v->sources, v->targets);
    DGM_FAIL_IF(strcmp(wanted, found) != 0, err, DGM_ERR_FORMAT,
                "the shortlist was made for other vocabularies (hash %.20s, the model has %s)",
                wanted, found);
    DGM_TRY(dgm_gguf_get_bool(g, KEY "copy", DGM_OPTIONAL, &v->copy, err));
    DGM_FAIL_IF(v->copy && v->sources != v->targets, err, DGM_ERR_FORMAT,
                KEY "copy is set, but the vocabularies differ in size");
    size_t count = 0;
    DGM_TRY(dgm_gguf_get_i32s(g, KEY "frequent", DGM_OPTIONAL, 0, v->targets - 1, &v->frequent,
                              &count, err));
    for (size_t i = 1; i < count; i++)
        DGM_FAIL_IF(v->frequent[i] <= v->frequent[i - 1], err, DGM_ERR_FORMAT,
                    KEY "frequent is not ascending at element %zu", i);
    v->frequent_count = (int)count;
    DGM_TRY(dgm_gguf_get_bytes(g, KEY "data", DGM_REQUIRED, &v->data, size, err));
    DGM_FAIL_IF(*size >= UINT32_MAX, err, DGM_ERR_FORMAT, KEY "data is longer than 4 GiB");
    DGM_TRY(dgm_gguf_get_bytes(g, KEY "next", DGM_OPTIONAL, &v->next, next_size, err));
    DGM_FAIL_IF(*next_size >= UINT32_MAX, err, DGM_ERR_FORMAT, KEY "next is longer than 4 GiB");
    if (!dgm_gguf_find(g, KEY "next")) v->next = NULL;
    return DGM_OK;
}

dgm_status dgm_shortlist_view_open(dgm_shortlist_view *v, const dgm_gguf *g, dgm_error *err)
{
    *v = (dgm_shortlist_view){0};
    size_t size = 0, next_size = 0;
    dgm_status st = read_header(v, g, &size, &next_size, err);
    if (st == DGM_OK) st = index_all(v, size, next_size, err);
    if (st != DGM_OK) dgm_shortlist_view_close(v);
    return st;
}

void dgm_shortlist_view_close(dgm_shortlist_view *v)
{
    dgm_free(v->row);
    dgm_free(v->next_row);
    *v = (dgm_shortlist_view){0};
}

int dgm_shortlist_view_row(const dgm_shortlist_view *v, int source, int32_t *out)
{
    return dgm_idlists_decode(v->data + v->row[source], out);
}

int dgm_shortlist_view_next(const dgm_shortlist_view *v, int target, int32_t *out)
{
    return v->next ? dgm_idlists_decode(v->next + v->next_row[target], out) : 0;
}

dgm_status dgm_shortlist_load(dgm_shortlist **s, const dgm_gguf *g, dgm_error *err)
{
    *s = NULL;
    dgm_shortlist_view v;
    DGM_TRY(dgm_shortlist_view_open(&v, g, err));
    uint64_t entries = 0, more = 0;
    for (int i = 0; i < v.sources; i++) entries += (uint64_t)dgm_idlists_length(v.data + v.row[i]);
    for (int i = 0; v.next && i < v.targets; i++)
        more += (uint64_t)dgm_idlists_length(v.next + v.next_row[i]);
    dgm_status st = dgm_shortlist_open(s, v.sources, v.targets, entries, v.frequent_count, err);
    if (st == DGM_OK) {
        dgm_shortlist *l = *s;
        l->copy = v.copy;
        for (int i = 0; i < v.sources; i++)
            l->at[i + 1] = l->at[i] + (uint64_t)dgm_shortlist_view_row(&v, i, l->ids + l->at[i]);
        l->frequent_count = v.frequent_count;
        if (v.frequent_count)
            memcpy(l->frequent, v.frequent, (size_t)v.frequent_count * sizeof *l->frequent);
        if (v.next) st = dgm_shortlist_open_next(l, more, err);
        for (int i = 0; st == DGM_OK && v.next && i < v.targets; i++)
            l->next_at[i + 1] = l->next_at[i] + (uint64_t)dgm_shortlist_view_next(
                                                    &v, i, l->next_ids + l->next_at[i]);
        if (st != DGM_OK) dgm_shortlist_close(s);
    }
    dgm_shortlist_view_close(&v);
    return st;
}

// ---- storing ----------------------------------------------------------------------------------

void dgm_shortlist_drop(dgm_gguf_writer *w)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) dgm_gguf_unset(w, keys[i]);
}

// Ascending ids in range?
static bool proper(const int32_t *ids, uint64_t count, int limit)
{
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= limit || (i > 0 && ids[i] <= ids[i - 1])) return false;
    return true;
}

static dgm_status check_list(const dgm_shortlist *s, dgm_error *err)
{
    for (int i = 0; i < s->sources; i++) {
        uint64_t n = s->at[i + 1] - s->at[i];
        DGM_FAIL_IF(n > DGM_SHORTLIST_BEST_MAX || !proper(s->ids + s->at[i], n, s->targets), err,
                    DGM_ERR_ARGUMENT, "the shortlist of source token %d is not valid", i);
    }
    for (int i = 0; s->next_at && i < s->targets; i++) {
        uint64_t n = s->next_at[i + 1] - s->next_at[i];
        DGM_FAIL_IF(n > DGM_SHORTLIST_NEXT_MAX ||
                        !proper(s->next_ids + s->next_at[i], n, s->targets),
                    err, DGM_ERR_ARGUMENT, "the continuations of target token %d are not valid", i);
    }
    DGM_FAIL_IF(!proper(s->frequent, (uint64_t)s->frequent_count, s->targets), err,
                DGM_ERR_ARGUMENT, "the list of frequent tokens is not valid");
    return DGM_OK;
}

static void put_lists(dgm_writer *w, const uint64_t *at, const int32_t *ids, int count)
{
    for (int i = 0; i < count; i++) dgm_idlists_put(w, ids + at[i], at[i + 1] - at[i]);
}

dgm_status dgm_shortlist_store(const dgm_shortlist *s, const dgm_gguf *g, dgm_gguf_writer *w,
                               dgm_error *err)
{
    int sources = 0, targets = 0;
    char hash[17];
    DGM_TRY(dgm_vocabulary_hash(g, &sources, &targets, hash, err));
    DGM_FAIL_IF(sources != s->sources || targets != s->targets, err, DGM_ERR_ARGUMENT,
                "the shortlist is for vocabularies of %d and %d tokens, the model has %d and %d",
                s->sources, s->targets, sources, targets);
    DGM_TRY(check_list(s, err));
    dgm_writer data = {0}, next = {0};
    put_lists(&data, s->at, s->ids, s->sources);
    if (s->next_at) put_lists(&next, s->next_at, s->next_ids, s->targets);
    if (data.failed || next.failed) {
        dgm_writer_free(&data);
        dgm_writer_free(&next);
        return dgm_no_memory(err);
    }
    dgm_shortlist_drop(w);
    dgm_gguf_set_u32(w, KEY "version", VERSION);
    dgm_gguf_set_u32(w, KEY "sources", (uint32_t)s->sources);
    dgm_gguf_set_u32(w, KEY "targets", (uint32_t)s->targets);
    dgm_gguf_set_string(w, KEY "vocabulary", hash);
    dgm_gguf_set_bool(w, KEY "copy", s->copy);
    dgm_gguf_set_array(w, KEY "frequent", DGM_META_I32, s->frequent, (size_t)s->frequent_count);
    dgm_gguf_set_array(w, KEY "data", DGM_META_U8, data.data, data.size);
    if (s->next_at) dgm_gguf_set_array(w, KEY "next", DGM_META_U8, next.data, next.size);
    dgm_writer_free(&data);
    dgm_writer_free(&next);
    return DGM_OK;
}
