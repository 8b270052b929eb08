// SPDX-License-Identifier: MIT
// The pages of the server without sockets: headers, what is filled in, hostile text, browsers without scripts; and what
// they use of our API.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/sha256.h"
#include "server_scarce.h"

static dgm_request *ask(dgm_server *s, const char *method, const char *path, const char *body,
                        const char *header, const char *value)
{
    dgm_request *q = test_request(s, method, path, body ? FORM_TYPE : NULL, body);
    if (header) dgm_field_add(q, &q->headers, header, value, strlen(value));
    test_ask(q);
    return q;
}

static const char *answer_header(const dgm_request *q, const char *name)
{
    const char *value = dgm_fields_find(&q->answer_headers, name, NULL);
    return value ? value : "";
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part)) n++;
    return n;
}

static void has(const dgm_request *q, const char *part)
{
    if (!strstr(test_body(q), part)) fail_msg("%s %s: no '%s' in it", q->method, q->path, part);
}

// What stands between this and the next tag.
static void shows(const dgm_request *q, const char *open, const char *text)
{
    const char *p = strstr(test_body(q), open);
    if (!p) fail_msg("%s %s: no '%s'", q->method, q->path, open);
    p += strlen(open);
    const size_t n = strcspn(p, "<");
    if (n != strlen(text) || strncmp(p, text, n) != 0)
        fail_msg("'%s' has '%.*s', not '%s'", open, (int)n, p, text);
}

// ---- headers --------------------------------------------------------------------------------------

// Every script and style of the page is named in the policy, and nothing else is.
static void check_policy(const dgm_request *q, size_t scripts)
{
    const char *policy = answer_header(q, "Content-Security-Policy");
    const char *const tags[][2] = {{"<script>", "</script>"}, {"<style>", "</style>"}};
    size_t sums = 0;
    assert_int_equal(strncmp(policy, "default-src 'none'; script-src 'sha256-", 39), 0);
    for (int k = 0; k < 2; k++)
        for (const char *p = test_body(q); (p = strstr(p, tags[k][0])); sums++) {
            p += strlen(tags[k][0]);
            char sum[DGM_SHA256_BASE64 + 1];
            dgm_sha256_base64(p, (size_t)(strstr(p, tags[k][1]) - p), sum);
            if (!strstr(policy, sum)) fail_msg("%s: %s is not allowed", q->path, tags[k][0]);
        }
    assert_int_equal(sums, scripts + 1);
    assert_int_equal(count(policy, "sha256-"), sums);
    assert_int_equal(count(test_body(q), "<script"), scripts);
    assert_null(strstr(policy, "unsafe"));
    assert_string_equal(answer_header(q, "X-Content-Type-Options"), "nosniff");
    assert_string_equal(answer_header(q, "Referrer-Policy"), "no-referrer");
    assert_string_equal(q->type, "text/html; charset=utf-8");
}

static void test_headers(void **state)
{
    static const char *const paths[] = {"/", "/status"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        dgm_request *q = ask(server, "GET", paths[i], NULL, NULL, NULL);
        assert_int_equal(q->status, 200);
        check_policy(q, 2);
        assert_null(strstr(test_body(q), "{{"));
        assert_true(q->out.size > 10000 && q->out.size < 65536);
        dgm_request_free(q);
        q = ask(server, "HEAD", paths[i], NULL, NULL, NULL);
        assert_int_equal(q->status, 200);
        dgm_request_free(q);
    }
    test_expect(server, "DELETE", "/", NULL, NULL, 405, "<!doctype html>...");
}

static void test_known(void **state)
{
    (void)state;
    dgm_request *q = ask(server, "GET", "/", NULL, NULL, NULL);
    char tag[64], list[160];
    snprintf(tag, sizeof tag, "%s", answer_header(q, "ETag"));
    snprintf(list, sizeof list, "W/\"x\", %s", tag);
    assert_int_equal(tag[0], '"');
    assert_string_equal(answer_header(q, "Cache-Control"), "no-cache");
    dgm_request_free(q);
    const struct {
        const char *value;
        int status;
    } asked[] = {{tag, 304}, {list, 304}, {"*", 304}, {"\"other\"", 200}, {"", 200}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        q = ask(server, "GET", "/", NULL, "If-None-Match", asked[i].value);
        assert_int_equal(q->status, asked[i].status);
        assert_int_equal(q->out.size == 1, q->status == 304); // the NUL behind it
        assert_string_equal(answer_header(q, "ETag"), tag);
        dgm_request_free(q);
    }
    q = ask(server, "GET", "/status", NULL, NULL, NULL);
    assert_string_equal(answer_header(q, "Cache-Control"), "no-store");
    assert_string_equal(answer_header(q, "ETag"), "");
    dgm_request_free(q);
}

