// SPDX-License-Identifier: MIT
// UTF-8 reading, repair, NFC, case and character classes.
#include "unit/text_data.h"

#include "base/clock.h"

static void test_valid(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size, first_bad;
        const char *repaired;
    } cases[] = {
        {"", 0, 0, ""},
        {"abc", 3, 3, "abc"},
        {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", 9, 9, "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"a\xFF", 2, 1, "a\xEF\xBF\xBD"},
        {"\x80\x80", 2, 0, "\xEF\xBF\xBD\xEF\xBF\xBD"}, // stray continuation
        {"\xC0\x80", 2, 0, "\xEF\xBF\xBD\xEF\xBF\xBD"}, // overlong NUL
        {"\xE0\x80\x80", 3, 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xED\xA0\x80", 3, 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, // surrogate
        {"\xF4\x90\x80\x80", 4, 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF0\x9F\x98", 3, 0, "\xEF\xBF\xBD"}, // cut off: one replacement
        {"\xE2\x82(", 3, 0, "\xEF\xBF\xBD("},
        {"x\xE2\x82\xF0\x9F", 5, 1, "x\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x8F\xBF\xBF", 4, 4, "\xF4\x8F\xBF\xBF"},
        {"a\0b", 3, 3, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dgm_text t = {cases[i].bytes, cases[i].size};
        assert_int_equal(dgm_utf8_first_bad(t), cases[i].first_bad);
        assert_int_equal(dgm_utf8_valid(t), cases[i].first_bad == cases[i].size);
        dgm_writer out = {0};
        size_t replaced;
        assert_int_equal(dgm_utf8_repair(t, &out, &replaced, NULL), DGM_OK);
        assert_true(dgm_utf8_valid(text_of_writer(&out)));
        assert_int_equal(replaced == 0, dgm_utf8_valid(t));
        if (cases[i].repaired)
            assert_text_equal(text_of_writer(&out), dgm_text_of(cases[i].repaired));
        dgm_writer_free(&out);
    }
}

static void test_every_code_point(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char bytes[4];
        size_t n = dgm_utf8_put(code, bytes);
        uint32_t back;
        assert_int_equal(dgm_utf8_next(bytes, n, &back), n);
        bool surrogate = code >= 0xD800 && code < 0xE000;
        assert_int_equal(back, surrogate ? 0xFFFD : code);
        assert_int_equal(dgm_utf8_prev(bytes, n), 0);
        assert_true(dgm_utf8_valid((dgm_text){bytes, n}));
        (void)dgm_char_class(code);
    }
    char bytes[4];
    assert_int_equal(dgm_utf8_put(0x110000, bytes), 3);
}

// Walking backwards over any bytes meets the ends that walking forwards meets, on valid text.
static void test_backwards(void **state)
{
    (void)state;
    dgm_text t = dgm_text_of("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z");
    size_t ends[8], count = 0;
    for (size_t pos = 0; pos < t.size; count++) {
        uint32_t code;
        ends[count] = pos;
        pos += dgm_utf8_next(t.data + pos, t.size - pos, &code);
    }
    assert_int_equal(count, 5);
    assert_int_equal(dgm_utf8_count(t), 5);
    for (size_t pos = t.size; pos > 0; pos = dgm_utf8_prev(t.data, pos))
        assert_int_equal(dgm_utf8_prev(t.data, pos), ends[--count]);
    assert_int_equal(dgm_utf8_prev("\x80\x80", 2), 1);
}

static void check_lower(const char *from, const char *to)
{
    dgm_writer out = {0};
    assert_int_equal(dgm_utf8_lower(dgm_text_of(from), &out, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of(to));
    dgm_writer_free(&out);
}

static void test_lower(void **state)
{
    (void)state;
    check_lower("ABC xyz 123", "abc xyz 123");
    check_lower("\xC3\x84\xC3\x96\xC3\x9C\xE1\xBA\x9E", "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F");
    check_lower("\xC4\xB0", "i\xCC\x87");                // I with dot
    check_lower("\xCE\x91\xCE\xA3", "\xCE\xB1\xCF\x82"); // final sigma
    check_lower("\xCE\x91\xCE\xA3.", "\xCE\xB1\xCF\x82.");
    check_lower("\xCE\xA3", "\xCF\x83"); // alone: not final
    check_lower("\xCE\x91\xCE\xA3\xCE\x91", "\xCE\xB1\xCF\x83\xCE\xB1");
    check_lower("\xCE\x91\xCE\xA3'\xCE\x91", "\xCE\xB1\xCF\x83'\xCE\xB1"); // apostrophe is ignored
    assert_int_equal(dgm_char_lower('A'), 'a');
    assert_int_equal(dgm_char_upper(0xE4), 0xC4);
    assert_int_equal(dgm_char_lower(0x110000), 0x110000);
}

static void test_nfc(void **state)
{
    (void)state;
    dgm_writer out = {0};
    assert_int_equal(
        dgm_utf8_nfc(dgm_text_of("e\xCC\x81 A\xCC\x8A \xE1\x84\x80\xE1\x85\xA1"), &out, NULL),
        DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("\xC3\xA9 \xC3\x85 \xEA\xB0\x80"));
    out.size = 0;
    assert_int_equal(dgm_utf8_nfc((dgm_text){"", 0}, &out, NULL), DGM_OK);
    dgm_error err;
    assert_int_equal(dgm_utf8_nfc((dgm_text){"a\xFF", 2}, &out, &err), DGM_ERR_TEXT);
    assert_string_equal(err.text, "text is not valid UTF-8");
    dgm_writer_free(&out);
}

static void test_classes(void **state)
{
    (void)state;
    assert_int_equal(dgm_char_class('a'), DGM_CHAR_LETTER | DGM_CHAR_LOWER);
    assert_int_equal(dgm_char_class('A'), DGM_CHAR_LETTER | DGM_CHAR_UPPER);
    assert_int_equal(dgm_char_class('7'), DGM_CHAR_NUMBER);
    assert_int_equal(dgm_char_class(','), DGM_CHAR_PUNCT);
    assert_int_equal(dgm_char_class('+'), DGM_CHAR_SYMBOL);
    assert_int_equal(dgm_char_class(0x301), DGM_CHAR_MARK);
    assert_int_equal(dgm_char_class(' '), DGM_CHAR_SPACE);
    assert_int_equal(dgm_char_class('\t'), DGM_CHAR_SPACE | DGM_CHAR_CONTROL);
    assert_int_equal(dgm_char_class(0x6F22), DGM_CHAR_LETTER | DGM_CHAR_SPACELESS);
    assert_int_equal(dgm_char_class(0x3002), DGM_CHAR_PUNCT | DGM_CHAR_SPACELESS);
    assert_int_equal(dgm_char_class(0xAC00), DGM_CHAR_LETTER); // Korean has spaces
    assert_int_equal(dgm_char_class(0x3042) & DGM_CHAR_SPACELESS, DGM_CHAR_SPACELESS);
    assert_int_equal(dgm_char_class(0x110000), DGM_CHAR_CONTROL);
    static const uint32_t spaces[] = {9,      10,     0x1C,   0x85,   0xA0,  0x1680,
                                      0x2003, 0x2028, 0x202F, 0x205F, 0x3000};
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        assert_true(dgm_char_is_space(spaces[i]));
    assert_false(dgm_char_is_space(0x200B));
    assert_false(dgm_char_is_space(0x180E));
    assert_true(dgm_char_break_between('a', 'b'));
    assert_false(dgm_char_break_between('a', 0x301));
    assert_false(dgm_char_break_between(0x1F469, 0x200D));
    assert_false(dgm_char_break_between(0x200D, 0x1F467));
    assert_false(dgm_char_break_between('\r', '\n'));
}

static void test_trim(void **state)
{
    (void)state;
    assert_text_equal(dgm_text_trim(dgm_text_of(" \t\xC2\xA0 a b\xE3\x80\x80\n")),
                      dgm_text_of("a b"));
    assert_int_equal(dgm_text_trim(dgm_text_of(" \xE2\x80\x83 ")).size, 0);
    assert_int_equal(dgm_text_trim(dgm_text_of(NULL)).size, 0);
    assert_text_equal(dgm_text_trim((dgm_text){"\x80 ", 2}), ((dgm_text){"\x80", 1}));
}

static void test_allocation_failures(void **state)
{
    (void)state;
    dgm_text t =
        dgm_text_of("\xC3\x84 text that is long enough to make the buffer grow: 0123456789");
    uint64_t live = dgm_mem_live();
    for (int what = 0; what < 3; what++)
        for (uint64_t n = 1;; n++) {
            dgm_writer out = {0};
            dgm_mem_inject(n, 1);
            dgm_status st = what == 0   ? dgm_utf8_repair(t, &out, NULL, NULL)
                            : what == 1 ? dgm_utf8_nfc(t, &out, NULL)
                                        : dgm_utf8_lower(t, &out, NULL);
            dgm_mem_inject(0, 0);
            dgm_writer_free(&out);
            assert_int_equal(dgm_mem_live(), live);
            if (st == DGM_OK) break;
            assert_int_equal(st, DGM_ERR_MEMORY);
            assert_true(n < 50);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),     cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_backwards), cmocka_unit_test(test_lower),
        cmocka_unit_test(test_nfc),       cmocka_unit_test(test_classes),
        cmocka_unit_test(test_trim),      cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
