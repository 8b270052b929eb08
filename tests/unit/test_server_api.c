// SPDX-License-Identifier: MIT
// Handlers of the server without sockets: LibreTranslate's API to the byte, our own, keys and limits.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "server_scarce.h"

static void libre(const char *body, int status, const char *answer)
{
    test_expect(server, "POST", "/translate", JSON_TYPE, body, status, answer);
}

static void test_libre_translate(void **state)
{
    (void)state;
    libre("{\"q\":\"Good morning.\",\"source\":\"en\",\"target\":\"de\"}", 200,
          "{\"translatedText\":\"Guten Morgen!\"}\n");
    libre("{\"q\":[\"Good morning.\",\"The house is big.\"],\"source\":\"en\",\"target\":\"de\"}", 200,
          "{\"translatedText\":[\"Guten Morgen!\",\"Das Haus ist groß.\"]}\n");
    libre("{\"q\":\"Gut\",\"source\":\"de\",\"target\":\"de\",\"alternatives\":2}", 200,
          "{\"alternatives\":[],\"translatedText\":\"Gut\"}\n");
    libre("{\"q\":\"Good morning.\",\"source\":\"EN-us\",\"target\":\"German\"}", 200,
          "{\"translatedText\":\"Guten Morgen!\"}\n");
    test_expect(server, "POST", "/translate", FORM_TYPE,
                "q=Good+morning.%0d%0a%0d%0aThe+house+is+big.%0d%0a&source=en&target=de", 200,
                "{\"translatedText\":\"Guten Morgen!\\n\\nDas Haus ist groß.\"}\n");
    libre("{\"q\":\"  \",\"source\":\"en\",\"target\":\"de\"}", 200, "{\"translatedText\":\"  \"}\n");
    libre("{\"q\":\"Good morning.\",\"source\":\"en\",\"target\":\"de\",\"alternatives\":2}", 200,
          "{\"alternatives\":[\"...");
}

static void test_libre_query(void **state)
{
    (void)state;
    dgm_request *q = test_request(server, "POST", "/translate", NULL, NULL);
    dgm_field_add(q, &q->query, "q", "Good morning.", 13);
    dgm_field_add(q, &q->query, "source", "en", 2);
    dgm_field_add(q, &q->query, "target", "de", 2);
    test_ask(q);
    assert_string_equal(test_body(q), "{\"translatedText\":\"Guten Morgen!\"}\n");
    dgm_request_free(q);
}

static void test_libre_detect(void **state)
{
    (void)state;
    test_expect(server, "POST", "/detect", JSON_TYPE, "{\"q\":\"Guten Morgen, wie geht es dir?\"}", 200,
                "[{\"confidence\":100.0,\"language\":\"de\"}]\n");
    test_expect(server, "POST", "/detect", FORM_TYPE, "q=123", 200, "[{\"confidence\":0.0,\"language\":\"en\"}]\n");
    test_expect(server, "POST", "/detect", FORM_TYPE, "x=123", 400,
                "{\"error\":\"Invalid request: missing q parameter\"}\n");
    libre("{\"q\":[\"Das Haus ist groß.\",\"Gut.\"],\"source\":\"auto\",\"target\":\"en\"}", 200,
          "{\"detectedLanguage\":[{\"confidence\":100.0,\"language\":\"de\"},{\"confidence\":100.0,\"language\":"
          "\"de\"}],"
          "\"translatedText\":[\"The house is big.\",...");
}

static void test_libre_html(void **state)
{
    (void)state;
    libre("{\"q\":\"<p>The <b>house</b> is big.</p><p>Good morning.</p>\",\"source\":\"en\",\"target\":\"de\","
          "\"format\":\"html\",\"alternatives\":2}",
          200, "{\"alternatives\":[],\"translatedText\":\"<p>Das <b>Haus</b> ist groß.</p><p>Guten Morgen!</p>\"}\n");
    libre("{\"q\":[\"<i>Good morning.</i>\",\"<br>\"],\"source\":\"en\",\"target\":\"de\",\"format\":\"html\"}", 200,
          "{\"translatedText\":[\"<i>Guten Morgen!</i>\",\"<br>\"]}\n");
}

#define FORM_PART(name, value) "--B\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"
#define FORM_FILE(file, data)                                                                                        \
    "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" file "\"\r\n\r\n" data "\r\n"

