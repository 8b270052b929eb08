// SPDX-License-Identifier: MIT
// DeepL's API without sockets: texts, languages, quotas, documents, glossaries; answers to the byte where they have no
// names that are made up.
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
#include "scratch.h"
#include "server/glossary_store.h"
#include "server/usage.h"
#include "server_scarce.h"

static void translate(const char *body, int status, const char *answer)
{
    test_expect(server, "POST", "/v2/translate", JSON_TYPE, body, status, answer);
}

#define ONE(lang, text) "{\"translations\":[{\"detected_source_language\":\"" lang "\",\"text\":\"" text "\"}]}\n"

static void test_translate(void **state)
{
    (void)state;
    translate("{\"text\":[\"Good morning.\"],\"target_lang\":\"DE\"}", 200, ONE("EN", "Guten Morgen!"));
    translate("{\"text\":\"Good morning.\",\"source_lang\":\"EN\",\"target_lang\":\"de\"}", 200,
              ONE("EN", "Guten Morgen!"));
    // Each text in its own language; what is in the target's already stays.
    translate("{\"text\":[\"Good morning, how are you?\",\"Das Haus ist groß.\"],\"target_lang\":\"EN-US\","
              "\"show_billed_characters\":true,\"model_type\":\"quality_optimized\"}",
              200,
              "{\"translations\":[{\"detected_source_language\":\"EN\",\"text\":\"Good morning, how are you?\","
              "\"billed_characters\":26,\"model_type_used\":\"quality_optimized\"},"
              "{\"detected_source_language\":\"DE\","
              "\"text\":\"The house is big.\",\"billed_characters\":18,\"model_type_used\":\"quality_optimized\"}]}\n");
    test_expect(server, "POST", "/v2/translate", FORM_TYPE,
                "auth_key=x&text=Good+morning.&text=The+house+is+big.&source_lang=EN&target_lang=DE"
                "&formality=prefer_less"
                "&preserve_formatting=1&show_billed_characters=0&context=x&tag_handling_version=v2",
                200,
                "{\"translations\":[{\"detected_source_language\":\"EN\",\"text\":\"Guten Morgen!\"},"
                "{\"detected_source_language\":\"EN\",\"text\":\"Das Haus ist groß.\"}]}\n");
    translate("{\"text\":[\"\"],\"source_lang\":\"EN\",\"target_lang\":\"DE\",\"unknown\":1}", 200, ONE("EN", ""));
}

static void test_sentences(void **state)
{
    (void)state;
    translate("{\"text\":[\"Good\\nmorning.\\n\"],\"source_lang\":\"EN\",\"target_lang\":\"DE\",\"split_sentences\":"
              "\"nonewlines\"}",
              200, ONE("EN", "Guten Morgen!\\n"));
    translate("{\"text\":[\"The house is\\nbig.\"],\"source_lang\":\"EN\",\"target_lang\":\"DE\",\"split_sentences\":"
              "0}",
              200, ONE("EN", "Das Haus ist groß."));
    translate("{\"text\":[\"Good morning.\\nThe house is big.\"],\"source_lang\":\"EN\",\"target_lang\":\"DE\","
              "\"split_sentences\":\"1\"}",
              200, ONE("EN", "Guten Morgen!\\nDas Haus ist groß."));
}

static void test_tags(void **state)
{
    (void)state;
    translate("{\"text\":[\"<p>The <b>house</b> is big.</p><p>Good morning.</p>\"],\"target_lang\":\"DE\","
              "\"tag_handling\":\"html\"}",
              200, ONE("EN", "<p>Das <b>Haus</b> ist groß.</p><p>Guten Morgen!</p>"));
    translate("{\"text\":[\"<a><b>The <i>house</i> is big.</b><k>The house</k></a>\"],\"source_lang\":\"EN\","
              "\"target_lang\":\"DE\",\"tag_handling\":\"xml\",\"ignore_tags\":[\"k\"]}",
              200, ONE("EN", "<a><b>Das <i>Haus</i> ist groß.</b><k>The house</k></a>"));
    translate("{\"text\":[\"<t>Good morning.</t><p>The house is big.</p>\"],\"source_lang\":\"EN\",\"target_lang\":"
              "\"DE\",\"tag_handling\":\"xml\",\"outline_detection\":false,\"splitting_tags\":\"t,p\"}",
              200, ONE("EN", "<t>Guten Morgen!</t><p>Das Haus ist groß.</p>"));
    translate("{\"text\":[\"<p>x\"],\"source_lang\":\"EN\",\"target_lang\":\"DE\",\"tag_handling\":\"xml\"}", 400,
              "{\"message\":\"Tag handling parsing failed, please check input. line 1: <p> is not closed\"}\n");
}

