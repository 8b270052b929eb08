// SPDX-License-Identifier: MIT
// base/: status messages, heap hooks, arena, checked reads, growing writes, halves, files, threads.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/lower_bound.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/status.h"
#include "base/threads.h"

static void test_error_is_one_line(void **state)
{
    (void)state;
    dgm_error e;
    assert_int_equal(dgm_fail(&e, DGM_ERR_IO, "no '%s'", "a\nb\tc"), DGM_ERR_IO);
    assert_string_equal(e.text, "no 'a b c'");
    dgm_error_prefix(&e, "file %d", 7);
    assert_string_equal(e.text, "file 7: no 'a b c'");
    assert_int_equal(dgm_fail(NULL, DGM_ERR_TEXT, "x"), DGM_ERR_TEXT);
}

static void test_error_never_overflows(void **state)
{
    (void)state;
    char long_text[2 * DGM_ERROR_MAX];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    dgm_error e;
    dgm_fail(&e, DGM_ERR_IO, "%s", long_text);
    assert_int_equal(strlen(e.text), DGM_ERROR_MAX - 1);
    dgm_error_prefix(&e, "%s", long_text);
    assert_int_equal(strlen(e.text), DGM_ERROR_MAX - 1);
}

static void test_injection_fails_the_named_call(void **state)
{
    (void)state;
    uint64_t live = dgm_mem_live(), calls = dgm_mem_allocations();
    dgm_mem_inject(2, 1);
    void *a = dgm_malloc(10), *b = dgm_malloc(10), *c = dgm_malloc(10);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    assert_int_equal(dgm_mem_allocations() - calls, 3);
    assert_int_equal(dgm_mem_live() - live, 2);
    dgm_free(a);
    dgm_free(c);
    dgm_free(NULL);
    assert_int_equal(dgm_mem_live(), live);
    assert_null(dgm_calloc(SIZE_MAX / 2, 8));
}

static void test_grow_keeps_contents(void **state)
{
    (void)state;
    int *list = NULL;
    size_t cap = 0;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(dgm_grow(&list, &cap, (size_t)i + 1, sizeof *list, NULL), DGM_OK);
        list[i] = i;
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(list[i], i);
    dgm_error e;
    dgm_mem_inject(1, 1);
    assert_int_equal(dgm_grow(&list, &cap, cap + 1, sizeof *list, &e), DGM_ERR_MEMORY);
    assert_string_equal(e.text, "out of memory");
    assert_int_equal(list[999], 999);
    assert_int_equal(dgm_grow(&list, &cap, SIZE_MAX - 5, sizeof *list, &e), DGM_ERR_MEMORY);
    dgm_free(list);
}

static void test_arena_aligns_and_ends(void **state)
{
    (void)state;
    dgm_arena a;
    assert_int_equal(dgm_arena_init(&a, 4096, NULL), DGM_OK);
    char *first = dgm_arena_alloc(&a, 1);
    size_t mark = dgm_arena_mark(&a);
    char *second = dgm_arena_alloc(&a, 100);
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_int_equal((uintptr_t)second % 64, 0);
    assert_true(second >= first + 1);
    memset(second, 1, 100);
    assert_null(dgm_arena_alloc(&a, 8192));
    assert_null(dgm_arena_array(&a, SIZE_MAX / 2, 16));
    dgm_arena_reset(&a, mark);
    assert_ptr_equal(dgm_arena_alloc(&a, 100), second);
    assert_int_equal(a.peak, mark + dgm_arena_cost(100));
    dgm_arena_free(&a);
    dgm_arena_free(&a);
}

static void test_reader_stops_at_the_end(void **state)
{
    (void)state;
    const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x80, 0x3f, 9};
    dgm_reader r = dgm_reader_over(data, sizeof data);
    assert_int_equal(dgm_read_u8(&r), 1);
    assert_int_equal(dgm_read_u16(&r), 0x0302);
    assert_int_equal(dgm_read_u32(&r), 0x07060504);
    assert_int_equal(dgm_read_u8(&r), 8);
    assert_true(dgm_read_f32(&r) == 1.0f);
    assert_int_equal(dgm_reader_left(&r), 1);
    assert_int_equal(dgm_read_u64(&r), 0);
    assert_true(r.bad);
    assert_null(dgm_read_bytes(&r, 0));
    uint64_t v;
    assert_false(dgm_mul_size(UINT64_MAX, 2, &v));
    assert_false(dgm_add_size(UINT64_MAX, 1, &v));
    assert_true(dgm_mul_size(1u << 31, 1u << 31, &v) && v == 1ull << 62);
}

