// SPDX-License-Identifier: MIT
// Parts of the server by themselves: routes, forms, JSON, turns, keys, limits of requests, the loop of its sockets.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/form.h"
#include "server/http_loop.h"
#include "server/json_out.h"
#include "server/server_private.h"

// ---- routes ---------------------------------------------------------------------------------------

static void test_routes(void **state)
{
    const char *rest = NULL;
    char allowed[64];
    dgm_api api;
    (void)state;
    const dgm_route *r = dgm_route_find("POST", "/translate", &rest, allowed, sizeof allowed, &api);
    assert_non_null(r);
    assert_ptr_equal(r->handle, dgm_libre_translate);
    assert_null(dgm_route_find("GET", "/translate", &rest, allowed, sizeof allowed, &api));
    assert_string_equal(allowed, "POST, OPTIONS");
    assert_int_equal(api, DGM_API_LIBRE);
    assert_non_null(dgm_route_find("HEAD", "/health", &rest, allowed, sizeof allowed, &api));
    assert_null(dgm_route_find("GET", "/translate/", &rest, allowed, sizeof allowed, &api));
    assert_string_equal(allowed, "");
    assert_null(dgm_route_find("GET", "/v1/nothing", &rest, allowed, sizeof allowed, &api));
    assert_int_equal(api, DGM_API_V1);
    assert_null(dgm_route_find("DELETE", "/v2/nothing", &rest, allowed, sizeof allowed, &api));
    assert_int_equal(api, DGM_API_DEEPL);
}

// Every row can be reached, and no two mean the same.
static void test_route_rows(void **state)
{
    (void)state;
    for (size_t i = 0; dgm_route_at(i); i++) {
        const dgm_route *r = dgm_route_at(i);
        const char *rest = NULL;
        char allowed[64], path[128];
        dgm_api api;
        snprintf(path, sizeof path, "%s", r->pattern);
        const size_t n = strlen(path);
        if (path[n - 1] == '*') path[n - 1] = 'x';
        assert_ptr_equal(dgm_route_find(r->method, path, &rest, allowed, sizeof allowed, &api), r);
        assert_true(r->handle && r->summary[0]);
    }
}

// ---- forms and paths ------------------------------------------------------------------------------

static void test_urlencoded(void **state)
{
    dgm_error err;
    dgm_request *q = dgm_request_new(NULL);
    (void)state;
    const char form[] = "q=a%20b+c%C3%A4&empty=&flag&q=second&x=100%25%zz";
    assert_int_equal(dgm_form_urlencoded(q, form, sizeof form - 1, &q->form, &err), DGM_OK);
    assert_string_equal(dgm_fields_find(&q->form, "q", NULL), "a b cä");
    assert_string_equal(dgm_fields_find(&q->form, "empty", NULL), "");
    assert_string_equal(dgm_fields_find(&q->form, "flag", NULL), "");
    assert_string_equal(dgm_fields_find(&q->form, "x", NULL), "100%%zz");
    assert_null(dgm_fields_find(&q->form, "missing", NULL));
    const char *const bad[] = {"q=%00", "q=%ff%fe", "%ff=1", "q=\xc3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dgm_form_urlencoded(q, bad[i], strlen(bad[i]), &q->form, &err), DGM_ERR_FORMAT);
    dgm_request_free(q);
}

static dgm_status read_multipart(dgm_request **out, const char *type, const char *body, dgm_error *err)
{
    dgm_request *q = *out = dgm_request_new(NULL);
    dgm_field_add(q, &q->headers, "content-type", type, strlen(type));
    q->body = dgm_strdup(body);
    q->body_size = strlen(body);
    return dgm_request_read(q, err);
}

static void test_multipart(void **state)
{
    dgm_error err;
    dgm_request *q;
    (void)state;
    static const char type[] = "multipart/form-data; boundary=\"a b\"";
    assert_int_equal(
        read_multipart(&q, type,
                       "--a b\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n"
                       "--a b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"C:\\\\x/../t.txt\"\r\n"
                       "Content-Type: text/plain\r\n\r\nline\r\n--a \r\n\r\n--a b--\r\n",
                       &err),
        DGM_OK);
    assert_string_equal(dgm_request_text(q, "source", NULL, NULL), "en");
    assert_int_equal(q->upload_count, 1);
    assert_string_equal(q->uploads[0].name, "file");
    assert_string_equal(q->uploads[0].file, "t.txt");
    assert_string_equal(q->uploads[0].type, "text/plain");
    assert_int_equal(q->uploads[0].size, strlen("line\r\n--a \r\n"));
    dgm_request_free(q);
    const char *const bad[] = {"",          "--a b",
                               "--a b\r\n", "--a b\r\n\r\nx\r\n--a b--",
                               "nothing",   "--a b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nen"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_multipart(&q, type, bad[i], &err), DGM_ERR_FORMAT);
        dgm_request_free(q);
    }
    assert_int_equal(read_multipart(&q, "multipart/form-data", "--a\r\n", &err), DGM_ERR_FORMAT);
    dgm_request_free(q);
}

