// SPDX-License-Identifier: MIT
// Cube pruning in the beam (Zhang et al., 2018), over many sentences at once.
//
// One generation:
//
//   1. the live hypotheses of every sentence are sorted into sub-cubes (cube_group.c)
//   2. the leaders of all sub-cubes of all sentences are fed in one step and ranked
//   3. a heap gives each sentence's cells in falling order of approximate score (cube_walk.c)
//   4. accelerated: the finishing policy draws from the heap as it is. A new hypothesis continues
//      its own path with the leader's state, so what was alike stays alike.
//      naive: as many cells as the policy will ask for are popped, those of hypotheses that do not
//      lead get their own states and scores (cube_exact.c), and the policy draws from them in the
//      order of exact scores. Every state and score that lives on is exact.
//   5. decoder rows without a live hypothesis are dropped; sentences that are done leave
//
// With key `none` every hypothesis leads, and both are beam search to the last bit. The finishing
// policies are those of beam search; the paper's is `shrink`, B - |T|. At the maximum length the
// naive form computes every hypothesis, since all of them end there; before, the second store of
// `mask` hears only of the ends that were computed.
// Scores of the accelerated form are sums of leaders' scores, not the model's; where they are
// wanted, results are scored again in the end (rescore.c).
#include "search/cube_private.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

static bool searching(const dgm_search *s, int active)
{
    const dgm_active *p = &s->active[active];
    return p->used && p->again_count == 0 && !dgm_active_leading(s, p);
}

static size_t base(const dgm_search *s, int active)
{
    return (size_t)active * (size_t)s->width;
}

// ---- leaders -----------------------------------------------------------------------------------

// A last step under naive pruning: every hypothesis for itself.
static bool apart(const dgm_search *s, const dgm_active *p)
{
    return s->config.cube_exact && p->tokens == p->max_length;
}

static void compare_states(dgm_search *s)
{
    if (s->config.cube_key != DGM_CUBE_STATE) return;
    dgm_cube_forget(s);
    for (int i = 0; i < s->config.sentences; i++)
        if (searching(s, i) && !apart(s, &s->active[i])) dgm_cube_ask(s, i);
    dgm_cube_measure(s);
}

static void collect(dgm_search *s)
{
    dgm_cubes *c = s->cubes;
    dgm_rows_clear(s);
    compare_states(s);
    for (int i = 0; i < s->config.sentences; i++) {
        const dgm_active *p = &s->active[i];
        c->popped_count[i] = 0;
        if (p->used && p->again_count > 0 && !dgm_active_leading(s, p)) dgm_rescore_collect(s, i);
        if (!searching(s, i)) continue;
        const size_t at = base(s, i);
        dgm_cube_group(s, i, apart(s, p));
        s->stats.live += (uint64_t)p->now.count;
        for (int j = 0; j < p->now.count; j++) {
            c->exact[at + (size_t)j] = -1;
            c->line[at + (size_t)j] = c->leads[at + (size_t)j]
                                          ? s->rows.count
                                          : c->line[at + (size_t)c->leader[at + (size_t)j]];
            if (c->leads[at + (size_t)j]) dgm_rows_add(s, i, j);
        }
    }
    dgm_rows_collect_leading(s);
}

// What the leader looked at is what its followers are taken to look at.
static void share_attention(dgm_search *s, int active)
{
    const dgm_active *p = &s->active[active];
    const size_t source = (size_t)s->config.max_source, count = (size_t)p->source_count;
    for (int j = 0; j < p->now.count; j++) {
        const int leader = s->cubes->leader[base(s, active) + (size_t)j];
        if (leader == j) continue;
        memcpy(p->attention + (size_t)p->now.live[j].node * source,
               p->attention + (size_t)p->now.live[leader].node * source, count * sizeof(float));
    }
}

// ---- cells -------------------------------------------------------------------------------------

static dgm_cube_walk walk_of(dgm_search *s, int active)
{
    const dgm_cubes *c = s->cubes;
    const size_t at = base(s, active);
    return (dgm_cube_walk){.count = s->active[active].now.count,
                           .k = s->k,
                           .scores = s->rows.score,
                           .line = c->line + at,
                           .below = c->below + at,
                           .leads = c->leads + at,
                           .behind = c->behind + at,
                           .diversity = s->config.diversity,
                           .pushed = c->pushed,
                           .heap = c->heap};
}

static bool draw_cell(dgm_search *s, dgm_cube_walk *w, dgm_candidate *out)
{
    dgm_cube_cell cell;
    if (!dgm_cube_walk_pop(w, &cell)) return false;
    const int row = w->line[cell.hypo];
    *out = (dgm_candidate){.hypo = cell.hypo,
                           .row = row,
                           .column = cell.column,
                           .token = s->rows.token[(size_t)row * (size_t)s->k + (size_t)cell.column],
                           .score = cell.score};
    s->stats.pops++;
    return true;
}