static void test_gzip(void **state)
{
    static const char *const refused[] = {"br",    "gzip;q=0", "deflate, gzip;q=0.0, br",
                                          "xgzip", "gzipped",  ""};
    (void)state;
    dgm_request *plain = ask(server, "GET", "/", NULL, "Accept-Encoding", "identity");
    dgm_request *q = ask(server, "GET", "/", NULL, "Accept-Encoding", "br;q=0.5, gzip;q=0.9");
    assert_string_equal(answer_header(q, "Content-Encoding"), "gzip");
    assert_string_equal(answer_header(q, "Vary"), "Accept-Encoding");
    assert_string_not_equal(answer_header(q, "ETag"), answer_header(plain, "ETag"));
    assert_true(q->out.size < 20480);
    unsigned char *out = malloc(plain->out.size);
    z_stream z = {.next_in = q->out.data,
                  .avail_in = (unsigned)q->out.size,
                  .next_out = out,
                  .avail_out = (unsigned)plain->out.size};
    assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, plain->out.size - 1);
    assert_memory_equal(out, plain->out.data, z.total_out);
    inflateEnd(&z);
    free(out);
    dgm_request_free(q);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        q = ask(server, "GET", "/", NULL, "Accept-Encoding", refused[i]);
        assert_string_equal(answer_header(q, "Content-Encoding"), "");
        dgm_request_free(q);
    }
    dgm_request_free(plain);
}

// ---- what is filled in ----------------------------------------------------------------------------

