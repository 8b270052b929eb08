// SPDX-License-Identifier: MIT
// bench/gemm, narrow types: what bounds a product: reading and writing its bytes, and a stream of the instruction that
// multiplies.
#define _GNU_SOURCE
#include "ceilings.h"
#include "gemm_int.h"

// Reads the packed matrix.
void gemm_int_read(cell *c)
{
    const char *p = c->weights[c->copy].ints, *const end = p + c->packed_size;
#if defined(__x86_64__)
    if (strstr(c->kernels->gemm_f32.name, "avx512")) {
        for (; p < end; p += 256)
            __asm__ volatile("vmovdqa64 (%0), %%zmm0\n\tvmovdqa64 64(%0), %%zmm1\n\t"
                             "vmovdqa64 128(%0), %%zmm2\n\tvmovdqa64 192(%0), %%zmm3"
                             :
                             : "r"(p)
                             : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
        __asm__ volatile("vzeroupper" ::: "memory");
        return;
    }
    if (strstr(c->kernels->gemm_f32.name, "avx2")) {
        for (; p < end; p += 128)
            __asm__ volatile("vmovdqa (%0), %%ymm0\n\tvmovdqa 32(%0), %%ymm1\n\t"
                             "vmovdqa 64(%0), %%ymm2\n\tvmovdqa 96(%0), %%ymm3"
                             :
                             : "r"(p)
                             : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
        __asm__ volatile("vzeroupper" ::: "memory");
        return;
    }
#endif
    uint64_t sum = 0;
    for (; p < end; p += 64) {
        uint64_t x[8];
        memcpy(x, p, sizeof x);
        for (int i = 0; i < 8; i++) sum += x[i];
    }
    __asm__ volatile("" : : "r"(sum));
}

enum { STREAM_STEPS = 4000, STREAM_WIDTH = 14 };

#if defined(__x86_64__)
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define STREAM_CLOBBERS                                                                            \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define DPBUSD(i) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define DPWSSD(i) "vpdpwssd %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define DPBF16(i) "vdpbf16ps %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define FMA_512(i) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define FMA_256(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i "\n\t"
#define MADD_512(i) "vpmaddwd %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define MADD_256(i) "vpmaddwd %%ymm14, %%ymm15, %%ymm" #i "\n\t"

// The kernels of the cell's type.
static const char *kernels_name(const cell *c)
{
    return c->is_i8     ? c->kernels->gemm_i8.name
           : c->is_bf16 ? c->kernels->gemm_bf16.name
                        : c->kernels->gemm_i16.name;
}

// bf16: vdpbf16ps, or the multiply-adds of f32 that the widened numbers take.
static void run_stream_bf16(cell *c, const char *name)
{
    const bool zmm = strstr(name, "avx512"), pairs = strstr(name, "bf16_avx512bf16");
    for (int i = 0; i < STREAM_STEPS; i++) {
        if (pairs)
            __asm__ volatile(EACH(DPBF16) : : : STREAM_CLOBBERS);
        else if (zmm)
            __asm__ volatile(EACH(FMA_512) : : : STREAM_CLOBBERS);
        else
            __asm__ volatile(EACH(FMA_256) : : : STREAM_CLOBBERS);
    }
    __asm__ volatile("vzeroupper" ::: "memory");
    c->stream_ops = (double)STREAM_STEPS * STREAM_WIDTH * (pairs ? 64 : zmm ? 32 : 16);
}

// One multiply instruction on 14 independent registers: vpdpbusd, vpdpwssd, or vpmaddwd, which
// bounds what has no VNNI (two of them, or as slow ones, for 64 products of bytes). With tiles: theirs.
void gemm_int_stream(cell *c)
{
    const char *name = kernels_name(c);
    if (strstr(name, "amx")) {
        c->stream_ops = 2 * ceilings_tile_turn(c->is_bf16);
        return;
    }
    if (c->is_bf16) {
        run_stream_bf16(c, name);
        return;
    }
    const bool zmm = strstr(name, "avx512"), vnni = strstr(name, "vnni");
    for (int i = 0; i < STREAM_STEPS; i++) {
        if (vnni && c->is_i8)
            __asm__ volatile(EACH(DPBUSD) : : : STREAM_CLOBBERS);
        else if (vnni)
            __asm__ volatile(EACH(DPWSSD) : : : STREAM_CLOBBERS);
        else if (zmm)
            __asm__ volatile(EACH(MADD_512) : : : STREAM_CLOBBERS);
        else
            __asm__ volatile(EACH(MADD_256) : : : STREAM_CLOBBERS);
    }
    __asm__ volatile("vzeroupper" ::: "memory");
    c->stream_ops = (double)STREAM_STEPS * STREAM_WIDTH *
                    (vnni && c->is_i8 ? 128
                     : zmm || vnni    ? 64
                                      : 32);
}

bool gemm_int_has_stream(const cell *c)
{
    const char *name = kernels_name(c);
    return strstr(name, "vnni") || strstr(name, "avx") || strstr(name, "amx");
}
#else
void gemm_int_stream(cell *c)
{
    c->stream_ops = 0;
}

bool gemm_int_has_stream(const cell *c)
{
    (void)c;
    return false;
}
#endif

// Writes the result.
void gemm_int_write(cell *c)
{
    memset(c->c, 0, (size_t)c->m * (size_t)c->n * sizeof(float));
}
