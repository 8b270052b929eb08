// SPDX-License-Identifier: MIT
// Links of a bitext; see links.h. Lines are cut into blocks; a wave of blocks is worked on by the
// pool and then handed over in order, so that memory stays small and the text is the same whatever
// the number of threads.
#include "align/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fields.h"
#include "base/mem.h"
#include "base/number.h"

enum { BLOCK_LINES = 2048 };

static size_t length_of(const dgm_bitext *b, int side, uint32_t pair)
{
    return (size_t)(b->side[side].start[pair + 1] - b->side[side].start[pair]);
}

size_t dgm_links_cells(const dgm_bitext *b)
{
    size_t n = (size_t)b->max_length;
    return n * n + 2 * n;
}

size_t dgm_links_most(const dgm_bitext *b)
{
    return 2 * (size_t)b->max_length;
}

size_t dgm_links_of_pair(const dgm_links *l, uint32_t p, uint8_t *cells, dgm_align_link *links)
{
    const dgm_bitext_side *s = &l->b->side[0], *t = &l->b->side[1];
    return dgm_symmetrize_links(l->method, l->forward + t->start[p], (int)length_of(l->b, 1, p),
                                l->backward + s->start[p], (int)length_of(l->b, 0, p), cells,
                                links);
}

// ---- writing ----------------------------------------------------------------------------------

typedef struct block {
    dgm_writer text;
    dgm_link_counts counts;
    uint8_t *cells;        // the worker's scratch lies with the block: a wave has few
    dgm_align_link *links; // [dgm_links_most]
    dgm_status status;
} block;

typedef struct wave {
    const dgm_links *l;
    block *blocks;
    uint32_t first; // line of the first block
    bool text, counts;
} wave;

static void put_number(char *out, size_t *n, unsigned v)
{
    char digits[10];
    int k = 0;
    do digits[k++] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    while (k > 0) out[(*n)++] = digits[--k];
}

static void write_links(dgm_writer *w, const dgm_align_link *links, size_t count)
{
    char item[24];
    for (size_t k = 0; k < count; k++) {
        size_t n = 0;
        if (k) item[n++] = ' ';
        put_number(item, &n, links[k].source);
        item[n++] = '-';
        put_number(item, &n, links[k].target);
        dgm_write_bytes(w, item, n);
    }
    dgm_write_u8(w, '\n');
}

// Every link, and NULL for every token without one. Marks of used tokens lie behind the grid.
static dgm_status count_links(const dgm_bitext *b, uint32_t p, const dgm_align_link *links,
                              size_t count, uint8_t *used, dgm_link_counts *c)
{
    size_t m = length_of(b, 0, p), n = length_of(b, 1, p);
    const uint32_t *s = b->side[0].token + b->side[0].start[p];
    const uint32_t *t = b->side[1].token + b->side[1].start[p];
    memset(used, 0, m + n);
    for (size_t k = 0; k < count; k++) {
        used[links[k].source] = used[m + links[k].target] = 1;
        DGM_TRY(dgm_link_counts_add(c, s[links[k].source], t[links[k].target], NULL));
    }
    for (size_t i = 0; i < m; i++)
        if (!used[i]) DGM_TRY(dgm_link_counts_add(c, s[i], c->targets, NULL));
    for (size_t j = 0; j < n; j++)
        if (!used[m + j]) DGM_TRY(dgm_link_counts_add(c, c->sources, t[j], NULL));
    return DGM_OK;
}

static void work(void *arg, int worker, int item)
{
    const wave *w = arg;
    (void)worker;
    block *k = &w->blocks[item];
    const dgm_bitext *b = w->l->b;
    uint64_t from = w->first + (uint64_t)item * BLOCK_LINES;
    k->text.size = 0;
    k->counts.count = 0;
    for (uint64_t line = from; line < from + BLOCK_LINES && line < b->lines; line++) {
        uint32_t p = b->pair[line];
        size_t n = p == DGM_BITEXT_NO_PAIR ? 0 : dgm_links_of_pair(w->l, p, k->cells, k->links);
        if (w->text) write_links(&k->text, k->links, n);
        if (w->counts && p != DGM_BITEXT_NO_PAIR && k->status == DGM_OK)
            k->status = count_links(b, p, k->links, n, k->cells, &k->counts);
    }
    if (k->text.failed) k->status = DGM_ERR_MEMORY;
}

// Takes what a wave has made.
static dgm_status hand_over(wave *w, int count, dgm_links_sink sink, void *cookie,
                            dgm_link_counts *counts, dgm_error *err)
{
    for (int i = 0; i < count; i++) {
        block *k = &w->blocks[i];
        if (k->status != DGM_OK) return dgm_no_memory(err);
        if (sink && k->text.size > 0)
            DGM_TRY(sink(cookie, (const char *)k->text.data, k->text.size, err));
        if (!counts || k->counts.count == 0) continue;
        DGM_TRY(dgm_grow(&counts->key, &counts->cap, counts->count + k->counts.count,
                         sizeof *counts->key, err));
        memcpy(counts->key + counts->count, k->counts.key, k->counts.count * sizeof *counts->key);
        counts->count += k->counts.count;
    }
    return DGM_OK;
}