static void test_writer_round_trip_and_failure(void **state)
{
    (void)state;
    dgm_writer w = {0};
    dgm_write_u8(&w, 1);
    dgm_write_u16(&w, 0x0302);
    dgm_write_u32(&w, 7);
    dgm_write_u64(&w, UINT64_MAX);
    dgm_write_f32(&w, -2.5f);
    dgm_write_f64(&w, 1e300);
    dgm_write_zeros(&w, 3);
    dgm_write_format(&w, "%s-%d", "x", 5);
    size_t size;
    char *text = dgm_writer_take(&w, &size);
    assert_non_null(text);
    dgm_reader r = dgm_reader_over(text, size);
    assert_int_equal(dgm_read_u8(&r), 1);
    assert_int_equal(dgm_read_u16(&r), 0x0302);
    assert_int_equal(dgm_read_u32(&r), 7);
    assert_true(dgm_read_u64(&r) == UINT64_MAX);
    assert_true(dgm_read_f32(&r) == -2.5f);
    assert_true(dgm_read_f64(&r) == 1e300);
    assert_memory_equal(dgm_read_bytes(&r, 6), "\0\0\0x-5", 6);
    assert_int_equal(dgm_reader_left(&r), 0);
    dgm_free(text);
    dgm_mem_inject(1, 1);
    dgm_write_text(&w, "lost");
    assert_true(w.failed);
    assert_null(dgm_writer_take(&w, NULL));
}

static void test_halves_are_exact(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = dgm_half_to_float((uint16_t)h);
        if (f == f) {
            assert_int_equal(dgm_float_to_half(f), h);
        } else {
            assert_true(isnan(dgm_half_to_float(dgm_float_to_half(f))));
        }
    }
    assert_int_equal(dgm_float_to_half(65520.0f), 0x7c00);            // rounds to infinity
    assert_int_equal(dgm_float_to_half(65519.0f), 0x7bff);
    assert_int_equal(dgm_float_to_half(1.0f + 0x1p-11f), 0x3c00);     // tie to even
    assert_int_equal(dgm_float_to_half(1.0f + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(dgm_float_to_half(0x1p-25f), 0);
    assert_int_equal(dgm_float_to_half(0x1.8p-25f), 1);
    assert_true(dgm_bf16_to_float(0xc040) == -3.0f);
}

static void test_files(void **state)
{
    (void)state;
    char path[] = "/tmp/dgm-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    assert_int_equal(f.size, 0);
    dgm_mapfile_close(&f);
    assert_int_equal(dgm_file_write(path, "hello", 5, NULL), DGM_OK);
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    assert_memory_equal(f.data, "hello", 5);
    dgm_mapfile_close(&f);
    dgm_mapfile_close(&f);
    assert_true(dgm_file_exists(path));
    char folder[sizeof path];
    strcpy(folder, path);
    char *slash = strrchr(folder, '/');
    *slash = 0;
    assert_true(dgm_file_exists_in(folder, slash + 1));
    assert_false(dgm_file_exists_in(folder, "no file of this name"));
    assert_false(dgm_file_exists_in(path, "."));
    char *same = dgm_path_in(folder, slash + 1);
    assert_string_equal(same, path);
    dgm_free(same);
    unlink(path);
    dgm_error e;
    assert_int_equal(dgm_mapfile_open(&f, path, &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, path));
    assert_int_equal(dgm_mapfile_open(&f, "/", &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, "folder"));
    assert_int_equal(dgm_mapfile_open(&f, "/dev/zero", &e), DGM_ERR_IO);
    assert_string_equal(e.text, "cannot read '/dev/zero': it is a device");
    assert_int_equal(dgm_mapfile_open(&f, "/dev/null", &e), DGM_OK);
    assert_int_equal(f.size, 0);
    dgm_mapfile_close(&f);
    // a pipe that nobody writes to is refused, one with a writer read to its end
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(dgm_mapfile_open(&f, path, &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, "a pipe that nobody writes to"));
    const pid_t writer = fork();
    if (writer == 0) {
        const int to = open(path, O_WRONLY); // waits for a reader
        _exit(to >= 0 && write(to, "hello", 5) == 5 ? 0 : 1);
    }
    assert_int_equal(dgm_mapfile_open(&f, path, &e), DGM_OK);
    assert_int_equal(f.size, 5);
    dgm_mapfile_close(&f);
    int status = -1;
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    unlink(path);
    assert_int_equal(dgm_file_write("/nonexistent/x", "a", 1, &e), DGM_ERR_IO);
    // and no file takes its place
    assert_int_equal(dgm_file_write("/dev/null", "a", 1, &e), DGM_ERR_IO);
    assert_true(dgm_file_is_special("/dev/null") && dgm_file_is_special("/tmp"));
}

static void add_item(void *arg, int worker, int item)
{
    (void)worker;
    int *seen = arg;
    __atomic_fetch_add(&seen[item], 1, __ATOMIC_RELAXED);
}

static void test_pool_runs_every_item_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        dgm_pool *pool;
        assert_int_equal(dgm_pool_open(&pool, threads, NULL), DGM_OK);
        assert_int_equal(dgm_pool_threads(pool), threads);
        for (int round = 0; round < 200; round++) {
            int seen[37] = {0};
            dgm_pool_run(pool, add_item, seen, 37);
            for (int i = 0; i < 37; i++) assert_int_equal(seen[i], 1);
        }
        dgm_pool_close(&pool);
        assert_null(pool);
    }
    dgm_pool *pool;
    dgm_error e;
    assert_int_equal(dgm_pool_open(&pool, 0, &e), DGM_ERR_ARGUMENT);
    for (uint64_t at = 1;; at++) {
        dgm_mem_inject(at, 1);
        dgm_status st = dgm_pool_open(&pool, 3, &e);
        dgm_mem_inject(0, 0);
        dgm_pool_close(&pool);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
}

