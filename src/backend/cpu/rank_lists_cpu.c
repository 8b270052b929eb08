// SPDX-License-Identifier: MIT
// CPU backend: lists of many sentences side by side (rank_cpu.c has the walk of one list).
//
// Lists that change with every step are not worth gathering. Of a layer that keeps its weights by
// rows (cpu_linear_by_rows) each listed row is read where it lies, and the loops turn around:
//
//     for each SPAN of the vocabulary      rows of weights that several sentences want are read
//         for each sentence                from memory once, then from the cache
//
// Chunks of such a list end at the borders of spans, too: again cut by the list alone. Where the
// rows of a batch together want more than a DENSE-th of a span, its product with all of them is
// cheaper, and lists are read off it: integers only, whose bits are the same either way.
//
// A sentence's gathered columns are a third of a megabyte; those of a hundred sentences come from memory in every step,
// and a row that has one of them to itself waits for them. The whole layer is read once for all rows. Where the product
// with it is estimated to take less time, it is made, WHOLE_ROWS rows at a time, and every row picks its list's logits
// out of it. Sums of integers are exact: a logit has the same bits either way, and chunks are cut by the list as ever.
#include <math.h>

#include "base/lower_bound.h"
#include "backend/cpu/rank_private.h"

enum {
    SPAN = 2048,
    DENSE = 6,
    DENSE_ROWS = 16,
    WHOLE_ROWS = 18,       // three tiles of a product; their logits stay in the second cache
    WHOLE_MOST = 1 << 16,  // columns: logits of more would not
    NEAR_BYTES = 8 << 20,  // of gathered columns: what a core can hope to find in the third cache ..
    NEAR_SPEED = 60,       // .. and bytes a nanosecond that come from there
    FAR_SPEED = 20
};

// ---- by rows ------------------------------------------------------------------------------------

size_t cpu_rank_wide(void)
{
    return (size_t)DENSE_ROWS * SPAN;
}

// The group's next entries below `limit`, as a chunk; none: count 0.
static rank_columns next_chunk(const rank_group *g, int32_t limit)
{
    const dgm_candidates *list = g->list;
    int n = 0;
    while (n < CHUNK && g->at + n < list->count && list->ids[g->at + n] < limit) n++;
    return (rank_columns){.first = g->at, .count = n, .ids = list->ids + g->at};
}

// The group's entries below `limit`.
static void rank_span(rank_state *q, rank_group *g, int32_t limit)
{
    for (rank_columns c; (c = next_chunk(g, limit)).count; g->at += c.count)
        cpu_rank_chunk(q, g->row, g->rows, &c);
}

// The same out of q->wide, where the group's rows begin at row `at` and the span at token `first`.
static void rank_wide(rank_state *q, rank_group *g, int at, int32_t first, int32_t limit)
{
    for (rank_columns c; (c = next_chunk(g, limit)).count; g->at += c.count)
        for (int r = 0; r < g->rows; r++) {
            const float *from = q->wide + (size_t)(at + r) * SPAN;
            float *to = q->logits + (size_t)r * CHUNK;
            for (int i = 0; i < c.count; i++) to[i] = from[c.ids[i] - first];
            cpu_rank_consume(q, g->row + r, r, &c);
        }
}

static bool dense(const rank_state *q, const rank_group *groups, int count, int32_t first, int32_t limit)
{
    const int end = limit < q->vocabulary ? limit : q->vocabulary;
    const dgm_linear *w = q->r->parts[0].out;
    if (q->r->part_count > 1 || !w->packed || w->precision == DGM_PRECISION_F32) return false;
    int64_t listed = 0, rows = 0;
    for (int i = 0; i < count; i++) {
        const rank_group *g = &groups[i];
        listed += (int64_t)g->rows *
                  dgm_lower_id(g->list->ids + g->at, g->list->count - g->at, limit);
        rows += g->rows;
    }
    return rows >= DENSE_ROWS && listed * DENSE > rows * (end - first);
}

// Groups side by side, up to DENSE_ROWS rows at a time.
static void rank_dense(rank_state *q, rank_group *groups, int count, int32_t first, int32_t limit)
{
    const dgm_linear *w = q->r->parts[0].out;
    const int end = limit < q->vocabulary ? limit : q->vocabulary;
    for (int i = 0, next; i < count; i = next) {
        const int row = groups[i].row;
        int rows = groups[i].rows;
        for (next = i + 1; next < count && groups[next].row == row + rows &&
                           rows + groups[next].rows <= DENSE_ROWS;
             next++)
            rows += groups[next].rows;
        if (rows > DENSE_ROWS) { // one group alone
            rank_span(q, &groups[i], limit);
            continue;
        }
        const double begin = cpu_begin(q->x);
        cpu_rank_project(q, w, 0, row, rows, first, end, q->wide, SPAN, false);
        if (q->x->meter) {
            cpu_count_product(q->x, w, rows, end - first, end - first, begin);
            q->products += dgm_thread_time() - begin;
        }
        for (int g = i; g < next; g++) rank_wide(q, &groups[g], groups[g].row - row, first, limit);
    }
}

