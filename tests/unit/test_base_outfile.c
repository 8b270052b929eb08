// SPDX-License-Identifier: MIT
// base/outfile.h and base/protobuf.h: files written whole or not at all; fields of messages.
#define _GNU_SOURCE
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "base/protobuf.h"

static char path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/dgm_outfile_%ld", (long)getpid());
    return dgm_file_write(path, "old", 3, NULL) == DGM_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static size_t count_temporary(void)
{
    char pattern[96];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s.tmp-*", path);
    glob(pattern, 0, NULL, &found);
    const size_t count = found.gl_pathc;
    globfree(&found);
    return count;
}

static void expect_text(const char *text)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    assert_int_equal(f.size, strlen(text));
    assert_memory_equal(f.data, text, f.size);
    dgm_mapfile_close(&f);
    assert_int_equal(count_temporary(), 0);
}

// A process that is killed leaves the old file, and nothing else where files may be without a name.
static void test_killed(void **state)
{
    (void)state;
    dgm_outfile f;
    assert_int_equal(dgm_outfile_open(&f, path, false, NULL), DGM_OK);
    const bool nameless = f.nameless;
    dgm_outfile_discard(&f);
    const pid_t child = fork();
    if (child == 0) {
        if (dgm_outfile_open(&f, path, false, NULL) != DGM_OK || fputs("new", f.file) < 0) _exit(1);
        if (fflush(f.file) != 0) _exit(1);
        raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    if (nameless) expect_text("old");
}

static void test_whole_or_not_at_all(void **state)
{
    (void)state;
    dgm_outfile f;
    dgm_error e;
    assert_int_equal(dgm_outfile_open(&f, path, false, &e), DGM_OK);
    assert_int_equal(count_temporary(), f.nameless ? 0 : 1);
    fputs("new", f.file);
    dgm_outfile_discard(&f);
    expect_text("old");
    dgm_outfile_discard(&f); // all zero now
    assert_int_equal(dgm_outfile_open(&f, path, false, &e), DGM_OK);
    fputs("new", f.file);
    assert_int_equal(dgm_outfile_commit(&f, ENOSPC, &e), DGM_ERR_IO); // a write had failed
    assert_non_null(strstr(e.text, strerror(ENOSPC)));
    expect_text("old");
    assert_int_equal(dgm_outfile_open(&f, path, false, &e), DGM_OK);
    fputs("new", f.file);
    assert_int_equal(dgm_outfile_commit(&f, 0, &e), DGM_OK);
    expect_text("new");
    assert_int_equal(dgm_outfile_probe(path, &e), DGM_OK);
    expect_text("new");
}

// Two writers of one name, as two jobs of a process are: neither touches what the other writes.
static void test_at_the_same_time(void **state)
{
    (void)state;
    dgm_outfile a, b;
    assert_int_equal(dgm_outfile_open(&a, path, false, NULL), DGM_OK);
    assert_int_equal(dgm_outfile_open(&b, path, false, NULL), DGM_OK);
    assert_int_equal(count_temporary(), a.nameless ? 0 : 2);
    fputs("a longer text", a.file);
    fputs("short", b.file);
    assert_int_equal(dgm_outfile_commit(&b, 0, NULL), DGM_OK);
    assert_int_equal(dgm_outfile_commit(&a, 0, NULL), DGM_OK);
    expect_text("a longer text");
    assert_int_equal(dgm_outfile_open(&a, path, false, NULL), DGM_OK);
    assert_int_equal(dgm_outfile_open(&b, path, false, NULL), DGM_OK);
    fputs("whole", b.file);
    dgm_outfile_discard(&a);
    assert_int_equal(dgm_outfile_commit(&b, 0, NULL), DGM_OK);
    expect_text("whole");
}

static void test_names_that_cannot_be_written(void **state)
{
    (void)state;
    dgm_outfile f;
    dgm_error e;
    assert_int_equal(dgm_outfile_open(&f, "/nowhere/file", false, &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, "/nowhere/file"));
    assert_int_equal(dgm_outfile_open(&f, "/dev/null", false, &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, "not a regular file"));
    assert_int_equal(dgm_outfile_probe("/tmp", &e), DGM_ERR_IO);
    assert_int_equal(dgm_outfile_open(&f, "/dev/null", true, &e), DGM_OK);
    fputs("text", f.file);
    assert_int_equal(dgm_outfile_commit(&f, 0, &e), DGM_OK);
    assert_true(dgm_file_is_special("/dev/null")); // no file took its place
}

static void test_full_disk(void **state)
{
    (void)state;
    dgm_outfile f;
    dgm_error e;
    if (access("/dev/full", W_OK) != 0) skip();
    assert_int_equal(dgm_outfile_open(&f, "/dev/full", true, &e), DGM_OK);
    fputs("text", f.file); // noticed when it is closed
    assert_int_equal(dgm_outfile_commit(&f, 0, &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, strerror(ENOSPC)));
}

static void test_out_of_memory(void **state)
{
    (void)state;
    const uint64_t live = dgm_mem_live();
    for (uint64_t at = 1;; at++) {
        dgm_error e;
        dgm_mem_inject(at, 1);
        const dgm_status st = dgm_file_write(path, "new", 3, &e);
        dgm_mem_inject(0, 0);
        assert_int_equal(dgm_mem_live(), live);
        expect_text(st == DGM_OK ? "new" : "old");
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
}

static void test_fields_of_a_message(void **state)
{
    (void)state;
    // 1: 300; 2: "ab"; 3: fixed32; 4: fixed64; 5: ""
    static const uint8_t message[] = {0x08, 0xac, 0x02, 0x12, 2, 'a', 'b', 0x1d, 1, 2,    3, 4,
                                      0x21, 1,    0,    0,    0, 0,   0,   0,    0, 0x2a, 0};
    dgm_reader r = dgm_reader_over(message, sizeof message);
    dgm_proto_field f;
    assert_true(dgm_proto_next(&r, &f));
    assert_true(f.number == 1 && f.wire == DGM_WIRE_VARINT && f.value == 300);
    assert_true(dgm_proto_next(&r, &f));
    assert_true(f.number == 2 && f.wire == DGM_WIRE_BYTES && f.payload.size == 2);
    assert_memory_equal(f.payload.data, "ab", 2);
    assert_true(dgm_proto_next(&r, &f) && f.wire == DGM_WIRE_32 && f.value == 0x04030201);
    assert_true(dgm_proto_next(&r, &f) && f.wire == DGM_WIRE_64 && f.value == 1);
    assert_true(dgm_proto_next(&r, &f) && f.number == 5 && f.payload.size == 0);
    assert_false(dgm_proto_next(&r, &f));
    assert_false(r.bad);
    for (size_t n = 1; n < sizeof message; n++) { // cut between fields: whole; inside one: damaged
        bool whole = n == 3 || n == 7 || n == 12 || n == 21;
        r = dgm_reader_over(message, n);
        while (dgm_proto_next(&r, &f)) {}
        assert_int_equal(r.bad, !whole);
    }
    static const uint8_t group[] = {0x0b}, zero[] = {0x00, 1};
    static const uint8_t endless[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0x80, 0x80, 0x80, 1};
    r = dgm_reader_over(group, sizeof group);
    assert_false(dgm_proto_next(&r, &f) || !r.bad);
    r = dgm_reader_over(zero, sizeof zero);
    assert_false(dgm_proto_next(&r, &f) || !r.bad);
    r = dgm_reader_over(endless, sizeof endless);
    assert_false(dgm_proto_next(&r, &f) || !r.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_whole_or_not_at_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_at_the_same_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_that_cannot_be_written, set_up, tear_down),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test_setup_teardown(test_out_of_memory, set_up, tear_down),
        cmocka_unit_test(test_fields_of_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
