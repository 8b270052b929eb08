// SPDX-License-Identifier: MIT
// Which variant of a product's kernel is taken: the table by what a CPU has, the kernels that a level runs, and the
// line about the layers that are loaded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu_private.h"
#include "backend/device.h"
#include "kernel/variants.h"

enum { X86_VNNI = DGM_CPU_AVX2 | DGM_CPU_AVX512 | DGM_CPU_AVX512_VNNI };

// "vnni 1 amx 4": names and the fewest rows.
static const char *steps(unsigned flags, dgm_precision type, int n, int k)
{
    static char text[128];
    dgm_variant_step s[DGM_VARIANT_STEPS];
    size_t used = 0;
    text[0] = '\0';
    const int count = dgm_variant_steps(flags, type, n, k, s);
    assert_in_range(count, 0, DGM_VARIANT_STEPS);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %d", i ? " " : "", s[i].variant, s[i].rows);
    return text;
}

// What a CPU would take, whether it is this one or not.
static void test_table(void **state)
{
    (void)state;
    for (int p = 0; p < DGM_PRECISION_COUNT; p++)
        assert_string_equal(steps(DGM_CPU_C, (dgm_precision)p, 512, 512), p == DGM_PRECISION_F16 ? "" : "c 1");
#if defined(__x86_64__)
    assert_string_equal(steps(DGM_CPU_AVX2, DGM_PRECISION_I16, 512, 512), "avx2 1");
    assert_string_equal(steps(X86_VNNI, DGM_PRECISION_F32, 512, 512), "avx512 1");
    assert_string_equal(steps(X86_VNNI, DGM_PRECISION_I8, 512, 512), "vnni 1");
    assert_string_equal(steps(X86_VNNI, DGM_PRECISION_BF16, 512, 512), "avx512 1"); // a CPU without vdpbf16ps
    assert_string_equal(steps(X86_VNNI | DGM_CPU_AVX512_BF16, DGM_PRECISION_BF16, 512, 512), "avx512bf16 1");
    const unsigned amx = X86_VNNI | DGM_CPU_AVX512_BF16 | DGM_CPU_AMX_INT8;
    assert_string_equal(steps(amx, DGM_PRECISION_I8, 512, 512), "vnni 1 amx 4");
    assert_string_equal(steps(amx, DGM_PRECISION_I8, 32000, 512), "vnni 1 amx 4");
    assert_string_equal(steps(amx, DGM_PRECISION_I16, 512, 512), "vnni 1");
    assert_string_equal(steps(amx, DGM_PRECISION_BF16, 512, 512), "avx512bf16 1"); // tiles of bytes alone
    assert_string_equal(steps(amx | DGM_CPU_AMX_BF16, DGM_PRECISION_BF16, 512, 512), "amx 1");
    assert_string_equal(steps(DGM_CPU_AMX_INT8, DGM_PRECISION_I8, 512, 512), "c 1"); // a flag alone is no level
#elif defined(__aarch64__)
    const unsigned all = DGM_CPU_NEON | DGM_CPU_DOTPROD | DGM_CPU_I8MM;
    assert_string_equal(steps(all, DGM_PRECISION_I8, 512, 512), "dotprod 1 i8mm 2");
    assert_string_equal(steps(all, DGM_PRECISION_BF16, 512, 512), "neon 1");
#endif
}

// Products of real numbers are not shared: a row's result would depend on how many rows there are.
static void test_reals_have_one(void **state)
{
    (void)state;
    dgm_variant_step s[DGM_VARIANT_STEPS];
    for (unsigned flags = 0; flags < 1u << 11; flags++) {
        assert_int_equal(dgm_variant_steps(flags, DGM_PRECISION_F32, 512, 512, s), 1);
        assert_int_equal(dgm_variant_steps(flags, DGM_PRECISION_BF16, 512, 512, s), 1);
        assert_true(dgm_variant_steps(flags, DGM_PRECISION_I8, 512, 512, s) >= 1);
        assert_int_equal(s[0].rows, 1); // one row has one, too
    }
}

static void ends_with(const char *name, const char *family, unsigned flags, dgm_precision type)
{
    char want[64];
    dgm_variant_step s[DGM_VARIANT_STEPS];
    const int count = dgm_variant_steps(flags, type, 512, 512, s);
    assert_true(count > 0);
    snprintf(want, sizeof want, "%s_%s", family, s[count - 1].variant);
    assert_string_equal(name, want);
}

// The kernels of every level that this CPU has are those of the table.
static void test_kernels_follow(void **state)
{
    static const char *const levels[] = {"c", "avx2", "avx512", "vnni", "amx", "neon", "dotprod", "i8mm"};
    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        unsigned flags;
        dgm_kernels k;
        if (dgm_cpu_limit(levels[i], &flags, NULL) != DGM_OK) continue;
        dgm_kernels_init(&k, flags);
        ends_with(k.gemm_f32.name, "gemm_f32", flags, DGM_PRECISION_F32);
        ends_with(k.gemm_i16.name, "gemm_i16", flags, DGM_PRECISION_I16);
        ends_with(k.gemm_i8.name, "gemm_i8", flags, DGM_PRECISION_I8);
        ends_with(k.gemm_bf16.name, "gemm_bf16", flags, DGM_PRECISION_BF16);
    }
}

// ---- layers ---------------------------------------------------------------------------------------

