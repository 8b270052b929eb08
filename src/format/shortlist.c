// SPDX-License-Identifier: MIT
// Shortlists in model files; see shortlist.h and docs/FORMAT.md, section 2.6.
//
// data, for every source id in order:     count  first  gap-1  gap-1 ...
// all as base-128 numbers, low 7 bits first, high bit set on all bytes but the last. Ids of one
// list are close to each other where a vocabulary is sorted by frequency: about 1.5 bytes each
// instead of 4.
#include "format/shortlist.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
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

// ---- fit to a vocabulary ----------------------------------------------------------------------

static uint64_t hash_bytes(uint64_t h, const void *data, size_t size)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_number(uint64_t h, int64_t v)
{
    for (int i = 0; i < 8; i++) h = (h ^ ((uint64_t)v >> (8 * i) & 255)) * 0x100000001b3u;
    return h;
}

static uint64_t hash_strings(uint64_t h, dgm_gguf_strings strings)
{
    h = hash_number(h, (int64_t)strings.count);
    for (dgm_gguf_text s; dgm_gguf_strings_next(&strings, &s);) {
        h = hash_number(h, (int64_t)s.size);
        h = hash_bytes(h, s.data, s.size);
    }
    return h;
}

// FNV-1a over what gives ids their spellings, source then target.
static dgm_status vocabulary_hash(const dgm_gguf *g, int *sources, int *targets, char text[17],
                                  dgm_error *err)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int side = 0; side < 2; side++) {
        dgm_vocab_spec v = {0};
        DGM_TRY(dgm_modelfile_vocab(g, (dgm_side)side, &v, err));
        h = hash_number(h, v.size);
        h = hash_number(h, (int64_t)v.kind);
        h = hash_number(h, (int64_t)v.model_size);
        h = hash_bytes(h, v.model, v.model_size);
        h = hash_number(h, (int64_t)v.map_count);
        for (size_t i = 0; i < v.map_count; i++) h = hash_number(h, v.map ? v.map[i] : 0);
        h = hash_strings(h, v.words);
        h = hash_strings(h, v.extra);
        *(side ? targets : sources) = v.size;
    }
    snprintf(text, 17, "%016llx", (unsigned long long)h);
    return DGM_OK;
}

// ---- numbers of seven bits --------------------------------------------------------------------

static void put_number(dgm_writer *w, uint32_t v)
{
    for (; v >= 128; v >>= 7) dgm_write_u8(w, (uint8_t)(v | 128));
    dgm_write_u8(w, (uint8_t)v);
}

// False when the number does not end within the data or is not the shortest form below 2^28.
static bool take_number(const uint8_t *data, size_t size, size_t *at, uint32_t *out)
{
    uint32_t v = 0;
    for (int shift = 0; shift < 28; shift += 7) {
        if (*at == size) return false;
        uint8_t byte = data[(*at)++];
        v |= (uint32_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = v;
            return byte != 0 || shift == 0;
        }
    }
    return false;
}

// A number that was checked before.
static uint32_t known_number(const uint8_t **p)
{
    uint32_t v = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint32_t)(byte & 127) << shift;
        if (byte < 128) return v;
    }
}

// ---- views ------------------------------------------------------------------------------------

bool dgm_shortlist_present(const dgm_gguf *g)
{
    return dgm_gguf_find(g, KEY "version") != NULL;
}

// Lists of ids below `limit`, one for each of `count` tokens, at most `most` ids long.
typedef struct lists {
    const char *key, *side;
    const uint8_t *data;
    size_t size;
    int count, limit;
    uint32_t most;
} lists;

// Walks all lists once: index and checks.
static dgm_status index_lists(const lists *x, uint32_t *row, int *longest, dgm_error *err)
{
    size_t at = 0;
    for (int s = 0; s < x->count; s++) {
        uint32_t count = 0, gap = 0;
        row[s] = (uint32_t)at;
        bool good = take_number(x->data, x->size, &at, &count) && count <= x->most;
        int64_t id = -1;
        for (uint32_t k = 0; good && k < count; k++) {
            good = take_number(x->data, x->size, &at, &gap);
            id += (int64_t)gap + 1;
            if (id >= x->limit) good = false;
        }
        DGM_FAIL_IF(!good, err, DGM_ERR_FORMAT, "%s: the list of %s token %d is damaged", x->key,
                    x->side, s);
        if ((int)count > *longest) *longest = (int)count;
    }
    row[x->count] = (uint32_t)at;
    DGM_FAIL_IF(at != x->size, err, DGM_ERR_FORMAT, "%s: %zu bytes behind the last list", x->key,
                x->size - at);
    return DGM_OK;
}

static dgm_status index_all(dgm_shortlist_view *v, size_t size, size_t next_size, dgm_error *err)
{
    const lists rows = {
        KEY "data", "source", v->data, size, v->sources, v->targets, DGM_SHORTLIST_BEST_MAX};
    const lists next = {
        KEY "next", "target", v->next, next_size, v->targets, v->targets, DGM_SHORTLIST_NEXT_MAX};
    v->row = dgm_malloc(((size_t)v->sources + 1) * sizeof *v->row);
    if (!v->row) return dgm_no_memory(err);
    DGM_TRY(index_lists(&rows, v->row, &v->longest, err));
    if (!v->next) return DGM_OK;
    v->next_row = dgm_malloc(((size_t)v->targets + 1) * sizeof *v->next_row);
    return v->next_row ? index_lists(&next, v->next_row, &v->next_longest, err)
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
    DGM_TRY(vocabulary_hash(g, &v->sources, &v->targets, found, err));
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

static int decode(const uint8_t *p, int32_t *out)
{
    int count = (int)known_number(&p);
    int32_t id = -1;
    for (int k = 0; k < count; k++) out[k] = id += (int32_t)known_number(&p) + 1;
    return count;
}

int dgm_shortlist_view_row(const dgm_shortlist_view *v, int source, int32_t *out)
{
    return decode(v->data + v->row[source], out);
}

int dgm_shortlist_view_next(const dgm_shortlist_view *v, int target, int32_t *out)
{
    return v->next ? decode(v->next + v->next_row[target], out) : 0;
}

static uint64_t list_size(const uint8_t *p)
{
    return known_number(&p);
}

dgm_status dgm_shortlist_load(dgm_shortlist **s, const dgm_gguf *g, dgm_error *err)
{
    *s = NULL;
    dgm_shortlist_view v;
    DGM_TRY(dgm_shortlist_view_open(&v, g, err));
    uint64_t entries = 0, more = 0;
    for (int i = 0; i < v.sources; i++) entries += list_size(v.data + v.row[i]);
    for (int i = 0; v.next && i < v.targets; i++) more += list_size(v.next + v.next_row[i]);
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
    for (int i = 0; i < count; i++) {
        int32_t last = -1;
        put_number(w, (uint32_t)(at[i + 1] - at[i]));
        for (uint64_t k = at[i]; k < at[i + 1]; k++) {
            put_number(w, (uint32_t)(ids[k] - last - 1));
            last = ids[k];
        }
    }
}

dgm_status dgm_shortlist_store(const dgm_shortlist *s, const dgm_gguf *g, dgm_gguf_writer *w,
                               dgm_error *err)
{
    int sources = 0, targets = 0;
    char hash[17];
    DGM_TRY(vocabulary_hash(g, &sources, &targets, hash, err));
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