static void test_libre_files(void **state)
{
    static const char type[] = "multipart/form-data; boundary=B";
    (void)state;
    dgm_request *q = test_request(server, "POST", "/translate_file", type,
                                  FORM_PART("source", "auto") FORM_PART("target", "de")
                                      FORM_FILE("../a \\\"b.md", "# The **house** is big.\n") "--B--\r\n");
    dgm_field_add(q, &q->headers, "Host", "example.org:5000", 16);
    test_ask(q);
    assert_int_equal(q->status, 200);
    const char *url = strstr(test_body(q), "http://example.org:5000/download_file/");
    assert_non_null(url);
    char path[400];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(url + 23, "\""), url + 23);
    dgm_request_free(q);
    assert_null(strpbrk(path + 15, "/\\\" "));
    test_expect(server, "GET", path, NULL, NULL, 200, "# Das **Haus** ist groß.\n");
    test_expect(server, "GET", "/download_file/nothing", NULL, NULL, 404, "<!doctype html>...");
    test_expect(server, "GET", "/download_file/a/b", NULL, NULL, 400, "{\"error\":\"Invalid filename\"}\n");
    const struct {
        const char *body, *answer;
    } bad[] = {
        {FORM_PART("source", "en") "--B--\r\n", "{\"error\":\"Invalid request: missing file parameter\"}\n"},
        {FORM_FILE("a.txt", "x") "--B--\r\n", "{\"error\":\"Invalid request: missing source parameter\"}\n"},
        {FORM_FILE("a.exe", "x") "--B--\r\n", "{\"error\":\"Invalid request: file format not supported\"}\n"},
        {FORM_FILE("", "x") "--B--\r\n", "{\"error\":\"Invalid request: empty file\"}\n"},
        {FORM_FILE("a.txt", "x") FORM_PART("source", "en") FORM_PART("target", "xx") "--B--\r\n",
         "{\"error\":\"xx is not supported\"}\n"},
        {FORM_FILE("a.docx", "x") FORM_PART("source", "en") FORM_PART("target", "de") "--B--\r\n", "{\"error\":..."},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        test_expect(server, "POST", "/translate_file", type, bad[i].body, 400, bad[i].answer);
    test_expect(server, "POST", "/v1/document", type,
                FORM_FILE("a.txt", "Good morning.\n") FORM_PART("target", "de") "--B--\r\n", 200, "Guten Morgen!\n");
}

static void test_libre_errors(void **state)
{
    (void)state;
    libre("{}", 400, "{\"error\":\"Invalid request: missing q parameter\"}\n");
    libre("{\"q\":\"\",\"source\":\"en\",\"target\":\"de\"}", 400,
          "{\"error\":\"Invalid request: missing q parameter\"}\n");
    libre("{\"q\":\"a\"}", 400, "{\"error\":\"Invalid request: missing source parameter\"}\n");
    libre("{\"q\":\"a\",\"source\":\"en\"}", 400, "{\"error\":\"Invalid request: missing target parameter\"}\n");
    libre("{\"q\":\"a\",\"source\":\"xx\",\"target\":\"de\"}", 400, "{\"error\":\"xx is not supported\"}\n");
    libre("{\"q\":\"a\",\"source\":\"en\",\"target\":\"zz\"}", 400, "{\"error\":\"zz is not supported\"}\n");
    libre("{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"format\":\"pdf\"}", 400,
          "{\"error\":\"pdf format is not supported\"}\n");
    libre("{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"alternatives\":\"x\"}", 400,
          "{\"error\":\"Invalid request: alternatives parameter is not a number\"}\n");
    libre("[1]", 400, "{\"error\":\"Invalid JSON format\"}\n");
    libre("{\"q\":\"a\",\"q\":\"b\"}", 400,
          "{\"error\":\"The browser (or proxy) sent a request that this server could not understand.\"}\n");
    test_expect(server, "GET", "/translate", NULL, NULL, 405, "<!doctype html>...");
    test_expect(server, "GET", "/nothing", NULL, NULL, 404, "<!doctype html>...");
    test_expect(server, "OPTIONS", "/translate", NULL, NULL, 200, "");
    test_expect(server, "POST", "/suggest", JSON_TYPE, "{}", 403,
                "{\"error\":\"Suggestions are disabled on this server.\"}\n");
    test_expect(server, "GET", "/metrics", NULL, NULL, 404, "<!doctype html>...");
}

