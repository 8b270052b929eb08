// SPDX-License-Identifier: MIT
// Text in other encodings: recognised, converted as a whole (dgm_decode) and line by line (dgm_lines_open_as),
// and what a reader says of line ends and byte order marks.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "dragoman/text.h"
#include "failures.h"

#define BYTES(text) (text), sizeof(text) - 1

static char path[64];

static void put_file(const void *data, size_t size, bool packed)
{
    snprintf(path, sizeof path, "/tmp/dgm_encoding_%ld", (long)getpid());
    gzFile f = gzopen(path, packed ? "wb" : "wbT");
    assert_non_null(f);
    if (size) assert_int_equal(gzwrite(f, data, (unsigned)size), size);
    assert_int_equal(gzclose(f), Z_OK);
}

// Lines of the file, "$" behind each that ended with "\r\n", "|" behind others.
static dgm_status read_all(dgm_encoding encoding, char *out, size_t room, dgm_error *err)
{
    dgm_lines *in = NULL;
    DGM_TRY(dgm_lines_open_as(&in, path, encoding, err));
    dgm_status st = DGM_OK;
    out[0] = 0;
    for (size_t used = 0;;) {
        const char *line;
        size_t size;
        bool more;
        st = dgm_lines_next(in, &line, &size, &more, err);
        if (st != DGM_OK || !more) break;
        assert_true(used + size + 2 < room);
        for (size_t i = 0; i < size; i++) out[used++] = line[i] ? line[i] : '0';
        out[used++] = dgm_lines_crlf(in) ? '$' : '|';
        out[used] = 0;
    }
    if (dgm_lines_marked(in)) strcat(out, " marked");
    dgm_lines_close(&in);
    return st;
}

static const struct {
    dgm_encoding encoding;
    const char *bytes;
    size_t size;
    const char *lines;
    const char *wrong; // behind the name of the file
} cases[] = {
    {DGM_ENCODING_UTF8, BYTES("a\nb\r\nc"), "a|b$c|", NULL},
    {DGM_ENCODING_UTF8, BYTES("\xef\xbb\xbfh\xc3\xa9\r\n"), "h\u00e9$ marked", NULL},
    {DGM_ENCODING_UTF16, BYTES(""), "", NULL},
    {DGM_ENCODING_UTF16, BYTES("\xff\xfeh\0\xe9\0\r\0\n\0i\0"), "h\u00e9$i|", NULL},
    {DGM_ENCODING_UTF16, BYTES("\xfe\xff\0h\0\xe9\0\r\0\n\0i"), "h\u00e9$i|", NULL},
    {DGM_ENCODING_UTF16, BYTES("h\0e\0l\0l\0o\0\n\0"), "hello|", NULL},
    {DGM_ENCODING_UTF16, BYTES("\0h\0e\0l\0l\0o\0\n"), "hello|", NULL},
    {DGM_ENCODING_UTF16LE, BYTES("\xff\xfe\x3d\xd8\0\xde\n\0\xac\x20"), "\U0001f600|\u20ac|", NULL},
    {DGM_ENCODING_UTF16BE, BYTES("\xd8\x3d\xde\0\0\n\x20\xac"), "\U0001f600|\u20ac|", NULL},
    {DGM_ENCODING_UTF16, BYTES("\xff\xfe" "a\0\0\0b\0\n\0"), "a0b|", NULL},
    {DGM_ENCODING_LATIN1, BYTES("h\xe9\nna\xefve \x80\n"), "h\u00e9|na\u00efve \xc2\x80|", NULL},
    {DGM_ENCODING_WINDOWS1252, BYTES("\x80 \x93" "a\x94 \x96 \xe9\r\n"), "\u20ac \u201ca\u201d \u2013 \u00e9$", NULL},
    // lines before what is wrong come first
    {DGM_ENCODING_UTF16, BYTES("\xff\xfe" "a\0\n\0b\0\n\0\0\xd8" "b\0\n\0"), "a|b|",
     ":3: not utf-16: a surrogate without its other half"},
    {DGM_ENCODING_UTF16LE, BYTES("a\0\n\0\0\xdc"), "a|", ":2: not utf-16le: a surrogate without its other half"},
    {DGM_ENCODING_UTF16, BYTES("\xff\xfe" "a\0\n\0b"), "a|", ":2: not utf-16: it ends in the middle of a character"},
    {DGM_ENCODING_UTF16, BYTES("\xff\xfe" "a\0\n\0\x3d\xd8"), "a|",
     ":2: not utf-16: it ends in the middle of a character"},
    {DGM_ENCODING_UTF16, BYTES("plain text\n"), "", ":1: not utf-16: every byte is an ASCII character"},
    {DGM_ENCODING_UTF16BE, BYTES("a"), "", ":1: not utf-16be: it ends in the middle of a character"},
    {DGM_ENCODING_WINDOWS1252, BYTES("a\nb\x81\n"), "a|", ":2: not windows-1252: a byte that stands for no character"},
    // recognised
    {DGM_ENCODING_UTF8, BYTES("\xff\xfeh\0i\0\n\0"), "", "16"},
    {DGM_ENCODING_UTF8, BYTES("\xfe\xff\0h\0i\0\n"), "", "16"},
    {DGM_ENCODING_UTF8, BYTES("h\0i\0\n\0"), "", "16"},
    {DGM_ENCODING_UTF8, BYTES("\0h\0i\0\n"), "", "16"},
    {DGM_ENCODING_UTF8, BYTES("Good\0morning.\n"), "Good0morning.|", NULL}, // a NUL makes no UTF-16
    {DGM_ENCODING_UTF8, BYTES("\0\0\0\0\0\0\0\0"), "00000000|", NULL},
};