static void count_heap(dgm_search *s, const dgm_cube_walk *w)
{
    s->stats.heaps += (uint64_t)w->peak;
    if ((uint64_t)w->peak > s->stats.heap_peak) s->stats.heap_peak = (uint64_t)w->peak;
}

// Ends of all hypotheses; of followers only where approximations are good enough.
static void fill_ends(dgm_search *s, int active)
{
    const dgm_cubes *c = s->cubes;
    const size_t at = base(s, active);
    dgm_candidate *ends = s->active[active].hand->ends;
    for (int j = 0; j < s->active[active].now.count; j++) {
        const int row = c->line[at + (size_t)j];
        const bool known = c->leads[at + (size_t)j] || !s->config.cube_exact;
        ends[j] = dgm_row_end(s, row);
        ends[j].hypo = j;
        ends[j].score = known ? ends[j].score + c->behind[at + (size_t)j] : -INFINITY;
    }
}

// The cells in falling order, from the heap.
static bool next_cell(dgm_merge *m, dgm_candidate *c)
{
    return draw_cell(m->s, m->data, c);
}

// All of them, hypothesis after hypothesis.
static bool next_of_all(dgm_merge *m, dgm_candidate *c)
{
    const dgm_rows *r = &m->s->rows;
    for (const int k = m->s->k; m->at < m->p->now.count * k;) {
        const int hypo = m->at / k, column = m->at++ % k, row = m->lines[hypo];
        const size_t at = (size_t)row * (size_t)k + (size_t)column;
        *c = (dgm_candidate){.hypo = hypo,
                             .row = row,
                             .column = column,
                             .token = r->token[at],
                             .score = r->score[at] + m->behind[hypo]};
        if (c->score > -INFINITY) return true;
    }
    return false;
}

// Constraints make cells compete by banks, not by score: all of them are candidates, and what rows
// offer besides (a sub-cube's hypotheses lack the same terms).
static dgm_merge merge_cells(dgm_search *s, int active, dgm_cube_walk *walk)
{
    const dgm_active *p = &s->active[active];
    dgm_merge cells = {.next = next_cell,
                       .s = s,
                       .p = p,
                       .data = walk,
                       .lines = s->cubes->line + base(s, active),
                       .behind = s->cubes->behind + base(s, active)};
    *walk = walk_of(s, active);
    if (p->constraint)
        cells.next = next_of_all;
    else
        dgm_cube_walk_start(walk);
    return dgm_banks_filter(s, p, &cells);
}

// ---- accelerated -------------------------------------------------------------------------------

static void expand_accelerated(dgm_search *s, int active)
{
    dgm_active *p = &s->active[active];
    dgm_cube_walk walk;
    if (p->attention) share_attention(s, active);
    fill_ends(s, active);
    dgm_merge merge = merge_cells(s, active, &walk);
    dgm_active_expand(s, p, &merge);
    count_heap(s, &walk);
}

// ---- naive -------------------------------------------------------------------------------------

// Pops what the policy will draw. With constraints it chooses again among those by exact scores.
static void pop_cells(dgm_search *s, int active)
{
    const dgm_active *p = &s->active[active];
    const dgm_finish_ops *finish = s->finish;
    dgm_candidate *cells = s->cubes->popped + (size_t)active * (size_t)s->cubes->pops;
    const int all = finish->places ? finish->places(s, p) : s->cubes->pops;
    const int lives = finish->places || p->constraint ? s->cubes->pops : s->width;
    dgm_cube_walk walk;
    dgm_merge merge = merge_cells(s, active, &walk);
    int count = 0;
    for (int live = 0; count < all && live < lives && dgm_merge_next(&merge, &cells[count]);
         count++)
        live += !dgm_candidate_ends(s, &cells[count]);
    s->cubes->popped_count[active] = count;
    count_heap(s, &walk);
}

static float key_of(const dgm_search *s, const dgm_candidate *c)
{
    return c->score - s->config.diversity * (float)c->column;
}

// Falling by exact score, less what diversity takes off; equal ones stay in the order of the heap.
static void sort_cells(const dgm_search *s, dgm_candidate *cells, int count)
{
    for (int i = 1; i < count; i++) {
        const dgm_candidate cell = cells[i];
        int at = i;
        DGM_INSERT(cells, at, cell, key_of(s, &cell) > key_of(s, &cells[at - 1]));
    }
}

static bool next_popped(dgm_merge *m, dgm_candidate *c)
{
    const dgm_cubes *cubes = m->s->cubes;
    const int active = (int)(m->p - m->s->active);
    if (m->at == cubes->popped_count[active]) return false;
    *c = ((const dgm_candidate *)m->data)[m->at++];
    return c->score > -INFINITY; // not a number: neither
}

