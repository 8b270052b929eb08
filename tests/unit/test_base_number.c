// SPDX-License-Identifier: MIT
// base/number.h and the numbers of dragoman/common.h: what is a number, ranges, locales, messages.
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/number.h"
#include "dragoman/common.h"

static dgm_text text(const char *s)
{
    return dgm_text_of(s);
}

static void test_digits(void **state)
{
    (void)state;
    uint64_t v = 7;
    assert_true(dgm_number_u64(text("0"), 10, &v) && v == 0);
    assert_true(dgm_number_u64(text("010"), 10, &v) && v == 10);
    assert_true(dgm_number_u64(text("18446744073709551615"), UINT64_MAX, &v) && v == UINT64_MAX);
    const char *const bad[] = {"",
                               " 1",
                               "1 ",
                               "+1",
                               "-1",
                               "0x1",
                               "1.0",
                               "11",
                               "a",
                               "18446744073709551616",
                               "99999999999999999999999"};
    v = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const uint64_t max = strlen(bad[i]) < 5 ? 10 : UINT64_MAX;
        assert_false(dgm_number_u64(text(bad[i]), max, &v));
        assert_int_equal(v, 7);
    }
    assert_false(dgm_number_u64((dgm_text){"1\0", 2}, 10, &v)); // a NUL byte is no digit
    assert_true(dgm_number_u64((dgm_text){"123", 2}, 99, &v) && v == 12);
}

static void test_taking_digits(void **state)
{
    (void)state;
    uint64_t v;
    dgm_text t = text("12-345");
    assert_true(dgm_number_take_u64(&t, 100, &v) && v == 12);
    assert_true(dgm_text_equal(t, text("-345")));
    assert_false(dgm_number_take_u64(&t, 100, &v)); // no digit
    t = text("345");
    assert_false(dgm_number_take_u64(&t, 100, &v)); // too large: nothing is taken
    assert_true(dgm_text_equal(t, text("345")));
}

static void test_signed_integers(void **state)
{
    (void)state;
    int64_t v = 7;
    assert_true(dgm_number_i64(text("-0"), -1, 1, &v) && v == 0);
    assert_true(dgm_number_i64(text("+5"), -9, 9, &v) && v == 5);
    assert_true(dgm_number_i64(text("-9"), -9, 9, &v) && v == -9);
    assert_true(dgm_number_i64(text("-9223372036854775808"), INT64_MIN, INT64_MAX, &v));
    assert_true(v == INT64_MIN);
    assert_true(dgm_number_i64(text("9223372036854775807"), INT64_MIN, INT64_MAX, &v));
    assert_true(v == INT64_MAX);
    assert_false(dgm_number_i64(text("9223372036854775808"), INT64_MIN, INT64_MAX, &v));
    assert_false(dgm_number_i64(text("-9223372036854775809"), INT64_MIN, INT64_MAX, &v));
    const char *const bad[] = {"", "-", "+", "--1", "- 1", "1e2", "10", "-10"};
    v = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dgm_number_i64(text(bad[i]), -9, 9, &v));
    assert_int_equal(v, 7);
}

static const char *const real[] = {"0",     "-0",       "+1",
                                   "1.",    ".5",       "-.5e-3",
                                   "1e5",   "1E+5",     "3.14159",
                                   "0.1",   "16777217", "1.00000017881393432617187499",
                                   "4e-46", "1e-400",   "123456789012345678901234567890"};
static const char *const not_real[] = {"",         " 1",  "1 ",   "+",    "-",     ".",   "e5",
                                       ".e5",      "1e",  "1e+",  "0x10", "0x1p3", "inf", "nan",
                                       "Infinity", "1,5", "1..2", "--1",  "1e5.",  "1f",  "1e999"};

static void check_reals(const char *locale)
{
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        double d = 7;
        float f = 7;
        assert_non_null(setlocale(LC_NUMERIC, locale));
        assert_true(dgm_number_f64(text(real[i]), &d));
        assert_true(dgm_number_f32(text(real[i]), &f));
        char *end;
        setlocale(LC_NUMERIC, "C");
        assert_true(d == strtod(real[i], &end) && f == strtof(real[i], &end));
        assert_int_equal(*end, 0);
    }
    for (size_t i = 0; i < sizeof not_real / sizeof *not_real; i++) {
        double d = 7;
        float f = 7;
        assert_non_null(setlocale(LC_NUMERIC, locale));
        assert_false(dgm_number_f64(text(not_real[i]), &d));
        assert_false(dgm_number_f32(text(not_real[i]), &f));
        assert_true(d == 7 && f == 7);
    }
}

static void test_reals(void **state)
{
    (void)state;
    float f = 7;
    double d = 7;
    check_reals("C");
    assert_false(dgm_number_f32(text("1e39"), &f)); // beyond float, not beyond double
    assert_true(dgm_number_f64(text("1e39"), &d));
    char many[200];
    memset(many, '1', sizeof many);
    assert_true(dgm_number_f64((dgm_text){many, DGM_NUMBER_MAX}, &d));
    assert_false(dgm_number_f64((dgm_text){many, DGM_NUMBER_MAX + 1}, &d));
    assert_false(dgm_number_f64((dgm_text){"1\0002", 3}, &d));
    // Where the system has a locale with a decimal comma, nothing changes.
    const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_NUMERIC, names[i])) check_reals(names[i]);
    setlocale(LC_NUMERIC, "C");
}