static void test_fields(void **state)
{
    (void)state;
    dgm_request *q = ask(server, "GET", "/", NULL, NULL, NULL);
    has(q, "data-base=\"\" data-limit=\"-1\" data-delay=\"500\" data-file-size=\"67108864\"");
    has(q, "<title>Dragoman</title>");
    has(q, "<option value=\"auto\" selected>Detect language</option>\n<option "
           "value=\"de\">German</option>\n");
    has(q, "<option value=\"de\" selected>German</option>\n<option "
           "value=\"en\">English</option>\n</select>");
    has(q, "<details id=\"access\" class=\"card\" hidden>");
    has(q, "<details id=\"files\" class=\"card\">");
    has(q, "accept=\".txt,");
    shows(q, "aria-live=\"polite\">", "");
    dgm_request_free(q);

    dgm_server_options o;
    dgm_server_default(&o);
    char keys[] = "/tmp/dgm_page_keys_XXXXXX";
    const int fd = mkstemp(keys);
    assert_int_equal(write(fd, "secret\n", 7), 7);
    close(fd);
    o.api_keys = keys;
    o.require_api_key = 1;
    o.get_api_key_link = "javascript:alert(1)";
    o.url_prefix = "/mt";
    o.char_limit = 12;
    o.frontend_title = "</title><script>alert(1)</script>\"'&";
    o.frontend_language_source = "en";
    o.frontend_language_target = "English";
    o.disable_files_translation = 1;
    dgm_server *s = test_server(&o);
    unlink(keys);
    q = ask(s, "GET", "/", NULL, NULL, NULL);
    has(q, "data-base=\"/mt/\" data-limit=\"12\"");
    has(q, "action=\"/mt/./\"");
    has(q, "href=\"/mt/status\"");
    has(q, "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;</title>");
    has(q, "<option value=\"en\" selected>English</option>\n</select>\n</div>\n<button "
           "type=\"button\" id=\"swap\"");
    has(q, "<option value=\"en\" selected>English</option>\n</select>\n</div>\n</div>\n<div "
           "class=\"panes\">");
    has(q, "<details id=\"access\" class=\"card\" open>");
    has(q, "<details id=\"files\" class=\"card\" hidden>");
    assert_null(strstr(test_body(q), "javascript:"));
    check_policy(q, 2);
    dgm_request_free(q);

    // Refusals are the page, with what was typed.
    const struct {
        const char *body;
        int status;
        const char *error;
    } bad[] = {
        {"q=Good+morning.&source=en&target=de", 401, "Visit javascript:alert(1) to get an API key"},
        {"q=Good+morning.&source=en&target=de&api_key=x%22%3e", 403, "Invalid API key"},
        {"q=Good+morning.&source=en&target=de&api_key=secret", 413,
         "13 characters are more than 12, the limit"},
        {"q=Good&source=%22%3E&target=de&api_key=secret", 400,
         "&quot;source&quot;: there is no language &quot;&quot;&gt;&quot; (GET /v1/languages lists "
         "them)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        q = ask(s, "POST", "/", bad[i].body, NULL, NULL);
        assert_int_equal(q->status, bad[i].status);
        shows(q, "class=\"error\" role=\"alert\">", bad[i].error);
        if (i == 0) has(q, ">\nGood morning.</textarea>");
        if (i == 1) has(q, "value=\"x&quot;&gt;\"");
        check_policy(q, 2);
        dgm_request_free(q);
    }
    q = ask(s, "POST", "/", "q=A+house.&source=en&target=de&api_key=secret", NULL, NULL);
    assert_int_equal(q->status, 200);
    shows(q, "aria-live=\"polite\">", "Ein Haus.");
    has(q, "value=\"secret\"");
    dgm_request_free(q);
    dgm_server_close(&s);
}

static void test_no_pages(void **state)
{
    (void)state;
    server->options.disable_web_ui = 1;
    test_expect(server, "GET", "/", NULL, NULL, 404, "<!doctype html>...");
    test_expect(server, "POST", "/", FORM_TYPE, "q=a", 404, "<!doctype html>...");
    test_expect(server, "GET", "/status", NULL, NULL, 404, "<!doctype html>...");
    test_expect(server, "GET", "/health", NULL, NULL, 200, "{...");
    server->options.disable_web_ui = 0;
}

// ---- without scripts ------------------------------------------------------------------------------

static void test_form(void **state)
{
    (void)state;
    dgm_request *q = ask(
        server, "POST", "/",
        "q=Good+morning.%0d%0a%0d%0aThe+house+is+big.&source=auto&target=de&file=&api_key=", NULL,
        NULL);
    assert_int_equal(q->status, 200);
    shows(q, "aria-live=\"polite\">", "Guten Morgen!\n\nDas Haus ist groß.");
    shows(q, "role=\"status\">", "Translated from English");
    has(q, ">\nGood morning.\r\n\r\nThe house is big.</textarea>");
    has(q, "<option value=\"auto\" selected>");
    assert_string_equal(answer_header(q, "Cache-Control"), "no-store");
    check_policy(q, 2);
    dgm_request_free(q);
    q = ask(server, "POST", "/", "q=Guten+Morgen!&source=de&target=en", NULL, NULL);
    shows(q, "aria-live=\"polite\">", "Good morning.");
    shows(q, "role=\"status\">", "");
    has(q, "<option value=\"de\" selected>German</option>\n<option value=\"en\">English</option>");
    has(q, "lang=\"en\" dir=\"auto\"");
    dgm_request_free(q);
    q = ask(server, "POST", "/", "q=Guten+Morgen.&source=auto&target=de", NULL, NULL); // as it is
    shows(q, "aria-live=\"polite\">", "Guten Morgen.");
    dgm_request_free(q);
    q = ask(server, "POST", "/", "q=&source=auto&target=de", NULL, NULL);
    assert_int_equal(q->status, 200);
    shows(q, "aria-live=\"polite\">", "");
    dgm_request_free(q);
    q = ask(server, "POST", "/", "", NULL, NULL);
    assert_int_equal(q->status, 200);
    dgm_request_free(q);
    q = ask(server, "POST", "/", "q=%ff", NULL, NULL); // no UTF-8
    assert_int_equal(q->status, 400);
    assert_null(strchr(test_body(q), '\xff'));
    dgm_request_free(q);
}

// Whatever is typed stays text, in the text and in its translation.
static void test_hostile(void **state)
{
    static const char *const texts[] = {
        "</textarea><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"><svg onload=alert(1)>",
        "&lt;script&gt;",
        "{{sources}} {{title}}",
        "<!-- --><style>*{display:none}</style>",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char body[800] = "source=en&target=de&api_key=%22autofocus+onfocus%3Dalert(1)&q=";
        size_t n = strlen(body);
        for (const char *p = texts[i]; *p; p++)
            n += (size_t)snprintf(body + n, sizeof body - n, "%%%02x", (unsigned char)*p);
        dgm_request *q = ask(server, "POST", "/", body, NULL, NULL);
        assert_int_equal(q->status, 200);
        check_policy(q, 2);
        const char *const tags[] = {"<img", "<svg onload", "<style>*", "\"autofocus"};
        for (size_t k = 0; k < sizeof tags / sizeof tags[0]; k++)
            if (strstr(test_body(q), tags[k]))
                fail_msg("'%s' came through of '%s'", tags[k], texts[i]);
        assert_int_equal(count(test_body(q), "</textarea>"), 2); // the text's and the glossary's
        dgm_request_free(q);
    }
}

static void test_status(void **state)
{
    (void)state;
    test_expect(server, "POST", "/translate", JSON_TYPE,
                "{\"q\":\"Good morning.\",\"source\":\"en\",\"target\":\"de\"}", 200, "{...");
    dgm_request *q = ask(server, "GET", "/status", NULL, NULL, NULL);
    has(q, "<tr><th scope=\"row\">Requests answered</th><td data-key=\"requests\" "
           "data-unit=\"count\">");
    has(q, "<td data-key=\"uptime_s\" data-unit=\"s\">0 d 00:0");
    has(q, "<tr><th scope=\"row\">en-de <span class=\"muted\"></span></th><td "
           "data-key=\"requests\" data-unit=\"count\">");
    has(q, " MiB</td>");
    has(q, "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>");
    dgm_request_free(q);
}

// ---- what the page uses of our API ----------------------------------------------------------------

static json_t *json_of(const dgm_request *q)
{
    dgm_error err;
    json_t *answer = NULL;
    if (q->status != 200) fail_msg("%d: %s", q->status, test_body(q));
    if (dgm_json_parse(&answer, test_body(q), strlen(test_body(q)), &err) != DGM_OK)
        fail_msg("%s", err.text);
    return answer;
}

static void test_alternatives(void **state)
{
    (void)state;
    dgm_request *q = test_request(
        server, "POST", "/v1/translate", JSON_TYPE,
        "{\"q\":\"The house is very big.\",\"source\":\"en\",\"target\":\"de\",\"alternatives\":3,"
        "\"alignment\":true}");
    test_ask(q);
    json_t *answer = json_of(q);
    const json_t *text = json_array_get(json_object_get(answer, "translations"), 0);
    const json_t *sentence = json_array_get(json_object_get(text, "sentences"), 0);
    const json_t *others = json_object_get(sentence, "alternatives");
    assert_int_equal(json_array_size(others), 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(json_array_size(json_object_get(json_array_get(others, i), "alignment")) >= 4);
    json_decref(answer);
    dgm_request_free(q);
}

static void test_gaps(void **state)
{
    (void)state;
    dgm_request *q = test_request(
        server, "POST", "/v1/translate", JSON_TYPE,
        "{\"q\":\"Good morning.\\n\\n  The house is big. \",\"source\":\"en\",\"target\":\"de\","
        "\"stream\":true}");
    test_ask(q);
    has(q, "\"sentence\":0,\"source\":\"Good morning.\",\"translation\":\"Guten "
           "Morgen!\",\"gap\":\"\\n\\n  \"}");
    has(q, "\"sentence\":1,\"source\":\"The house is big.\",\"translation\":\"Das Haus ist "
           "groß.\",\"gap\":\" \"}");
    dgm_request_free(q);
}

#define FORM_PART(name, value)                                                                     \
    "--B\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"
#define FORM_FILE(file, data)                                                                      \
    "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" file "\"\r\n\r\n" data     \
    "\r\n"

static void test_documents(void **state)
{
    static const char type[] = "multipart/form-data; boundary=B";
    (void)state;
    dgm_request *q =
        test_request(server, "POST", "/v1/document", type,
                     FORM_PART("q", "") FORM_PART("source", "auto") FORM_PART("target", "de")
                         FORM_FILE("my house.md", "The **house** is big.\n") "--B--\r\n");
    test_ask(q);
    assert_string_equal(test_body(q), "Das **Haus** ist groß.\n");
    assert_string_equal(answer_header(q, "Content-Disposition"),
                        "attachment; filename=\"my_house_de.md\"");
    dgm_request_free(q);

    // With events: progress, and where the file is.
    q = test_request(server, "POST", "/v1/document", type,
                     FORM_PART("source", "auto") FORM_PART("target", "de")
                         FORM_FILE("a.txt", "Good morning.\nThe house is big.\n") "--B--\r\n");
    dgm_field_add(q, &q->headers, "Accept", "text/event-stream", 17);
    test_ask(q);
    assert_string_equal(q->type, "text/event-stream");
    has(q, "event: begin\ndata: {\"source\":\"en\",\"target\":\"de\"}\n\n");
    has(q, "event: progress\ndata: {\"lines\":1,\"all\":2}\n\nevent: progress\ndata: "
           "{\"lines\":2,\"all\":2}\n\n");
    const char *done =
        strstr(test_body(q), "event: done\ndata: {\"name\":\"a_de.txt\",\"url\":\"/download_file/");
    assert_non_null(done);
    const char *url = strstr(done, "/download_file/");
    char path[200];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(url, "\""), url);
    test_expect(server, "GET", path, NULL, NULL, 200, "Guten Morgen!\nDas Haus ist groß.\n");
    dgm_request_free(q);

    q = test_request(server, "POST", "/v1/document", type,
                     FORM_PART("source", "en") FORM_PART("target", "de")
                         FORM_FILE("a.docx", "none") "--B--\r\n");
    dgm_field_add(q, &q->headers, "Accept", "text/event-stream", 17);
    test_ask(q);
    has(q, "event: error\ndata: {\"error\":\"");
    assert_true(q->ended);
    dgm_request_free(q);
    q = test_request(server, "POST", "/v1/document", type,
                     FORM_PART("source", "xx") FORM_PART("target", "de")
                         FORM_FILE("a.txt", "x") "--B--\r\n");
    dgm_field_add(q, &q->headers, "Accept", "text/event-stream", 17);
    test_ask(q);
    assert_int_equal(q->status, 400);
    dgm_request_free(q);
}

// ---- little memory --------------------------------------------------------------------------------

// The name of a version is the one thing that may be left out.
static bool is_answered(const dgm_request *q, bool failed)
{
    const bool post = strcmp(q->method, "POST") == 0;
    const bool versioned = !post && strcmp(q->path, "/") == 0;
    const bool complete =
        q->status == (post ? 400 : 200) && (!versioned || answer_header(q, "ETag")[0]);
    if (q->status != 500 && strlen(answer_header(q, "Content-Security-Policy")) <= 100) return false;
    return complete != failed;
}

static void test_no_memory(void **state)
{
    static const scarce_row rows[] = {
        {"GET", "/", NULL, NULL},
        {"GET", "/status", NULL, NULL},
        {"POST", "/", FORM_TYPE, "q=Good+morning.&source=xx&target=de"}, // refused: answered at once
    };
    (void)state;
    dgm_server *s = scarce_server();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) scarce_try(s, &rows[i], is_answered);
    dgm_server_close(&s);
}

