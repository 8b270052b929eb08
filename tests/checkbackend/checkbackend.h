// SPDX-License-Identifier: MIT
// Harness of checkbackend: every function of two devices' tables on the same random numbers.
//
// A check makes host numbers, gives them to both sides, runs an operation on each, keeps what came
// out (cb_keep) and has the two compared (cb_compare). What an operation promises is its class:
//
//   CB_EXACT    copies and single roundings: equal bits on every device
//   CB_ROUNDED  sums and functions: equal bits on devices of one kind (all levels of a CPU), within
//               the stated bound on others
//   CB_PRODUCT  floating-point products, whose order of adding is a device's own: within the bound
//
// A bound is of |a - b| over the largest |a| of what is compared, and at least of one.
#ifndef DGM_TESTS_CHECKBACKEND_CHECKBACKEND_H
#define DGM_TESTS_CHECKBACKEND_CHECKBACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend_ops.h"
#include "base/clock.h"

typedef struct cb_side {
    dgm_backend *backend;
    dgm_exec *x;
    float *kept; // what came out
    size_t count, room;
} cb_side;

typedef struct cb {
    cb_side sides[2];
    bool one_kind; // of device
    bool team;     // the same device twice, the second worker with helpers
    unsigned precisions; // that both have, and those of the second that are floating point: see cb_side_precision
    const char *what;    // the check under way
    char where[160];     // sizes, for messages
    dgm_rng rng;
    bool failed;
} cb;

typedef enum cb_class { CB_EXACT, CB_ROUNDED, CB_PRODUCT } cb_class;

#define CB_BOTH(c, s) for (cb_side *s = (c)->sides; s < (c)->sides + 2; s++)

// One round of a check: forgets what was kept and gives back both workers' memory and cb_floats.
void cb_begin(cb *c, const char *fmt, ...) DGM_PRINTF(2, 3);
int cb_below(cb *c, int n);
int cb_between(cb *c, int low, int high);
// Host numbers that last until the next cb_begin: n of them in [-size, size].
float *cb_floats(cb *c, size_t n, float size);
int32_t *cb_ints(cb *c, size_t n, int below);
// Rows on a device that hold the numbers.
dgm_mat cb_put(cb_side *s, const float *numbers, int rows, int cols);
dgm_mat cb_room(cb_side *s, int rows, int cols); // filled with something else
void cb_keep(cb *c, cb_side *s, dgm_mat m);
void cb_keep_floats(cb *c, cb_side *s, const float *numbers, size_t n);
// Fails unless two rows of a side have the same bits: a row by itself, and among others.
void cb_same_row(cb *c, cb_side *s, dgm_mat among, dgm_mat alone);
void cb_compare(cb *c, cb_class of, double bound);
void cb_fail(cb *c, const char *fmt, ...) DGM_PRINTF(2, 3);

// What a side computes where the check says p: p, or f32 where it lacks that. So halves of a device are held
// against a CPU's f32, within the bound that p has.
dgm_precision cb_side_precision(const cb_side *s, dgm_precision p);
// Bound of a product of k numbers within [-1, 1] each, and its class: integers are exact.
double cb_product_bound(dgm_precision p, int k);
cb_class cb_product_class(dgm_precision p);

// A matrix as a model file would have it; data lasts until the next cb_begin.
typedef struct cb_tensor {
    dgm_tensor t, scale;
} cb_tensor;

void cb_matrix(cb *c, cb_tensor *out, dgm_tensor_type type, int rows, int cols);
void cb_load(cb *c, cb_side *s, const dgm_linear_part *parts, int count, dgm_precision p,
             dgm_linear **out);
dgm_vector *cb_vector(cb *c, cb_side *s, const float *numbers, int rows, int cols);

// The checks. One per function of the table, by name (checkbackend.c); several may be the same.
void check_device(cb *c);
void check_weights(cb *c);
void check_memory(cb *c);
void check_clock(cb *c);
void check_linear(cb *c);
void check_feed_forward(cb *c);
void check_experts(cb *c);
void check_start(cb *c);
void check_embed(cb *c);
void check_norm(cb *c);
void check_norm_for(cb *c);
void check_act(cb *c);
void check_sums(cb *c);
void check_copies(cb *c);
void check_mean(cb *c);
void check_attend(cb *c);
void check_attend_add(cb *c);
void check_attend_blocks(cb *c);
void check_gates(cb *c);
void check_rank(cb *c);
void check_gathered(cb *c);
void check_closest(cb *c);
void check_joint(cb *c);
void check_distances(cb *c);

#endif