void cpu_rank_by_rows(rank_state *q, rank_group *groups, int count)
{
    for (int64_t first = 0; count && first < q->vocabulary; first += SPAN) {
        const int32_t limit = first + SPAN > INT32_MAX ? INT32_MAX : (int32_t)(first + SPAN);
        if (dense(q, groups, count, (int32_t)first, limit)) {
            rank_dense(q, groups, count, (int32_t)first, limit);
            continue;
        }
        for (int i = 0; i < count; i++) rank_span(q, &groups[i], limit);
    }
    for (int i = 0; i < count; i++)
        cpu_rank_all_more(q, groups[i].list, groups[i].row, groups[i].rows);
}

// ---- off the whole layer ------------------------------------------------------------------------

size_t cpu_rank_whole(int vocabulary)
{
    return vocabulary <= WHOLE_MOST ? (size_t)WHOLE_ROWS * (size_t)vocabulary : 0;
}

// Nanoseconds for the lists one by one.
static double time_of_lists(const dgm_linear *w, const rank_group *groups, int count)
{
    double bytes = 0, time = 0;
    for (int i = 0; i < count; i++) bytes += (double)groups[i].list->count * w->cols;
    const double speed = bytes < NEAR_BYTES ? NEAR_SPEED : FAR_SPEED;
    for (int i = 0; i < count; i++) {
        const dgm_candidates *list = groups[i].list;
        const int columns = list->gathered ? list->count : w->rows; // panels of the layer, nearly all of them
        time += fmax((double)columns * w->cols / speed, cpu_product_time(w, groups[i].rows, columns));
    }
    return time;
}

static bool worth_it(const rank_state *q, const rank_group *groups, int count)
{
    const dgm_linear *w = q->r->parts[0].out;
    int rows = 0;
    if (q->r->part_count > 1 || !q->whole || !w->packed || w->precision == DGM_PRECISION_F32) return false;
    for (int i = 0; i < count; i++) {
        if (groups[i].rows > WHOLE_ROWS) return false;
        rows += groups[i].rows;
    }
    return rows >= WHOLE_ROWS && cpu_product_time(w, rows, w->rows) < time_of_lists(w, groups, count);
}

// What the lists of one group's rows are; its first row is row `at` of q->whole.
static void pick(rank_state *q, const rank_group *g, int at)
{
    for (int first = 0; first < g->list->count; first += CHUNK) {
        const rank_columns c = cpu_rank_columns(q, g->list, first);
        for (int r = 0; r < g->rows; r++) {
            const float *from = q->whole + (size_t)(at + r) * (size_t)q->vocabulary;
            for (int i = 0; i < c.count; i++) q->logits[i] = from[c.ids[i]];
            cpu_rank_consume(q, g->row + r, 0, &c);
        }
    }
}

// Rows of neighbouring groups, which are multiplied together; returns the group behind them.
static int neighbours(const rank_group *groups, int count, int first, int *rows)
{
    int next = first + 1;
    *rows = groups[first].rows;
    while (next < count && groups[next].row == groups[first].row + *rows && *rows + groups[next].rows <= WHOLE_ROWS)
        *rows += groups[next++].rows;
    return next;
}

bool cpu_rank_read_off(rank_state *q, const rank_group *groups, int count)
{
    if (!worth_it(q, groups, count)) return false;
    const dgm_linear *w = q->r->parts[0].out;
    for (int i = 0, next, rows; i < count; i = next) {
        next = neighbours(groups, count, i, &rows);
        const double begin = cpu_begin(q->x);
        cpu_rank_project(q, w, 0, groups[i].row, rows, 0, w->rows, q->whole, w->rows, false);
        if (q->x->meter) { // what was asked for, not what was multiplied
            int64_t listed = 0;
            for (int g = i; g < next; g++) listed += (int64_t)groups[g].rows * groups[g].list->count;
            cpu_count_product(q->x, w, rows, (int)(listed / rows), i ? 0 : w->rows, begin);
            q->products += dgm_thread_time() - begin;
        }
        for (int g = i; g < next; g++) pick(q, &groups[g], groups[g].row - groups[i].row);
    }
    return true;
}