static void test_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int packed = 0; packed < 2; packed++) {
            char out[256] = "", want[256] = "";
            dgm_error e = {""};
            put_file(cases[i].bytes, cases[i].size, packed);
            const dgm_status st = read_all(cases[i].encoding, out, sizeof out, &e);
            assert_string_equal(out, cases[i].lines);
            if (!cases[i].wrong) {
                assert_int_equal(st, DGM_OK);
                continue;
            }
            const bool refused = cases[i].wrong[0] != ':';
            assert_int_equal(st, refused ? DGM_ERR_FORMAT : DGM_ERR_TEXT);
            if (refused)
                snprintf(want, sizeof want,
                         "'%s' is UTF-16, not UTF-8: read it with --encoding utf-16 (translate, score, eval, "
                         "tokenize), or convert it",
                         path);
            else
                snprintf(want, sizeof want, "%s%s", path, cases[i].wrong);
            assert_string_equal(e.text, want);
        }
    unlink(path);
}

// Characters that lie across the parts in which a long file is read.
static void test_long(void **state)
{
    (void)state;
    enum { LINES = 30000 };
    dgm_writer w = {0};
    char want[64];
    dgm_write_bytes(&w, "\xff\xfe", 2);
    for (int i = 0; i < LINES; i++) {
        snprintf(want, sizeof want, "%d", i);
        for (const char *p = want; *p; p++) dgm_write_u16(&w, (uint16_t)*p);
        dgm_write_bytes(&w, "\xac\x20\x3d\xd8\0\xde\n\0", 8);
    }
    for (int packed = 0; packed < 2; packed++) {
        dgm_lines *in = NULL;
        const char *line;
        size_t size;
        bool more;
        put_file(w.data, w.size, packed);
        assert_int_equal(dgm_lines_open_as(&in, path, DGM_ENCODING_UTF16, NULL), DGM_OK);
        for (int i = 0; i < LINES; i++) {
            assert_int_equal(dgm_lines_next(in, &line, &size, &more, NULL), DGM_OK);
            assert_true(more);
            snprintf(want, sizeof want, "%d\u20ac\U0001f600", i);
            assert_string_equal(line, want);
        }
        assert_int_equal(dgm_lines_next(in, &line, &size, &more, NULL), DGM_OK);
        assert_false(more);
        dgm_lines_close(&in);
    }
    char *all = NULL;
    size_t size = 0;
    assert_int_equal(dgm_decode((const char *)w.data, w.size, DGM_ENCODING_UTF16, &all, &size, NULL), DGM_OK);
    assert_memory_equal(all, "0\u20ac\U0001f600\n1\u20ac", 13);
    assert_int_equal(strlen(all), size);
    dgm_string_free(&all);
    dgm_writer_free(&w);
    unlink(path);
}

