// SPDX-License-Identifier: MIT
// Rescoring: the best paths of lattices, scored by the models (`dragoman score --lattice`).
//
// The n best texts of every line's lattice become pairs, all lines' pairs are scored together by
// forced decoding (pairs.c), and each line's texts are ranked by the models' score, to which the
// lattice's is added with a weight. A search inside the lattice (translate --lattice) looks at all
// paths, not n of them, but through a beam.
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "lattice/lattice.h"

typedef struct scored_box {
    dgm_scored_lines pub; // first: what the caller sees
    dgm_scored_line *items;
    const dgm_scored_line **list; // the items
} scored_box;

typedef struct rescoring {
    scored_box *box;
    dgm_writer text; // of all paths, behind each other
    size_t *text_at; // [pairs] where each begins
    size_t at_cap;
    double *lattice; // [pairs]
    size_t lattice_cap;
    size_t *line_of; // [pairs]
    size_t line_cap;
    size_t pair_count;
    size_t line;
} rescoring;

void dgm_scored_lines_free(dgm_scored_lines **lines)
{
    if (!lines || !*lines) return;
    scored_box *box = (scored_box *)(void *)*lines;
    *lines = NULL;
    for (size_t i = 0; box->items && i < box->pub.count; i++) {
        const dgm_scored_line *l = &box->items[i];
        for (size_t k = 0; k < l->count; k++) {
            dgm_free((void *)(uintptr_t)l->paths[k]->text);
            dgm_free((void *)(uintptr_t)l->paths[k]);
        }
        dgm_free((void *)(uintptr_t)l->paths);
        if (l->message && l->message[0]) dgm_free((void *)(uintptr_t)l->message);
    }
    dgm_free(box->items);
    dgm_free(box->list);
    dgm_free(box);
}

static dgm_status open_lines(scored_box *box, size_t count, dgm_error *err)
{
    box->items = dgm_calloc(count + 1, sizeof *box->items);
    box->list = dgm_calloc(count + 1, sizeof *box->list);
    if (!box->items || !box->list) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        box->items[i] = (dgm_scored_line){.size = sizeof box->items[i], .message = ""};
        box->list[i] = &box->items[i];
    }
    box->pub = (dgm_scored_lines){.size = sizeof box->pub, .items = box->list, .count = count};
    return DGM_OK;
}

static dgm_status fail_line(rescoring *r, size_t line, dgm_status st, const char *why,
                            dgm_error *err)
{
    dgm_scored_line *l = &r->box->items[line];
    if (st == DGM_ERR_MEMORY) return dgm_no_memory(err);
    l->status = st;
    l->message = dgm_strdup(why);
    r->box->pub.failed++;
    if (l->message) return DGM_OK;
    l->message = "";
    return dgm_no_memory(err);
}

static bool take(void *cookie, const dgm_lattice_path *p)
{
    rescoring *r = cookie;
    const size_t n = r->pair_count;
    if (dgm_grow(&r->text_at, &r->at_cap, n + 2, sizeof *r->text_at, NULL) != DGM_OK ||
        dgm_grow(&r->lattice, &r->lattice_cap, n + 1, sizeof *r->lattice, NULL) != DGM_OK ||
        dgm_grow(&r->line_of, &r->line_cap, n + 1, sizeof *r->line_of, NULL) != DGM_OK) {
        r->text.failed = true;
        return false;
    }
    r->text_at[n] = r->text.size;
    dgm_lattice_spell(p->lattice, p->arcs, p->count, &r->text, NULL);
    r->text_at[n + 1] = r->text.size;
    r->lattice[n] = p->score;
    r->line_of[n] = r->line;
    r->pair_count++;
    return !r->text.failed;
}

static dgm_status collect(rescoring *r, const dgm_lattice_text *lattices, size_t count,
                          size_t nbest, dgm_error *err)
{
    for (r->line = 0; r->line < count; r->line++) {
        dgm_lattice *l = NULL;
        dgm_error why;
        const dgm_lattice_text *given = &lattices[r->line];
        dgm_status st = dgm_lattice_parse(&l, (dgm_text){given->text, given->size},
                                          given->line ? (uint32_t)given->line : 1, NULL, &why);
        if (st == DGM_OK) st = dgm_lattice_nbest(l, nbest, true, take, r, &why);
        dgm_lattice_close(&l);
        if (r->text.failed) return dgm_no_memory(err);
        if (st != DGM_OK) {
            dgm_error_prefix(&why, "lattice");
            DGM_TRY(fail_line(r, r->line, st, why.text, err));
        }
    }
    return DGM_OK;
}

