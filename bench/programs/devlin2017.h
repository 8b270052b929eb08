// SPDX-License-Identifier: MIT
// What the parts of bench/devlin2017 share.
//
//   devlin2017.c        the program: decodes sentences one by one under several configurations
//   devlin2017_blas.c   sgemm of OpenBLAS and oneDNN in the place of our f32 kernel
//   devlin2017_model.c  random models of the paper's systems at its sizes
#ifndef DGM_BENCH_PROGRAMS_DEVLIN2017_H
#define DGM_BENCH_PROGRAMS_DEVLIN2017_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

// ---- devlin2017_blas.c ------------------------------------------------------------------------

// From now on products of this backend's f32 layers are sgemm calls. Before a model is loaded.
void blas_install(dgm_backend *b);
// Lays the weights of a loaded recurrent model out for both libraries and times them; each product
// is then made by the fastest of the four (library, layout) at its shape and number of rows.
void blas_learn(const dgm_model *m);
// "onednn_nn 12, openblas_nt 3": how often each is the choice, over matrices and numbers of rows.
const char *blas_choices(char *buffer, size_t size);
const char *blas_core(void); // the processor that OpenBLAS takes this one for
// A small product of each, to see whether it can run, and those that cannot (rivals.h, a bit each): never chosen then.
void blas_try_openblas(void);
void blas_try_onednn(void);
void blas_leave_out(unsigned rivals);

// ---- devlin2017_model.c -----------------------------------------------------------------------

// Words by frequency: p(rank) ~ 1 / (rank + 2.7)^s, s such that the first 8,000 of `words` cover
// 95 % of a text.
typedef struct zipf {
    int words;
    double *sum; // [words]: cumulative probability
} zipf;

void zipf_open(zipf *z, int words);
void zipf_close(zipf *z);
int zipf_draw(const zipf *z, uint64_t *state); // a rank from 0
uint64_t random_next(uint64_t *state);

// Writes system "S1" .. "S7" with random weights and a random shortlist. 0, or -1 after a
// message.
int model_make(const char *path, const char *system, int words, uint64_t seed);
// Every layer of a recurrent model's weights but the output.
void model_each_layer(const dgm_model *m, void (*each)(const dgm_linear *w));

#endif