dgm_status dgm_links_write(const dgm_links *l, dgm_pool *pool, dgm_links_sink sink, void *cookie,
                           dgm_link_counts *counts, dgm_error *err)
{
    int blocks = 2 * dgm_pool_threads(pool);
    wave w = {.l = l, .text = sink != NULL, .counts = counts != NULL};
    w.blocks = dgm_calloc((size_t)blocks, sizeof *w.blocks);
    dgm_status st = w.blocks ? DGM_OK : dgm_no_memory(err);
    for (int i = 0; st == DGM_OK && i < blocks; i++) {
        block *k = &w.blocks[i];
        k->cells = dgm_malloc(dgm_links_cells(l->b));
        k->links = dgm_malloc(dgm_links_most(l->b) * sizeof *k->links);
        if (counts)
            k->counts = (dgm_link_counts){.sources = counts->sources, .targets = counts->targets};
        if (!k->cells || !k->links) st = dgm_no_memory(err);
    }
    for (uint64_t line = 0; st == DGM_OK && line < l->b->lines;) {
        uint64_t left = (l->b->lines - line + BLOCK_LINES - 1) / BLOCK_LINES;
        int count = left < (uint64_t)blocks ? (int)left : blocks;
        w.first = (uint32_t)line;
        dgm_pool_run(pool, work, &w, count);
        st = hand_over(&w, count, sink, cookie, counts, err);
        line += (uint64_t)count * BLOCK_LINES;
    }
    for (int i = 0; w.blocks && i < blocks; i++) {
        dgm_writer_free(&w.blocks[i].text);
        dgm_link_counts_free(&w.blocks[i].counts);
        dgm_free(w.blocks[i].cells);
        dgm_free(w.blocks[i].links);
    }
    dgm_free(w.blocks);
    return st;
}

// ---- error rate -------------------------------------------------------------------------------

enum { POSITION_MAX = 999999 };

typedef struct scanned {
    unsigned source, target;
    bool sure;
} scanned;

// The next link of a line, "1-2" or (possible) "1?2". *more is false at its end.
static dgm_status next_link(dgm_text *line, bool possible, scanned *out, bool *more, dgm_error *err)
{
    const dgm_text field = dgm_field_next(line);
    dgm_text t = field;
    *more = field.size > 0;
    if (!*more) return DGM_OK;
    uint64_t i = 0, j = 0;
    bool good = dgm_number_take_u64(&t, POSITION_MAX, &i);
    out->sure = dgm_field_skip(&t, "-");
    good = good && (out->sure || (possible && dgm_field_skip(&t, "?"))) &&
           dgm_number_u64(t, POSITION_MAX, &j);
    DGM_FAIL_IF(!good, err, DGM_ERR_FORMAT, "'%.*s' is not a link", DGM_SHOWN(field));
    out->source = (unsigned)i;
    out->target = (unsigned)j;
    return DGM_OK;
}

// Links of a line, each once: a set, as the measure wants it.
typedef struct link_set {
    scanned *items;
    size_t count, cap;
} link_set;

static const scanned *find_link(const link_set *set, const scanned *s)
{
    for (size_t k = 0; k < set->count; k++)
        if (set->items[k].source == s->source && set->items[k].target == s->target) return &set->items[k];
    return NULL;
}

static dgm_status read_set(link_set *set, dgm_text line, bool possible, dgm_error *err)
{
    scanned s = {0};
    bool more = true;
    for (;;) {
        DGM_TRY(next_link(&line, possible, &s, &more, err));
        if (!more) return DGM_OK;
        if (find_link(set, &s)) continue;
        DGM_TRY(dgm_grow(&set->items, &set->cap, set->count + 1, sizeof *set->items, err));
        set->items[set->count++] = s;
    }
}

dgm_status dgm_aer_add(dgm_aer *aer, dgm_text gold, dgm_text links, dgm_error *err)
{
    link_set known = {0}, found = {0};
    dgm_status st = read_set(&known, gold, true, err);
    if (st == DGM_OK) st = read_set(&found, links, false, err);
    for (size_t i = 0; st == DGM_OK && i < known.count; i++) aer->sure += known.items[i].sure;
    for (size_t i = 0; st == DGM_OK && i < found.count; i++) {
        const scanned *k = find_link(&known, &found.items[i]);
        aer->links++;
        aer->right_found += k != NULL;
        aer->sure_found += k && k->sure;
    }
    dgm_free(known.items);
    dgm_free(found.items);
    return st;
}

double dgm_aer_rate(const dgm_aer *aer)
{
    uint64_t all = aer->links + aer->sure;
    return all ? 1 - (double)(aer->sure_found + aer->right_found) / (double)all : 0;
}