static void test_libre_lists(void **state)
{
    (void)state;
    test_expect(server, "GET", "/languages", NULL, NULL, 200,
                "[{\"code\":\"de\",\"name\":\"German\",\"targets\":[\"de\",\"en\"]},"
                "{\"code\":\"en\",\"name\":\"English\",\"targets\":[\"de\",\"en\"]}]\n");
    test_expect(server, "GET", "/health", NULL, NULL, 200, "{\"status\":\"ok\"}\n");
    test_expect(server, "POST", "/health", NULL, NULL, 405, "<!doctype html>...");
    test_expect(
        server, "GET", "/frontend/settings", NULL, NULL, 200,
        "{\"apiKeys\":false,\"charLimit\":-1,\"filesTranslation\":true,\"frontendTimeout\":500,"
        "\"keyRequired\":false,\"language\":{\"source\":{\"code\":\"auto\",\"name\":\"Auto Detect\"},"
        "\"target\":{\"code\":\"de\",\"name\":\"German\"}},\"suggestions\":false,\"supportedFilesFormat\":[...");
}

// ---- our own --------------------------------------------------------------------------------------

static json_t *ask_json(dgm_server *s, const char *path, const char *body, int status)
{
    dgm_error err;
    json_t *answer = NULL;
    dgm_request *q = test_request(s, body ? "POST" : "GET", path, body ? JSON_TYPE : NULL, body);
    test_ask(q);
    if (q->status != status) fail_msg("%s: %d, expected %d: %s", path, q->status, status, test_body(q));
    if (dgm_json_parse(&answer, test_body(q), strlen(test_body(q)), &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_request_free(q);
    return answer;
}

static const char *text_at(const json_t *answer, size_t i, const char *key)
{
    return json_string_value(json_object_get(json_array_get(json_object_get(answer, "translations"), i), key));
}

static void test_v1_translate(void **state)
{
    (void)state;
    json_t *a =
        ask_json(server, "/v1/translate",
                 "{\"q\":[\"Good morning.  The house is big.\\n\\nHow are you?\",\"\"],\"source\":\"en\",\"target\":"
                 "\"de\",\"alignment\":true,\"word_scores\":true,\"alternatives\":2}",
                 200);
    assert_string_equal(text_at(a, 0, "text"), "Guten Morgen!  Das Haus ist groß.\n\nWie geht es dir?");
    assert_string_equal(text_at(a, 1, "text"), "");
    const json_t *sentences = json_object_get(json_array_get(json_object_get(a, "translations"), 0), "sentences");
    assert_int_equal(json_array_size(sentences), 3);
    // Sentences and gaps make up the text, on both sides.
    char joined[200] = "", source[200] = "";
    for (size_t i = 0; i < 3; i++) {
        const json_t *s = json_array_get(sentences, i);
        strcat(strcat(joined, json_string_value(json_object_get(s, "text"))),
               json_string_value(json_object_get(s, "gap")));
        strcat(strcat(source, json_string_value(json_object_get(s, "source"))),
               json_string_value(json_object_get(s, "gap")));
        assert_true(json_array_size(json_object_get(s, "alignment")) > 0);
        assert_true(json_array_size(json_object_get(s, "tokens")) > 2);
        assert_int_equal(json_array_size(json_object_get(s, "alternatives")), 2);
    }
    assert_string_equal(joined, text_at(a, 0, "text"));
    assert_string_equal(source, "Good morning.  The house is big.\n\nHow are you?");
    json_decref(a);
}

// Terms, constraints and prefixes are of one sentence each.
static void test_v1_demands(void **state)
{
    (void)state;
    json_t *a = ask_json(
        server, "/v1/translate",
        "{\"q\":\"The house is big. How are you?\",\"source\":\"en\",\"target\":\"de\",\"terms\":[{\"source\":"
        "\"house\",\"target\":\"Gebäude\"}]}",
        200);
    assert_non_null(strstr(text_at(a, 0, "text"), "Gebäude"));
    assert_non_null(strstr(text_at(a, 0, "text"), "Wie geht es dir?"));
    json_decref(a);
    a = ask_json(server, "/v1/translate",
                 "{\"q\":\"The house is big.\",\"source\":\"en\",\"target\":\"de\",\"prefix\":\"Unser\"}", 200);
    assert_memory_equal(text_at(a, 0, "text"), "Unser", 5);
    json_decref(a);
    // In text with tags, too.
    a = ask_json(server, "/v1/translate",
                 "{\"q\":\"<p>The house is.</p>\",\"source\":\"en\",\"target\":\"de\",\"format\":\"html\",\"model\":"
                 "\"en-de\",\"terms\":[{\"source\":\"house\",\"target\":\"Gebäude\"}]}",
                 200);
    assert_non_null(strstr(text_at(a, 0, "text"), "Gebäude"));
    json_decref(a);
    test_expect(server, "POST", "/v1/translate", JSON_TYPE,
                "{\"q\":\"<p>a</p>\",\"source\":\"en\",\"target\":\"de\",\"format\":\"html\",\"prefix\":\"b\"}", 400,
                "{\"error\":\"\\\"format\\\": \\\"html\\\" does not go with \\\"prefix\\\"\",\"code\":\"argument\"}\n");
    test_expect(server, "POST", "/v1/translate", JSON_TYPE,
                "{\"q\":\"<p>a</p>\",\"source\":\"en\",\"target\":\"de\",\"format\":\"html\",\"model\":\"x\"}", 400,
                "{...");
}

#define DOCUMENT(text, terms)                                                                                        \
    FORM_PART("source", "en") FORM_PART("target", "de") FORM_PART("terms", terms) FORM_FILE("a.txt", text) "--B--\r\n"

// The glossary of a document.
static void test_v1_document_terms(void **state)
{
    static const char type[] = "multipart/form-data; boundary=B";
    (void)state;
    dgm_request *q = test_request(
        server, "POST", "/v1/document", type,
        DOCUMENT("The house is big.\nHow are you?\n", "[{\"source\":\"house\",\"target\":\"Gebäude\"}]"));
    test_ask(q);
    assert_int_equal(q->status, 200);
    assert_non_null(strstr(test_body(q), "Gebäude"));
    assert_non_null(strstr(test_body(q), "Wie geht es dir?"));
    dgm_request_free(q);
    test_expect(server, "POST", "/v1/document", type, DOCUMENT("Good morning.\n", ""), 200, "Guten Morgen!\n");
    test_expect(server, "POST", "/v1/document", type, DOCUMENT("Good morning.\n", "[]"), 200, "Guten Morgen!\n");
    static const char *const bad[] = {
        DOCUMENT("a", "[{\"source\":\"house\"}]"), DOCUMENT("a", "{\"house\":\"Haus\"}"), DOCUMENT("a", "house"),
        DOCUMENT("a", "[[[[[["), DOCUMENT("a", "[{\"source\":\"\",\"target\":\"b\"}]")};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        test_expect(server, "POST", "/v1/document", type, bad[i], 400, "{\"error\":...");
}

// Settings that change nothing, and other ways to write the same ones, open no further translators.
static void test_lanes(void **state)
{
    static const char *const settings[] = {
        "{}",          "{\"beam\":1}",    "{\"beam\":\"1\"}",   "{\"no-protect\":false}", // the server's own
        "{\"beam\":2}", "{\"beam\":\"2\"}", "{\"beam\":\"02\"}", "{\"no-protect\":false,\"beam\":2}"};
    (void)state;
    dgm_server_options o;
    dgm_settings own;
    dgm_server_default(&o);
    dgm_settings_default(&own);
    own.beam = 1;
    o.settings = &own;
    dgm_server *s = test_server(&o);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"q\":\"A house.\",\"source\":\"en\",\"target\":\"de\",\"settings\":%s}",
                 settings[i]);
        json_decref(ask_json(s, "/v1/translate", body, 200));
        dgm_server_counters c = {.size = sizeof c};
        dgm_server_count(s, &c);
        if (c.now.translators != (i < 4 ? 1 : 2)) fail_msg("%s: %d lanes", settings[i], (int)c.now.translators);
    }
    dgm_server_close(&s);
}