static void test_sha256(void **state)
{
    static const struct {
        const char *text, *sum; // examples of FIPS 180-4
    } known[] = {
        {"", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
        {"abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE="},
    };
    (void)state;
    char sum[DGM_SHA256_BASE64 + 1];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        dgm_sha256_base64(known[i].text, strlen(known[i].text), sum);
        assert_string_equal(sum, known[i].sum);
    }
    // Lengths at which another block begins, of the letter a.
    static const struct {
        size_t size;
        const char *sum;
    } sizes[] = {
        {55, "n0OQ+NMMLdkuyfCVtl4rmumwqSWlJY4kHJ8ekQ9zQxg="},
        {56, "s1Q5pKxvCUi21vnjxq8PX1kM4g8b3nCQ73lwaG7Gc4o="},
        {64, "/+BU/nrgy23GXDr5th1SCfQ5hR20PQulmXM33xVGaOs="},
        {119, "MeulHDE6XAgiat8Y1KNZz9/Y0ugWsT9K+VL36mWE3Ps="},
        {120, "Lz0zVDLHC1gK8Ojhs2dKfAINaDql9zqq7f3FWvkEwhw="},
    };
    char text[120];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        dgm_sha256_base64(text, sizes[i].size, sum);
        assert_string_equal(sum, sizes[i].sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),      cmocka_unit_test(test_known),
        cmocka_unit_test(test_gzip),         cmocka_unit_test(test_fields),
        cmocka_unit_test(test_no_pages),     cmocka_unit_test(test_form),
        cmocka_unit_test(test_hostile),      cmocka_unit_test(test_status),
        cmocka_unit_test(test_alternatives), cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_documents),    cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_sha256),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
