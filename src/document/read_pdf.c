// SPDX-License-Identifier: MIT
// PDF: its text becomes HTML, which is read as such. A PDF is not written. The text is taken out by a shared object of
// its own (pdf/, pdf_plugin_private.h).
#define _GNU_SOURCE // PATH_MAX
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/plugin.h"
#include "document/document.h"
#include "document/pdf_plugin_private.h"

typedef struct pdf {
    int html; // the source that it became
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

static dgm_status read_pdf(dgm_document *d, dgm_error *err)
{
    dgm_writer html = {0};
    size_t size;
    pdf *p = dgm_calloc(1, sizeof *p);
    if (!p) return dgm_no_memory(err);
    dgm_document_set_state(d, p, dgm_free);
    const dgm_status st = take_text(dgm_document_source(d, 0), &html, err);
    char *text = st == DGM_OK ? dgm_writer_take(&html, &size) : NULL;
    dgm_writer_free(&html);
    if (st != DGM_OK) return st;
    if (!text) return dgm_no_memory(err);
    DGM_TRY(dgm_document_add_source(d, text, size, &p->html, err));
    dgm_document_set_notice(d, "a PDF becomes HTML: its text is taken out and translated, its layout stays behind");
    return dgm_html_read(d, p->html, err);
}

static dgm_status write_html(const dgm_document *d, dgm_document_sink put, void *cookie, dgm_error *err)
{
    const pdf *p = dgm_document_state(d);
    dgm_writer out = {0};
    dgm_status st = dgm_document_spliced(d, p->html, &out, err);
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
               .summary = "the text of a PDF, which becomes HTML; no PDF is written"},
    .sniff = sniff_pdf,
    .binary = true,
    .read = read_pdf,
    .write = write_html,
};
