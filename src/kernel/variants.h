// SPDX-License-Identifier: MIT
// Which variant of a product's kernel is taken: by what the CPU has, by type, by the layer's shape and by rows. One
// table, in variants.c: dgm_kernels_init takes its functions from it, kernels that share their work ask it for whom
// rows are, and `translate --stats` prints it.
#ifndef DGM_KERNEL_VARIANTS_H
#define DGM_KERNEL_VARIANTS_H

#include "base/precision.h"
#include "kernel/kernels.h"

// Products of at least so many rows take the variant, unless they are enough for the next one.
typedef struct dgm_variant_step {
    const char *variant; // the end of its kernel's name: "amx" of "gemm_i8_amx"
    int rows;
} dgm_variant_step;

enum { DGM_VARIANT_STEPS = 2 };

// What layers of n outputs and k inputs take on a CPU with these flags, fewest rows first; returns how many: 0 of a
// type without kernels.
int dgm_variant_steps(unsigned flags, dgm_precision type, int n, int k, dgm_variant_step out[DGM_VARIANT_STEPS]);

// Fills the products of all types. Their packing, of which levels can have a faster one, is still that of the variants.
void dgm_variants_init(dgm_kernels *k, unsigned flags);

// Fewest rows that gemm_i8_amx multiplies in tiles.
int dgm_variant_tile_rows(int n, int k);

#endif
