// SPDX-License-Identifier: MIT
// What the .cu files offer to the C files beside them: one function per kernel, on plain pointers.
//
// All pointers are device memory unless a name says host. Functions write their launches onto the tape of the worker
// (tape_cuda.c) and return.
#ifndef DGM_BACKEND_CUDA_KERNELS_CUDA_H
#define DGM_BACKEND_CUDA_KERNELS_CUDA_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Rows of numbers: element (i, j) at data[i * stride + j].
typedef struct cuda_rows {
    float *data;
    int rows, cols, stride;
} cuda_rows;

// What products read: the numbers of a row rounded to halves, as whoever makes the row leaves them beside it.
typedef struct cuda_halves {
    void *data; // [rows, stride]; NULL: nobody wants them
    int stride;
    int bf16;
} cuda_halves;

// ---- tape_cuda.c --------------------------------------------------------------------------------

typedef struct cuda_tape cuda_tape;

// arguments [count] of the kernel are copied.
void cuda_tape_launch(cuda_tape *t, const void *kernel, unsigned x, unsigned y, unsigned block,
                      size_t shared, const void *const *arguments, const size_t *sizes, int count);

// Says that the launch before was a product on tensor cores: its one argument is a cuda_product.
void cuda_tape_product(cuda_tape *t);
// Says that the launch before made these rows; where in its arguments (argument, and byte in it) the cuda_halves is
// that it fills in beside them, if somebody asks for it.
void cuda_tape_made(cuda_tape *t, cuda_rows rows, int argument, size_t at);
// Says that the launch before made no rows that products read.
void cuda_tape_made_none(cuda_tape *t);
// The halves of rows that were made a few launches ago; data NULL: they cannot be had.
cuda_halves cuda_tape_halves(cuda_tape *t, cuda_rows rows, int bf16);

// Before a launch that asks for so much shared memory.
void cuda_allow_shared(cuda_tape *t, const void *kernel, size_t bytes);

// ---- rows.cu ------------------------------------------------------------------------------------

// Stored types of an embedding table, as dgm_tensor has them; i8 has a scale a row, i16 one for all.
typedef struct cuda_table {
    const void *data;
    const float *scale;
    int type, cols;
} cuda_table;

void cuda_run_embed(cuda_tape *tape, cuda_rows y, cuda_table table, const int32_t *ids, float scale,
                    const float *start, const float *positions, int position_cols,
                    const int32_t *pos);
void cuda_run_norm(cuda_tape *tape, cuda_rows y, cuda_rows in, const float *gamma, const float *beta,
                   float eps);
void cuda_run_rms_norm(cuda_tape *tape, cuda_rows y, cuda_rows in, const float *gamma, float eps);
void cuda_run_gated(cuda_tape *tape, cuda_rows y, cuda_rows a, cuda_rows b, int act);
void cuda_run_act(cuda_tape *tape, cuda_rows y, cuda_rows in, int act);
void cuda_run_add(cuda_tape *tape, cuda_rows y, cuda_rows a, cuda_rows b);
void cuda_run_add_vector(cuda_tape *tape, cuda_rows y, cuda_rows a, const float *v);
void cuda_run_maxout(cuda_tape *tape, cuda_rows y, cuda_rows in);
// y[to[i]] = in[from[i]]; NULL: i. half: y holds IEEE halves.
void cuda_run_copy(cuda_tape *tape, cuda_rows y, const int32_t *to, cuda_rows in,
                   const int32_t *from, int count, int half);
const void *cuda_some_kernel(void); // one that is as all are, for the runtime's questions
void cuda_run_zero_rows(cuda_tape *tape, cuda_rows y, const int32_t *rows, int count); // NULL: the first
void cuda_run_mean(cuda_tape *tape, cuda_rows y, cuda_rows in, const int32_t *first,
                   const int32_t *count);
void cuda_run_scale(cuda_tape *tape, cuda_rows y, cuda_rows in, const float *factor);
void cuda_run_gru(cuda_tape *tape, cuda_rows out, cuda_rows state, cuda_rows gx, cuda_rows gh);
void cuda_run_lstm(cuda_tape *tape, cuda_rows out, cuda_rows cell_out, cuda_rows cell, cuda_rows gx,
                   cuda_rows gh);
void cuda_run_ssru(cuda_tape *tape, cuda_rows out, cuda_rows cell_out, cuda_rows cell, cuda_rows in,
                   cuda_rows f);
