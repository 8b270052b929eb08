// SPDX-License-Identifier: MIT
// A few outputs of a layer from weights that lie by rows, over a 16-lane vector: dots_f32 and dots_bf16.
//
// dots_<isa>.c includes a vec_<isa>.h, names the functions (DOTS_F32, DOTS_BF16) and includes this file. Numbers in
// bf16 become f32 as they are loaded; the loops are the same (dots_real_tmpl.h).
#include "kernel/dots_int.h"
#include "kernel/reduce_tmpl.h"

#define DOTS DOTS_F32
#define DOTS_4 dots_4_f32
#define DOTS_TYPE float
#define DOTS_LOAD vf_load
#define DOTS_LOAD_N vf_load_n
#include "kernel/dots_real_tmpl.h"

#define DOTS DOTS_BF16
#define DOTS_4 dots_4_bf16
#define DOTS_TYPE uint16_t
#define DOTS_LOAD vf_load_bf16
#define DOTS_LOAD_N vf_load_bf16_n
#include "kernel/dots_real_tmpl.h"