static void test_errors(void **state)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {"{}", "Parameter 'text' not specified."},
        {"{\"text\":\"a\"}", "Parameter 'target_lang' not specified."},
        {"{\"text\":[],\"target_lang\":\"DE\"}", "Value for 'text' not supported."},
        {"{\"text\":[1],\"target_lang\":\"DE\"}", "Value for 'text' not supported."},
        {"{\"text\":\"a\",\"target_lang\":\"XX\"}", "Value for 'target_lang' not supported."},
        {"{\"text\":\"a\",\"target_lang\":\"DE\",\"source_lang\":\"XX\"}", "Value for 'source_lang' not supported."},
        {"{\"text\":\"a\",\"target_lang\":\"DE\",\"formality\":\"more\"}",
         "'formality' is not supported for given 'target_lang'."},
        {"{\"text\":\"a\",\"target_lang\":\"DE\",\"formality\":\"rude\"}", "Value for 'formality' not supported."},
        {"{\"text\":\"a\",\"target_lang\":\"DE\",\"split_sentences\":\"2\"}",
         "Value for 'split_sentences' not supported."},
        {"{\"text\":\"a\",\"target_lang\":\"DE\",\"tag_handling\":\"pdf\"}", "Value for 'tag_handling' not supported."},
        {"{\"text\":\"a\",\"target_lang\":\"DE\",\"style_id\":\"x\"}", "'style_id' is not supported by this server."},
        {"{\"text\":\"a\",\"target_lang\":\"DE\",\"glossary_id\":\"x\"}",
         "Use of a glossary requires the source_lang parameter to be specified"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char answer[200];
        snprintf(answer, sizeof answer, "{\"message\":\"%s\"}\n", rows[i].message);
        translate(rows[i].body, 400, answer);
    }
    translate("{\"text\":\"a\",\"target_lang\":\"DE\",\"source_lang\":\"EN\",\"glossary_id\":\"x\"}", 404,
              "{\"message\":\"Glossary not found...");
    translate("{", 400, "{\"message\":...");
    test_expect(server, "POST", "/v2/write/rephrase", JSON_TYPE, "{}", 404, "{\"message\":...");
    test_expect(server, "PUT", "/v2/translate", JSON_TYPE, "{}", 405, "{\"message\":...");
    test_expect(server, "DELETE", "/v2/glossaries/x/entries", NULL, NULL, 405, "{\"message\":...");
}

static void test_languages(void **state)
{
    (void)state;
    test_expect(server, "GET", "/v2/languages", NULL, NULL, 200,
                "[{\"language\":\"DE\",\"name\":\"German\"},{\"language\":\"EN\",\"name\":\"English\"}]\n");
    // As the client sends it: the form of a GET.
    test_expect(server, "GET", "/v2/languages", FORM_TYPE, "type=target", 200,
                "[{\"language\":\"DE\",\"name\":\"German\",\"supports_formality\":false},"
                "{\"language\":\"EN-GB\",\"name\":\"English (British)\",\"supports_formality\":false},"
                "{\"language\":\"EN-US\",\"name\":\"English (American)\",\"supports_formality\":false}]\n");
    test_expect(server, "POST", "/v2/languages", FORM_TYPE, "type=both", 400, "{\"message\":\"Parameter 'type'...");
    test_expect(server, "GET", "/v2/glossary-language-pairs", NULL, NULL, 200,
                "{\"supported_languages\":[{\"source_lang\":\"de\",\"target_lang\":\"en\"},"
                "{\"source_lang\":\"en\",\"target_lang\":\"de\"}]}\n");
}

// ---- keys and quotas --------------------------------------------------------------------------------

