// SPDX-License-Identifier: MIT
// `import --check`: a model's translations against a text.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/tools.h"

static const char model[] = "tests/data/models/transformer-pieces.gguf";
static char text[] = "/tmp/dgm-check-text-XXXXXX", theirs[] = "/tmp/dgm-check-theirs-XXXXXX";

static void collect(void *cookie, const char *line)
{
    strcat(cookie, line);
    strcat(cookie, "\n");
}

static dgm_status check(const char *against, size_t differences, char *lines, dgm_check_report **r, dgm_error *err)
{
    dgm_check_options o;
    dgm_check_default(&o);
    o.beam = 2;
    o.threads = 1;
    o.differences = differences;
    if (lines) o.write = collect;
    o.write_cookie = lines;
    return dgm_import_check(model, text, against, &o, r, err);
}

static void test_check(void **state)
{
    (void)state;
    static const char source[] = "a b\nc\n\nd e f\n";
    char lines[4096] = "";
    dgm_check_report *r = NULL;
    dgm_error err = {""};
    close(mkstemp(text));
    close(mkstemp(theirs));
    assert_int_equal(dgm_file_write(text, source, sizeof source - 1, NULL), DGM_OK);
    if (check(NULL, 5, lines, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(r->lines, 4);
    assert_int_equal(r->count, 0);
    dgm_check_report_free(&r);

    assert_int_equal(dgm_file_write(theirs, lines, strlen(lines), NULL), DGM_OK);
    if (check(theirs, 5, NULL, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(r->same, 4);
    dgm_check_report_free(&r);

    static const char other[] = "x\nx\n\nx\n"; // an empty line stays empty
    assert_int_equal(dgm_file_write(theirs, other, sizeof other - 1, NULL), DGM_OK);
    if (check(theirs, 2, NULL, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(r->same, 1);
    assert_int_equal(r->count, 2);
    assert_int_equal(r->items[1]->line, 2);
    assert_string_equal(r->items[1]->source, "c");
    assert_string_equal(r->items[1]->theirs, "x");
    dgm_check_report_free(&r);
}

static void test_lines_that_do_not_fit(void **state)
{
    (void)state;
    dgm_check_report *r = NULL;
    dgm_error err = {""};
    assert_int_equal(dgm_file_write(theirs, "x\n", 2, NULL), DGM_OK);
    assert_int_equal(check(theirs, 5, NULL, &r, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "has fewer lines"));
    assert_null(r);
    assert_int_equal(dgm_file_write(theirs, "x\nx\nx\nx\nx\n", 10, NULL), DGM_OK);
    assert_int_equal(check(theirs, 5, NULL, &r, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "has more lines"));
    assert_int_equal(check("/none", 5, NULL, &r, &err), DGM_ERR_IO);
    assert_int_equal(dgm_import_check(NULL, text, NULL, NULL, &r, &err), DGM_ERR_ARGUMENT);
    unlink(text);
    unlink(theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_lines_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
