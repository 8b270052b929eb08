// SPDX-License-Identifier: MIT
// Every test model through the public API: text in, PyTorch's arg-max text out.
//
// Covers what the tests of ids do not: vocabularies of words and of pieces with byte fallback, ids
// before and behind a sentence, start tokens, and all of it in f16 and i8 files too.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dragoman/dragoman.h"
#include "fixture.h"

enum { NAMES = 128 };

static void check_model(const char *name)
{
    fixture f;
    char path[160];
    const char *texts[FIXTURE_SENTENCES], *outputs[FIXTURE_SENTENCES];
    size_t n = 0;
    fixture_open(&f, name, NULL);
    for (int k = 0; k < f.count; k++) {
        if (!f.sentence[k].text) continue;
        texts[n] = f.sentence[k].text;
        outputs[n++] = f.sentence[k].output;
    }
    assert_true(n >= 3);
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.beam = 1;
    settings.precision = "f32"; // as PyTorch computed the expected text
    dgm_translator *t = NULL;
    dgm_results *results = NULL;
    dgm_error error = {{0}};
    snprintf(path, sizeof path, "tests/data/models/%s.gguf", f.name);
    if (dgm_open(&t, path, &settings, &error) != DGM_OK) fail_msg("%s: %s", name, error.text);
    if (dgm_translate(t, texts, n, &results, &error) != DGM_OK)
        fail_msg("%s: %s", name, error.text);
    assert_int_equal(results->count, n);
    for (size_t i = 0; i < n; i++) {
        const char *got = dgm_result_text(results->items[i]);
        if (strcmp(got, outputs[i]) != 0)
            fail_msg("%s: '%s' gives '%s', expected '%s'", name, texts[i], got, outputs[i]);
    }
    dgm_results_free(&results);
    dgm_close(&t);
    fixture_close(&f);
}

static void test_every_model(void **state)
{
    (void)state;
    char names[NAMES][64];
    int n = fixture_list("", names, NAMES, 28);
    for (int i = 0; i < n; i++) check_model(names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