void cuda_run_gated_sum(cuda_tape *tape, cuda_rows y, cuda_rows a, cuda_rows b, cuda_rows g);
void cuda_run_set(cuda_tape *tape, float *row, const int32_t *ids, const float *values, int count);
// apart and length of pairs of rows, side by side.
void cuda_run_distances(cuda_tape *tape, cuda_rows rows, const int32_t *one, const int32_t *two,
                        int count, double *out);

// ---- products.cu --------------------------------------------------------------------------------

typedef enum cuda_type { CUDA_F32 = 0, CUDA_F16, CUDA_BF16, CUDA_I8 } cuda_type;

// c = act(a w^T + bias) + residual. Sums run over k from the front, k by k (f32) or in the steps of
// one tensor instruction, whatever the tile: a row's bits depend on that row alone.
typedef struct cuda_product {
    cuda_type type;    // of w; a is f32, for i8 quantised rows,
    int rounded;       // or of halves: of the type of w
    const void *a;     // [m, k]
    int lda;
    const int32_t *a_rows; // NULL, or row of a for each row of the product
    const float *a_scale;  // i8: [m] by row of a
    const void *w;         // [n, ldw], zeros behind k
    int ldw;
    const int32_t *w_rows; // NULL, or row of w for each column of c
    const float *w_scale;  // i8: [n] by row of w
    const float *bias;     // by row of w, or NULL
    float *c;
    int ldc;
    const float *residual; // or NULL
    int ldr;
    int m, n, k, act;
    int tensor;  // i8: the device has tensor instructions for it,
    int warp_groups; // and some for groups of four warps
    int processors, shared; // of the device: how many, and the most memory of a block
    int aligned; // rows of a begin at multiples of 16 bytes
    int paired;  // c and residual can be read and written two numbers at a time: cuda_run_product finds out
    int plain;   // so much that halves are written 16 bytes at a time: cuda_run_wide finds out
    // NULL, or how many columns there are, n at most; w_rows has CUDA_LIST_SPARE of any row behind them.
    const int32_t *n_found;
    int scatter; // column j of the product goes to column w_rows[j] of c
    // Groups of rows with matrices of their own: rows first[g] .. first[g + 1] - 1 are multiplied with
    // w + g * w_group (elements; bias, scales by bias_group). groups 0: one matrix.
    const int32_t *first;
    int groups;
    size_t w_group;
    int bias_group;
    // Columns keep_first .. + keep_count - 1 of c go as halves to row keep_rows[i] of a cache, too; NULL: none.
    void *keep;
    const int32_t *keep_rows;
    int keep_stride, keep_first, keep_count;
    cuda_halves halves; // of c; where these are all that is wanted c is NULL
} cuda_product;

// The last launch, or that `before` launches earlier, if it was a product that can be changed still; else NULL.
cuda_product *cuda_last_product(cuda_tape *t, int before);

void cuda_run_product(cuda_tape *tape, const cuda_product *p);
// q = rows for an i8 product, zeros behind k; scale [rows], or fixed > 0 for all.
void cuda_run_quantize(cuda_tape *tape, int8_t *q, int ldq, float *scale, cuda_rows in, float fixed);
// Halves of rows, zeros behind them: rows of h.stride.
void cuda_run_round(cuda_tape *tape, cuda_halves h, cuda_rows in);
// Largest |x| of each row.
void cuda_run_largest(cuda_tape *tape, float *out, cuda_rows in);

// ---- attend.cu, attend_tiles.cu, attend_halves.cu -----------------------------------------------

enum { CUDA_GROUP = 16 };

typedef struct cuda_attention {
    cuda_rows out, q;
    const void *k, *v; // rows of f32 or halves
    int k_stride, v_stride, half;
    int round;            // f32 keys and values count as halves,
    cuda_halves q_halves; // as queries, which may be here, rounded before
    int heads, dk, dv;
    float scale;
    const int32_t *first, *length, *entries; // entries NULL: rows first * unit ..
    int unit;                                // rows that a step of `first` means
    // Queries groups[g] .. groups[g + 1] - 1, CUDA_GROUP at most, have the same first and length. NULL: every query is
    // a group.
    const int32_t *groups;
    int group_count;
    int near;                                // most queries share keys with the one before: hypotheses of a sentence
    const float *additive;                   // w of additive attention; NULL: products
    const float *bias; // [heads, 2 * reach - 1] by distance (backend/ops.h), or NULL
    int reach;
    int wide; // rows of keys can be read 16 bytes at a time: cuda_run_attend finds out
    cuda_halves halves; // of out
} cuda_attention;

