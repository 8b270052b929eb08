// SPDX-License-Identifier: MIT
// The walk over a sentence's sub-cubes: cells in falling order of their approximate scores.
//
// A heap begins with the corner (leader, best word) of every sub-cube. Popping a cell pushes its
// right and its lower neighbour, unless they were pushed before. As scores fall to the right and
// down, the popped cells of a sub-cube always form a staircase
//
//     x x x .        x popped
//     x x .          . pushed, still in the heap
//     x .
//
// so the columns of a row are pushed from the left without gaps, and one count per row is the
// whole visited mark. Equal scores: the better hypothesis first, then the word further left. This
// is the order in which beam search draws, so that both agree where every hypothesis is alone. Diversity
// takes the same off all cells of a column: what falls goes on falling.
#include "search/cube_private.h"

#include <math.h>

#include "base/heap.h"

static bool before(const dgm_cube_cell *a, const dgm_cube_cell *b)
{
    if (a->key != b->key) return a->key > b->key;
    if (a->hypo != b->hypo) return a->hypo < b->hypo;
    return a->column < b->column;
}

#define BEFORE(x, y) before(&(x), &(y))

static void push(dgm_cube_walk *w, int hypo, int column)
{
    if (column >= w->k || column < w->pushed[hypo]) return;
    w->pushed[hypo] = column + 1;
    const float score = w->scores[(size_t)w->line[hypo] * (size_t)w->k + (size_t)column];
    dgm_cube_cell cell = {.score = score + w->behind[hypo], .hypo = hypo, .column = column};
    cell.key = cell.score - w->diversity * (float)column;
    if (!(cell.score > -INFINITY)) return; // the leader's list ended
    DGM_HEAP_UP(w->heap, w->size, cell, BEFORE);
    w->size++;
    if (w->size > w->peak) w->peak = w->size;
}

void dgm_cube_walk_start(dgm_cube_walk *w)
{
    w->size = w->peak = 0;
    for (int j = 0; j < w->count; j++) w->pushed[j] = 0;
    for (int j = 0; j < w->count; j++)
        if (w->leads[j]) push(w, j, 0);
}

bool dgm_cube_walk_pop(dgm_cube_walk *w, dgm_cube_cell *cell)
{
    if (w->size == 0) return false;
    *cell = w->heap[0];
    const dgm_cube_cell last = w->heap[--w->size];
    DGM_HEAP_DOWN(w->heap, w->size, 0, last, BEFORE);
    push(w, cell->hypo, cell->column + 1);
    if (w->below[cell->hypo] >= 0) push(w, w->below[cell->hypo], cell->column);
    return true;
}
