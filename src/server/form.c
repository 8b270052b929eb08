// SPDX-License-Identifier: MIT
// Queries, forms and paths; see form.h.
#define _GNU_SOURCE // memmem
#include "server/form.h"

#include <string.h>
#include <strings.h>

#include "text/unicode.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// In place; returns the new size. A "%" without two digits stays as it is, as everywhere.
static size_t decode(char *text, size_t size, bool plus)
{
    size_t to = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '+' && plus) c = ' ';
        if (c == '%' && i + 2 < size && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
            c = (char)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        }
        text[to++] = c;
    }
    text[to] = 0;
    return to;
}

static bool is_plain(const char *text, size_t size)
{
    return !memchr(text, 0, size) && dgm_utf8_valid((dgm_text){text, size});
}

static dgm_status add_value(dgm_request *q, dgm_field_list *into, const char *name, size_t name_size,
                            const char *value, size_t size, dgm_error *err)
{
    DGM_FAIL_IF(!is_plain(name, name_size) || !is_plain(value, size), err, DGM_ERR_FORMAT,
                "the form is not UTF-8, or holds NUL");
    DGM_FAIL_IF(into->count == DGM_FIELDS_MAX, err, DGM_ERR_FORMAT, "the form has more than %d values",
                DGM_FIELDS_MAX);
    char *own = dgm_request_copy(q, name, name_size);
    DGM_FAIL_IF(!own || !dgm_field_add(q, into, own, value, size), err, DGM_ERR_MEMORY, "out of memory");
    return DGM_OK;
}

static dgm_status add_pair(dgm_request *q, const char *pair, size_t size, dgm_field_list *into, dgm_error *err)
{
    const char *equal = memchr(pair, '=', size);
    const size_t n = equal ? (size_t)(equal - pair) : size;
    char *name = dgm_request_copy(q, pair, n);
    char *value = dgm_request_copy(q, equal ? equal + 1 : "", equal ? size - n - 1 : 0);
    DGM_FAIL_IF(!name || !value, err, DGM_ERR_MEMORY, "out of memory");
    const size_t name_size = decode(name, n, true);
    const size_t value_size = decode(value, equal ? size - n - 1 : 0, true);
    return add_value(q, into, name, name_size, value, value_size, err);
}

dgm_status dgm_form_urlencoded(dgm_request *q, const char *data, size_t size, dgm_field_list *into, dgm_error *err)
{
    for (size_t at = 0; at < size;) {
        const char *end = memchr(data + at, '&', size - at);
        const size_t n = end ? (size_t)(end - data) - at : size - at;
        if (n) DGM_TRY(add_pair(q, data + at, n, into, err));
        at += n + 1;
    }
    return DGM_OK;
}

// ---- multipart ------------------------------------------------------------------------------------

// The value of `name` in a header such as: form-data; name="file"; filename="a.txt". Quoted or not; the request's.
static const char *parameter(dgm_request *q, const char *header, size_t size, const char *name)
{
    const size_t n = strlen(name);
    bool quoted = false;
    for (size_t i = 0; i + n < size; i++) {
        if (header[i] == '"') quoted = !quoted;
        if (quoted && header[i] == '\\') i++;
        if (quoted || (i && header[i - 1] != ';' && header[i - 1] != ' ' && header[i - 1] != '\t')) continue;
        if (strncasecmp(header + i, name, n) != 0 || header[i + n] != '=') continue;
        const char *value = header + i + n + 1;
        const char *end = header + size;
        if (value < end && *value == '"') {
            const char *close = ++value;
            while (close < end && *close != '"') close += *close == '\\' && close + 1 < end ? 2 : 1;
            end = close < end ? close : end;
        } else {
            const char *close = value;
            while (close < end && *close != ';' && *close != ' ' && *close != '\t') close++;
            end = close;
        }
        return dgm_request_copy(q, value, (size_t)(end - value));
    }
    return NULL;
}

// The part of a path behind its last slash of either kind: some browsers send whole paths.
static const char *last_component(const char *path)
{
    for (const char *p = path; *p; p++)
        if (*p == '/' || *p == '\\') path = p + 1;
    return path;
}

