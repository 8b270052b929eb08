// SPDX-License-Identifier: MIT
// Shapes of JSON values as requests are checked by them, and the OpenAPI document that is made of them: every route
// is in it, every reference leads somewhere, and answers of the server look as it says.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/api_table.h"
#include "server/shape.h"
#include "server_test.h"

// ---- shapes -----------------------------------------------------------------------------------------

static json_t *value_of(const char *text)
{
    char all[256];
    json_t *list = NULL;
    dgm_error err;
    snprintf(all, sizeof all, "[%s]", text);
    if (dgm_json_parse(&list, all, strlen(all), &err) != DGM_OK) fail_msg("%s: %s", text, err.text);
    return list;
}

static void test_fits(void **state)
{
    static const struct {
        const char *shape, *yes, *no;
    } rows[] = {
        {"string", "\"\",\"a\"", "1,null,true,[],{}"},
        {"string+", "\"a\"", "\"\",1"},
        {"integer", "1,-1,2.0", "1.5,\"1\",true"},
        {"integer(0,63)", "0,63", "-1,64,null"},
        {"number(0,1)", "0,0.5,1", "1.1,\"0\""},
        {"boolean", "true,false", "0,null,\"true\""},
        {"any", "1,null,\"a\",{},[]", ""},
        {"'text'|'html'", "\"text\",\"html\"", "\"tex\",\"texts\",\"\",1"},
        {"string|[string]|null", "\"a\",[\"a\"],[],null", "1,[1],{}"},
        {"[string;1,2]", "[\"a\"],[\"a\",\"b\"]", "[],[\"a\",\"b\",\"c\"],[1]"},
        {"[string|null;0,1]", "[],[null]", "[1],[null,null]"},
        {"{a:string,b?:integer|null}", "{\"a\":\"\"},{\"a\":\"\",\"b\":null,\"c\":1}",
         "{},{\"a\":1},{\"a\":\"\",\"b\":\"\"},[]"},
        {"{a:{b:[integer]}}", "{\"a\":{\"b\":[1]}}", "{\"a\":{}},{\"a\":{\"b\":[\"\"]}}"},
        {"{*:any}", "{},{\"a\":1}", "[],1"},
        {"[#Direction]", "[{\"source_lang\":\"a\",\"target_lang\":\"b\",\"entry_count\":1}]", "[{}],[1]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *yes = value_of(rows[i].yes), *no = value_of(rows[i].no);
        for (size_t k = 0; k < json_array_size(yes); k++)
            if (!dgm_shape_fits(rows[i].shape, json_array_get(yes, k))) fail_msg("%s: yes %d", rows[i].shape, (int)k);
        for (size_t k = 0; k < json_array_size(no); k++)
            if (dgm_shape_fits(rows[i].shape, json_array_get(no, k))) fail_msg("%s: no %d", rows[i].shape, (int)k);
        json_decref(yes);
        json_decref(no);
    }
}

static void test_schema(void **state)
{
    static const struct {
        const char *shape, *schema;
    } rows[] = {
        {"string+", "{\"type\":\"string\",\"minLength\":1}"},
        {"integer(0,63)", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":63}"},
        {"'a'|'b'", "{\"enum\":[\"a\",\"b\"]}"},
        {"'a'|null", "{\"anyOf\":[{\"enum\":[\"a\"]},{\"type\":\"null\"}]}"},
        {"[string;1,2]", "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"maxItems\":2}"},
        {"{a:#B,c?:any}",
         "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/components/schemas/B\"},\"c\":{}},"
         "\"required\":[\"a\"]}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dgm_json_out j = {0};
        dgm_shape_put(&j, NULL, rows[i].shape);
        dgm_write_u8(&j.w, 0);
        assert_string_equal((const char *)j.w.data, rows[i].schema);
        dgm_writer_free(&j.w);
    }
}

// ---- tables -----------------------------------------------------------------------------------------

// Every row has its route, every route its row.
static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; dgm_route_at(i); i++) {
        const dgm_route *r = dgm_route_at(i);
        const dgm_api_row *row = dgm_api_row_of(r);
        if (!row) fail_msg("%s %s has no row", r->method, r->pattern);
        if ((strchr(row->pattern, '*') != NULL) != (row->path != NULL)) fail_msg("%s: its path", r->pattern);
    }
    for (size_t i = 0; dgm_api_row_at(i); i++) {
        bool found = false;
        for (size_t k = 0; dgm_route_at(k); k++) found = found || dgm_api_row_of(dgm_route_at(k)) == dgm_api_row_at(i);
        if (!found) fail_msg("%s %s has no route", dgm_api_row_at(i)->method, dgm_api_row_at(i)->pattern);
    }
}

// ---- the document -----------------------------------------------------------------------------------