static void ask_with(dgm_server *s, const char *method, const char *path, const char *key, const char *type,
                     const char *body, int status, const char *answer)
{
    char header[100];
    dgm_request *q = test_request(s, method, path, type, body);
    snprintf(header, sizeof header, "DeepL-Auth-Key %s", key);
    if (key) dgm_field_add(q, &q->headers, "Authorization", header, strlen(header));
    test_ask(q);
    if (q->status != status || !strstr(test_body(q), answer))
        fail_msg("%s %s: %d %s, expected %d %s", method, path, q->status, test_body(q), status, answer);
    dgm_request_free(q);
}

static void test_quota(void **state)
{
    static const char morning[] = "{\"text\":[\"Good morning.\"],\"source_lang\":\"EN\",\"target_lang\":\"DE\"}";
    static const char libre[] = "{\"q\":\"Good morning.\",\"source\":\"en\",\"target\":\"de\",\"api_key\":\"poor\"}";
    dgm_server_options o;
    (void)state;
    dgm_server_default(&o);
    o.api_keys = put_text("keys", "rich name=a\npoor char_quota=30 # characters\nslow req_limit=1\n");
    o.require_api_key = 1;
    dgm_server *s = test_server(&o);
    ask_with(s, "POST", "/v2/translate", NULL, JSON_TYPE, morning, 403, "message");
    ask_with(s, "POST", "/v2/translate", "wrong", JSON_TYPE, morning, 403, "Invalid API key");
    ask_with(s, "POST", "/v2/translate", NULL, FORM_TYPE,
             "auth_key=rich&text=Good+morning.&source_lang=EN&target_lang=DE", 200, "Guten Morgen!");
    ask_with(s, "GET", "/v2/usage", "rich", NULL, NULL, 200,
             "{\"character_count\":13,\"character_limit\":1000000000000}");
    ask_with(s, "POST", "/v2/translate", "poor", JSON_TYPE, morning, 200, "Guten Morgen!");
    ask_with(s, "POST", "/v2/translate", "poor", JSON_TYPE, "{\"text\":\"abc\",\"target_lang\":\"XX\"}", 400,
             "message");
    test_expect(s, "POST", "/translate", JSON_TYPE, libre, 200, "{\"translatedText\":\"Guten Morgen!\"}\n");
    ask_with(s, "GET", "/v2/usage", "poor", NULL, NULL, 200, "{\"character_count\":26,\"character_limit\":30}");
    ask_with(s, "POST", "/v2/translate", "poor", JSON_TYPE, morning, 456,
             "{\"message\":\"Quota for this billing period has been exceeded.\"}");
    test_expect(s, "POST", "/translate", JSON_TYPE, libre, 429, "{\"error\":\"The key's quota of 30...");
    ask_with(s, "POST", "/v2/translate", "slow", JSON_TYPE, morning, 200, "Guten Morgen!");
    ask_with(s, "POST", "/v2/translate", "slow", JSON_TYPE, morning, 429, "Slowdown");
    dgm_server_close(&s);
}

static void test_usage(void **state)
{
    dgm_usage *u = NULL;
    dgm_error err;
    (void)state;
    const int month = dgm_usage_month();
    assert_int_equal(dgm_usage_open(&u, &err), DGM_OK);
    assert_true(dgm_usage_take(u, "a", 5, 8, month));
    assert_false(dgm_usage_take(u, "a", 4, 8, month));
    assert_true(dgm_usage_take(u, "a", 3, 8, month));
    assert_int_equal(dgm_usage_count(u, "a"), 8);
    dgm_usage_give(u, "a", 3);
    assert_int_equal(dgm_usage_count(u, "a"), 5);
    assert_true(dgm_usage_take(u, "a", 8, 8, month + 1)); // a new month begins at 0
    assert_false(dgm_usage_take(u, "a", 1, 8, month + 1));
    assert_int_equal(dgm_usage_count(u, "b"), 0);
    dgm_usage_close(&u);
}

// ---- documents --------------------------------------------------------------------------------------

#define PART(name, value) "--B\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"
#define FILE_PART(file, data)                                                                                          \
    "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" file "\"\r\n\r\n" data "\r\n"
#define LAST "--B--\r\n"

static const char multipart[] = "multipart/form-data; boundary=B";

