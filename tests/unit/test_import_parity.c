// SPDX-License-Identifier: MIT
// Imported models against the programs they come from: 200 real lines at beams 1 and 6 in f32, by tiny
// models with random weights (tests/data/import, made by tests/oracle/make_imports.py). At least 99 of 100
// lines are identical, and of those every log-probability is the same to 1e-3.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "unit/packed.h"

#define DATA "tests/data/import/"
enum { LINES = 200 };

typedef struct parity {
    const char *format, *path, *golden; // below DATA
    const char *source, *target;
    const char *finish; // NULL: the model's own
} parity;

static char out[] = "/tmp/dragoman-parity-XXXXXX";

// Cuts a text into lines in place.
static void cut(dgm_mapfile file, char *lines[LINES])
{
    char *text = (char *)(uintptr_t)file.data; // no mapped one
    for (int i = 0; i < LINES; i++) {
        lines[i] = text;
        text = strchr(text, '\n');
        assert_non_null(text);
        *text++ = 0;
    }
}

static void compare(const parity *p, int beam, char *const lines[LINES])
{
    char path[160];
    char *expected[LINES];
    snprintf(path, sizeof path, DATA "%s.beam%d.gz", p->golden, beam);
    dgm_mapfile golden = packed_file(path);
    cut(golden, expected);
    dgm_settings s;
    dgm_error err = {""};
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_settings_default(&s);
    s.raw = 1;
    s.precision = "f32";
    s.beam = beam;
    s.source = p->source;
    s.target = p->target;
    if (p->finish) s.finish = p->finish;
    if (dgm_open(&t, out, &s, &err) != DGM_OK) fail_msg("%s: %s", p->path, err.text);
    if (dgm_translate(t, (const char *const *)lines, LINES, &r, &err) != DGM_OK)
        fail_msg("%s: %s", p->path, err.text);
    int same = 0, off = 0;
    for (int i = 0; i < LINES; i++) {
        char *tab = strchr(expected[i], '\t');
        assert_non_null(tab);
        if (strcmp(dgm_result_text(r->items[i]), tab + 1) != 0) {
            print_message("%s, beam %d, line %d: '%s' instead of '%s' (%g, %s)\n", p->path, beam, i + 1,
                          dgm_result_text(r->items[i]), tab + 1,
                          (double)r->items[i]->translations[0]->sum, expected[i]);
            continue;
        }
        same++;
        const double sum = r->items[i]->translations[0]->sum, theirs = strtod(expected[i], NULL);
        if (fabs(sum - theirs) > 1e-3 && off++ < 5)
            print_message("%s, beam %d, line %d: %g instead of %g\n", p->path, beam, i + 1, sum, theirs);
    }
    dgm_results_free(&r);
    dgm_close(&t);
    dgm_mapfile_close(&golden);
    if (same < LINES * 99 / 100 || off) fail_msg("%s, beam %d: %d the same, %d scores off", p->path, beam, same, off);
}

static void check(void **state)
{
    const parity *p = *state;
    char path[160];
    char *lines[LINES];
    dgm_mapfile text = packed_file(DATA "lines.en");
    dgm_error err = {""};
    cut(text, lines);
    snprintf(path, sizeof path, DATA "%s", p->path);
    if (dgm_import(p->format, path, out, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    compare(p, 1, lines);
    compare(p, 6, lines);
    dgm_mapfile_close(&text);
}

static int make_file(void **state)
{
    (void)state;
    const int f = mkstemp(out);
    return f < 0 ? -1 : close(f);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(out);
}

int main(void)
{
    static parity rows[] = {
        {"huggingface", "marian-untied", "marian-untied", NULL, NULL, NULL},
        {"huggingface", "marian-positions", "marian-positions", NULL, NULL, NULL},
        {"huggingface", "marian-odd", "marian-odd", NULL, NULL, NULL},
        {"huggingface", "marian-fast", "marian-fast", NULL, NULL, NULL},
        {"huggingface", "mbart-50", "mbart-50", "en", "de", NULL},
        {"huggingface", "mbart", "mbart", "en", "de", NULL},
        {"huggingface", "fsmt", "fsmt", NULL, NULL, NULL},
        {"fairseq", "fairseq-new", "fairseq-new", NULL, NULL, NULL},
        {"fairseq", "fairseq-old/model.pt", "fairseq-old", NULL, NULL, NULL},
        {"opennmt-py", "opennmt-3/model_step_10.pt", "opennmt-3", NULL, NULL, NULL},
        {"opennmt-py", "opennmt-1/model_step_10.pt", "opennmt-1", NULL, NULL, NULL},
    };
    enum { COUNT = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[COUNT];
    for (int i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].golden, .test_func = check, .initial_state = &rows[i]};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