// Numbers of all lengths and sizes, and those at and beside the middle of two floats.
static void test_reals_are_rounded_once(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 300000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const uint64_t digits = seed >> (seed % 60);
        const int exponent = (int)(seed >> 40) % 60 - 40;
        char number[96] = "0";
        const uint32_t bits = (uint32_t)(seed >> 32) & 0x7fffffff;
        float f, next, got_f;
        memcpy(&f, &bits, sizeof f);
        next = nextafterf(f, INFINITY);
        const double middle = ((double)f + (double)next) / 2;
        if (i % 3 == 0)
            snprintf(number, sizeof number, "%llue%d", (unsigned long long)digits, exponent);
        else if (i % 3 == 1)
            snprintf(number, sizeof number, "-%llu.%08u", (unsigned long long)digits % 1000,
                     (unsigned)(seed >> 33) % 100000000);
        else if (isfinite(next))
            snprintf(number, sizeof number, "%.*g", 9 + i % 16, middle);
        double got_d;
        const float want_f = strtof(number, NULL);
        const double want_d = strtod(number, NULL);
        assert_true(dgm_number_f64(text(number), &got_d) == (isfinite(want_d) != 0));
        assert_true(dgm_number_f32(text(number), &got_f) == (isfinite(want_f) != 0));
        if (isfinite(want_d)) assert_memory_equal(&got_d, &want_d, sizeof got_d);
        if (isfinite(want_f)) assert_memory_equal(&got_f, &want_f, sizeof got_f);
    }
}

static void test_integer_with_message(void **state)
{
    (void)state;
    int64_t v = 7;
    dgm_error e = {{0}};
    assert_int_equal(dgm_number_integer("--beam", "12", 1, 512, &v, &e), DGM_OK);
    assert_int_equal(v, 12);
    assert_int_equal(dgm_number_integer("--beam", "600", 1, 512, &v, &e), DGM_ERR_ARGUMENT);
    assert_string_equal(e.text, "--beam must be 1 to 512, not 600");
    assert_int_equal(dgm_number_integer("--beam", "4x", 1, 512, &v, &e), DGM_ERR_ARGUMENT);
    assert_string_equal(e.text, "--beam must be a whole number from 1 to 512, not '4x'");
    assert_int_equal(dgm_number_integer("--beam", NULL, 1, 512, &v, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(v, 12);
}

static void test_real_with_message(void **state)
{
    (void)state;
    double v = 7;
    dgm_error e = {{0}};
    assert_int_equal(dgm_number_real("--margin", "0.25", 0, 1, &v, &e), DGM_OK);
    assert_true(v == 0.25);
    assert_int_equal(dgm_number_real("--margin", "1.5", 0, 1, &v, &e), DGM_ERR_ARGUMENT);
    assert_string_equal(e.text, "--margin must be 0 to 1, not 1.5");
    assert_int_equal(dgm_number_real("--margin", "nan", 0, 1, &v, &e), DGM_ERR_ARGUMENT);
    assert_string_equal(e.text, "--margin must be a number from 0 to 1, not 'nan'");
    assert_true(v == 0.25);
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"512", (int64_t)512 << 20}, {"64k", 64 << 10},        {"64K", 64 << 10}, {"1M", 1 << 20},
        {"1.5G", (int64_t)3 << 29},  {"2t", (int64_t)2 << 40}, {"0", 0}};
    static const char *const bad[] = {"",    "M",    "1MB",   "-1M",
                                      "1 M", "0x1M", "1e999", "99999999999T"};
    int64_t v = 7;
    dgm_error e;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(dgm_number_size("--memory", good[i].text, 0, INT64_MAX, &v, &e), DGM_OK);
        assert_int_equal(v, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dgm_number_size("--memory", bad[i], 0, INT64_MAX, &v, &e),
                         DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_number_size("--memory", "1k", 2048, 4096, &v, &e), DGM_ERR_ARGUMENT);
    assert_string_equal(e.text, "--memory must be 2048 to 4096 bytes, not 1k");
    assert_int_equal(v, 0);
}

static void test_lists(void **state)
{
    (void)state;
    double v[3] = {0};
    int n = -1;
    dgm_error e;
    assert_int_equal(dgm_number_list("--weights", "1,.5,-2", v, 3, &n, &e), DGM_OK);
    assert_true(n == 3 && v[0] == 1 && v[1] == .5 && v[2] == -2);
    assert_int_equal(dgm_number_list("--weights", "", v, 3, &n, &e), DGM_OK);
    assert_int_equal(n, 0);
    static const char *const bad[] = {",", "1,", ",1", "1,,2", "1, 2", "1;2", "1,2,3,4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dgm_number_list("--weights", bad[i], v, 3, &n, &e), DGM_ERR_ARGUMENT);
        assert_non_null(strstr(e.text, "--weights"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_taking_digits),
        cmocka_unit_test(test_signed_integers),
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_reals_are_rounded_once),
        cmocka_unit_test(test_integer_with_message),
        cmocka_unit_test(test_real_with_message),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
