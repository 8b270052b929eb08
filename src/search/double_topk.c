// SPDX-License-Identifier: MIT
// Choosing pairs for a sentence's hypotheses (Imamura and Sumita 2020, Algorithm 1).
//
//   score of (row, l, r) = sum so far + log P_left(l) + log P_right(r)
//
// The paper goes in two stages: the best 2W of all (row, l), then the best 3W of these with the
// right words of their row. A row whose right words are all poor can crowd the first stage, so this
// is not the best 3W of all pairs; dgm_double_exact is. As each list is sorted, and adding a number
// keeps it so (rounding is monotone), both only ever look at the heads of lists:
//
//   stage 2, lists of one (row, l) each          exact, the grid of a row (i: left, j: right)
//     a  . . .                                      * * * .     popped (*) lets its right neighbour
//     b  . .                                        * .         in, and in column 0 the one below
//     c                                             .
//
// No pair can be among the best 3W from behind place 3W of either list, so k = 3W is enough.
#include "search/double_private.h"

#include <math.h>

#include "base/heap.h"
#include "base/sort.h"

// Sorted sequences, the next of each at at[i]; the best head, lowest first among equals.
static int best_head(const float *head, int count)
{
    int best = -1;
    float best_score = -INFINITY;
    for (int i = 0; i < count; i++)
        if (head[i] > best_score) {
            best = i;
            best_score = head[i];
        }
    return best;
}

enum { HEADS = 2 * DGM_BEAM_MAX };

int dgm_double_topk(const dgm_pair_lists *l, int width, dgm_pair *lefts, dgm_pair *found, int *at)
{
    float head[HEADS];
    int left_count = 0, count = 0;
    for (int j = 0; j < l->rows; j++) {
        at[j] = 0;
        head[j] = dgm_pair_at(l, l->first + j, 0, 0);
    }
    while (left_count < 2 * width) {
        const int j = best_head(head, l->rows);
        if (j < 0) break;
        lefts[left_count++] = (dgm_pair){.row = l->first + j, .left = at[j], .left_score = head[j]};
        at[j]++;
        head[j] = at[j] < l->k ? dgm_pair_at(l, l->first + j, 0, at[j]) : -INFINITY;
    }
    // By row and left word: the order of equals.
    for (int i = 1; i < left_count; i++) {
        const dgm_pair p = lefts[i];
        int to = i;
        DGM_INSERT(lefts, to, p, lefts[to - 1].row > p.row);
    }
    for (int i = 0; i < left_count; i++) {
        at[i] = 0;
        head[i] = lefts[i].left_score + dgm_pair_at(l, lefts[i].row, 1, 0);
    }
    while (count < 3 * width) {
        const int i = best_head(head, left_count);
        if (i < 0) break;
        found[count] = lefts[i];
        found[count].right = at[i];
        found[count++].score = head[i];
        at[i]++;
        head[i] =
            at[i] < l->k ? lefts[i].left_score + dgm_pair_at(l, lefts[i].row, 1, at[i]) : -INFINITY;
    }
    return count;
}

// ---- exact --------------------------------------------------------------------------------------

static bool before(const dgm_pair *a, const dgm_pair *b)
{
    if (a->score != b->score) return a->score > b->score;
    if (a->row != b->row) return a->row < b->row;
    if (a->left != b->left) return a->left < b->left;
    return a->right < b->right;
}

#define BEFORE(x, y) before(&(x), &(y))

// A cell of a row's grid, if there is one with a finite score.
static int push(const dgm_pair_lists *l, dgm_pair *heap, int count, int row, int left, int right)
{
    if (left >= l->k || right >= l->k) return count;
    dgm_pair p = {.row = row, .left = left, .right = right};
    p.left_score = dgm_pair_at(l, row, 0, left);
    p.score = p.left_score + dgm_pair_at(l, row, 1, right);
    if (!(p.score > -INFINITY)) return count;
    DGM_HEAP_UP(heap, count, p, BEFORE);
    return count + 1;
}

static dgm_pair pop(dgm_pair *heap, int count)
{
    const dgm_pair top = heap[0], last = heap[count - 1];
    DGM_HEAP_DOWN(heap, count - 1, 0, last, BEFORE);
    return top;
}

int dgm_double_exact(const dgm_pair_lists *l, int width, dgm_pair *heap, dgm_pair *found)
{
    int size = 0, count = 0;
    for (int j = 0; j < l->rows; j++) size = push(l, heap, size, l->first + j, 0, 0);
    while (count < 3 * width && size > 0) {
        const dgm_pair p = pop(heap, size--);
        found[count++] = p;
        if (p.right == 0) size = push(l, heap, size, p.row, p.left + 1, 0);
        size = push(l, heap, size, p.row, p.left, p.right + 1);
    }
    return count;
}
