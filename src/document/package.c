// SPDX-License-Identifier: MIT
// Documents that are zip archives; see package_private.h.
#include "document/package_private.h"

#include <string.h>

#include "base/mem.h"
#include "document/kept_private.h"
#include "text/unicode.h"

enum { RATIO_MAX = 200 }; // how much larger than packed a document may be

typedef struct part {
    size_t member;
    int source;
    bool marked;
} part;

struct dgm_package {
    dgm_zip *zip;
    part *parts;
    size_t count, cap;
    dgm_kept memory;
};

static void release(void *state)
{
    dgm_package *p = state;
    dgm_zip_close(&p->zip);
    dgm_kept_free(&p->memory);
    dgm_free(p->parts);
    dgm_free(p);
}

static dgm_status look(void *arg, const void *data, size_t size, dgm_error *err)
{
    (void)arg;
    (void)data;
    (void)size;
    (void)err;
    return DGM_OK;
}

static dgm_status check(dgm_zip *z, dgm_error *err)
{
    DGM_TRY(dgm_zip_check_unpacked(z, DGM_DOCUMENT_MAX, RATIO_MAX, err));
    for (size_t i = 0; i < dgm_zip_count(z); i++) DGM_TRY(dgm_zip_stream(z, i, look, NULL, err));
    return DGM_OK;
}

dgm_status dgm_package_open(dgm_document *d, dgm_package **p, dgm_error *err)
{
    *p = dgm_calloc(1, sizeof **p);
    if (!*p) return dgm_no_memory(err);
    dgm_document_set_state(d, *p, release);
    const dgm_text data = dgm_document_source(d, 0);
    DGM_TRY(dgm_zip_open_memory(&(*p)->zip, data.data, data.size, err));
    return check((*p)->zip, err);
}

dgm_zip *dgm_package_zip(dgm_package *p)
{
    return p->zip;
}

static dgm_status check_encoding(const char *data, size_t size, dgm_error *err)
{
    DGM_FAIL_IF(size >= 2 && (memcmp(data, "\xff\xfe", 2) == 0 || memcmp(data, "\xfe\xff", 2) == 0), err,
                DGM_ERR_UNSUPPORTED, "it is UTF-16; documents in UTF-8 are read");
    const size_t bad = dgm_utf8_first_bad((dgm_text){data, size});
    size_t line = 1;
    for (size_t i = 0; i < bad && bad < size; i++) line += data[i] == '\n';
    DGM_FAIL_IF(bad < size, err, DGM_ERR_UNSUPPORTED, "line %zu is not UTF-8; documents in UTF-8 are read", line);
    return DGM_OK;
}

dgm_status dgm_package_load(dgm_package *p, size_t member, char **data, size_t *size, dgm_error *err)
{
    *size = (size_t)dgm_zip_size(p->zip, member);
    *data = dgm_malloc(*size + 1);
    if (!*data) return dgm_no_memory(err);
    dgm_status st = dgm_zip_read(p->zip, member, 0, *data, *size, err);
    if (st == DGM_OK && (st = check_encoding(*data, *size, err)) != DGM_OK)
        dgm_error_prefix(err, "%s", dgm_zip_name(p->zip, member));
    if (st == DGM_OK) {
        (*data)[*size] = '\0';
        return DGM_OK;
    }
    dgm_free(*data);
    *data = NULL;
    return st;
}

dgm_status dgm_package_part(dgm_package *p, size_t member, int source, bool marked, dgm_error *err)
{
    DGM_TRY(dgm_grow(&p->parts, &p->cap, p->count + 1, sizeof *p->parts, err));
    p->parts[p->count++] = (part){member, source, marked};
    return DGM_OK;
}

bool dgm_package_has(const dgm_package *p, size_t member)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->parts[i].member == member) return true;
    return false;
}

void *dgm_package_keep(dgm_package *p, size_t size)
{
    return dgm_kept_add(&p->memory, size);
}