static void test_v1_errors(void **state)
{
    (void)state;
    const char *const bad[] = {
        "{\"q\":1}",
        "{\"q\":\"a\",\"target\":\"xx\",\"source\":\"en\"}",
        "{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"unknown\":1}",
        "{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"alternatives\":1000}",
        "{\"q\":[\"a\",\"b\"],\"source\":\"en\",\"target\":\"de\",\"prefix\":[\"x\"]}",
        "{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"settings\":{\"threads\":4}}",
        "{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"settings\":{\"dictionary\":\"/etc/passwd\"}}",
        "{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"settings\":{\"beam\":100000}}",
        "{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"settings\":{\"beam\":{}}}",
        "{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"model\":\"none\"}",
        "{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"terms\":[{}]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *a = ask_json(server, "/v1/translate", bad[i], 400);
        assert_true(json_is_string(json_object_get(a, "error")) && json_is_string(json_object_get(a, "code")));
        json_decref(a);
    }
    test_expect(server, "POST", "/v1/translate", "text/plain", "hello", 415, "{\"error\":...");
    test_expect(server, "GET", "/v1/nothing", NULL, NULL, 404, "{\"error\":...");
}

static void test_v1_lists(void **state)
{
    (void)state;
    const char *const paths[] = {"/v1/languages", "/v1/models", "/v1/settings", "/v1/stats"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) json_decref(ask_json(server, paths[i], NULL, 200));
    json_t *a = ask_json(server, "/v1/settings", NULL, 200);
    size_t i;
    json_t *row;
    bool beam = false;
    json_array_foreach(json_object_get(a, "settings"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        beam = beam || strcmp(name, "beam") == 0;
        assert_string_not_equal(name, "dictionary");
        assert_string_not_equal(name, "terms");
    }
    assert_true(beam);
    json_decref(a);
}

// Every event of a stream: words only ever grow, and are what the sentence begins with.
static void test_v1_stream(void **state)
{
    (void)state;
    dgm_request *q =
        test_request(server, "POST", "/v1/translate", JSON_TYPE,
                     "{\"q\":\"The house is big and the garden is beautiful in the summer of this year. Good "
                     "morning.\",\"source\":\"en\",\"target\":\"de\",\"stream\":true}");
    test_ask(q);
    assert_int_equal(q->status, 200);
    char told[4][400] = {{0}};
    int words = 0, sentences = 0, done = 0;
    char *rest = NULL, *all = strdup(test_body(q));
    for (char *event = strtok_r(all, "\n", &rest); event; event = strtok_r(NULL, "\n", &rest)) {
        char *data = strtok_r(NULL, "\n", &rest);
        assert_memory_equal(event, "event: ", 7);
        assert_memory_equal(data, "data: ", 6);
        json_t *j = NULL;
        assert_int_equal(dgm_json_parse(&j, data + 6, strlen(data + 6), NULL), DGM_OK);
        const size_t at = (size_t)json_integer_value(json_object_get(j, "sentence"));
        const bool whole = strcmp(event + 7, "sentence") == 0;
        if (whole || strcmp(event + 7, "words") == 0) {
            const char *text = json_string_value(json_object_get(j, whole ? "translation" : "begin"));
            assert_memory_equal(text, told[at], strlen(told[at]));
            snprintf(told[at], sizeof told[at], "%s", text);
            words += !whole;
            sentences += whole;
        }
        if (strcmp(event + 7, "done") == 0) {
            done++;
            char joined[900];
            snprintf(joined, sizeof joined, "%s %s", told[0], told[1]);
            assert_string_equal(text_at(j, 0, "text"), joined);
        }
        json_decref(j);
    }
    assert_true(words > 2);
    assert_int_equal(sentences, 2);
    assert_int_equal(done, 1);
    free(all);
    dgm_request_free(q);
}

static void test_v1_bulk(void **state)
{
    (void)state;
    dgm_request *q =
        test_request(server, "POST", "/v1/bulk", "application/x-ndjson",
                     "{\"q\":\"Good morning.\",\"id\":7}\n{\"q\":\"The house is big.\",\"id\":{\"a\":[1]}}\n"
                     "{\"q\":\"\"}\n");
    dgm_field_add(q, &q->query, "source", "en", 2);
    dgm_field_add(q, &q->query, "target", "de", 2);
    test_ask(q);
    assert_string_equal(test_body(q), "{\"id\":7,\"text\":\"Guten Morgen!\"}\n"
                                      "{\"id\":{\"a\":[1]},\"text\":\"Das Haus ist groß.\"}\n{\"text\":\"\"}\n");
    dgm_request_free(q);
}

// ---- options --------------------------------------------------------------------------------------

static void test_limits(void **state)
{
    dgm_server_options o;
    (void)state;
    dgm_server_default(&o);
    o.char_limit = 20;
    o.batch_limit = 2;
    o.alternatives_limit = 1;
    o.req_limit = 7;
    dgm_server *s = test_server(&o);
    const struct {
        const char *body;
        int status;
        const char *answer;
    } rows[] = {
        {"{\"q\":\"Good morning.\",\"source\":\"en\",\"target\":\"de\"}", 200,
         "{\"translatedText\":\"Guten Morgen!\"}\n"},
        {"{\"q\":\"Good morning and good night.\",\"source\":\"en\",\"target\":\"de\"}", 400,
         "{\"error\":\"Invalid request: request (28) exceeds text limit (20)\"}\n"},
        {"{\"q\":[\"äöüäöüäöüä\",\"äöüäöüäöüä\"],\"source\":\"de\",\"target\":\"de\"}", 200,
         "{\"translatedText\":[..."},
        {"{\"q\":[\"a\",\"b\",\"c\"],\"source\":\"en\",\"target\":\"de\"}", 400,
         "{\"error\":\"Invalid request: request (3) exceeds text limit (2)\"}\n"},
        {"{\"q\":\"a\",\"source\":\"en\",\"target\":\"de\",\"alternatives\":2}", 400,
         "{\"error\":\"Invalid request: alternatives parameter must be <= 1\"}\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        test_expect(s, "POST", "/translate", JSON_TYPE, rows[i].body, rows[i].status, rows[i].answer);
    test_expect(s, "GET", "/languages", NULL, NULL, 200, "[...");
    for (int i = 0; i < 2; i++) test_expect(s, "POST", "/translate", JSON_TYPE, "{}", 400, "{\"error\":...");
    test_expect(s, "POST", "/translate", JSON_TYPE, "{}", 429, "{\"error\":\"Slowdown: 7 per 1 minute\"}\n");
    test_expect(s, "GET", "/languages", NULL, NULL, 200, "[...");
    dgm_server_close(&s);
}

static void test_api_keys(void **state)
{
    char path[] = "/tmp/dragoman-keys-XXXXXX";
    dgm_server_options o;
    (void)state;
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, "secret req_limit=3\nother char_limit=3\n", 38), 38);
    close(fd);
    dgm_server_default(&o);
    o.api_keys = path;
    o.require_api_key = 1;
    dgm_server *s = test_server(&o);
    test_expect(s, "POST", "/translate", JSON_TYPE, "{\"q\":\"Gut\",\"source\":\"de\",\"target\":\"de\"}", 400,
                "{\"error\":\"Please contact the server operator to get an API key\"}\n");
    test_expect(s, "POST", "/translate", JSON_TYPE,
                "{\"q\":\"Gut\",\"source\":\"de\",\"target\":\"de\",\"api_key\":\"no\"}", 403,
                "{\"error\":\"Invalid API key\"}\n");
    test_expect(s, "POST", "/translate", FORM_TYPE, "q=Gute&source=de&target=de&api_key=other", 400,
                "{\"error\":\"Invalid request: request (4) exceeds text limit (3)\"}\n");
    for (int i = 0; i < 3; i++)
        test_expect(s, "POST", "/translate", FORM_TYPE, "q=Gut&source=de&target=de&api_key=secret", 200,
                    "{\"translatedText\":\"Gut\"}\n");
    test_expect(s, "POST", "/translate", FORM_TYPE, "q=Gut&source=de&target=de&api_key=secret", 429,
                "{\"error\":\"Slowdown: 3 per 1 minute\"}\n");
    test_expect(s, "POST", "/v1/translate", JSON_TYPE, "{\"q\":\"Gut\"}", 401, "{\"error\":...");
    dgm_request *q =
        test_request(s, "POST", "/v1/translate", JSON_TYPE, "{\"q\":\"Gut\",\"source\":\"de\",\"target\":\"en\"}");
    dgm_field_add(q, &q->headers, "Authorization", "Bearer other", 12);
    test_ask(q);
    assert_int_equal(q->status, 200);
    dgm_request_free(q);
    test_expect(s, "GET", "/languages", NULL, NULL, 200, "[...");
    dgm_server_close(&s);
    unlink(path);
}

static void test_metrics(void **state)
{
    dgm_server_options o;
    (void)state;
    dgm_server_default(&o);
    o.metrics = 1;
    o.metrics_auth_token = "word";
    dgm_server *s = test_server(&o);
    test_expect(s, "GET", "/metrics", NULL, NULL, 401, "<!doctype html>...");
    dgm_request *q = test_request(s, "GET", "/metrics", NULL, NULL);
    dgm_field_add(q, &q->headers, "Authorization", "Bearer word", 11);
    test_ask(q);
    assert_int_equal(q->status, 200);
    assert_non_null(strstr(test_body(q), "\ndragoman_models 2\n"));
    dgm_request_free(q);
    dgm_server_close(&s);
}

// A client that goes away: its task ends, and nothing is lost.
static void test_gone(void **state)
{
    (void)state;
    char body[60000] = "{\"source\":\"en\",\"target\":\"de\",\"q\":\"";
    while (strlen(body) < 50000) strcat(body, "The house is big and the garden is beautiful. ");
    strcat(body, "\"}");
    test_wait w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    dgm_request *q = test_request(server, "POST", "/translate", JSON_TYPE, body);
    q->owner = &w;
    q->wake = test_woken;
    dgm_server_handle(q);
    usleep(20000);
    dgm_request_gone(q);
    pthread_mutex_lock(&w.lock);
    while (!w.answered) pthread_cond_wait(&w.wake, &w.lock);
    pthread_mutex_unlock(&w.lock);
    assert_int_equal(q->status, 503);
    dgm_request_free(q);
    // One that left before its task began.
    const char *const paths[] = {"/translate", "/v1/translate", "/v2/translate"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        q = test_request(server, "POST", paths[i], JSON_TYPE,
                         i == 2 ? "{\"text\":[\"A house.\"],\"target_lang\":\"DE\"}"
                                : "{\"q\":\"A house.\",\"source\":\"en\",\"target\":\"de\"}");
        dgm_request_gone(q);
        test_ask(q);
        assert_int_equal(q->status, 503);
        assert_non_null(strstr(test_body(q), "the request was given up"));
        dgm_request_free(q);
    }
}

// Over a socket of its own: the client, counters, graceful stop.
static void test_client(void **state)
{
    dgm_server_options o;
    dgm_server *s = NULL;
    dgm_client *c = NULL;
    dgm_results *r = NULL;
    dgm_error err;
    const char *const texts[] = {"Good morning.", "", "The house is big. How are you?"};
    const char *const settings[] = {"nbest", "2", "beam", "5", NULL};
    (void)state;
    dgm_server_default(&o);
    o.port = 0;
    o.models[0] = "models/en-de.gguf";
    assert_int_equal(dgm_server_open(&s, &o, &err), DGM_OK);
    assert_int_equal(dgm_client_open(&c, dgm_server_url(s), NULL, &err), DGM_OK);
    for (int i = 0; i < 2; i++) { // the second time over the same connection
        assert_int_equal(dgm_client_translate(c, "en", "de", texts, 3, NULL, &r, &err), DGM_OK);
        assert_int_equal(r->count, 3);
        assert_string_equal(dgm_result_text(r->items[0]), "Guten Morgen!");
        assert_string_equal(dgm_result_text(r->items[1]), "");
        assert_string_equal(dgm_result_text(r->items[2]), "Das Haus ist groß. Wie geht es dir?");
        assert_true(r->source_tokens > 0 && r->target_tokens > 0);
        dgm_results_free(&r);
    }
    assert_int_equal(dgm_client_translate(c, NULL, NULL, texts, 1, settings, &r, &err), DGM_OK);
    assert_int_equal(r->items[0]->count, 2);
    dgm_results_free(&r);
    assert_int_equal(dgm_client_translate(c, "en", "xx", texts, 1, NULL, &r, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "xx"));
    dgm_server_counters n = {.size = sizeof n};
    dgm_server_count(s, &n);
    assert_int_equal(n.texts, 7);
    assert_int_equal(n.now.translators, 2);
    dgm_client_close(&c);
    dgm_server_stop(s);
    dgm_server_run(s); // returns: nothing is in flight
    dgm_server_close(&s);
    assert_int_equal(dgm_client_open(&c, "ftp://x", NULL, &err), DGM_ERR_ARGUMENT);
    assert_null(c);
}

// Segments joined are what the engine makes of the whole line.
static void test_long_lines(void **state)
{
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_error err;
    (void)state;
    char text[3000] = "";
    while (strlen(text) < 1500) strcat(text, "The house is big.  Good morning, said Mr. Smith. \"How are you?\" ");
    text[strlen(text) - 1] = 0;
    const char *const texts[] = {text};
    assert_int_equal(dgm_open(&t, "models/en-de.gguf", NULL, &err), DGM_OK);
    assert_int_equal(dgm_translate(t, texts, 1, &r, &err), DGM_OK);
    json_t *body = json_pack("{s:s,s:s,s:s}", "q", text, "source", "en", "target", "de");
    char *json = dgm_json_text(body, JSON_COMPACT);
    json_t *a = ask_json(server, "/v1/translate", json, 200);
    assert_string_equal(text_at(a, 0, "text"), dgm_result_text(r->items[0]));
    json_decref(a);
    json_decref(body);
    dgm_free(json);
    dgm_results_free(&r);
    dgm_close(&t);
}

static bool is_answered(const dgm_request *q, bool failed)
{
    const bool form = q->upload_count || strncmp(dgm_request_header(q, "Content-Type"), "multi", 5) == 0;
    if (!failed) return q->status == 200 || q->status == 400;
    return q->status == 500 || (form && q->status == 400); // whose reader says that it ends early
}

// Allocations that fail while a request is read and answered, and requests that are refused.
static void test_no_memory(void **state)
{
    static const char body[] = "{\"q\":[\"a\"],\"source\":\"en\",\"target\":\"xx\",\"settings\":{\"beam\":3},"
                               "\"terms\":[{\"source\":\"a\",\"target\":\"b\"}]}";
    static const char type[] = "multipart/form-data; boundary=B";
    static const char file[] =
        FORM_FILE("a.txt", "Good morning.") FORM_PART("source", "en") FORM_PART("target", "xx") "--B--\r\n";
    static const char found[] =
        FORM_FILE("a.txt", "Good morning.") FORM_PART("source", "auto") FORM_PART("target", "xx") "--B--\r\n";
    static const char broken[] =
        FORM_FILE("a.docx", "x") FORM_PART("source", "auto") FORM_PART("target", "de") "--B--\r\n";
    static const scarce_row rows[] = {
        {"POST", "/v1/translate", JSON_TYPE, body}, {"POST", "/translate", JSON_TYPE, body},
        {"POST", "/v1/detect", JSON_TYPE, body},    {"POST", "/translate_file", type, file},
        {"POST", "/translate_file", type, found},   {"POST", "/translate_file", type, broken},
        {"POST", "/v1/document", type, file},       {"POST", "/v1/document", type, found},
        {"POST", "/v1/document", type, broken},     {"GET", "/v1/settings", "text/plain", NULL},
        {"GET", "/v1/models", "text/plain", NULL},  {"GET", "/v1/openapi.json", "text/plain", NULL},
    };
    (void)state;
    dgm_server *s = scarce_server();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) scarce_try(s, &rows[i], is_answered);
    dgm_server_close(&s);
}