static json_t *ask_json(dgm_server *s, const char *method, const char *path, const char *type, const char *body,
                        int status)
{
    dgm_error err;
    json_t *answer = NULL;
    dgm_request *q = test_request(s, method, path, type, body);
    test_ask(q);
    if (q->status != status) fail_msg("%s: %d, expected %d: %s", path, q->status, status, test_body(q));
    if (dgm_json_parse(&answer, test_body(q), strlen(test_body(q)), &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_request_free(q);
    return answer;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void test_documents(void **state)
{
    char path[200], result[220], key[200];
    (void)state;
    json_t *a = ask_json(server, "POST", "/v2/document", multipart,
                         FILE_PART("a.md", "# The **house** is big.\n") PART("target_lang", "DE") LAST, 200);
    snprintf(path, sizeof path, "/v2/document/%s", text_of(a, "document_id"));
    snprintf(result, sizeof result, "%s/result", path);
    snprintf(key, sizeof key, "{\"document_key\":\"%s\"}", text_of(a, "document_key"));
    json_decref(a);
    test_expect(server, "POST", path, JSON_TYPE, "{\"document_key\":\"x\"}", 404, "{\"message\":\"Not found\"}\n");
    test_expect(server, "POST", path, JSON_TYPE, "{}", 400, "{\"message\":\"Parameter 'document_key'...");
    for (int i = 0;; i++) {
        a = ask_json(server, "POST", path, JSON_TYPE, key, 200);
        const bool done = strcmp(text_of(a, "status"), "done") == 0;
        if (done) assert_int_equal(json_integer_value(json_object_get(a, "billed_characters")), 17);
        json_decref(a);
        if (done) break;
        assert_true(i < 10000);
        usleep(10000);
    }
    dgm_request *q = test_request(server, "HEAD", result, JSON_TYPE, key); // looks, and takes nothing
    test_ask(q);
    assert_int_equal(q->status, 200);
    dgm_request_free(q);
    test_expect(server, "POST", result, JSON_TYPE, key, 200, "# Das **Haus** ist groß.\n");
    test_expect(server, "POST", result, JSON_TYPE, key, 404, "{\"message\":\"Not found\"}\n");
    test_expect(server, "POST", path, JSON_TYPE, key, 404, "{\"message\":\"Not found\"}\n");
    static const struct {
        const char *body, *message;
    } bad[] = {
        {PART("target_lang", "DE") LAST, "Invalid file data."},
        {FILE_PART("a.txt", "x") LAST, "Parameter 'target_lang' not specified."},
        {FILE_PART("a.txt", "x") PART("target_lang", "XX") LAST, "Value for 'target_lang' not supported."},
        {FILE_PART("a.txt", "x") PART("target_lang", "DE") PART("output_format", "pdf") LAST,
         "Value for 'output_format' not supported."},
        {FILE_PART("a.txt", "x") PART("target_lang", "DE") PART("formality", "less") LAST,
         "'formality' is not supported for given 'target_lang'."},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char answer[200];
        snprintf(answer, sizeof answer, "{\"message\":\"%s\"}\n", bad[i].message);
        test_expect(server, "POST", "/v2/document", multipart, bad[i].body, 400, answer);
    }
    test_expect(server, "POST", "/v2/document", multipart,
                FILE_PART("a.docx", "x") PART("source_lang", "EN") PART("target_lang", "DE") LAST, 400,
                "{\"message\":...");
}

// An answer that has begun as events says it as one.
static void quota_as_event(dgm_server *s)
{
    dgm_request *q = test_request(s, "POST", "/v1/document", multipart,
                                  FILE_PART("a.txt", "Good morning.\n") PART("source", "en") PART("target", "de") LAST);
    dgm_field_add(q, &q->headers, "Authorization", "Bearer poor", 11);
    dgm_field_add(q, &q->headers, "Accept", "text/event-stream", 17);
    test_ask(q);
    assert_non_null(strstr(test_body(q), "event: error"));
    assert_non_null(strstr(test_body(q), "quota of 5 characters"));
    dgm_request_free(q);
}

// A server that ends while documents are being translated, and one whose key cannot pay for them.
static void test_documents_end(void **state)
{
    dgm_server_options o;
    (void)state;
    dgm_server_default(&o);
    o.api_keys = put_text("keys", "poor char_quota=5\n");
    dgm_server *s = test_server(&o);
    ask_with(s, "POST", "/v2/document", "poor", multipart,
             FILE_PART("a.txt", "Good morning.\n") PART("source_lang", "EN") PART("target_lang", "DE") LAST, 456,
             "Quota");
    ask_with(s, "GET", "/v2/usage", "poor", NULL, NULL, 200, "{\"character_count\":0,");
    quota_as_event(s);
    dgm_writer w = {0};
    dgm_write_text(&w, "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n");
    for (int i = 0; i < 2000; i++) dgm_write_format(&w, "House number %d is big and the garden is beautiful.\n", i);
    dgm_write_text(&w, "\r\n" PART("source_lang", "EN") PART("target_lang", "DE") LAST);
    dgm_write_u8(&w, 0);
    for (int i = 0; i < 2; i++)
        ask_with(s, "POST", "/v2/document", NULL, multipart, (const char *)w.data, 200, "document_id");
    dgm_writer_free(&w);
    dgm_server_close(&s);
}

// ---- glossaries -------------------------------------------------------------------------------------

static void test_glossaries(void **state)
{
    char path[200], entries[220], body[300];
    (void)state;
    json_t *a = ask_json(server, "POST", "/v2/glossaries", JSON_TYPE,
                         "{\"name\":\"mine\",\"source_lang\":\"EN\",\"target_lang\":\"DE\",\"entries\":"
                         "\"house\\tGebäude\\nlittle dog\\tHündchen\",\"entries_format\":\"tsv\"}",
                         201);
    const char *id = text_of(a, "glossary_id");
    assert_int_equal(strlen(id), 36);
    assert_int_equal(json_integer_value(json_object_get(a, "entry_count")), 2);
    assert_string_equal(text_of(a, "source_lang"), "en");
    assert_int_equal(strlen(text_of(a, "creation_time")), 24);
    snprintf(path, sizeof path, "/v2/glossaries/%s", id);
    snprintf(entries, sizeof entries, "%s/entries", path);
    snprintf(body, sizeof body,
             "{\"text\":[\"The house is big.\"],\"source_lang\":\"EN\",\"target_lang\":\"DE\",\"glossary_id\":\"%s\"}",
             id);
    json_decref(a);
    translate(body, 200, ONE("EN", "Das Gebäude ist groß."));
    test_expect(server, "GET", entries, NULL, NULL, 200, "house\tGebäude\nlittle dog\tHündchen");
    a = ask_json(server, "GET", "/v2/glossaries", NULL, NULL, 200);
    assert_int_equal(json_array_size(json_object_get(a, "glossaries")), 1);
    json_decref(a);
    test_expect(server, "GET", path, NULL, NULL, 200, "{\"glossary_id\":...");
    test_expect(server, "DELETE", path, NULL, NULL, 204, "");
    test_expect(server, "DELETE", path, NULL, NULL, 404, "{\"message\":\"Not found\"}\n");
    test_expect(server, "GET", path, NULL, NULL, 404, "{\"message\":\"Not found\"}\n");
    test_expect(server, "GET", entries, NULL, NULL, 404, "{\"message\":\"Not found\"}\n");
    translate(body, 404, "{\"message\":...");
}

static void test_glossary_errors(void **state)
{
    static const struct {
        const char *body;
        const char *message;
    } rows[] = {
        {"source_lang=EN&target_lang=DE&entries=a%09b", "Parameter 'name' not specified."},
        {"name=&source_lang=EN&target_lang=DE&entries=a%09b", "Value for 'name' not supported."},
        {"name=x&source_lang=EN&target_lang=EN&entries=a%09b", "Unsupported glossary source and target language pair"},
        {"name=x&source_lang=EN&target_lang=XX&entries=a%09b", "Unsupported glossary source and target language pair"},
        {"name=x&source_lang=EN&target_lang=DE&entries=a%09b&entries_format=xls",
         "Value for 'entries_format' not supported."},
        {"name=x&source_lang=EN&target_lang=DE&entries=ab",
         "Invalid glossary entries provided: entry 1 has no separator"},
        {"name=x&source_lang=EN&target_lang=DE&entries=a%09b%09c",
         "Invalid glossary entries provided: entry 1 has more than one separator"},
        {"name=x&source_lang=EN&target_lang=DE&entries=a%09b%0aa%09c",
         "Invalid glossary entries provided: entry 2: its source came before"},
        {"name=x&source_lang=EN&target_lang=DE&entries=%0a", "Invalid glossary entries provided: there are no entries"},
        {"name=x&source_lang=EN&target_lang=DE&entries=%22a,b&entries_format=csv",
         "Invalid glossary entries provided: entry 1: a quote is never closed"},
        {"name=x&source_lang=EN&target_lang=DE&entries=a,&entries_format=csv",
         "Invalid glossary entries provided: entry 1: a term is empty"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char answer[200];
        snprintf(answer, sizeof answer, "{\"message\":\"%s\"}\n", rows[i].message);
        test_expect(server, "POST", "/v2/glossaries", FORM_TYPE, rows[i].body, 400, answer);
    }
    test_expect(server, "POST", "/v3/glossaries", JSON_TYPE, "{\"name\":\"x\",\"dictionaries\":[]}", 400,
                "{\"message\":\"Value for 'dictionaries' not supported.\"}\n");
}

static void test_glossaries_v3(void **state)
{
    char path[200], more[300];
    (void)state;
    json_t *a = ask_json(server, "POST", "/v3/glossaries", JSON_TYPE,
                         "{\"name\":\"two\",\"dictionaries\":[{\"source_lang\":\"en\","
                         "\"target_lang\":\"de\",\"entries\":"
                         "\"house\\tHütte\",\"entries_format\":\"tsv\"},{\"source_lang\":\"de\",\"target_lang\":\"en\","
                         "\"entries\":\"Haus,hut\",\"entries_format\":\"csv\"}]}",
                         201);
    snprintf(path, sizeof path, "/v3/glossaries/%s", text_of(a, "glossary_id"));
    json_decref(a);
    a = ask_json(server, "PATCH", path, JSON_TYPE,
                 "{\"name\":\"three\",\"dictionaries\":[{\"source_lang\":\"en\",\"target_lang\":\"de\",\"entries\":"
                 "\"house\\tHaus\\ndog\\tKöter\",\"entries_format\":\"tsv\"}]}",
                 200);
    assert_string_equal(text_of(a, "name"), "three");
    assert_int_equal(json_array_size(json_object_get(a, "dictionaries")), 2);
    json_decref(a);
    dgm_request *q = test_request(server, "GET", path, NULL, NULL);
    snprintf(more, sizeof more, "%s/entries", path);
    q->path = more;
    dgm_field_add(q, &q->query, "source_lang", "EN", 2);
    dgm_field_add(q, &q->query, "target_lang", "DE", 2);
    test_ask(q);
    assert_string_equal(test_body(q), "{\"dictionaries\":[{\"source_lang\":\"en\",\"target_lang\":\"de\",\"entries\":"
                                      "\"house\\tHaus\\ndog\\tKöter\",\"entries_format\":\"tsv\"}]}\n");
    dgm_request_free(q);
    snprintf(more, sizeof more, "%s/dictionaries", path);
    test_expect(server, "PUT", more, JSON_TYPE,
                "{\"source_lang\":\"en\",\"target_lang\":\"de\",\"entries\":\"cat\\tKater\","
                "\"entries_format\":\"tsv\"}",
                200,
                "{\"source_lang\":\"en\",\"target_lang\":\"de\",\"entry_count\":1}\n");
    q = test_request(server, "DELETE", more, NULL, NULL);
    dgm_field_add(q, &q->query, "source_lang", "de", 2);
    dgm_field_add(q, &q->query, "target_lang", "en", 2);
    test_ask(q);
    assert_int_equal(q->status, 204);
    dgm_request_free(q);
    a = ask_json(server, "GET", "/v2/glossaries", NULL, NULL, 200); // one direction is left
    assert_int_equal(json_array_size(json_object_get(a, "glossaries")), 1);
    json_decref(a);
    test_expect(server, "DELETE", path, NULL, NULL, 204, "");
    test_expect(server, "PATCH", path, JSON_TYPE, "{\"name\":\"x\"}", 404, "{\"message\":\"Not found\"}\n");
}

// The limit of all glossaries counts memory, not letters.
static void test_glossary_bytes(void **state)
{
    enum { TERMS = 4097 }; // of arrays that grow by doubling, half is empty
    dgm_dictionary d = {.source = ""};
    dgm_error err;
    (void)state;
    for (int i = 0; i < TERMS; i++) {
        char source[8];
        snprintf(source, sizeof source, "%x", (unsigned)i);
        assert_int_equal(dgm_dictionary_put(&d, dgm_text_of(source), "b", &err), DGM_OK);
    }
    const dgm_words *w = &d.sources;
    void *const blocks[] = {d.targets, w->bytes, w->at, w->hash, w->slot};
    size_t used = 0;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) used += malloc_usable_size(blocks[i]);
    for (int i = 0; i < TERMS; i++) used += malloc_usable_size(d.targets[i]) + sizeof(size_t);
    if (d.bytes < used || d.bytes > 4 * used) fail_msg("%zu bytes are said to be %zu", used, d.bytes);
    const size_t full = d.bytes;
    assert_int_equal(dgm_dictionary_put(&d, dgm_text_of("0"), "cc", &err), DGM_OK); // another target
    dgm_dictionary zero = {.source = ""}; // a term that ends early would be another one
    for (int csv = 0; csv < 2; csv++)
        assert_int_equal(dgm_dictionary_read(&zero, csv ? "a,b\0c" : "a\tb\0c", 5, csv, &err), DGM_ERR_FORMAT);
    dgm_dictionary_free(&zero);
    assert_int_equal(d.bytes, full + 2); // a letter more, and one in the book
    dgm_dictionary_free(&d);
}

static bool is_answered(const dgm_request *q, bool failed)
{
    const bool form = strncmp(dgm_request_header(q, "Content-Type"), "multi", 5) == 0;
    if (!failed) return q->status == 400 || q->status == 413;
    return q->status == 500 || (form && q->status == 400); // whose reader says that it ends early
}

// Allocations that fail while a request is read and answered: an answer all the same, and nothing is lost.
static void test_no_memory(void **state)
{
    static const scarce_row made = {"POST", "/v2/glossaries", FORM_TYPE,
                                    "name=x&source_lang=EN&target_lang=DE&entries=a%09b%0ac%09d"};
    static const scarce_row rows[] = {
        {"POST", "/v2/translate", JSON_TYPE,
         "{\"text\":[\"a\",\"b\"],\"target_lang\":\"XX\",\"ignore_tags\":[\"a\",\"b\"],\"split_sentences\":\"0\"}"},
        {"POST", "/v2/glossaries", FORM_TYPE, "name=x&source_lang=EN&target_lang=DE&entries=a%09b%0ac%09d%0aa%09b"},
        {"POST", "/v3/glossaries", JSON_TYPE,
         "{\"name\":\"x\",\"dictionaries\":[{\"source_lang\":\"en\",\"target_lang\":\"de\",\"entries\":\"\\\"a\"}]}"},
        {"POST", "/v2/document", "multipart/form-data; boundary=B",
         FILE_PART("a.txt", "x") PART("target_lang", "XX") LAST},
    };
    char body[200];
    bool failed;
    (void)state;
    dgm_server *s = scarce_server();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) scarce_try(s, &rows[i], is_answered);
    // With a glossary, and refused behind it: there are too many characters.
    dgm_request *q = scarce_ask(s, &made, 0, &failed);
    const char *id = strstr((const char *)q->out.data, "\"glossary_id\":\"");
    assert_non_null(id);
    snprintf(body, sizeof body, "text=ab&source_lang=EN&target_lang=DE&glossary_id=%.36s", id + 15);
    dgm_request_free(q);
    s->options.char_limit = 1;
    scarce_try(s, &(scarce_row){"POST", "/v2/translate", FORM_TYPE, body}, is_answered);
    dgm_server_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_translate),       cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_tags),            cmocka_unit_test(test_errors),
        cmocka_unit_test(test_languages),       cmocka_unit_test(test_quota),
        cmocka_unit_test(test_usage),           cmocka_unit_test(test_documents),
        cmocka_unit_test(test_documents_end),   cmocka_unit_test(test_glossaries),
        cmocka_unit_test(test_glossary_errors), cmocka_unit_test(test_glossaries_v3),
        cmocka_unit_test(test_glossary_bytes),  cmocka_unit_test(test_no_memory),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, open_server, close_server));
}