static json_t *ask(dgm_server *s, const char *method, const char *path, const char *body)
{
    dgm_error err;
    json_t *answer = NULL;
    dgm_request *q = test_request(s, method, path, body ? JSON_TYPE : NULL, body);
    test_ask(q);
    if (q->status != 200) fail_msg("%s: %d %s", path, q->status, test_body(q));
    if (dgm_json_parse(&answer, test_body(q), strlen(test_body(q)), &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_request_free(q);
    return answer;
}

static void check_references(const json_t *value, const json_t *schemas)
{
    const char *key;
    json_t *v;
    for (size_t i = 0; i < json_array_size(value); i++) check_references(json_array_get(value, i), schemas);
    json_object_foreach((json_t *)(uintptr_t)value, key, v)
    {
        const char *name = strcmp(key, "$ref") == 0 ? strrchr(json_string_value(v), '/') + 1 : NULL;
        if (name && !json_object_get(schemas, name)) fail_msg("there is no %s", name);
        check_references(v, schemas);
    }
}

static void test_document(void **state)
{
    dgm_server *s = *state;
    json_t *d = ask(s, "GET", "/v1/openapi.json", NULL);
    const json_t *paths = json_object_get(d, "paths"), *parts = json_object_get(d, "components");
    assert_string_equal(json_string_value(json_object_get(d, "openapi")), "3.1.0");
    check_references(d, json_object_get(parts, "schemas"));
    size_t operations = 0, routes = 0;
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)paths, key, v) operations += json_object_size(v);
    for (size_t i = 0; dgm_route_at(i); i++) routes += dgm_server_offers(s, dgm_route_at(i));
    assert_int_equal(operations, routes);
    assert_null(json_object_get(paths, "/metrics")); // not with these options
    const json_t *one = json_object_get(json_object_get(paths, "/v2/document/{document_id}/result"), "post");
    assert_string_equal(json_string_value(json_object_get(one, "operationId")), "post_v2_document___result");
    json_decref(d);
}

// Answers look as the table says.
static void test_answers(void **state)
{
    static const struct {
        const char *method, *path, *body;
    } rows[] = {
        {"GET", "/languages", NULL},
        {"GET", "/frontend/settings", NULL},
        {"GET", "/health", NULL},
        {"GET", "/spec", NULL},
        {"GET", "/v1/languages", NULL},
        {"GET", "/v1/models", NULL},
        {"GET", "/v1/settings", NULL},
        {"GET", "/v1/stats", NULL},
        {"GET", "/v1/openapi.json", NULL},
        {"GET", "/v2/languages", NULL},
        {"GET", "/v2/usage", NULL},
        {"GET", "/v2/glossaries", NULL},
        {"GET", "/v3/glossaries", NULL},
        {"GET", "/v2/glossary-language-pairs", NULL},
        {"POST", "/translate", "{\"q\":[\"Gut.\"],\"source\":\"auto\",\"target\":\"en\",\"alternatives\":2}"},
        {"POST", "/translate", "{\"q\":\"Gut.\",\"source\":\"de\",\"target\":\"en\",\"alternatives\":2}"},
        {"POST", "/detect", "{\"q\":\"Guten Morgen\"}"},
        {"POST", "/v1/detect", "{\"q\":\"Guten Morgen\"}"},
        {"POST", "/v1/translate",
         "{\"q\":\"Good morning.\",\"alternatives\":1,\"alignment\":true,\"word_scores\":true}"},
        {"POST", "/v1/translate", "{\"q\":\"<b>Good</b>\",\"format\":\"html\"}"},
        {"POST", "/v2/translate", "{\"text\":\"Good morning.\",\"target_lang\":\"DE\",\"show_billed_characters\":1}"},
    };
    dgm_server *s = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *answer = ask(s, rows[i].method, rows[i].path, rows[i].body);
        const dgm_route route = {.method = rows[i].method, .pattern = rows[i].path};
        if (!dgm_shape_fits(dgm_api_row_of(&route)->answer, answer)) fail_msg("%s: another shape", rows[i].path);
        json_decref(answer);
    }
}

// What a stream cannot do is said before it begins.
static void test_stream_refused(void **state)
{
    test_expect(*state, "POST", "/v1/translate", JSON_TYPE,
                "{\"q\":\"a\",\"source\":\"en\",\"stream\":true,\"settings\":{\"beam\":100000}}", 400,
                "{\"error\":\"...");
    test_expect(*state, "POST", "/v1/translate", JSON_TYPE,
                "{\"q\":\"a\",\"source\":\"en\",\"stream\":true,\"settings\":{\"threads\":1}}", 400,
                "{\"error\":\"...");
}

static int open_server(void **state)
{
    *state = test_server(NULL);
    return 0;
}

static int close_server(void **state)
{
    dgm_server_close((dgm_server **)state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),     cmocka_unit_test(test_schema),  cmocka_unit_test(test_rows),
        cmocka_unit_test(test_document), cmocka_unit_test(test_answers), cmocka_unit_test(test_stream_refused),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
