// SPDX-License-Identifier: MIT
// vmap.txt of a CTranslate2 model (ct2.h) as a shortlist:
//
//     source tokens TAB target tokens, with spaces between them; without any source tokens: always allowed
//
// CTranslate2 allows what follows an n-gram where the n-gram stands. Here lists belong to single tokens: those of an
// n-gram are added to the list of its first token, so that nothing is missing. Tokens that the vocabularies lack are
// left out, and of a list that is too long the last ones.
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "format/shortlist.h"
#include "import/ct2.h"

typedef struct entry {
    int32_t source, target; // source -1: always allowed
} entry;

typedef struct entries {
    entry *items;
    size_t count, cap;
} entries;

static int by_ids(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return x->target < y->target ? -1 : x->target > y->target;
}

static int find_id(const dgm_ct2 *in, int side, const char *text, size_t n)
{
    const json_t *id = json_object_getn(in->ids[side], text, n);
    return id ? (int)json_integer_value(id) : -1;
}

static dgm_status read_line(const dgm_ct2 *in, const char *line, size_t size, entries *e, dgm_error *err)
{
    const char *tab = memchr(line, '\t', size), *end = line + size;
    if (!tab) return DGM_OK;
    const char *space = memchr(line, ' ', (size_t)(tab - line));
    const size_t key = (size_t)((space ? space : tab) - line);
    const int source = key ? find_id(in, 0, line, key) : -1;
    if (key && source < 0) return DGM_OK;
    for (const char *at = tab + 1; at < end;) {
        const char *next = memchr(at, ' ', (size_t)(end - at));
        if (!next) next = end;
        const int target = next > at ? find_id(in, 1, at, (size_t)(next - at)) : -1;
        if (target >= 0) {
            DGM_TRY(dgm_grow(&e->items, &e->cap, e->count + 1, sizeof *e->items, err));
            e->items[e->count++] = (entry){source, target};
        }
        at = next + 1;
    }
    return DGM_OK;
}

static dgm_status read_all(const dgm_ct2 *in, const dgm_mapfile *f, entries *e, dgm_error *err)
{
    const char *text = (const char *)f->data;
    for (size_t at = 0; at < f->size;) {
        const char *end = memchr(text + at, '\n', f->size - at);
        size_t n = end ? (size_t)(end - text) - at : f->size - at;
        const size_t next = at + n + 1;
        if (n && text[at + n - 1] == '\r') n--;
        DGM_TRY(read_line(in, text + at, n, e, err));
        at = next;
    }
    const char *const always[] = {in->unk, in->bos, in->eos};
    for (int i = 0; i < 3; i++) {
        const int id = dgm_ct2_id(in, 1, always[i]);
        if (id < 0) continue;
        DGM_TRY(dgm_grow(&e->items, &e->cap, e->count + 1, sizeof *e->items, err));
        e->items[e->count++] = (entry){-1, id};
    }
    return DGM_OK;
}

// Sorted, each once, and no list too long.
static void tidy(entries *e)
{
    size_t kept = 0;
    int length = 0;
    qsort(e->items, e->count, sizeof *e->items, by_ids);
    for (size_t i = 0; i < e->count; i++) {
        if (kept && by_ids(&e->items[kept - 1], &e->items[i]) == 0) continue;
        length = kept && e->items[kept - 1].source == e->items[i].source ? length + 1 : 1;
        if (e->items[i].source < 0 || length <= DGM_SHORTLIST_BEST_MAX) e->items[kept++] = e->items[i];
    }
    e->count = kept;
}

static dgm_status make_list(const dgm_ct2 *in, const entries *e, dgm_shortlist **out, dgm_error *err)
{
    int frequent = 0;
    while ((size_t)frequent < e->count && e->items[frequent].source < 0) frequent++;
    const size_t rest = e->count - (size_t)frequent;
    DGM_TRY(dgm_shortlist_open(out, in->size[0], in->size[1], rest, frequent, err));
    for (int i = 0; i < frequent; i++) (*out)->frequent[i] = e->items[i].target;
    (*out)->frequent_count = frequent;
    const entry *list = e->items + frequent;
    size_t at = 0;
    for (int s = 0; s < in->size[0]; s++) {
        (*out)->at[s] = at;
        for (; at < rest && list[at].source == s; at++) (*out)->ids[at] = list[at].target;
    }
    (*out)->at[in->size[0]] = at;
    return DGM_OK;
}

static dgm_status store(const dgm_ct2 *in, const dgm_shortlist *list, dgm_error *err)
{
    dgm_writer bytes = {0};
    dgm_gguf *so_far = NULL;
    dgm_status st = dgm_gguf_metadata(in->job->w, &bytes, err);
    if (st == DGM_OK) st = dgm_gguf_open_memory(&so_far, bytes.data, bytes.size, err);
    if (st == DGM_OK) st = dgm_shortlist_store(list, so_far, in->job->w, err);
    dgm_gguf_close(&so_far);
    dgm_writer_free(&bytes);
    return st;
}

dgm_status dgm_ct2_add_vmap(dgm_ct2 *in, dgm_error *err)
{
    dgm_mapfile f = {0};
    entries e = {0};
    dgm_shortlist *list = NULL;
    DGM_TRY(in->files->open(in->files->self, "vmap.txt", false, &f, err));
    if (!f.data) return DGM_OK;
    dgm_status st = read_all(in, &f, &e, err);
    if (st == DGM_OK) tidy(&e);
    if (st == DGM_OK) st = make_list(in, &e, &list, err);
    if (st == DGM_OK) st = store(in, list, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/vmap.txt'", in->files->label);
    if (st == DGM_OK) dgm_import_note(in->job, "'%s/vmap.txt' was taken as shortlist ('translate --shortlist all' "
                                               "goes without)", in->files->label);
    dgm_shortlist_close(&list);
    dgm_free(e.items);
    dgm_mapfile_close(&f);
    return st;
}
