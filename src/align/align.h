// SPDX-License-Identifier: MIT
// Word alignment: IBM model 1, and model 2 with positions that prefer the diagonal (Dyer, Chahuneau
// and Smith 2013, "fast_align"). One dgm_aligner is one direction: every token f_j of the `to` side
// was made by a token e_i of the `from` side or by nothing (NULL):
//
//     p(f | e) = prod_j [ p0 t(f_j | NULL) + (1 - p0) sum_i a(i | j) t(f_j | e_i) ]
//     a(i | j) = exp(-tension |i/m - j/n|) / Z_j          i = 1 .. m, j = 1 .. n
//
// Model 1 has a(i | j) = 1/m and p0 = 1/(m + 1). Training is EM (alpha = 0) or variational Bayes
// with a symmetric Dirichlet prior (alpha > 0) on every t(. | e). The tension is set to the maximum
// of the expected log-likelihood, so the objective that dgm_aligner_iterate reports never falls:
// the log-likelihood in EM, its variational lower bound in variational Bayes.
//
// Results do not depend on the number of threads, to the last bit.
#ifndef DGM_ALIGN_ALIGN_H
#define DGM_ALIGN_ALIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/threads.h"
#include "align/bitext.h"

typedef struct dgm_align_params {
    int model;             // 1 or 2
    double p0;             // of NULL, model 2; 0 to 0.99
    double alpha;          // prior of variational Bayes; 0: EM
    double tension;        // model 2: the first value, 0.1 to 30
    bool optimise_tension; // model 2: from the second iteration on
} dgm_align_params;

// Model 2, p0 0.08, alpha 0.01, tension 4, optimised.
void dgm_align_params_default(dgm_align_params *o);

dgm_status dgm_align_params_check(const dgm_align_params *o, dgm_error *err);

typedef struct dgm_aligner dgm_aligner;

// from: the side of the bitext (0, 1) that the other is explained by. The bitext must be finished
// and outlive the aligner, and so must the pool (NULL: one thread).
dgm_status dgm_aligner_open(dgm_aligner **a, const dgm_bitext *b, int from,
                            const dgm_align_params *params, dgm_pool *pool, dgm_error *err);
void dgm_aligner_close(dgm_aligner **a); // sets *a to NULL; accepts NULL inside

// One round of training. Returns the objective under the parameters before this round. In
// variational Bayes the first round starts from a table that no posterior stands for, so the bound
// is comparable from the second on.
double dgm_aligner_iterate(dgm_aligner *a);

// The most probable position in the `from` side, or -1 for NULL, for every token of the `to` side:
// link [b->side[to].token_count], parallel to its tokens. Ties go to the lower position.
void dgm_aligner_viterbi(dgm_aligner *a, int16_t *link);

double dgm_aligner_tension(const dgm_aligner *a);
uint64_t dgm_aligner_entries(const dgm_aligner *a); // word pairs in the table
// t(f | e); e = UINT32_MAX: NULL. 0 for pairs that never stand in one sentence pair. Slow.
float dgm_aligner_probability(const dgm_aligner *a, uint32_t e, uint32_t f);

#endif