static void test_decode(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = NULL;
        size_t size = 0, at = 0;
        dgm_error e;
        const dgm_status st = dgm_decode(cases[i].bytes, cases[i].size, cases[i].encoding, &out, &size, &e);
        if (cases[i].wrong && cases[i].wrong[0] == ':') {
            char want[128];
            snprintf(want, sizeof want, "line %s", cases[i].wrong + 1);
            assert_int_equal(st, DGM_ERR_TEXT);
            assert_string_equal(e.text, want);
            assert_null(out);
            continue;
        }
        if (cases[i].wrong) {
            dgm_string_free(&out);
            continue;
        }
        assert_int_equal(st, DGM_OK);
        for (const char *p = cases[i].lines; *p && at < size; p++) { // the same but for the marks of line ends
            if (*p == '$' || *p == '|') at += *p == '$' ? 2 : 1;
            else assert_int_equal((unsigned char)out[at++] ? out[at - 1] : '0', *p);
        }
        assert_true(at >= size);
        dgm_string_free(&out);
    }
    char *out = NULL;
    size_t size = 0;
    dgm_error e;
    assert_int_equal(dgm_decode(BYTES("a\nb\xff\n"), DGM_ENCODING_UTF8, &out, &size, &e), DGM_ERR_TEXT);
    assert_string_equal(e.text, "line 2: not utf-8: invalid bytes");
    assert_int_equal(dgm_decode(NULL, 1, DGM_ENCODING_UTF8, &out, &size, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_decode("a", 1, (dgm_encoding)77, &out, &size, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_decode("a", 1, DGM_ENCODING_UTF8, NULL, &size, &e), DGM_ERR_ARGUMENT);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {"utf-8", "utf-16", "utf-16le", "utf-16be", "latin-1", "windows-1252"};
    dgm_encoding found;
    dgm_error e;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(dgm_encoding_named(names[i], &found, &e), DGM_OK);
        assert_int_equal(found, i);
    }
    static const struct {
        const char *name;
        dgm_encoding meant;
    } others[] = {{"UTF8", DGM_ENCODING_UTF8},          {"utf-8-sig", DGM_ENCODING_UTF8},
                  {"US-ASCII", DGM_ENCODING_UTF8},      {"utf_16", DGM_ENCODING_UTF16},
                  {"UTF16LE", DGM_ENCODING_UTF16LE},    {"utf-16-be", DGM_ENCODING_UTF16BE},
                  {"latin1", DGM_ENCODING_LATIN1},      {"Latin 1", DGM_ENCODING_LATIN1},
                  {"ISO-8859-1", DGM_ENCODING_LATIN1},  {"iso8859_1", DGM_ENCODING_LATIN1},
                  {"cp1252", DGM_ENCODING_WINDOWS1252}, {"Windows1252", DGM_ENCODING_WINDOWS1252}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(dgm_encoding_named(others[i].name, &found, &e), DGM_OK);
        assert_int_equal(found, others[i].meant);
    }
    static const char *const none[] = {"", "-", "utf", "latin-2", "iso-8859-15", "utf-16le-x"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(dgm_encoding_named(none[i], &found, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_encoding_named("utf-17", &found, &e), DGM_ERR_ARGUMENT);
    assert_string_equal(e.text, "the encoding must be one of utf-8, utf-16, utf-16le, utf-16be, latin-1, "
                                "windows-1252, not 'utf-17'");
    assert_int_equal(dgm_encoding_named(NULL, &found, &e), DGM_ERR_ARGUMENT);
    dgm_lines *in = NULL;
    assert_int_equal(dgm_lines_open_as(&in, "x", (dgm_encoding)77, &e), DGM_ERR_ARGUMENT);
    assert_null(in);
}

static dgm_status read_once(void)
{
    char out[64];
    return read_all(DGM_ENCODING_UTF16, out, sizeof out, NULL);
}

static dgm_status decode_once(void)
{
    char *out = NULL;
    size_t size;
    dgm_status st = dgm_decode(BYTES("h\xe9"), DGM_ENCODING_LATIN1, &out, &size, NULL);
    dgm_string_free(&out);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    put_file(BYTES("\xff\xfeh\0\n\0"), true);
    ALLOCATIONS_FAIL(read_once());
    ALLOCATIONS_FAIL(decode_once());
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files), cmocka_unit_test(test_long),   cmocka_unit_test(test_decode),
        cmocka_unit_test(test_names), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