// ---- writing -----------------------------------------------------------------------------------

static dgm_status expand(const dgm_document *d, int source, dgm_writer *out, dgm_error *err);

// A text with marks in it, the sources that they name in their places. What was cut out of a source has a smaller
// number: a mark that says otherwise is none of ours.
static dgm_status put_back(const dgm_document *d, int from, dgm_text text, dgm_writer *out, dgm_error *err)
{
    while (text.size > 0) {
        const char *mark = memchr(text.data, DGM_MARK_BEGIN, text.size);
        const size_t plain = mark ? (size_t)(mark - text.data) : text.size;
        dgm_write_bytes(out, text.data, plain);
        if (!mark) break;
        int source = 0;
        size_t at = plain + 1;
        while (at < text.size && text.data[at] >= '0' && text.data[at] <= '9' && source < from)
            source = source * 10 + (text.data[at++] - '0');
        const bool ours = at < text.size && text.data[at] == DGM_MARK_END && source > 0 && source < from;
        if (ours) DGM_TRY(expand(d, source, out, err));
        at = ours ? at + 1 : plain + 1;
        text = (dgm_text){text.data + at, text.size - at};
    }
    return DGM_OK;
}

static dgm_status expand(const dgm_document *d, int source, dgm_writer *out, dgm_error *err)
{
    dgm_writer spliced = {0};
    dgm_status st = dgm_document_spliced(d, source, &spliced, err);
    if (st == DGM_OK) st = put_back(d, source, (dgm_text){(const char *)spliced.data, spliced.size}, out, err);
    dgm_writer_free(&spliced);
    if (st == DGM_OK && out->failed) st = dgm_no_memory(err);
    return st;
}

static dgm_status make_part(const dgm_document *d, dgm_package *p, const part *made, dgm_writer *out, bool *changed,
                            dgm_error *err)
{
    char *before;
    size_t size;
    DGM_TRY(made->marked ? expand(d, made->source, out, err) : dgm_document_spliced(d, made->source, out, err));
    DGM_TRY(dgm_package_load(p, made->member, &before, &size, err));
    *changed = size != out->size || (size > 0 && memcmp(before, out->data, size) != 0);
    dgm_free(before);
    return DGM_OK;
}

static dgm_status put_archive(const dgm_document *d, const dgm_zip_part *parts, size_t count, dgm_document_sink put,
                              void *cookie, dgm_error *err)
{
    dgm_writer out = {0};
    dgm_text archive = dgm_document_source(d, 0);
    dgm_status st = DGM_OK;
    if (count > 0) {
        st = dgm_zip_rewrite(archive, parts, count, &out, err);
        archive = (dgm_text){(const char *)out.data, out.size};
    }
    if (st == DGM_OK && put(cookie, archive.data, archive.size) != 0)
        st = dgm_fail(err, DGM_ERR_IO, "the document could not be written");
    dgm_writer_free(&out);
    return st;
}

dgm_status dgm_package_write(const dgm_document *d, dgm_document_sink put, void *cookie, dgm_error *err)
{
    dgm_package *p = dgm_document_state(d);
    dgm_writer *made = dgm_calloc(p->count + 1, sizeof *made);
    dgm_zip_part *changed = dgm_calloc(p->count + 1, sizeof *changed);
    dgm_status st = made && changed ? DGM_OK : dgm_no_memory(err);
    size_t count = 0;
    for (size_t i = 0; i < p->count && st == DGM_OK; i++) {
        bool other = false;
        st = make_part(d, p, &p->parts[i], &made[i], &other, err);
        if (st == DGM_OK && other)
            changed[count++] = (dgm_zip_part){p->parts[i].member, {(const char *)made[i].data, made[i].size}};
    }
    if (st == DGM_OK) st = put_archive(d, changed, count, put, cookie, err);
    for (size_t i = 0; made && i < p->count; i++) dgm_writer_free(&made[i]);
    dgm_free(made);
    dgm_free(changed);
    return st;
}
