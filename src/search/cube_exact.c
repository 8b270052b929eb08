// SPDX-License-Identifier: MIT
// Naive cube pruning's second half: popped cells get their own states and scores.
//
// The heaps of all sentences are walked first, by approximate scores; an exact score never steers a
// later pop. So everything that is needed is known, and one batch serves all sentences:
//
//     popped cells        leader's cells are exact already
//        |
//     distinct hypotheses that do not lead       stepped from their own rows
//        |
//     rank, watching the popped words only       softmax on: the whole sum is needed, a projection
//                                                softmax off: a product per popped cell
//
// A row's terms are its own, so the scores are those that beam search would have given these cells.
#include "search/cube_private.h"

#include <math.h>

#include "base/sort.h"

// Calls `visit` for every popped cell whose hypothesis does not lead, in a fixed order.
typedef void (*visitor)(dgm_search *s, int active, dgm_candidate *cell, int first);

static void visit_cells(dgm_search *s, visitor visit, int first)
{
    const dgm_cubes *c = s->cubes;
    for (int i = 0; i < s->config.sentences; i++) {
        const bool *leads = c->leads + (size_t)i * (size_t)s->width;
        dgm_candidate *cells = c->popped + (size_t)i * (size_t)c->pops;
        for (int n = 0; n < c->popped_count[i]; n++)
            if (!leads[cells[n].hypo]) visit(s, i, &cells[n], first);
    }
}

static int32_t *exact_row(dgm_search *s, int active, int hypo)
{
    return &s->cubes->exact[(size_t)active * (size_t)s->width + (size_t)hypo];
}

// A generation row for each hypothesis; how many of its words were popped.
static void add_row(dgm_search *s, int active, dgm_candidate *cell, int first)
{
    int32_t *row = exact_row(s, active, cell->hypo);
    if (*row < 0) {
        *row = dgm_rows_append(s, active, cell->hypo);
        // The columns are the leader's, whatever chose them.
        s->rows.candidates[*row] = s->rows.candidates[cell->row];
        s->rows.more[*row] = s->rows.more[cell->row];
        s->cubes->filled[*row - first] = 0;
        dgm_terms_fill(s, *row);
    }
    cell->row = *row;
    s->cubes->filled[*row - first]++;
}

static void add_watch(dgm_search *s, int active, dgm_candidate *cell, int first)
{
    (void)active;
    dgm_cubes *c = s->cubes;
    const int i = cell->row - first;
    c->watch[(size_t)i * (size_t)c->watched + (size_t)c->filled[i]++] = cell->token;
}

static void read_score(dgm_search *s, int active, dgm_candidate *cell, int first)
{
    (void)active;
    dgm_cubes *c = s->cubes;
    const int i = cell->row - first;
    cell->score = c->watch_score[(size_t)i * (size_t)c->watched + (size_t)c->filled[i]++];
}

// Without a sum only the popped words are multiplied: an ascending list per row.
static void list_popped(dgm_search *s, int first, int count)
{
    dgm_cubes *c = s->cubes;
    for (int i = 0; i < count; i++) {
        int32_t *ids = c->ids + (size_t)i * (size_t)c->watched;
        const int32_t *words = c->watch + (size_t)i * (size_t)c->watched;
        for (int n = 0; n < c->filled[i]; n++) dgm_insert_id(ids, n, words[n]);
        c->lists[i] = (dgm_candidates){.ids = ids, .count = c->filled[i]};
        s->rows.candidates[first + i] = &c->lists[i];
        s->rows.more[first + i] = NULL;
    }
}

static void clear_filled(dgm_cubes *c, int count)
{
    for (int i = 0; i < count; i++) c->filled[i] = 0;
}

// Rows first + at .. first + at + count - 1, the last that were fed.
static void rank_popped(dgm_search *s, int first, int at, int count)
{
    dgm_cubes *c = s->cubes;
    const size_t row = (size_t)first + (size_t)at, cell = (size_t)at * (size_t)c->watched;
    dgm_rank_run(s, &(dgm_rank){.rows = count,
                                .candidates = s->rows.candidates + row,
                                .more = s->rows.more + row,
                                .terms = s->rows.terms + row,
                                .k = 1, // nobody looks at it
                                .score = c->best,
                                .token = c->best_token,
                                .watch_count = c->watched,
                                .watch = c->watch + cell,
                                .watch_score = c->watch_score + cell});
    s->stats.exact += (uint64_t)count;
    if (s->config.normalise) s->stats.rank_rows += (uint64_t)count;
}

dgm_status dgm_cube_exact(dgm_search *s, dgm_error *err)
{
    dgm_cubes *c = s->cubes;
    const int first = s->rows.count;
    visit_cells(s, add_row, first);
    const int count = s->rows.count - first;
    if (count == 0) return DGM_OK;
    c->watched = 0;
    for (int i = 0; i < count; i++)
        if (c->filled[i] > c->watched) c->watched = c->filled[i];
    for (int i = 0; i < count * c->watched; i++) c->watch[i] = -1;
    clear_filled(c, count);
    visit_cells(s, add_watch, first);
    if (!s->config.normalise) list_popped(s, first, count);
    const int most = s->config.max_rows ? s->config.max_rows : count;
    for (int at = 0; at < count; at += most) {
        const int part = count - at < most ? count - at : most;
        DGM_TRY(dgm_rows_step(s, first + at, part, err));
        rank_popped(s, first, at, part);
    }
    DGM_TRY(dgm_exec_status(s->exec, err));
    clear_filled(c, count);
    visit_cells(s, read_score, first);
    return DGM_OK;
}