static int by_score(const void *context, uint32_t a, uint32_t b)
{
    const dgm_scored_path *const *p = context;
    if (p[a]->score != p[b]->score) return p[a]->score > p[b]->score ? -1 : 1;
    return a < b ? -1 : a > b;
}

static dgm_status rank(const dgm_scored_path **paths, size_t count, dgm_error *err)
{
    uint32_t *order = dgm_malloc((count + 1) * sizeof *order);
    const dgm_scored_path **sorted = dgm_malloc((count + 1) * sizeof *sorted);
    if (!order || !sorted) {
        dgm_free(order);
        dgm_free(sorted);
        return dgm_no_memory(err);
    }
    dgm_sort_indices(order, count, by_score, paths);
    for (size_t i = 0; i < count; i++) sorted[i] = paths[order[i]];
    memcpy(paths, sorted, count * sizeof *paths);
    dgm_free(order);
    dgm_free(sorted);
    return DGM_OK;
}

// The paths of one line, pairs first .. first + count - 1. The first failure is the line's.
static dgm_status fill_line(rescoring *r, const dgm_translator *t,
                            const dgm_pair_score *const *scores, size_t first, size_t count,
                            float weight, dgm_error *err)
{
    dgm_scored_line *line = &r->box->items[r->line_of[first]];
    for (size_t i = first; i < first + count; i++)
        if (scores[i]->status != DGM_OK)
            return fail_line(r, r->line_of[first], scores[i]->status, scores[i]->message, err);
    const dgm_scored_path **paths = dgm_calloc(count, sizeof *paths);
    if (!paths) return dgm_no_memory(err);
    line->paths = paths;
    for (size_t i = 0; i < count; i++) {
        const size_t at = first + i, begin = r->text_at[at];
        const dgm_pair_score *s = scores[at];
        const int length = (int)s->token_count;
        const float sum = s->sum + weight * (float)r->lattice[at];
        dgm_scored_path *p = dgm_malloc(sizeof *p);
        if (!p) return dgm_no_memory(err);
        paths[line->count++] = p;
        *p = (dgm_scored_path){
            .size = sizeof *p,
            .text = dgm_strndup((const char *)r->text.data + begin, r->text_at[at + 1] - begin),
            .lattice = r->lattice[at],
            .sum = s->sum,
            .score = dgm_length_normalise(sum - t->config.word_penalty * (float)length, length,
                                          t->config.length_penalty),
            .token_count = s->token_count};
        if (!p->text) return dgm_no_memory(err);
    }
    return rank(paths, count, err);
}

static dgm_status score_all(rescoring *r, dgm_translator *t, const dgm_line *sources, float weight,
                            dgm_error *err)
{
    if (r->pair_count == 0) return DGM_OK;
    dgm_pair_scores *scores = NULL;
    dgm_pair *pairs = dgm_malloc(r->pair_count * sizeof *pairs);
    if (!pairs) return dgm_no_memory(err);
    for (size_t i = 0; i < r->pair_count; i++)
        pairs[i] = (dgm_pair){
            sources[r->line_of[i]],
            {(const char *)r->text.data + r->text_at[i], r->text_at[i + 1] - r->text_at[i]}};
    dgm_status st = dgm_score_pairs(t, pairs, r->pair_count, &scores, err);
    for (size_t i = 0, n; st == DGM_OK && i < r->pair_count; i += n) {
        for (n = 1; i + n < r->pair_count && r->line_of[i + n] == r->line_of[i];) n++;
        // A line whose lattice failed half way keeps its message.
        if (r->box->items[r->line_of[i]].status == DGM_OK)
            st = fill_line(r, t, scores->items, i, n, weight, err);
    }
    dgm_pair_scores_free(&scores);
    dgm_free(pairs);
    return st;
}

dgm_status dgm_score_lattices(dgm_translator *t, const dgm_line *sources,
                              const dgm_lattice_text *lattices, size_t count, size_t nbest,
                              float weight, dgm_scored_lines **lines, dgm_error *err)
{
    *lines = NULL;
    DGM_FAIL_IF(nbest < 1, err, DGM_ERR_ARGUMENT, "lists of the 0 best paths");
    rescoring r = {.box = dgm_calloc(1, sizeof *r.box)};
    if (!r.box) return dgm_no_memory(err);
    dgm_status st = open_lines(r.box, count, err);
    if (st == DGM_OK) st = collect(&r, lattices, count, nbest, err);
    if (st == DGM_OK) st = score_all(&r, t, sources, weight, err);
    dgm_writer_free(&r.text);
    dgm_free(r.text_at);
    dgm_free(r.lattice);
    dgm_free(r.line_of);
    *lines = &r.box->pub;
    if (st != DGM_OK) dgm_scored_lines_free(lines);
    return st;
}