static void test_rng_is_fixed(void **state)
{
    (void)state;
    dgm_rng r = {0};
    assert_true(dgm_rng_next(&r) == 0xe220a8397b1dcdafu);
    for (int i = 0; i < 1000; i++) assert_true(dgm_rng_below(&r, 7) < 7);
    double u = dgm_rng_unit(&r);
    assert_true(u >= 0 && u < 1);
    assert_true(dgm_now() > 0);
}

// Every list length up to 20 and every value: the bound is the number of smaller elements.
static void test_lower_bound_against_counting(void **state)
{
    (void)state;
    int32_t list[20];
    for (int count = 0; count <= 20; count++) {
        for (int i = 0; i < count; i++) list[i] = i * 3 / 2 * 2; // with gaps
        for (int32_t value = -1; value < 64; value++) {
            int smaller = 0, where = -1;
            for (int i = count - 1; i >= 0; i--) {
                smaller += list[i] < value;
                if (list[i] == value) where = i;
            }
            assert_int_equal(dgm_lower_id(list, count, value), smaller);
            assert_int_equal(dgm_find_id(list, count, value), where);
            assert_int_equal(dgm_holds_id(list, count, value), where >= 0);
            if (count < 3) continue;
            uint64_t at; // of a part of the list
            DGM_LOWER_BOUND(uint64_t, at, 2, (uint64_t)count, list[at] < value);
            assert_int_equal(at, smaller < 2 ? 2 : smaller);
        }
    }
}

typedef struct card {
    int key, number;
} card;

static void test_inserting_sorts(void **state)
{
    (void)state;
    dgm_rng rng = {5};
    int32_t ids[64];
    card cards[64];
    int count = 0;
    for (int i = 0; i < 64; i++) {
        const int32_t id = (int32_t)(dgm_rng_next(&rng) % 24);
        const bool known = dgm_holds_id(ids, count, id);
        const int before = count;
        count = dgm_insert_id(ids, count, id);
        assert_int_equal(count, known ? before : before + 1);
        for (int k = 1; k < count; k++) assert_true(ids[k - 1] < ids[k]);
        const card c = {(int)id, i};
        int at = i;
        DGM_INSERT(cards, at, c, c.key > cards[at - 1].key);
        assert_int_equal(cards[at].number, i);
    }
    assert_true(count > 12 && count <= 24);
    for (int k = 1; k < 64; k++) // falling, equal ones in the order in which they came
        assert_true(cards[k - 1].key > cards[k].key ||
                    (cards[k - 1].key == cards[k].key && cards[k - 1].number < cards[k].number));
}

#define SMALLER(x, y) ((x) < (y))

// Pushes and pops in turn: what comes out is always the smallest of what is inside.
static void test_heap_gives_the_first(void **state)
{
    (void)state;
    enum { MOST = 200 };
    dgm_rng rng = {9};
    uint32_t heap[MOST], inside[MOST];
    size_t count = 0;
    for (int round = 0; round < 5000; round++) {
        if (count == 0 || (count < MOST && dgm_rng_next(&rng) % 2)) {
            const uint32_t item = (uint32_t)(dgm_rng_next(&rng) % 100); // many equals
            inside[count] = item;
            DGM_HEAP_UP(heap, count, item, SMALLER);
            count++;
            continue;
        }
        size_t least = 0;
        for (size_t i = 1; i < count; i++)
            if (inside[i] < inside[least]) least = i;
        assert_int_equal(heap[0], inside[least]);
        inside[least] = inside[count - 1];
        const uint32_t last = heap[--count];
        DGM_HEAP_DOWN(heap, count, 0, last, SMALLER);
    }
    assert_true(count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_is_one_line),
        cmocka_unit_test(test_error_never_overflows),
        cmocka_unit_test(test_injection_fails_the_named_call),
        cmocka_unit_test(test_grow_keeps_contents),
        cmocka_unit_test(test_arena_aligns_and_ends),
        cmocka_unit_test(test_reader_stops_at_the_end),
        cmocka_unit_test(test_writer_round_trip_and_failure),
        cmocka_unit_test(test_halves_are_exact),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_pool_runs_every_item_once),
        cmocka_unit_test(test_rng_is_fixed),
        cmocka_unit_test(test_lower_bound_against_counting),
        cmocka_unit_test(test_inserting_sorts),
        cmocka_unit_test(test_heap_gives_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