enum { MOST = 96, KEPT = 2 * CPU_SHAPES + 32 };

static const float numbers[MOST * MOST];
static dgm_tensor kept[KEPT]; // a layer borrows its tensor
static int kept_count;

static dgm_linear *load(dgm_backend *b, dgm_precision precision, int inputs, int outputs)
{
    assert_true(kept_count < KEPT);
    dgm_tensor *t = &kept[kept_count++];
    *t = (dgm_tensor){.name = "w",
                      .type = DGM_TYPE_F32,
                      .n_dims = 2,
                      .shape = {outputs, inputs},
                      .rows = outputs,
                      .cols = inputs,
                      .data = numbers,
                      .bytes = (size_t)inputs * (size_t)outputs * sizeof(float)};
    const dgm_linear_part part = {.weight = t};
    dgm_linear *l = NULL;
    dgm_error err;
    if (dgm_linear_load(b, &part, 1, precision, &l, &err) != DGM_OK) fail_msg("%s", err.text);
    return l;
}

static void expect(dgm_backend *b, const char *want)
{
    char text[1024];
    assert_ptr_equal(dgm_backend_variants(b, text, sizeof text), text);
    assert_string_equal(text, want);
}

static void test_layers(void **state)
{
    (void)state;
    dgm_backend *b = NULL;
    assert_int_equal(dgm_backend_open(&b, "cpu:c", NULL, NULL), DGM_OK);
    expect(b, "");
    dgm_linear *one = load(b, DGM_PRECISION_I8, 32, 64), *same = load(b, DGM_PRECISION_I8, 32, 64);
    dgm_linear *two = load(b, DGM_PRECISION_I8, 64, 32), *real = load(b, DGM_PRECISION_F32, 32, 64);
    expect(b, "i8 32x64 64x32: c; f32 32x64: c");
#if defined(__x86_64__)
    const unsigned flags = b->flags;
    b->flags = X86_VNNI | DGM_CPU_AMX_INT8; // nothing is computed
    expect(b, "i8 32x64 64x32: vnni to 3 rows, amx from 4; f32 32x64: avx512");
    b->flags = flags;
#endif
    dgm_linear_free(b, &one);
    expect(b, "i8 32x64 64x32: c; f32 32x64: c");
    dgm_linear_free(b, &same);
    expect(b, "i8 64x32: c; f32 32x64: c");
    // Rows that lie side by side, made of f32: the packed layer is gone.
    assert_int_equal(dgm_linear_by_rows(b, two, NULL), DGM_OK);
    expect(b, "f32 32x64: c");
    dgm_linear_free(b, &two);
    dgm_linear_free(b, &real);
    expect(b, "");
    dgm_backend_close(&b);
}

// What does not fit is left out, nothing is written behind the end.
static void test_small_buffers(void **state)
{
    (void)state;
    dgm_backend *b = NULL;
    assert_int_equal(dgm_backend_open(&b, "cpu:c", NULL, NULL), DGM_OK);
    dgm_linear *l = load(b, DGM_PRECISION_I8, 32, 64);
    for (size_t size = 0; size < 16; size++) {
        char text[32];
        memset(text, '#', sizeof text);
        dgm_backend_variants(b, text, size);
        assert_int_equal(text[size], '#');
        if (size) assert_memory_equal(text, "i8 32x64: c", strlen(text));
    }
    dgm_linear_free(b, &l);
    dgm_backend_close(&b);
}

static void test_many_shapes(void **state)
{
    (void)state;
    dgm_backend *b = NULL;
    dgm_linear *l[CPU_SHAPES + 9];
    char text[4096];
    assert_int_equal(dgm_backend_open(&b, "cpu:c", NULL, NULL), DGM_OK);
    for (int i = 0; i < CPU_SHAPES + 9; i++) l[i] = load(b, DGM_PRECISION_I8, 16, 1 + i);
    dgm_backend_variants(b, text, sizeof text);
    assert_non_null(strstr(text, " 16x64: c; and others"));
    assert_null(strstr(text, " 16x65"));
    for (int i = 0; i < CPU_SHAPES + 9; i++) dgm_linear_free(b, &l[i]);
    dgm_backend_variants(b, text, sizeof text);
    assert_null(strstr(text, "16x"));
    dgm_backend_close(&b);
}

// The name of a level says whether products of bf16 have an instruction of their own, which not every CPU of it has.
static void test_level_with_bf16(void **state)
{
    (void)state;
    dgm_backend *b = NULL;
    char text[512];
    assert_int_equal(dgm_backend_open(&b, "cpu:c", NULL, NULL), DGM_OK);
    assert_memory_equal(dgm_backend_describe(b, text, sizeof text), "cpu c: gemm_f32_c ", 18);
#if defined(__x86_64__)
    const unsigned flags = b->flags;
    b->flags = X86_VNNI;
    assert_memory_equal(dgm_backend_describe(b, text, sizeof text), "cpu vnni: ", 10);
    b->flags = X86_VNNI | DGM_CPU_AVX512_BF16;
    assert_memory_equal(dgm_backend_describe(b, text, sizeof text), "cpu vnni with bf16: ", 20);
    b->flags = flags;
#endif
    dgm_backend_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),         cmocka_unit_test(test_reals_have_one),
        cmocka_unit_test(test_kernels_follow), cmocka_unit_test(test_layers),
        cmocka_unit_test(test_small_buffers), cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_level_with_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
