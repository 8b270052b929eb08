// SPDX-License-Identifier: MIT
// Settings of the search through the public functions: they act, and bad ones are refused.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dragoman/dragoman.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"

static const char *const texts[] = {"Good morning.", "House house house."};

// All translations of both texts in one string.
static void translate(const dgm_settings *s, char *out, size_t size)
{
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_open(&t, MODEL, s, &error) != DGM_OK) fail_msg("%s", error.text);
    if (dgm_translate(t, texts, 2, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    out[0] = 0;
    for (size_t i = 0; i < r->count; i++) {
        assert_true(strlen(out) + strlen(dgm_result_text(r->items[i])) + 2 < size);
        strcat(strcat(out, dgm_result_text(r->items[i])), "\n");
    }
    dgm_results_free(&r);
    dgm_close(&t);
}

static void repetition_is_off(void **state)
{
    (void)state;
    char a[2048], b[2048];
    dgm_settings s;
    dgm_settings_default(&s);
    translate(&s, a, sizeof a);
    s.no_repeat_ngram = 1;
    translate(&s, b, sizeof b);
    assert_string_not_equal(a, b);
}

static void samples_follow_the_seed(void **state)
{
    (void)state;
    char a[2048], b[2048];
    dgm_settings s;
    dgm_settings_default(&s);
    s.search = "sample";
    s.temperature = 1.5f;
    s.seed = 1;
    translate(&s, a, sizeof a);
    s.threads = 2;
    s.batch = 1;
    translate(&s, b, sizeof b);
    assert_string_equal(a, b);
    s.seed = UINT64_MAX;
    translate(&s, b, sizeof b);
    assert_string_not_equal(a, b);
}

static void refused(const dgm_settings *s, const char *message)
{
    dgm_translator *t = NULL;
    dgm_error error;
    assert_int_equal(dgm_open(&t, MODEL, s, &error), DGM_ERR_ARGUMENT);
    assert_null(t);
    assert_string_equal(error.text, message);
}

#define REFUSED(kind, field, value, message)                                                       \
    do {                                                                                           \
        dgm_settings s;                                                                            \
        dgm_settings_default(&s);                                                                  \
        s.search = (kind);                                                                         \
        s.field = (value);                                                                         \
        refused(&s, message);                                                                      \
    } while (0)

static void bad_numbers(void **state)
{
    (void)state;
    REFUSED("beam", beam_width, 2, "beam width must be 0 to 1, not 2");
    REFUSED("beam", repetition_penalty, -1, "repetition penalty must be 0 to 1e+06, not -1");
    REFUSED("beam", no_repeat_ngram, -1, "no-repeat n-gram size must be 0 to 65536, not -1");
    REFUSED("beam", diversity, -1, "diversity must be 0 to 1e+06, not -1");
    REFUSED("beam", coverage_penalty, -1, "coverage penalty must be 0 to 1e+06, not -1");
    REFUSED("beam", seed, 1,
            "seed cannot be combined with search beam: it says how search sample draws words");
    REFUSED("sample", top_k, 1025, "top-k must be 1 to 1024, not 1025");
    REFUSED("sample", top_p, 2, "top-p must be 0 to 1, not 2");
    REFUSED("sample", temperature, -1, "temperature must be 0 to 1e+06, not -1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repetition_is_off),
        cmocka_unit_test(samples_follow_the_seed),
        cmocka_unit_test(bad_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
