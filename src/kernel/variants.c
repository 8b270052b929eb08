// SPDX-License-Identifier: MIT
// The table of variants; see variants.h. How the rows were measured: docs/results/THROUGHPUT.md.
#include "kernel/variants.h"

#include "kernel/kernels_private.h"

// The fewest rows for layers of at least so many outputs and inputs; of several that fit the last one counts.
typedef struct shape {
    int n, k, rows;
} shape;

static const shape any_rows[] = {{0, 0, 1}};
// Up to 3 rows a product is bound by reading W, which needs no tiles; from 4 on they were faster at every shape.
static const shape tile_rows[] = {{0, 0, 4}};

#if defined(__x86_64__)
enum {
    AVX2 = DGM_CPU_AVX2,
    AVX512 = AVX2 | DGM_CPU_AVX512,
    VNNI = AVX512 | DGM_CPU_AVX512_VNNI,
    AVX512_BF16 = VNNI | DGM_CPU_AVX512_BF16,
    AMX = VNNI | DGM_CPU_AMX_INT8,
    AMX_BF16 = AMX | DGM_CPU_AMX_BF16
};
#elif defined(__aarch64__)
static const shape pairs_of_rows[] = {{0, 0, 2}}; // an odd row at the end takes the variant before, too
enum { NEON = DGM_CPU_NEON, DOTPROD = NEON | DGM_CPU_DOTPROD, I8MM = DOTPROD | DGM_CPU_I8MM };
#endif

// Of a type the slowest first. One that wants more than a row leaves fewer to the one before it: only integers may,
// whose sums are exact. A product of bf16 numbers has one variant for all rows (kernel/gemm_bf16.h).
static const struct variant {
    dgm_precision type;
    const char *name;
    unsigned flags; // what the CPU must have
    void (*init)(dgm_kernels *k);
    const shape *shapes;
    size_t count; // of them
} variants[] = {
#define ROW(type, name, flags, init, shapes)                                                                           \
    {DGM_PRECISION_##type, name, flags, init, shapes, sizeof(shapes) / sizeof(shapes)[0]}
    ROW(F32, "c", DGM_CPU_C, dgm_gemm_f32_init_c, any_rows),
    ROW(I16, "c", DGM_CPU_C, dgm_gemm_i16_init_c, any_rows),
    ROW(I8, "c", DGM_CPU_C, dgm_gemm_i8_init_c, any_rows),
    ROW(BF16, "c", DGM_CPU_C, dgm_gemm_bf16_init_c, any_rows),
#if defined(__x86_64__)
    ROW(F32, "avx2", AVX2, dgm_gemm_f32_init_avx2, any_rows),
    ROW(F32, "avx512", AVX512, dgm_gemm_f32_init_avx512, any_rows),
    ROW(I16, "avx2", AVX2, dgm_gemm_i16_init_avx2, any_rows),
    ROW(I16, "avx512", AVX512, dgm_gemm_i16_init_avx512, any_rows),
    ROW(I16, "vnni", VNNI, dgm_gemm_i16_init_vnni, any_rows),
    ROW(I8, "avx2", AVX2, dgm_gemm_i8_init_avx2, any_rows),
    ROW(I8, "avx512", AVX512, dgm_gemm_i8_init_avx512, any_rows),
    ROW(I8, "vnni", VNNI, dgm_gemm_i8_init_vnni, any_rows),
    ROW(I8, "amx", AMX, dgm_gemm_i8_init_amx, tile_rows),
    ROW(BF16, "avx2", AVX2, dgm_gemm_bf16_init_avx2, any_rows),
    ROW(BF16, "avx512", AVX512, dgm_gemm_bf16_init_avx512, any_rows),
    ROW(BF16, "avx512bf16", AVX512_BF16, dgm_gemm_bf16_init_avx512bf16, any_rows),
    ROW(BF16, "amx", AMX_BF16, dgm_gemm_bf16_init_amx, any_rows),
#elif defined(__aarch64__)
    ROW(F32, "neon", NEON, dgm_gemm_f32_init_neon, any_rows),
    ROW(I16, "neon", NEON, dgm_gemm_i16_init_neon, any_rows),
    ROW(I8, "neon", NEON, dgm_gemm_i8_init_neon, any_rows),
    ROW(I8, "dotprod", DOTPROD, dgm_gemm_i8_init_dotprod, any_rows),
    ROW(I8, "i8mm", I8MM, dgm_gemm_i8_init_i8mm, pairs_of_rows),
    ROW(BF16, "neon", NEON, dgm_gemm_bf16_init_neon, any_rows),
#endif
#undef ROW
};

static int fewest_rows(const shape *shapes, size_t count, int n, int k)
{
    int rows = 1;
    for (size_t i = 0; i < count; i++)
        if (n >= shapes[i].n && k >= shapes[i].k) rows = shapes[i].rows;
    return rows;
}

int dgm_variant_tile_rows(int n, int k)
{
    return fewest_rows(tile_rows, sizeof tile_rows / sizeof tile_rows[0], n, k);
}

int dgm_variant_steps(unsigned flags, dgm_precision type, int n, int k, dgm_variant_step out[DGM_VARIANT_STEPS])
{
    int count = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const struct variant *v = &variants[i];
        if (v->type != type || (flags & v->flags) != v->flags) continue;
        const dgm_variant_step step = {v->name, fewest_rows(v->shapes, v->count, n, k)};
        if (step.rows <= 1) {
            count = 0; // for all rows: nothing is left to those before
        } else if (count == DGM_VARIANT_STEPS) {
            out[0] = out[1];
            count--;
        }
        out[count++] = step;
    }
    return count;
}

void dgm_variants_init(dgm_kernels *k, unsigned flags)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        if ((flags & variants[i].flags) == variants[i].flags) variants[i].init(k);
}
