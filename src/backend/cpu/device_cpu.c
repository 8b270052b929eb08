// SPDX-License-Identifier: MIT
// CPU backend: the device, its properties and its table of functions.
#include <stdio.h>

#include "backend/cpu/cpu_private.h"
#include "base/mem.h"
#include "base/threads.h"
#include "kernel/cpu.h"

#define CPU_OP(result, name, parameters) .name = cpu_##name,
const dgm_backend_ops cpu_ops = {DGM_BACKEND_OPS(CPU_OP)};
#undef CPU_OP

// Sizes were measured on cores with 1 MiB of L2 (docs/results/THROUGHPUT.md): activations of an encoder's
// tokens stay there, and a gathered list is read faster than panels of the whole layer. With one thread a small
// model is on its plateau from some 20 rows on, a larger one reads its weights from memory every step and
// still gains from 64 rows to 128; more sentences gain nothing and take memory for their candidates.
static void describe_props(dgm_backend_props *p, unsigned flags)
{
    *p = (dgm_backend_props){
        .memory = dgm_memory_physical(),
        .memory_free = dgm_memory_available(),
        .host_memory = true,
        .precisions = 1u << DGM_PRECISION_F32 | 1u << DGM_PRECISION_I16 | 1u << DGM_PRECISION_I8 |
                      1u << DGM_PRECISION_BF16,
        .encode_tokens = 512,
        .encode_tokens_recurrent = 1024,
        .gather_max = 2048,
        .usual = DGM_PRECISION_COUNT,
        .batch_tokens = 8192,
        .batch_sentences = 128,
    };
    snprintf(p->name, sizeof p->name, "cpu:%s", dgm_cpu_level_name(flags));
    snprintf(p->title, sizeof p->title, "%d CPU cores", dgm_cpu_count());
}

static bool probe(int index, dgm_backend_props *props)
{
    if (index > 0) return false;
    describe_props(props, dgm_cpu_detect());
    return true;
}

static dgm_status open_device(dgm_backend **out, const char *unit, dgm_error *err)
{
    unsigned flags = 0;
    DGM_TRY(dgm_cpu_limit(unit, &flags, err));
    dgm_backend *b = dgm_calloc(1, sizeof *b);
    if (!b) return dgm_no_memory(err);
    if (pthread_mutex_init(&b->lock, NULL) != 0) {
        dgm_free(b);
        return dgm_no_memory(err);
    }
    b->ops = &cpu_ops;
    b->flags = flags;
    describe_props(&b->props, flags);
    dgm_kernels_init(&b->k, flags);
    *out = b;
    return DGM_OK;
}

const dgm_device_driver dgm_cpu_driver = {
    .interface = DGM_DEVICE_INTERFACE,
    .ops_size = sizeof(dgm_backend_ops),
    .name = "cpu",
    .probe = probe,
    .open = open_device,
};

void cpu_close(dgm_backend **b)
{
    if (*b) pthread_mutex_destroy(&(*b)->lock);
    dgm_free(*b);
    *b = NULL;
}

const dgm_backend_props *cpu_properties(const dgm_backend *b)
{
    return &b->props;
}

const char *cpu_describe(const dgm_backend *b, char *buffer, size_t size)
{
    char kernels[256];
    const bool bf16 = b->flags & (DGM_CPU_AVX512_BF16 | DGM_CPU_AMX_BF16); // not every CPU of the level
    snprintf(buffer, size, "cpu %s%s: %s", dgm_cpu_level_name(b->flags), bf16 ? " with bf16" : "",
             dgm_kernels_describe(&b->k, kernels, sizeof kernels));
    return buffer;
}

void cpu_static_scales(dgm_backend *b, bool on)
{
    b->static_scales = on;
}

void cpu_activations(dgm_backend *b, dgm_activations how)
{
    dgm_gemm_f32_ops f32 = b->k.gemm_f32;
    dgm_kernels_init(&b->k, b->flags);
    b->k.gemm_f32 = f32; // a benchmark may have put another one there
    if (how == DGM_ACTIVATIONS_TABLE) dgm_kernels_use_tables(&b->k);
    if (how == DGM_ACTIVATIONS_LIBM) dgm_kernels_use_libm(&b->k);
}
