// SPDX-License-Identifier: MIT
// PDF: its text becomes HTML, which is read as such, or lines of plain text. A PDF is not written. The text is taken
// out by a shared object of its own (pdf/, pdf_plugin_private.h).
#define _GNU_SOURCE // PATH_MAX, memmem
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/plugin.h"
#include "document/document.h"
#include "document/pdf_plugin_private.h"

typedef struct pdf {
    int source; // what it became
} pdf;

static int collect(void *cookie, const char *data, size_t size)
{
    dgm_writer *w = cookie;
    if (w->size + size > DGM_DOCUMENT_MAX) return 1;
    dgm_write_bytes(w, data, size);
    return w->failed;
}

static dgm_status find_entry(dgm_pdf_entry *entry, dgm_error *err)
{
    char path[PATH_MAX];
    void *symbol;
    DGM_FAIL_IF(!dgm_plugin_find("pdf", path, sizeof path), err, DGM_ERR_UNSUPPORTED,
                "PDF is read by libdragoman-pdf.so, which is not %s: install libpoppler-glib-dev and build again",
                dgm_plugin_where());
    DGM_TRY(dgm_plugin_load(path, DGM_PDF_ENTRY, "reader", "pdf", &symbol, err));
    memcpy(entry, &symbol, sizeof *entry);
    return DGM_OK;
}

static dgm_status take_text(dgm_text data, dgm_writer *html, dgm_error *err)
{
    dgm_pdf_entry entry;
    DGM_TRY(find_entry(&entry, err));
    switch (entry(data.data, data.size, collect, html)) {
    case DGM_PDF_OK:
        return DGM_OK;
    case DGM_PDF_LOCKED:
        return dgm_fail(err, DGM_ERR_UNSUPPORTED, "the PDF needs a password");
    case DGM_PDF_EMPTY:
        return dgm_fail(err, DGM_ERR_UNSUPPORTED, "the PDF has no text, only pictures: it needs character recognition");
    case DGM_PDF_STOPPED:
        if (html->failed) return dgm_no_memory(err);
        return dgm_fail(err, DGM_ERR_FORMAT, "the PDF has more than %zu MiB of text", DGM_DOCUMENT_MAX >> 20);
    default:
        return dgm_fail(err, DGM_ERR_FORMAT, "the PDF is damaged");
    }
}

static bool output_ends(const dgm_document *d, const char *ending)
{
    const char *name = dgm_document_asked(d)->output;
    const size_t size = name ? strlen(name) : 0, n = strlen(ending);
    return size > n && strcasecmp(name + size - n, ending) == 0;
}

// The plugin's HTML has one element in a line: the text of each, in a line of its own.
static dgm_status flatten(dgm_writer *html, dgm_error *err)
{
    dgm_writer plain = {0};
    const dgm_text all = {(const char *)html->data, html->size};
    const char *body = memmem(all.data, all.size, "<body>", 6);
    dgm_status st = body ? DGM_OK : dgm_fail(err, DGM_ERR_FORMAT, "the PDF is damaged");
    for (size_t at = body ? (size_t)(body - all.data) : all.size; at < all.size && st == DGM_OK;) {
        const char *stop = memchr(all.data + at, '\n', all.size - at);
        const size_t end = stop ? (size_t)(stop - all.data) : all.size, before = plain.size;
        while (at < end && st == DGM_OK) { // tags, and text between them
            const char *tag = memchr(all.data + at, '<', end - at);
            const size_t to = tag ? (size_t)(tag - all.data) : end;
            st = dgm_escape_html.decode((dgm_text){all.data + at, to - at}, &plain, NULL, err);
            const char *close = tag ? memchr(tag, '>', end - to) : NULL;
            at = close ? (size_t)(close - all.data) + 1 : end;
        }
        if (plain.size > before) dgm_write_u8(&plain, '\n');
        at = end + 1;
    }
    if (st == DGM_OK && plain.failed) st = dgm_no_memory(err);
    dgm_writer_free(html);
    *html = plain;
    return st;
}

static dgm_status read_pdf(dgm_document *d, dgm_error *err)
{
    dgm_writer html = {0};
    size_t size;
    const bool plain = output_ends(d, ".txt");
    DGM_FAIL_IF(output_ends(d, ".pdf"), err, DGM_ERR_ARGUMENT,
                "no PDF is written: the text of one goes to a file whose name ends in .html or .txt");
    pdf *p = dgm_calloc(1, sizeof *p);
    if (!p) return dgm_no_memory(err);
    dgm_document_set_state(d, p, dgm_free);
    dgm_status st = take_text(dgm_document_source(d, 0), &html, err);
    if (st == DGM_OK && plain) st = flatten(&html, err);
    char *text = st == DGM_OK ? dgm_writer_take(&html, &size) : NULL;
    dgm_writer_free(&html);
    if (st != DGM_OK) return st;
    if (!text) return dgm_no_memory(err);
    DGM_TRY(dgm_document_add_source(d, text, size, &p->source, err));
    dgm_document_set_notice(d,
                            plain ? "a PDF becomes plain text: its layout stays behind"
                                  : "a PDF becomes HTML: its text is translated, its layout stays behind");
    return plain ? dgm_txt_read(d, p->source, err) : dgm_html_read(d, p->source, false, err);
}

static dgm_status write_text(const dgm_document *d, dgm_document_sink put, void *cookie, dgm_error *err)
{
    const pdf *p = dgm_document_state(d);
    dgm_writer out = {0};
    dgm_status st = dgm_document_spliced(d, p->source, &out, err);
    if (st == DGM_OK && put(cookie, (const char *)out.data, out.size) != 0)
        st = dgm_fail(err, DGM_ERR_IO, "the document could not be written");
    dgm_writer_free(&out);
    return st;
}

static bool sniff_pdf(dgm_text data)
{
    return data.size > 5 && memcmp(data.data, "%PDF-", 5) == 0;
}

const dgm_document_reader dgm_pdf_reader = {
    .format = {.size = sizeof(dgm_document_format),
               .name = "pdf",
               .endings = "pdf",
               .summary = "the text of a PDF, which becomes HTML or plain text; no PDF is written"},
    .sniff = sniff_pdf,
    .binary = true,
    .read = read_pdf,
    .write = write_text,
};