static bool is_refused(const dgm_request *q, bool failed)
{
    return q->status == (failed ? 500 : 413);
}

// A list that is too long: its lines are read, and counted, before it is refused.
static void test_no_memory_bulk(void **state)
{
    static const scarce_row row = {"POST", "/v1/bulk", "application/x-ndjson",
                                   "{\"q\":\"a\",\"id\":1}\n{\"q\":\"b\"}\n"};
    dgm_server_options o;
    (void)state;
    dgm_server_default(&o);
    o.reload_seconds = 0;
    o.batch_limit = 1;
    dgm_server *s = test_server(&o);
    scarce_try(s, &row, is_refused);
    dgm_server_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libre_translate),
        cmocka_unit_test(test_libre_query),
        cmocka_unit_test(test_libre_errors),
        cmocka_unit_test(test_libre_detect),
        cmocka_unit_test(test_libre_html),
        cmocka_unit_test(test_libre_files),
        cmocka_unit_test(test_libre_lists),
        cmocka_unit_test(test_v1_translate),
        cmocka_unit_test(test_v1_demands),
        cmocka_unit_test(test_v1_document_terms),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_v1_errors),
        cmocka_unit_test(test_v1_lists),
        cmocka_unit_test(test_v1_stream),
        cmocka_unit_test(test_v1_bulk),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_api_keys),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_client),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_memory_bulk),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
