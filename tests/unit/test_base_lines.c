// SPDX-License-Identifier: MIT
// The reader of lines (dgm_lines, base/textfile.h) and the fields of lines (base/fields.h).
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "base/fields.h"
#include "base/mem.h"
#include "base/textfile.h"

static char path[64];

static void put_file(const void *data, size_t size)
{
    snprintf(path, sizeof path, "/tmp/dgm_lines_%ld", (long)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

// One gzip member.
static size_t squeeze(const void *data, size_t size, unsigned char *to, size_t room)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = to;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

// Lines of the file between '<' and '>'.
static dgm_status read_all(char *out, size_t room, dgm_error *err)
{
    dgm_lines *in = NULL;
    size_t used = 0;
    uint64_t lines = 0;
    dgm_status st = dgm_lines_open(&in, path, err);
    if (st != DGM_OK) {
        assert_null(in);
        return st;
    }
    for (;;) {
        const char *line;
        size_t size;
        bool more;
        st = dgm_lines_next(in, &line, &size, &more, err);
        if (st != DGM_OK || !more) break;
        assert_int_equal(line[size], 0);
        assert_int_equal(dgm_lines_number(in), ++lines);
        assert_true(used + size + 3 < room);
        out[used++] = '<';
        memcpy(out + used, line, size);
        used += size;
        out[used++] = '>';
    }
    out[used] = 0;
    if (st == DGM_OK) {
        assert_true(dgm_lines_ready(in));
        bool more = true;
        const char *line;
        size_t size;
        assert_int_equal(dgm_lines_next(in, &line, &size, &more, err), DGM_OK); // still the end
        assert_false(more);
    }
    dgm_lines_close(&in);
    return st;
}

static void expect(const char *text, size_t size, const char *lines)
{
    char out[256];
    unsigned char packed[512];
    dgm_error e;
    put_file(text, size);
    assert_int_equal(read_all(out, sizeof out, &e), DGM_OK);
    assert_string_equal(out, lines);
    put_file(packed, squeeze(text, size, packed, sizeof packed)); // compressed the same
    assert_int_equal(read_all(out, sizeof out, &e), DGM_OK);
    assert_string_equal(out, lines);
}

static void test_line_ends(void **state)
{
    (void)state;
    expect("", 0, "");
    expect("\n", 1, "<>");
    expect("a", 1, "<a>");
    expect("a\nb", 3, "<a><b>");
    expect("a\nb\n", 4, "<a><b>");
    expect("a\r\nb\r\n", 6, "<a><b>");
    expect("a\r\n\r\nb\r", 7, "<a><><b>");
    expect("a\rb\n", 4, "<a\rb>"); // no line break
    expect("a\r\r\n", 4, "<a\r>");
    expect("\xef\xbb\xbf"
           "a\n\xef\xbb\xbf"
           "b\n",
           10,
           "<a><\xef\xbb\xbf"
           "b>");
    expect("\xef\xbb", 2, "<\xef\xbb>");
}

static void test_nul_bytes(void **state)
{
    (void)state;
    dgm_lines *in = NULL;
    const char *line;
    size_t size;
    bool more;
    put_file("a\0b\nc", 5);
    assert_int_equal(dgm_lines_open(&in, path, NULL), DGM_OK);
    assert_int_equal(dgm_lines_next(in, &line, &size, &more, NULL), DGM_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(line, "a\0b", 4);
    assert_true(dgm_lines_share(in) > 0);
    dgm_lines_close(&in);
    assert_null(in);
}

static void test_long_lines(void **state)
{
    (void)state;
    char *text = malloc(DGM_LINE_MAX + 2);
    memset(text, 'x', DGM_LINE_MAX + 2);
    text[DGM_LINE_MAX] = '\n';
    dgm_lines *in = NULL;
    const char *line;
    size_t size;
    bool more;
    dgm_error e;
    put_file(text, DGM_LINE_MAX + 2); // as long as may be, and a short one
    assert_int_equal(dgm_lines_open(&in, path, &e), DGM_OK);
    assert_int_equal(dgm_lines_next(in, &line, &size, &more, &e), DGM_OK);
    assert_int_equal(size, DGM_LINE_MAX);
    assert_int_equal(dgm_lines_next(in, &line, &size, &more, &e), DGM_OK);
    assert_int_equal(size, 1);
    dgm_lines_close(&in);
    text[DGM_LINE_MAX] = 'x';
    put_file(text, DGM_LINE_MAX + 2);
    assert_int_equal(dgm_lines_open(&in, path, &e), DGM_OK);
    assert_int_equal(dgm_lines_next(in, &line, &size, &more, &e), DGM_ERR_TEXT);
    assert_non_null(strstr(e.text, ":1: line is longer than 16 MiB"));
    dgm_lines_close(&in);
    free(text);
}

// Documents that people take for text are named, not read; a text may begin almost like them.
static void test_documents(void **state)
{
    (void)state;
    static const char *const texts[] = {"PK\3\4rest\n", "%PDF-1.7\n", "PK is two letters\n", "%PDF\n"};
    char out[256];
    dgm_error e;
    for (int i = 0; i < 4; i++) {
        put_file(texts[i], strlen(texts[i]));
        assert_int_equal(read_all(out, sizeof out, &e), i < 2 ? DGM_ERR_FORMAT : DGM_OK);
        if (i < 2) assert_non_null(strstr(e.text, i ? "a PDF document" : "a ZIP archive"));
    }
}

static void test_gzip_members(void **state)
{
    (void)state;
    unsigned char packed[512];
    char out[256];
    dgm_error e;
    size_t n = squeeze("a\nb", 3, packed, sizeof packed);
    n += squeeze("c\n", 2, packed + n, sizeof packed - n);
    put_file(packed, n);
    assert_int_equal(read_all(out, sizeof out, &e), DGM_OK);
    assert_string_equal(out, "<a><bc>");
    memset(packed + n, 0, 20); // padding, as tapes have it
    put_file(packed, n + 20);
    assert_int_equal(read_all(out, sizeof out, &e), DGM_OK);
    assert_string_equal(out, "<a><bc>");
    memcpy(packed + n, "what?", 5);
    put_file(packed, n + 5);
    assert_int_equal(read_all(out, sizeof out, &e), DGM_ERR_FORMAT);
    assert_non_null(strstr(e.text, "something else follows"));
    for (size_t cut = 2; cut < n; cut++) { // every cut is noticed, but for that between the members
        put_file(packed, cut);
        const dgm_status st = read_all(out, sizeof out, &e);
        if (st == DGM_OK)
            assert_string_equal(out, "<a><b>");
        else
            assert_int_equal(st, DGM_ERR_FORMAT);
    }
    packed[n / 2 - 3] ^= 0x55; // the checksum of the first member
    put_file(packed, n);
    assert_int_equal(read_all(out, sizeof out, &e), DGM_ERR_FORMAT);
}

static void test_files_that_cannot_be_read(void **state)
{
    (void)state;
    dgm_lines *in = NULL;
    dgm_error e;
    assert_int_equal(dgm_lines_open(&in, "/nowhere/at/all", &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, "/nowhere/at/all"));
    assert_int_equal(dgm_lines_open(&in, "/tmp", &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, "folder"));
    assert_null(in);
}

static void test_a_pipe_answers_at_once(void **state)
{
    (void)state;
    dgm_lines *in = NULL;
    const char *line;
    size_t size;
    bool more;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(dgm_lines_open(&in, path, NULL), DGM_OK);
    assert_false(dgm_lines_ready(in));
    assert_int_equal(write(ends[1], "one\ntw", 6), 6);
    assert_true(dgm_lines_ready(in));
    assert_int_equal(dgm_lines_next(in, &line, &size, &more, NULL), DGM_OK); // the pipe is open
    assert_string_equal(line, "one");
    assert_false(dgm_lines_ready(in));
    assert_true(dgm_lines_share(in) == 0);
    assert_int_equal(write(ends[1], "o\n", 2), 2);
    assert_true(dgm_lines_ready(in));
    assert_int_equal(dgm_lines_next(in, &line, &size, &more, NULL), DGM_OK);
    assert_string_equal(line, "two");
    close(ends[1]);
    assert_int_equal(dgm_lines_next(in, &line, &size, &more, NULL), DGM_OK);
    assert_false(more);
    dgm_lines_close(&in);
    close(ends[0]);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    unsigned char packed[512];
    char out[256];
    put_file(packed, squeeze("a\nb\n", 4, packed, sizeof packed));
    const uint64_t live = dgm_mem_live();
    for (uint64_t at = 1;; at++) {
        dgm_error e;
        dgm_mem_inject(at, 1);
        const dgm_status st = read_all(out, sizeof out, &e);
        dgm_mem_inject(0, 0);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
}

static dgm_status refuse_b(void *cookie, dgm_text line, dgm_error *err)
{
    ++*(int *)cookie;
    DGM_FAIL_IF(dgm_text_is(line, "b"), err, DGM_ERR_FORMAT, "a line with b");
    DGM_FAIL_IF(dgm_text_is(line, "c"), err, DGM_ERR_CANCELLED, "enough");
    return DGM_OK;
}

static void test_each_line(void **state)
{
    (void)state;
    int seen = 0;
    dgm_error e;
    char want[128];
    put_file("a\nb\nc\n", 6);
    assert_int_equal(dgm_lines_each(path, refuse_b, &seen, &e), DGM_ERR_FORMAT);
    assert_int_equal(seen, 2);
    snprintf(want, sizeof want, "%s:2: a line with b", path);
    assert_string_equal(e.text, want);
    put_file("c\n", 2);
    assert_int_equal(dgm_lines_each(path, refuse_b, &seen, &e), DGM_ERR_CANCELLED);
    assert_string_equal(e.text, "enough"); // no fault of the line's
    dgm_writer w = {0};
    put_file("a\r\nb", 4);
    assert_int_equal(dgm_lines_collect(path, &w, &e), DGM_OK);
    assert_int_equal(w.size, 4);
    assert_memory_equal(w.data, "a\nb\n", 4);
    dgm_writer_free(&w);
}

// Whoever waits for a line can be told to stop: what was read stays, half a line does not count.
static void test_a_reader_is_stopped(void **state)
{
    (void)state;
    unsigned char packed[256];
    const size_t size = squeeze("one\ntwo\nhal", 11, packed, sizeof packed);
    for (int gz = 0; gz < 2; gz++) {
        int ends[2];
        volatile int stop = 0;
        dgm_lines *in = NULL;
        const char *line;
        size_t length;
        bool more;
        assert_int_equal(pipe(ends), 0);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        assert_int_equal(dgm_lines_open(&in, path, NULL), DGM_OK);
        dgm_lines_stop(in, &stop);
        const size_t sent = gz ? size - 8 : 11; // the end of the member is missing
        assert_int_equal(write(ends[1], gz ? (const char *)packed : "one\ntwo\nhal", sent), sent);
        assert_int_equal(dgm_lines_next(in, &line, &length, &more, NULL), DGM_OK);
        assert_true(more && strcmp(line, "one") == 0);
        stop = 1;
        assert_int_equal(dgm_lines_next(in, &line, &length, &more, NULL), DGM_OK);
        assert_true(more && strcmp(line, "two") == 0);
        assert_int_equal(dgm_lines_next(in, &line, &length, &more, NULL), DGM_OK);
        assert_false(more); // and did not wait: the pipe is open
        close(ends[1]);
        close(ends[0]);
        dgm_lines_close(&in);
    }
}

static void test_lines_in_memory(void **state)
{
    (void)state;
    dgm_text text = {"a\r\n\nb", 5};
    assert_true(dgm_text_is(dgm_line_cut(&text), "a"));
    assert_true(dgm_text_is(dgm_line_cut(&text), ""));
    assert_int_equal(text.size, 1);
    assert_true(dgm_text_is(dgm_line_cut(&text), "b"));
    assert_int_equal(text.size, 0);
    assert_int_equal(dgm_line_cut(&text).size, 0);
    text = (dgm_text){NULL, 0};
    assert_int_equal(dgm_line_cut(&text).size, 0);
}

static void test_fields(void **state)
{
    (void)state;
    dgm_text line = dgm_text_of(" \ta b\rc\t\td "), column;
    assert_true(dgm_text_is(dgm_field_next(&line), "a"));
    assert_true(dgm_text_is(dgm_field_next(&line), "b\rc"));
    assert_true(dgm_text_is(dgm_field_next(&line), "d"));
    assert_int_equal(dgm_field_next(&line).size, 0);
    assert_int_equal(dgm_field_next(&line).size, 0);
    assert_true(dgm_text_is(dgm_field_trim(dgm_text_of(" \t a b\t\r")), "a b"));
    assert_int_equal(dgm_field_trim(dgm_text_of(" \r")).size, 0);
    line = dgm_text_of("a|||b ||| c |||");
    assert_true(dgm_field_column(&line, &column) && dgm_text_is(column, "a|||b "));
    assert_true(dgm_field_column(&line, &column) && dgm_text_is(column, " c "));
    assert_true(dgm_field_column(&line, &column) && column.size == 0 && !line.data);
    assert_false(dgm_field_column(&line, &column));
    line = dgm_text_of("ngram 3");
    assert_false(dgm_field_skip(&line, "ngrams"));
    assert_true(dgm_field_skip(&line, "ngram ") && dgm_text_is(line, "3"));
    uint64_t i = 0, j = 0;
    assert_true(dgm_field_link(dgm_text_of("3-12"), 20, &i, &j) && i == 3 && j == 12);
    static const char *const bad[] = {"", "3", "3-", "-3", "3-4-5", "3-21", "3 -4", "3-4 "};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        assert_false(dgm_field_link(dgm_text_of(bad[k]), 20, &i, &j));
    char shown[128];
    memset(shown, 'x', sizeof shown);
    assert_int_equal(dgm_shown_size((dgm_text){shown, sizeof shown}), 60);
}

static int remove_file(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_line_ends, remove_file),
        cmocka_unit_test_teardown(test_nul_bytes, remove_file),
        cmocka_unit_test_teardown(test_long_lines, remove_file),
        cmocka_unit_test_teardown(test_documents, remove_file),
        cmocka_unit_test_teardown(test_gzip_members, remove_file),
        cmocka_unit_test(test_files_that_cannot_be_read),
        cmocka_unit_test(test_a_pipe_answers_at_once),
        cmocka_unit_test(test_a_reader_is_stopped),
        cmocka_unit_test_teardown(test_out_of_memory, remove_file),
        cmocka_unit_test_teardown(test_each_line, remove_file),
        cmocka_unit_test(test_lines_in_memory),
        cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