static void test_paths(void **state)
{
    (void)state;
    const struct {
        const char *given, *path; // NULL: refused
    } rows[] = {{"/a%20b", "/a b"}, {"/..", NULL}, {"/a/%2e%2e/b", NULL},    {"/a/./b", NULL}, {"/%00", NULL},
                {"/%ff", NULL},     {"a", NULL},   {"/..a/b..", "/..a/b.."}, {"/a+b", "/a+b"}, {"/%2f..%2f", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s", rows[i].given);
        assert_int_equal(dgm_path_decode(path), rows[i].path != NULL);
        if (rows[i].path) assert_string_equal(path, rows[i].path);
    }
}

// ---- JSON -----------------------------------------------------------------------------------------

static dgm_status read_json(const char *text, size_t size)
{
    dgm_error err;
    dgm_request *q = dgm_request_new(NULL);
    dgm_field_add(q, &q->headers, "Content-Type", "application/json; charset=utf-8", 31);
    q->body = dgm_malloc(size + 1);
    memcpy(q->body, text, size);
    q->body[size] = 0;
    q->body_size = size;
    const dgm_status st = dgm_request_read(q, &err);
    dgm_request_free(q);
    return st;
}

static void test_json_bodies(void **state)
{
    (void)state;
    const char *const bad[] = {"",
                               "[]",
                               "\"x\"",
                               "{\"a\":1,\"a\":2}",
                               "{\"a\":\"\\u0000\"}",
                               "{\"a\":1",
                               "{\"a\":1}}",
                               "{\"a\":\"\xff\"}",
                               "{\"a\":\"\\ud800\"}",
                               "{a:1}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (read_json(bad[i], strlen(bad[i])) != DGM_ERR_FORMAT) fail_msg("taken: %s", bad[i]);
    const char brackets[] = "{\"q\":\"[[[[{{{{\\\"[\"}"; // in a string they are text
    assert_int_equal(read_json(brackets, sizeof brackets - 1), DGM_OK);
    char deep[200000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"q\":", 5);
    assert_int_equal(read_json(deep, sizeof deep), DGM_ERR_FORMAT);
    char fine[80];
    int n = snprintf(fine, sizeof fine, "{\"q\":");
    for (int i = 0; i < 31; i++) fine[n++] = '[';
    for (int i = 0; i < 31; i++) fine[n++] = ']';
    fine[n++] = '}';
    assert_int_equal(read_json(fine, (size_t)n), DGM_OK);
}

static void test_json_out(void **state)
{
    dgm_json_out j = {0};
    (void)state;
    dgm_out_object(&j, NULL);
    dgm_out_text(&j, "t", "a\"\\\n\x01ä\x7f", 8);
    dgm_out_array(&j, "list");
    dgm_out_integer(&j, NULL, -5);
    dgm_out_real(&j, NULL, 0.1);
    dgm_out_float(&j, NULL, 90);
    dgm_out_bool(&j, NULL, true);
    dgm_out_string(&j, NULL, NULL);
    dgm_out_end(&j);
    dgm_out_object(&j, "empty");
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_write_u8(&j.w, 0);
    assert_string_equal((const char *)j.w.data,
                        "{\"t\":\"a\\\"\\\\\\n\\u0001ä\\u007f\",\"list\":[-5,0.1,90.0,true,null],\"empty\":{}}");
    dgm_writer_free(&j.w);
}

// ---- turns ----------------------------------------------------------------------------------------

enum { MANY = 1000 };

// A sentence of a second client is next after one of the first, however long that one's text is.
static void test_turns_short_first(void **state)
{
    uint32_t costs[MANY];
    dgm_turns t = {0};
    (void)state;
    for (int i = 0; i < MANY; i++) costs[i] = 20;
    dgm_turn_task book = {.costs = costs, .count = MANY}, note = {.costs = costs, .count = 1};
    assert_int_equal(dgm_turns_add(&t, "a", &book, NULL), DGM_OK);
    for (int i = 0; i < 10; i++) assert_ptr_equal(dgm_turns_next(&t, 1 << 30), &book);
    assert_int_equal(dgm_turns_add(&t, "b", &note, NULL), DGM_OK);
    int before = 0;
    while (dgm_turns_next(&t, 1 << 30) == &book) before++;
    assert_true(before <= 1);
    assert_int_equal(note.taken, 1);
    // The same between two tasks of one client.
    dgm_turns_remove(&t, &note);
    note.taken = 0;
    assert_int_equal(dgm_turns_add(&t, "a", &note, NULL), DGM_OK);
    before = 0;
    while (dgm_turns_next(&t, 1 << 30) == &book) before++;
    assert_true(before <= 1);
    dgm_turns_free(&t);
    assert_int_equal(t.clients, 0);
    assert_int_equal(t.waiting, 0);
}

// Clients have the same share of tokens, not of sentences or of tasks.
static void test_turns_shares(void **state)
{
    uint32_t small[MANY], large[MANY];
    int64_t taken[3] = {0};
    dgm_turns t = {0};
    (void)state;
    for (int i = 0; i < MANY; i++) small[i] = 5, large[i] = 200;
    dgm_turn_task a = {.costs = small, .count = MANY}, b = {.costs = large, .count = MANY};
    dgm_turn_task c[4];
    dgm_turns_add(&t, "a", &a, NULL);
    dgm_turns_add(&t, "b", &b, NULL);
    for (int i = 0; i < 4; i++) {
        c[i] = (dgm_turn_task){.costs = small, .count = MANY};
        dgm_turns_add(&t, "c", &c[i], NULL);
    }
    assert_int_equal(t.clients, 3);
    while (taken[0] + taken[1] + taken[2] < 9000) {
        dgm_turn_task *task = dgm_turns_next(&t, INT64_MAX);
        const int who = task == &a ? 0 : task == &b ? 1 : 2;
        taken[who] += task->costs[task->taken - 1];
    }
    for (int i = 0; i < 3; i++) assert_in_range(taken[i], 2600, 3400);
    for (int i = 1; i < 4; i++) assert_in_range(c[i].taken, c[0].taken - 20, c[0].taken + 20);
    dgm_turns_free(&t);
}

// Whoever waits, waits in proportion: a short one passes long ones, and a long one is not passed by short ones for
// ever. Between clients and between tasks of one.
static void test_turns_proportion(void **state)
{
    const uint32_t small = 5, large = 100;
    (void)state;
    for (int same = 0; same < 2; same++) {
        dgm_turns t = {0};
        dgm_turn_task many[8], note[64], book = {.costs = &large, .count = 1};
        char name[16];
        for (int i = 0; i < 8; i++) {
            many[i] = (dgm_turn_task){.costs = &large, .count = 1};
            snprintf(name, sizeof name, "a%d", same ? 0 : i);
            dgm_turns_add(&t, name, &many[i], NULL);
        }
        note[0] = (dgm_turn_task){.costs = &small, .count = 1};
        dgm_turns_add(&t, same ? "a0" : "b", &note[0], NULL);
        assert_ptr_equal(dgm_turns_next(&t, INT64_MAX), &note[0]);
        for (int i = 0; i < 8; i++) assert_ptr_equal(dgm_turns_next(&t, INT64_MAX), &many[i]);
        dgm_turns_free(&t);
        dgm_turns_add(&t, "a", &book, NULL);
        int passed = 0;
        for (; passed < 64; passed++) {
            note[passed] = (dgm_turn_task){.costs = &small, .count = 1};
            dgm_turns_add(&t, same ? "a" : "b", &note[passed], NULL);
            if (dgm_turns_next(&t, INT64_MAX) == &book) break;
        }
        assert_in_range(passed, 15, 25); // as many tokens as it has itself
        dgm_turns_free(&t);
    }
}

// A task that has its part in flight waits; one with nothing in flight always gets a sentence.
static void test_turns_most(void **state)
{
    const uint32_t costs[3] = {100, 100, 5000};
    dgm_turns t = {0};
    (void)state;
    dgm_turn_task a = {.costs = costs, .count = 3};
    dgm_turns_add(&t, "a", &a, NULL);
    assert_ptr_equal(dgm_turns_next(&t, 150), &a);
    assert_null(dgm_turns_next(&t, 150));
    a.in_flight = 0;
    assert_ptr_equal(dgm_turns_next(&t, 150), &a);
    a.in_flight = 0;
    assert_ptr_equal(dgm_turns_next(&t, 150), &a);
    assert_null(dgm_turns_next(&t, 150));
    assert_int_equal(t.waiting, 0);
    dgm_turns_free(&t);
}

// ---- keys and limits ------------------------------------------------------------------------------

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_keys(void **state)
{
    char path[] = "/tmp/dragoman-keys-XXXXXX";
    dgm_keys *keys = NULL;
    dgm_error err;
    dgm_key k;
    bool changed;
    (void)state;
    close(mkstemp(path));
    write_file(path, "# keys\nabc req_limit=10 char_limit=500 name=shop # comment\n\nsecond\n");
    assert_int_equal(dgm_keys_open(&keys, path, &err), DGM_OK);
    assert_int_equal(dgm_keys_count(keys), 2);
    assert_true(dgm_keys_find(keys, "abc", &k));
    assert_int_equal(k.req_limit, 10);
    assert_int_equal(k.char_limit, 500);
    assert_string_equal(k.name, "shop");
    assert_true(dgm_keys_find(keys, "second", &k));
    assert_int_equal(k.req_limit, -1);
    assert_false(dgm_keys_find(keys, "abcd", &k));
    assert_false(dgm_keys_find(keys, "", &k));
    write_file(path, "third\n");
    assert_int_equal(dgm_keys_reload(keys, &changed, &err), DGM_OK);
    assert_true(changed);
    assert_false(dgm_keys_find(keys, "abc", &k));
    write_file(path, "fourth what=ever\n"); // wrong: what there was stays
    assert_int_equal(dgm_keys_reload(keys, &changed, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "line 1"));
    assert_true(dgm_keys_find(keys, "third", &k));
    dgm_keys_close(&keys);
    unlink(path);
}

static void test_rates(void **state)
{
    dgm_rates *r = NULL;
    char which[64];
    (void)state;
    assert_int_equal(dgm_rates_open(&r, NULL), DGM_OK);
    const dgm_rate_limits none = {-1, -1, -1, -1}, two = {2, -1, -1, 2}, day = {-1, -1, 3, -1};
    for (int i = 0; i < 100; i++) assert_int_equal(dgm_rates_take(r, "x", 1, &none, 0, which, 64), DGM_RATE_FINE);
    assert_int_equal(dgm_rates_take(r, "a", 1, &two, 100, which, 64), DGM_RATE_FINE);
    assert_int_equal(dgm_rates_take(r, "a", 1, &two, 110, which, 64), DGM_RATE_FINE);
    assert_int_equal(dgm_rates_take(r, "a", 1, &two, 159, which, 64), DGM_RATE_SLOW);
    assert_string_equal(which, "2 per 1 minute");
    assert_int_equal(dgm_rates_take(r, "b", 1, &two, 159, which, 64), DGM_RATE_FINE);
    assert_int_equal(dgm_rates_take(r, "a", 1, &two, 160, which, 64), DGM_RATE_FINE); // the next minute
    assert_int_equal(dgm_rates_take(r, "a", 2, &two, 161, which, 64), DGM_RATE_SLOW);
    assert_int_equal(dgm_rates_take(r, "a", 2, &two, 162, which, 64), DGM_RATE_BANNED);
    assert_int_equal(dgm_rates_take(r, "a", 1, &two, 500, which, 64), DGM_RATE_BANNED);
    assert_int_equal(dgm_rates_take(r, "a", 1, &two, 161 + 86401, which, 64), DGM_RATE_FINE);
    for (int i = 0; i < 3; i++) assert_int_equal(dgm_rates_take(r, "c", 1, &day, i, which, 64), DGM_RATE_FINE);
    assert_int_equal(dgm_rates_take(r, "c", 1, &day, 4, which, 64), DGM_RATE_SLOW);
    assert_string_equal(which, "3 per 1 day");
    dgm_rates_expire(r, 1e9);
    dgm_rates_close(&r);
}

// ---- terms ----------------------------------------------------------------------------------------

static bool stands_in(const char *text, const char *term)
{
    const size_t n = strlen(term);
    for (; strlen(text) >= n; text++)
        if (strncasecmp(text, term, n) == 0) return true;
    return false;
}

static const char *some_letters(char *to, size_t most, const char *alphabet)
{
    const size_t n = 1 + (size_t)rand() % most;
    for (size_t i = 0; i < n; i++) to[i] = alphabet[(size_t)rand() % strlen(alphabet)];
    to[n] = 0;
    return to;
}

// Terms that begin with others, are others in another case, stand within words or at the end: as found one by one.
static void test_terms(void **state)
{
    static const char *const alphabets[] = {"ab", "aAbB ", "abcdefgh ", "a\xc3\xa4\xff z"};
    (void)state;
    srand(1);
    for (int round = 0; round < 400; round++) {
        enum { TERMS = 150 };
        char sources[TERMS][16], text[64];
        dgm_term terms[TERMS];
        uint64_t marks[(TERMS + 63) / 64] = {0};
        const char *alphabet = alphabets[round % 4];
        const size_t count = (size_t)(rand() % TERMS);
        for (size_t i = 0; i < count; i++)
            terms[i] = (dgm_term){some_letters(sources[i], 1 + (size_t)round % 15, alphabet), "t"};
        some_letters(text, 60, alphabet);
        dgm_termbook *book = NULL;
        assert_int_equal(dgm_termbook_make(&book, terms, count, NULL), DGM_OK);
        assert_int_equal(dgm_termbook_count(book), count);
        dgm_termbook_mark(book, text, strlen(text), marks);
        for (size_t i = 0; i < count; i++) {
            assert_string_equal(dgm_termbook_at(book, i)->source, sources[i]);
            assert_int_equal(marks[i / 64] >> (i % 64) & 1, stands_in(text, sources[i]));
        }
        dgm_termbook *other = dgm_termbook_hold(book);
        dgm_termbook_drop(&book);
        assert_string_equal(count ? dgm_termbook_at(other, 0)->target : "t", "t");
        dgm_termbook_drop(&other);
    }
}

// ---- the loop -------------------------------------------------------------------------------------

enum { NOTHING_YET, WITHOUT_LOOP, WITH_LOOP };
static atomic_int asked; // what the request of test_loop_start found
static bool slow_start;
static dgm_http_loop *started;

// In place of the C library's: while a thread is to be slow to start for its creator, it runs until a request came.
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *arg)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    const int failed = create(thread, how, run, arg);
    for (int i = 0; i < 10000 && slow_start && !failed && atomic_load(&asked) == NOTHING_YET; i++) usleep(1000);
    return failed;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *body, size_t *size, void **context)
{
    (void)cls, (void)c, (void)url, (void)method, (void)version, (void)body, (void)size, (void)context;
    atomic_store(&asked, started ? WITH_LOOP : WITHOUT_LOOP);
    return MHD_NO;
}

// A request that waits when the loop starts finds it, however late its creator goes on.
static void test_loop_start(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)state;
    struct MHD_Daemon *d = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, NULL, MHD_OPTION_END);
    assert_non_null(d);
    to.sin_port = htons(MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
    slow_start = true;
    const dgm_status st = dgm_http_loop_start(d, &started, NULL);
    slow_start = false;
    assert_int_equal(st, DGM_OK);
    assert_int_equal(atomic_load(&asked), WITH_LOOP);
    dgm_http_loop_stop(&started);
    close(fd);
    MHD_stop_daemon(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),       cmocka_unit_test(test_route_rows),
        cmocka_unit_test(test_urlencoded),   cmocka_unit_test(test_multipart),
        cmocka_unit_test(test_paths),        cmocka_unit_test(test_json_bodies),
        cmocka_unit_test(test_json_out),     cmocka_unit_test(test_turns_short_first),
        cmocka_unit_test(test_turns_shares), cmocka_unit_test(test_turns_most),
        cmocka_unit_test(test_turns_proportion),
        cmocka_unit_test(test_keys),         cmocka_unit_test(test_rates),
        cmocka_unit_test(test_terms),        cmocka_unit_test(test_loop_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
