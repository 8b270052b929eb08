// SPDX-License-Identifier: MIT
// Text that looks as usual and is written in other bytes: composed, plain, without what nobody sees.
#include "unit/text_data.h"

#include "dragoman/text.h"
#include "failures.h"
#include "text/tidy.h"

#define ZWSP "\u200b"
#define ZWNJ "\u200c"
#define ZWJ "\u200d"

static const struct {
    const char *text, *tidy;
} cases[] = {
    // nothing to do
    {"", ""},
    {"Plain text, \"quoted\" \u2013 Gr\u00fc\u00dfe, na\u00efve caf\u00e9.\tTabs", NULL},
    {"\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u03b5\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac", NULL},
    {"\u0939\u093f\u0928\u094d\u0926\u0940 \u0958", NULL}, // its NFC would decompose the last letter
    {"\u65e5\u672c\u8a9e\u3001\uff08\u6f22\u5b57\uff09\uff01", NULL}, // full-width punctuation belongs there
    {"no-break\u00a0space and thin\u202fspace", NULL},
    // letters and marks
    {"Ju\u0308rgen Mu\u0308ller", "J\u00fcrgen M\u00fcller"},
    {"A\u030angstro\u0308m", "\u00c5ngstr\u00f6m"},
    {"Tie\u0302\u0301ng Vie\u0323\u0302t", "Ti\u1ebfng Vi\u1ec7t"},
    {"\u1112\u1161\u11ab\u1100\u1173\u11af", "\ud55c\uae00"},
    {"\u304b\u3099", "\u304c"},
    {"x\u0302", NULL}, // there is no such letter
    {"\u0301a", NULL},
    {"e" ZWJ "\u0301t\u00adude", "\u00e9tude"},
    // other forms
    {"\uff28\uff45\uff4c\uff4c\uff4f\u3000\uff37\uff4f\uff52\uff4c\uff44\uff01", "Hello World!"},
    {"\uff12\uff10\uff12\uff16\u5e74\uff0c\uff21", "2026\u5e74\uff0cA"},
    {"\uff76\uff9e\uff7d", "\u30ac\u30b9"},
    {"o\ufb03ce \ufb01nds \ufb02our", "office finds flour"},
    {"\uffe5100", "\u00a5100"},
    // what nobody sees
    {"Donau\u00addampf\u00adschiff", "Donaudampfschiff"},
    {"\ufeffone" ZWSP "two\u2060three" ZWJ ZWNJ "four\u200e\u202a\u2066", "onetwothreefour"},
    {"bell\a, escape\x1b[0m, delete\x7f, C1\xc2\x80", "bell, escape[0m, delete, C1"},
    {"unit\x1fseparator\xc2\x85" "line", "unit separator line"},
    // joiners that mean something
    {"\u0645\u06cc" ZWNJ "\u062e\u0648\u0627\u0647\u0645", NULL}, // Persian
    {"\u0915\u094d" ZWJ "\u0937", NULL},                          // Hindi
    {"\U0001f468" ZWJ "\U0001f469" ZWJ "\U0001f467", NULL},       // a family
    {"\u2764\ufe0f" ZWJ "\U0001f525 1\ufe0f\u20e3", NULL},
    {"\u0e2a\u0e27\u0e31\u0e2a" ZWSP "\u0e14\u0e35", NULL}, // Thai words end there
    {"a\ufe0fb", "ab"},
    {ZWJ, ""},
};

static void test_cases(void **state)
{
    (void)state;
    dgm_tidied t = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *wanted = cases[i].tidy ? cases[i].tidy : cases[i].text;
        const dgm_text in = dgm_text_of(cases[i].text);
        bool changed = true;
        assert_int_equal(dgm_tidy_text(in, &t, &changed, NULL), DGM_OK);
        assert_int_equal(changed, strcmp(wanted, cases[i].text) != 0);
        if (changed) assert_text_equal(text_of_writer(&t.text), dgm_text_of(wanted));

        char *made = NULL;
        size_t size = 0;
        assert_int_equal(dgm_tidy(in.data, in.size, &made, &size, NULL), DGM_OK);
        assert_int_equal(size, strlen(wanted));
        assert_string_equal(made, wanted);
        dgm_string_free(&made);
    }
    dgm_tidied_free(&t);
}

static void test_origins(void **state)
{
    (void)state;
    dgm_tidied t = {0};
    bool changed;
    // "u" and its mark are bytes 1 to 3, the soft hyphen 4 and 5, the wide A 6 to 8
    assert_int_equal(dgm_tidy_text(dgm_text_of("xu\u0308\u00ad\uff21y"), &t, &changed, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&t.text), dgm_text_of("x\u00fcAy"));
    static const uint32_t from[] = {0, 1, 1, 6, 9, 10};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) assert_int_equal(t.from[i], from[i]);
    dgm_tidied_free(&t);
}

// Thousands of them cost no more than other text, and none is left to the model.
static void test_floods(void **state)
{
    (void)state;
    static const char *const marks[] = {ZWJ, ZWNJ, ZWSP, "\u0301", "\u064b", "\u00ad", "\ufeff", "\u20dd"};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
        dgm_writer flood = {0};
        char *made = NULL;
        size_t size = 0;
        dgm_write_text(&flood, "Hell\u00f6");
        for (int i = 0; i < 5000; i++) dgm_write_text(&flood, marks[k]);
        dgm_write_text(&flood, " world");
        assert_int_equal(dgm_tidy((const char *)flood.data, flood.size, &made, &size, NULL), DGM_OK);
        assert_string_equal(made, "Hell\u00f6 world");
        dgm_string_free(&made);
        dgm_writer_free(&flood);
    }
}

static void test_arguments(void **state)
{
    (void)state;
    char *made = NULL;
    size_t size = 0;
    dgm_error e;
    assert_int_equal(dgm_tidy(NULL, 1, &made, &size, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_tidy("a", 1, NULL, &size, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_tidy("a", 1, &made, NULL, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_tidy("a\xff", 2, &made, &size, &e), DGM_ERR_TEXT);
    assert_string_equal(e.text, "invalid UTF-8 at byte 2");
    assert_int_equal(dgm_tidy(NULL, 0, &made, &size, &e), DGM_OK);
    assert_string_equal(made, "");
    dgm_string_free(&made);
}

static dgm_status tidy_once(void)
{
    char *made = NULL;
    size_t size = 0;
    dgm_status st = dgm_tidy("Ju\u0308rgen \uff21", strlen("Ju\u0308rgen \uff21"), &made, &size, NULL);
    dgm_string_free(&made);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    ALLOCATIONS_FAIL(tidy_once());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),     cmocka_unit_test(test_origins), cmocka_unit_test(test_floods),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