typedef struct part {
    const char *name, *file, *type;
} part;

// Headers of a part, up to its empty line. False: they do not end, or name no field.
static bool read_headers(dgm_request *q, const char **at, const char *end, part *p)
{
    *p = (part){.type = ""};
    for (;;) {
        const char *line = *at, *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
        if (!stop) return false;
        *at = stop + 2;
        const size_t size = (size_t)(stop - line);
        if (size == 0) return p->name != NULL;
        static const char disposition[] = "Content-Disposition:", type[] = "Content-Type:";
        if (size > sizeof disposition && strncasecmp(line, disposition, sizeof disposition - 1) == 0) {
            p->name = parameter(q, line, size, "name");
            p->file = parameter(q, line, size, "filename");
        }
        if (size > sizeof type && strncasecmp(line, type, sizeof type - 1) == 0) {
            const char *value = line + sizeof type - 1;
            while (value < stop && *value == ' ') value++;
            p->type = dgm_request_copy(q, value, (size_t)(stop - value));
            if (!p->type) return false;
        }
    }
}

static dgm_status add_part(dgm_request *q, const part *p, const char *data, size_t size, dgm_error *err)
{
    if (!p->file) return add_value(q, &q->form, p->name, strlen(p->name), data, size, err);
    DGM_FAIL_IF(q->upload_count == DGM_UPLOADS_MAX, err, DGM_ERR_FORMAT, "the form has more than %d files",
                DGM_UPLOADS_MAX);
    DGM_FAIL_IF(!is_plain(p->name, strlen(p->name)) || !is_plain(p->file, strlen(p->file)), err, DGM_ERR_FORMAT,
                "the name of a file is not UTF-8");
    q->uploads[q->upload_count++] = (dgm_upload){p->name, last_component(p->file), p->type, data, size};
    return DGM_OK;
}

dgm_status dgm_form_multipart(dgm_request *q, dgm_error *err)
{
    const char *type = dgm_request_header(q, "Content-Type");
    const char *given = type ? parameter(q, type, strlen(type), "boundary") : NULL;
    const size_t n = given ? strlen(given) : 0;
    DGM_FAIL_IF(n == 0 || n > 200, err, DGM_ERR_FORMAT, "multipart/form-data without a boundary");
    char mark[208] = "\r\n--";
    memcpy(mark + 4, given, n + 1);
    const char *at = q->body ? q->body : "", *const end = at + q->body_size;
    // The first boundary has no line break before it.
    if (q->body_size < n + 2 || memcmp(at, mark + 2, n + 2) != 0) {
        at = memmem(at, (size_t)(end - at), mark, n + 4);
        DGM_FAIL_IF(!at, err, DGM_ERR_FORMAT, "multipart/form-data without its boundary");
        at += 2;
    }
    for (;;) {
        at += n + 2;
        if (end - at >= 2 && at[0] == '-' && at[1] == '-') return DGM_OK;
        part p;
        DGM_FAIL_IF(end - at < 2 || at[0] != '\r' || at[1] != '\n', err, DGM_ERR_FORMAT,
                    "multipart/form-data ends too early");
        at += 2;
        DGM_FAIL_IF(!read_headers(q, &at, end, &p), err, DGM_ERR_FORMAT, "a part of the form has no name");
        const char *stop = memmem(at, (size_t)(end - at), mark, n + 4);
        DGM_FAIL_IF(!stop, err, DGM_ERR_FORMAT, "multipart/form-data ends too early");
        DGM_TRY(add_part(q, &p, at, (size_t)(stop - at), err));
        at = stop + 2;
    }
}

// ---- paths ----------------------------------------------------------------------------------------

bool dgm_path_decode(char *path)
{
    const size_t size = decode(path, strlen(path), false);
    if (path[0] != '/' || !is_plain(path, size)) return false;
    for (const char *p = path; *p; p++) {
        if (*p != '/') continue;
        const size_t n = strcspn(p + 1, "/");
        if ((n == 1 && p[1] == '.') || (n == 2 && p[1] == '.' && p[2] == '.')) return false;
    }
    return true;
}