static void expand_naive(dgm_search *s, int active)
{
    dgm_active *p = &s->active[active];
    dgm_candidate *cells = s->cubes->popped + (size_t)active * (size_t)s->cubes->pops;
    sort_cells(s, cells, s->cubes->popped_count[active]);
    fill_ends(s, active);
    dgm_merge popped = {.next = next_popped, .s = s, .p = p, .data = cells};
    dgm_merge merge = dgm_banks_filter(s, p, &popped);
    dgm_active_expand(s, p, &merge);
}

// ---- as a search -------------------------------------------------------------------------------

static void lead(dgm_search *s, dgm_active *p)
{
    dgm_active_lead(s, p);
    if (p->again_count > 0) dgm_rescore_lead(s, p);
}

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    const bool naive = s->config.cube_exact;
    collect(s);
    DGM_TRY(dgm_rows_run(s, err));
    DGM_TRY(dgm_exec_status(s->exec, err));
    for (int i = 0; i < s->config.sentences && naive; i++)
        if (searching(s, i)) pop_cells(s, i);
    if (naive) DGM_TRY(dgm_cube_exact(s, err));
    for (int i = 0; i < s->config.sentences; i++) {
        dgm_active *p = &s->active[i];
        if (!p->used) continue;
        if (dgm_active_leading(s, p))
            lead(s, p);
        else if (p->again_count > 0)
            dgm_rescore_take(s, p);
        else if (naive)
            expand_naive(s, i);
        else
            expand_accelerated(s, i);
    }
    dgm_rows_retain(s);
    return DGM_OK;
}

static dgm_status check(const dgm_search_config *c, dgm_error *err)
{
    DGM_FAIL_IF((int)c->cube_key < 0 || c->cube_key > DGM_CUBE_STATE, err, DGM_ERR_ARGUMENT,
                "there is no cube key number %d", (int)c->cube_key);
    if (c->cube_key != DGM_CUBE_STATE) return DGM_OK;
    DGM_FAIL_IF(!(c->cube_distance >= 0.0f) || isinf(c->cube_distance), err, DGM_ERR_ARGUMENT,
                "the distance of cube states is %g; it must be 0 or more",
                (double)c->cube_distance);
    DGM_FAIL_IF(c->hidden < 1, err, DGM_ERR_ARGUMENT,
                "comparing states needs the width of the models' hidden vectors");
    return DGM_OK;
}

static int candidates(const dgm_search_config *c)
{
    return c->beam + 1; // as in beam search: row 0 of a sub-cube is such a row, others need less
}

static void lay_out(dgm_carve *carve, dgm_search *s)
{
    const size_t sentences = (size_t)s->config.sentences, width = (size_t)s->width;
    const size_t rows = (size_t)s->capacity, cells = rows * (size_t)s->k;
    // A policy draws at most `width` that go on, and each hypothesis ends once.
    const int pops = 2 * s->width;
    dgm_cubes counted, *c = DGM_CARVE(carve, dgm_cubes, 1);
    s->cubes = c;
    if (!c) c = &counted;
    *c = (dgm_cubes){.pops = pops};
    c->line = DGM_CARVE(carve, int32_t, sentences * width);
    c->leader = DGM_CARVE(carve, int32_t, sentences * width);
    c->below = DGM_CARVE(carve, int32_t, sentences * width);
    c->leads = DGM_CARVE(carve, bool, sentences *width);
    c->behind = DGM_CARVE(carve, float, sentences *width);
    c->exact = DGM_CARVE(carve, int32_t, sentences * width);
    c->pushed = DGM_CARVE(carve, int32_t, width);
    c->heap = DGM_CARVE(carve, dgm_cube_cell, (size_t)DGM_CUBE_HEAP(s->width, pops));
    c->popped_count = DGM_CARVE(carve, int, sentences);
    if (s->config.cube_exact) {
        c->popped = DGM_CARVE(carve, dgm_candidate, sentences * (size_t)pops);
        c->filled = DGM_CARVE(carve, int32_t, rows);
        c->ids = DGM_CARVE(carve, int32_t, cells);
        c->lists = DGM_CARVE(carve, dgm_candidates, rows);
        c->watch = DGM_CARVE(carve, int32_t, cells);
        c->watch_score = DGM_CARVE(carve, float, cells);
        c->best = DGM_CARVE(carve, float, rows);
        c->best_token = DGM_CARVE(carve, int32_t, rows);
    }
    if (s->config.cube_key != DGM_CUBE_STATE) return;
    const size_t pairs = rows * (width > 1 ? width - 1 : 0) / 2;
    s->kept = s->config.hidden;
    c->one = DGM_CARVE(carve, int32_t, pairs);
    c->two = DGM_CARVE(carve, int32_t, pairs);
    c->distance = DGM_CARVE(carve, dgm_distance, pairs);
}

const dgm_search_ops dgm_search_cube = {.name = "cube",
                                        .tokens = 1,
                                        .grows = true,
                                        .check = check,
                                        .candidates = candidates,
                                        .lay_out = lay_out,
                                        .advance = advance};