void cuda_run_attend(cuda_tape *tape, const cuda_attention *a);
// Whether that is done on tensor cores, in halves.
int cuda_tiles_fit(const cuda_attention *a);
// Attention weights of queries rows[0 .. count): head, or -1 the mean; those of i go to out + at[i].
void cuda_run_weights(cuda_tape *tape, const cuda_attention *a, const int32_t *rows, const int32_t *at,
                      int count, int head, float *out);
// Rows of kv into blocks: span i has rows row .. of kv and begins at memory row first * unit.
typedef struct cuda_span {
    int row, rows, first;
} cuda_span;

enum { CUDA_LAYERS = 16 }; // of one launch

typedef struct cuda_put {
    void *memory[CUDA_LAYERS]; // of layer l: columns l * width .. of kv, as f32
    int half;                  // or halves
    int layers, width, unit;
    const void *kv;
    int stride, rounded; // rounded: kv has halves, and so have memories
} cuda_put;

void cuda_run_put(cuda_tape *tape, const cuda_put *p, const cuda_span *spans, int count);

// ---- lists.cu -----------------------------------------------------------------------------------

enum { CUDA_LIST_SPARE = 256 };

// A list to be made: the tokens of any of the bitmaps, and some more.
typedef struct cuda_joint {
    const uint32_t *const *maps; // [map_count]
    const int32_t *add;
    int map_count, add_count;
    uint32_t *bits; // made: [words]
    int32_t *ids;   // made: ascending, and CUDA_LIST_SPARE zeros
    int32_t *found; // made: how many there are
} cuda_joint;

int cuda_list_tiles(int words); // of a bitmap
// lists [count] are in device memory; counts [count, tiles] is scratch.
void cuda_run_join(cuda_tape *tape, const cuda_joint *lists, int count, int words, int *counts);

// ---- rank.cu ------------------------------------------------------------------------------------

typedef struct cuda_list {
    const int32_t *ids;
    const float *values;
    int count;
} cuda_list;

enum { CUDA_ADDITIONS = 4 };

// What one row asks of rank; lists are in device memory.
typedef struct cuda_row_terms {
    float base, constant, lambda;
    int add_count, allowed; // allowed: there is a list of what may win
    const float *table;
    cuda_list add[CUDA_ADDITIONS], allow, deny, list, more;
    int listed; // there is a list of candidates;
    const int32_t *found; // NULL, or how many it has,
    const uint32_t *bits; // and its bits
} cuda_row_terms;

enum { CUDA_PARTS = 16 };

typedef struct cuda_ranking {
    float *logits[CUDA_PARTS]; // [rows, vocabulary]; the first holds the values afterwards
    float weight[CUDA_PARTS];
    int parts, arithmetic, normalise;
    int rows, vocabulary, stride, k, watch_count;
    const cuda_row_terms *terms; // [rows]
    const float *base;           // [rows] or NULL: with it terms is one for all rows, without its base
    cuda_list never;
    const int32_t *watch; // [rows, watch_count]
    float *score;         // [rows, k]
    int32_t *token;
    float *watch_score, *log_z; // log_z [rows, parts]
    int32_t *sizes;             // [rows] or NULL
} cuda_ranking;

void cuda_run_rank(cuda_tape *tape, const cuda_ranking *r);

// ---- choose.cu ----------------------------------------------------------------------------------

// found[i]: nearest of `count` centroids, halves [count, cols of rows]. scratch: cuda_closest_scratch bytes.
void cuda_run_closest(cuda_tape *tape, cuda_rows rows, const void *centroids, const float *half_square,
                      int count, void *scratch, int32_t *found);
size_t cuda_closest_scratch(int rows, int count);

// Which experts rows go to. place p of the sorted list is row order[p] with weight share[p]; expert j
// owns places first[j] .. first[j + 1] - 1.
typedef struct cuda_routing {
    int32_t *chosen; // [rows * top]
    float *weight;   // [rows * top]
    int32_t *first;  // [experts + 1]
    int32_t *order;  // [rows * top]
    int32_t *place;  // [rows * top]: where a row's choice went
} cuda_routing;

void cuda_run_route(cuda_tape *tape, cuda_rows in, const float *gate, const float *bias, int experts,
                    int top, int normalise, float scale, cuda_routing r);
// y[i] = sum over its choices, in the order of experts, of weight * result[place].
void cuda_run_combine(cuda_tape *tape, cuda_rows y, cuda_rows result, int top, cuda_routing r);

#ifdef __cplusplus
}
#endif

#endif
