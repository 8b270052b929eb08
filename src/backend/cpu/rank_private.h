// SPDX-License-Identifier: MIT
// Private to rank_cpu.c, rank_lists_cpu.c and rank_team_cpu.c: the state of one call of rank.
#ifndef DGM_BACKEND_CPU_RANK_PRIVATE_H
#define DGM_BACKEND_CPU_RANK_PRIVATE_H

#include "backend/cpu/cpu_private.h"

enum { CHUNK = 512, ROWS = 64 };

// Running log-sum-exp of one (row, part).
typedef struct rank_sum {
    float max, sum;
} rank_sum;

// Columns of one chunk: tokens first .. first + count - 1; of a list ids[0 .. count), which are its
// entries from `first` on.
typedef struct rank_columns {
    int first, count;
    const int32_t *ids;
    dgm_gathered *const *gathered; // of the whole list, or NULL
    bool late;                     // its tokens may be lower than those of earlier chunks
} rank_columns;

// Rows of one sentence that have a list.
typedef struct rank_group {
    const dgm_candidates *list;
    int row, rows;
    int at; // entries that are done, where lists are walked side by side
} rank_group;

typedef struct rank_state {
    dgm_exec *x;
    const dgm_kernels *k;
    const dgm_rank *r;
    int vocabulary;
    cpu_input *inputs; // [parts]: hidden rows as the parts' precisions want them
    rank_sum *sums;    // [rows, parts]
    float *logits;     // [parts, ROWS, CHUNK]
    float *panel;      // [ROWS, PANEL]
    float *values;     // [CHUNK]
    float *wide;       // [DENSE_ROWS, SPAN] (rank_lists_cpu.c)
    float *whole;      // [WHOLE_ROWS, vocabulary] (rank_lists_cpu.c), or NULL
    rank_sum *chunk;   // [parts, ROWS]: maxima and sums of chunks that a team computes
    int32_t *span;     // [CHUNK]: tokens of a chunk without a list, of a layer without panels
    double products;   // seconds, where somebody counts
} rank_state;

// alone: by this thread, which may be a member of the team.
void cpu_rank_project(const rank_state *q, const dgm_linear *w, int part, int row, int rows, int begin, int end,
                      float *out, int ldc, bool alone);
// Logits with this maximum, which is not -INFINITY, are added next.
void cpu_rank_raise(const dgm_kernels *k, rank_sum *s, float max);
// The chunk of a list, or of the vocabulary (NULL), that begins at `at`.
rank_columns cpu_rank_columns(const rank_state *q, const dgm_candidates *list, int at);
// Offers the logits of one chunk to one row's list, none of them above `bound`, the maximum of the last part.
void cpu_rank_offer(rank_state *q, int row, int in_block, const rank_columns *c, float bound);
// Consumes the logits of one chunk for one row, which is row `in_block` of q->logits.
void cpu_rank_consume(rank_state *q, int row, int in_block, const rank_columns *c);
// Projects and consumes a chunk of `rows` rows.
void cpu_rank_chunk(rank_state *q, int row, int rows, const rank_columns *c);
// What the rows may choose beside their list, behind it.
void cpu_rank_all_more(rank_state *q, const dgm_candidates *list, int row, int rows);

// rank_lists_cpu.c: lists of layers that keep their weights by rows, with `more`.
void cpu_rank_by_rows(rank_state *q, rank_group *groups, int count);
size_t cpu_rank_wide(void); // floats of q->wide
// The lists of all groups, in the order of their rows, read off products with the whole layer. False: that
// would take longer than a product with each list's columns. `more` of the rows is not looked at.
bool cpu_rank_read_off(rank_state *q, const rank_group *groups, int count);
size_t cpu_rank_whole(int vocabulary); // floats of q->whole

// rank_team_cpu.c: chunks from `at` on that the worker's team did for these rows, of `total` columns; 0: none, because
// it is not worth it or nobody is there.
int cpu_rank_share(rank_state *q, const dgm_candidates *list, int row, int rows, int at, int total);

#endif
