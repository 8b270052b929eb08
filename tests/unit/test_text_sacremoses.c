// SPDX-License-Identifier: MIT
// Tokens and text as sacremoses writes them (tests/data/text/sacremoses.json, made by
// tests/oracle/make_sacremoses.py), places of tokens in the text, allocation failures, long lines.
#include "unit/packed.h"
#include "unit/text_data.h"

#include <jansson.h>

#include "text/sacremoses.h"

static void test_golden(void **state)
{
    (void)state;
    dgm_mapfile f = packed_file("tests/data/text/sacremoses.json");
    json_t *golden = json_loadb((const char *)f.data, f.size, 0, NULL);
    assert_non_null(golden);
    dgm_writer out = {0};
    size_t i;
    json_t *row;
    json_array_foreach(golden, i, row)
    {
        const char *language = json_string_value(json_array_get(row, 0));
        const json_int_t options = json_integer_value(json_array_get(row, 1));
        const char *line = json_string_value(json_array_get(row, 2));
        const char *wanted = json_string_value(json_array_get(row, 3));
        dgm_moses_rules rules;
        dgm_moses_rules_init(&rules, dgm_text_of(language), options < 0 ? 0 : (unsigned)options);
        out.size = 0;
        assert_int_equal(dgm_sacremoses_line(&rules, options < 0, dgm_text_of(line), &out, NULL),
                         DGM_OK);
        if (!dgm_text_equal(text_of_writer(&out), dgm_text_of(wanted)))
            fail_msg("%s, options %d: '%s' became '%.*s', not '%s'", language, (int)options, line,
                     (int)out.size, (const char *)out.data, wanted);
    }
    assert_true(i > 900);
    dgm_writer_free(&out);
    json_decref(golden);
    dgm_mapfile_close(&f);
}

// Tokens know the bytes they came from, whatever was rewritten.
static void test_places(void **state)
{
    (void)state;
    const char *text = "\"A\xE2\x80\xA6\" well-known 5 %.";
    dgm_moses_rules rules;
    dgm_moses_rules_init(&rules, dgm_text_of("en-GB"), 15);
    assert_string_equal(rules.code, "en");
    dgm_glyphs line = {0};
    dgm_ranges tokens = {0};
    dgm_glyphs_read(&line, dgm_text_of(text));
    assert_int_equal(dgm_sacremoses_tokenize(&rules, &line, &tokens, NULL), DGM_OK);
    static const struct {
        uint32_t begin, end;
    } wanted[] = {{0, 1}, {1, 2}, {2, 5}, {5, 6}, {7, 11}, {11, 12}, {12, 17}, {18, 19}, {20, 21}, {21, 22}};
    assert_int_equal(tokens.count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < tokens.count; i++) {
        assert_int_equal(line.items[tokens.items[i].begin].begin, wanted[i].begin);
        assert_int_equal(line.items[tokens.items[i].end - 1].end, wanted[i].end);
    }
    dgm_ranges_free(&tokens);
    dgm_glyphs_free(&line);
}

static void test_long(void **state)
{
    (void)state;
    enum { SIZE = 200000 };
    static const char pieces[] = ".,'-\"a 1`.@";
    char *text = malloc(SIZE);
    dgm_writer out = {0}, back = {0};
    dgm_moses_rules rules;
    dgm_moses_rules_init(&rules, dgm_text_of("fr"), 15);
    for (size_t k = 0; k + 1 < sizeof pieces; k++) {
        for (size_t i = 0; i < SIZE; i++) text[i] = i % 3 ? pieces[k] : pieces[(k + i) % (sizeof pieces - 1)];
        out.size = back.size = 0;
        assert_int_equal(dgm_sacremoses_line(&rules, false, (dgm_text){text, SIZE}, &out, NULL), DGM_OK);
        assert_int_equal(dgm_sacremoses_line(&rules, true, text_of_writer(&out), &back, NULL), DGM_OK);
    }
    dgm_writer_free(&out);
    dgm_writer_free(&back);
    free(text);
}

static void test_memory(void **state)
{
    (void)state;
    dgm_moses_rules rules;
    dgm_moses_rules_init(&rules, dgm_text_of("en"), 15);
    const uint64_t live = dgm_mem_live();
    for (int undo = 0; undo <= 1; undo++) {
        dgm_status st = DGM_ERR_MEMORY;
        for (uint64_t n = 1; st != DGM_OK; n++) {
            assert_true(n < 100);
            dgm_writer out = {0};
            dgm_mem_inject(n, 1);
            st = dgm_sacremoses_line(&rules, undo, dgm_text_of("\"It 's\" (well-known) '' ` , No. 5"), &out, NULL);
            dgm_mem_inject(0, 0);
            assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
            dgm_writer_free(&out);
        }
    }
    assert_int_equal(dgm_mem_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
