// SPDX-License-Identifier: MIT
// Pages: filled in, and sent with headers that keep a browser from anything but what the page itself does.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/sha256.h"
#include "server/page_private.h"

// ---- text -----------------------------------------------------------------------------------------

void dgm_page_put(dgm_writer *w, const char *text, size_t size)
{
    size_t from = 0;
    for (size_t i = 0; i < size; i++) {
        const char *name = text[i] == '<'    ? "&lt;"
                           : text[i] == '>'  ? "&gt;"
                           : text[i] == '&'  ? "&amp;"
                           : text[i] == '"'  ? "&quot;"
                           : text[i] == '\'' ? "&#39;"
                                             : NULL;
        if (!name) continue;
        dgm_write_bytes(w, text + from, i - from);
        dgm_write_text(w, name);
        from = i + 1;
    }
    dgm_write_bytes(w, text + from, size - from);
}

void dgm_page_put_string(dgm_writer *w, const char *text)
{
    if (text) dgm_page_put(w, text, strlen(text));
}

void dgm_page_put_base(dgm_writer *w, const dgm_server *s)
{
    const char *prefix = s->options.url_prefix;
    if (!prefix || !prefix[0]) return;
    dgm_page_put_string(w, prefix);
    if (prefix[strlen(prefix) - 1] != '/') dgm_write_u8(w, '/');
}

void dgm_page_put_title(dgm_writer *w, const dgm_server *s)
{
    const char *title = s->options.frontend_title;
    dgm_page_put_string(w, title && title[0] ? title : "Dragoman");
}

// The next place of `text` in bytes of a page, from `at` on; their number where there is none.
static size_t find(const unsigned char *data, size_t size, size_t at, const char *text)
{
    const size_t n = strlen(text);
    for (; at + n <= size; at++) {
        const unsigned char *p = memchr(data + at, text[0], size - n - at + 1);
        if (!p) break;
        at = (size_t)(p - data);
        if (memcmp(p, text, n) == 0) return at;
    }
    return size;
}

static void fill(dgm_writer *w, const dgm_page *page, void *user)
{
    for (size_t at = 0; at < page->size;) {
        const size_t begin = find(page->data, page->size, at, "{{"), end = find(page->data, page->size, begin, "}}");
        dgm_write_bytes(w, page->data + at, begin - at);
        if (end == page->size) {
            dgm_write_bytes(w, page->data + begin, end - begin);
            return;
        }
        for (size_t i = 0; i < page->field_count; i++) {
            const size_t n = strlen(page->fields[i].name);
            if (n == end - begin - 2 &&
                memcmp(page->data + begin + 2, page->fields[i].name, n) == 0)
                page->fields[i].put(w, user);
        }
        at = end + 2;
    }
}

// ---- headers --------------------------------------------------------------------------------------

// Adds " 'sha256-...'" for everything between these tags of the page as it lies in the program: what a request or an
// option brings along is never allowed to run.
static void allow(char policy[DGM_PAGE_POLICY], const unsigned char *data, size_t size, const char *open,
                  const char *close)
{
    char sum[DGM_SHA256_BASE64 + 1];
    for (size_t at = find(data, size, 0, open); at < size; at = find(data, size, at, open)) {
        at += strlen(open);
        const size_t end = find(data, size, at, close), used = strlen(policy);
        dgm_sha256_base64(data + at, end - at, sum);
        snprintf(policy + used, DGM_PAGE_POLICY - used, " 'sha256-%s'", sum);
        at = end;
    }
}

void dgm_pages_open(dgm_server *s)
{
    const struct {
        const unsigned char *data;
        size_t size;
    } pages[DGM_PAGES] = {{dgm_page_translate, dgm_page_translate_size}, {dgm_page_status, dgm_page_status_size}};
    for (int i = 0; i < DGM_PAGES; i++) {
        char *const policy = s->policies[i];
        strcpy(policy, "default-src 'none'; script-src");
        allow(policy, pages[i].data, pages[i].size, "<script>", "</script>");
        strcat(policy, "; style-src");
        allow(policy, pages[i].data, pages[i].size, "<style>", "</style>");
        strcat(policy, "; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
                       "frame-ancestors 'none'; require-trusted-types-for 'script'");
    }
}

// False: no memory, and no page without them.
static bool put_headers(dgm_request *q, const dgm_page *page)
{
    const size_t before = q->answer_headers.count;
    dgm_answer_header(q, "Content-Security-Policy", q->server->policies[page->which]);
    dgm_answer_header(q, "X-Content-Type-Options", "nosniff");
    dgm_answer_header(q, "Referrer-Policy", "no-referrer");
    dgm_answer_header(q, "Cache-Control", page->cached ? "no-cache" : "no-store");
    dgm_answer_header(q, "Vary", "Accept-Encoding");
    return q->answer_headers.count == before + 5;
}

// Does a list of a header ("br;q=1.0, gzip") have the word, and not with "q=0"?
static bool accepts(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
        while (*p == ' ' || *p == '\t') p++;
        if (strncmp(p, word, n) != 0 || !strchr(" \t;,", p[n])) continue;
        const char *q = strstr(p, "q=");
        const char *end = p + strcspn(p, ",");
        return !q || q > end || strtod(q + 2, NULL) > 0;
    }
    return false;
}

// False: no memory, and w is as it was.
static bool compress_page(dgm_writer *w)
{
    enum { GZIP = 16 }; // beside the window, for zlib
    z_stream z = {0};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    dgm_writer out = {0};
    dgm_write_zeros(&out, deflateBound(&z, w->size));
    z.next_in = w->data;
    z.avail_in = (unsigned)w->size;
    z.next_out = out.data;
    z.avail_out = (unsigned)out.size;
    const bool fine = !out.failed && deflate(&z, Z_FINISH) == Z_STREAM_END;
    out.size = z.total_out;
    deflateEnd(&z);
    if (fine) {
        dgm_writer_free(w);
        *w = out;
    } else {
        dgm_writer_free(&out);
    }
    return fine;
}

// Is it what the client has? Adds the header that names it.
static bool is_known(dgm_request *q, const dgm_writer *w, bool zip)
{
    char sum[DGM_SHA256_BASE64 + 1], tag[40];
    dgm_sha256_base64(w->data, w->size, sum);
    snprintf(tag, sizeof tag, "\"%.27s%s\"", sum, zip ? "-gz" : "");
    dgm_answer_header(q, "ETag", tag);
    const char *known = dgm_request_header(q, "If-None-Match");
    return known && (strstr(known, tag) || strcmp(known, "*") == 0);
}

void dgm_page_answer(dgm_request *q, int status, const dgm_page *page, void *user)
{
    dgm_writer w = {0};
    const bool zip = accepts(dgm_request_header(q, "Accept-Encoding"), "gzip");
    fill(&w, page, user);
    if (w.failed || !put_headers(q, page)) {
        dgm_writer_free(&w);
        dgm_answer(q, 500, "text/plain", "out of memory\n", 14);
        return;
    }
    if (page->cached && is_known(q, &w, zip)) {
        dgm_writer_free(&w);
        dgm_answer(q, 304, NULL, "", 0);
        return;
    }
    if (zip && compress_page(&w)) dgm_answer_header(q, "Content-Encoding", "gzip");
    dgm_answer_writer(q, status, "text/html; charset=utf-8", &w);
}
