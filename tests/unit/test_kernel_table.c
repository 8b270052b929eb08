// SPDX-License-Identifier: MIT
// CPU levels and the table of kernels: names, limits, error messages, what each level chooses.
// The kernels themselves are checked by tests/checkkernel.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernel/kernels.h"

static void test_no_limit_is_all(void **state)
{
    (void)state;
    unsigned flags = 99;
    dgm_error err;
    assert_int_equal(dgm_cpu_limit(NULL, &flags, &err), DGM_OK);
    assert_int_equal(flags, dgm_cpu_detect());
    assert_int_equal(dgm_cpu_limit("", &flags, &err), DGM_OK);
    assert_int_equal(flags, dgm_cpu_detect());
}

static void test_unknown_level(void **state)
{
    (void)state;
    unsigned flags;
    dgm_error err;
    assert_int_equal(dgm_cpu_limit("sse9", &flags, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "unknown CPU level 'sse9'"));
    assert_int_equal(dgm_cpu_limit("sse9", &flags, NULL), DGM_ERR_ARGUMENT);
}

// Every level is either chosen exactly or refused because the CPU lacks it.
static void test_levels(void **state)
{
    static const char *const names[] = {"c",   "avx2", "avx512",  "vnni",
                                        "amx", "neon", "dotprod", "i8mm"};
    (void)state;
    unsigned below = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsigned flags = 0;
        dgm_error err;
        const dgm_status st = dgm_cpu_limit(names[i], &flags, &err);
        if (st == DGM_OK) {
            assert_string_equal(dgm_cpu_level_name(flags), names[i]);
            assert_int_equal(flags & below, below); // each includes the one below
            below = flags;
        } else {
            assert_int_equal(st, DGM_ERR_UNSUPPORTED);
            assert_non_null(strstr(err.text, names[i]));
        }
    }
    assert_int_equal(below, dgm_cpu_detect());
}

static void test_table_follows_flags(void **state)
{
    (void)state;
    dgm_kernels k;
    dgm_kernels_init(&k, DGM_CPU_C);
    assert_string_equal(k.gemm_f32.name, "gemm_f32_c");
    assert_string_equal(k.rows_name, "rows_c");
#if defined(__x86_64__)
    const unsigned have = dgm_cpu_detect();
    if (have & DGM_CPU_AVX2) {
        dgm_kernels_init(&k, DGM_CPU_AVX2);
        assert_string_equal(k.gemm_f32.name, "gemm_f32_avx2");
        assert_string_equal(k.topk_name, "topk_avx2");
    }
    if (have & DGM_CPU_AVX512) {
        dgm_kernels_init(&k, DGM_CPU_AVX2 | DGM_CPU_AVX512);
        assert_string_equal(k.gemm_f32.name, "gemm_f32_avx512");
        assert_string_equal(k.attend_name, "attend_avx512");
        assert_string_equal(k.gemm_i8.name, "gemm_i8_avx512");
    }
    if (have & DGM_CPU_AVX512_VNNI) {
        dgm_kernels_init(&k, DGM_CPU_AVX2 | DGM_CPU_AVX512 | DGM_CPU_AVX512_VNNI);
        assert_string_equal(k.gemm_i8.name, "gemm_i8_vnni");
        assert_string_equal(k.gemm_i16.name, "gemm_i16_vnni");
    }
#endif
}

// Look-up tables take the place of the polynomials and stay within their bound.
static void test_tables(void **state)
{
    (void)state;
    const float x[2] = {0.3f, -2.0f};
    float exact[2], table[2];
    dgm_kernels k;
    dgm_kernels_init(&k, dgm_cpu_detect());
    k.act_f32(exact, x, 2, DGM_ACT_TANH);
    dgm_kernels_use_tables(&k);
    k.act_f32(table, x, 2, DGM_ACT_TANH);
    for (int i = 0; i < 2; i++) {
        assert_true(exact[i] != table[i]);
        assert_true(exact[i] - table[i] < 2.4e-5f && table[i] - exact[i] < 2.4e-5f);
    }
    assert_ptr_equal(k.gru_f32, k.gru_table_f32);
    assert_ptr_equal(k.lstm_f32, k.lstm_table_f32);
    assert_ptr_equal(k.ssru_f32, k.ssru_table_f32);
}

static void near(const float *a, const float *b, int n)
{
    for (int i = 0; i < n; i++) assert_true(a[i] - b[i] < 2e-6f && b[i] - a[i] < 2e-6f);
}

// The scalar baseline of benchmarks computes the same functions.
static void test_switch_to_libm(void **state)
{
    (void)state;
    enum { N = 19 };
    dgm_kernels k, libm;
    float x[4 * N], h[4 * N], state_in[N], a[N], b[N], cell_a[N], cell_b[N];
    for (int i = 0; i < 4 * N; i++) {
        x[i] = (float)(i % 13) * 0.4f - 2.0f;
        h[i] = (float)(i % 7) * 0.3f - 1.0f;
    }
    for (int i = 0; i < N; i++) state_in[i] = (float)(i % 5) * 0.2f - 0.4f;
    dgm_kernels_init(&k, DGM_CPU_C);
    libm = k;
    dgm_kernels_use_libm(&libm);
    k.gru_f32(a, state_in, x, h, N);
    libm.gru_f32(b, state_in, x, h, N);
    near(a, b, N);
    k.lstm_f32(a, cell_a, state_in, x, h, N);
    libm.lstm_f32(b, cell_b, state_in, x, h, N);
    near(a, b, N);
    near(cell_a, cell_b, N);
    k.ssru_f32(a, cell_a, state_in, x, h, N);
    libm.ssru_f32(b, cell_b, state_in, x, h, N);
    near(a, b, N);
    for (int act = 0; act < DGM_ACT_COUNT; act++) {
        k.act_f32(a, x, N, (dgm_act)act);
        libm.act_f32(b, x, N, (dgm_act)act);
        near(a, b, N);
    }
    assert_string_equal(libm.gates_name, "gates_libm");
}

static void test_describe(void **state)
{
    (void)state;
    char text[512], tiny[12];
    dgm_kernels k;
    dgm_kernels_init(&k, DGM_CPU_C);
    assert_ptr_equal(dgm_kernels_describe(&k, text, sizeof text), text);
    assert_int_equal(strncmp(text, "gemm_f32_c ", 11), 0);
    assert_non_null(strstr(text, " rows_c "));
    // Names that do not fit are left out whole.
    dgm_kernels_describe(&k, tiny, sizeof tiny);
    assert_string_equal(tiny, "gemm_f32_c");
    dgm_kernels_describe(&k, tiny, 1);
    assert_string_equal(tiny, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_limit_is_all), cmocka_unit_test(test_unknown_level),
        cmocka_unit_test(test_levels),          cmocka_unit_test(test_table_follows_flags),
        cmocka_unit_test(test_tables),          cmocka_unit_test(test_switch_to_libm),
        cmocka_unit_test(test_describe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
