// SPDX-License-Identifier: MIT
// Books in EPUB 2 and 3: the pages (XHTML) and the table of contents. META-INF/container.xml names the package
// document, whose manifest names the pages.
#include <string.h>

#include "base/mem.h"
#include "base/xml.h"
#include "document/office_private.h"

static const dgm_office_grammar contents = {.paragraph = "text"}; // of toc.ncx

typedef enum page_kind { PAGE_NONE, PAGE_XHTML, PAGE_HTML, PAGE_CONTENTS } page_kind;

typedef struct page {
    size_t member;
    page_kind kind;
} page;

typedef struct book {
    dgm_document *d;
    dgm_package *p;
    char *opf; // name of the package document
    page *pages;
    size_t count, cap;
} book;

// ---- names ---------------------------------------------------------------------------------------

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// A reference of the package document as a member's name: beside that document, "%20" a blank, "../x" a folder up.
static char *member_name(const char *opf, const char *reference)
{
    const char *slash = strrchr(opf, '/');
    dgm_writer w = {0};
    dgm_write_bytes(&w, opf, slash ? (size_t)(slash - opf) + 1 : 0);
    for (const char *c = reference; *c && *c != '#'; c++) {
        if (strncmp(c, "../", 3) == 0 && (c == reference || c[-1] == '/')) {
            if (w.size > 0) w.size--;
            while (w.size > 0 && w.data[w.size - 1] != '/') w.size--;
            c += 2;
        } else if (*c == '%' && digit(c[1]) >= 0 && digit(c[2]) >= 0) {
            dgm_write_u8(&w, (uint8_t)(digit(c[1]) * 16 + digit(c[2])));
            c += 2;
        } else {
            dgm_write_u8(&w, (uint8_t)*c);
        }
    }
    return dgm_writer_take(&w, NULL);
}

// ---- what the book says of itself ------------------------------------------------------------------

static dgm_status take_root(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    book *b = cookie;
    if (e->kind != DGM_XML_OPEN || b->opf || strcmp(dgm_xml_local(e->name), "rootfile") != 0) return DGM_OK;
    const char *path = dgm_xml_attribute(e, "full-path");
    if (!path) return DGM_OK;
    b->opf = dgm_strdup(path);
    return b->opf ? DGM_OK : dgm_no_memory(err);
}

static page_kind kind_of(const char *type)
{
    if (strcmp(type, "application/xhtml+xml") == 0) return PAGE_XHTML;
    if (strcmp(type, "text/html") == 0) return PAGE_HTML;
    return strcmp(type, "application/x-dtbncx+xml") == 0 ? PAGE_CONTENTS : PAGE_NONE;
}

static dgm_status take_item(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    book *b = cookie;
    if (e->kind != DGM_XML_OPEN || strcmp(dgm_xml_local(e->name), "item") != 0) return DGM_OK;
    const char *reference = dgm_xml_attribute(e, "href"), *type = dgm_xml_attribute(e, "media-type");
    const page_kind kind = reference && type ? kind_of(type) : PAGE_NONE;
    if (kind == PAGE_NONE || strstr(reference, "://")) return DGM_OK;
    char *name = member_name(b->opf, reference);
    if (!name) return dgm_no_memory(err);
    const int member = dgm_zip_find(dgm_package_zip(b->p), name);
    dgm_free(name);
    DGM_FAIL_IF(member < 0, err, DGM_ERR_FORMAT, "the page '%.100s' is missing", reference);
    DGM_TRY(dgm_grow(&b->pages, &b->cap, b->count + 1, sizeof *b->pages, err));
    b->pages[b->count++] = (page){(size_t)member, kind};
    return DGM_OK;
}

static dgm_status walk_member(book *b, const char *name, dgm_xml_taker take, dgm_error *err)
{
    const int member = dgm_zip_find(dgm_package_zip(b->p), name);
    char *data;
    size_t size;
    DGM_FAIL_IF(member < 0, err, DGM_ERR_FORMAT, "an archive, but no EPUB: %.100s is missing", name);
    DGM_TRY(dgm_package_load(b->p, (size_t)member, &data, &size, err));
    const dgm_status st = dgm_xml_walk((dgm_text){data, size}, take, b, err);
    if (st == DGM_ERR_FORMAT) dgm_error_prefix(err, "%.100s", name);
    dgm_free(data);
    return st;
}

// Fonts are often garbled in a way that does not matter here; pages that are encrypted cannot be read.
static dgm_status take_method(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    (void)cookie;
    if (e->kind != DGM_XML_OPEN || strcmp(dgm_xml_local(e->name), "EncryptionMethod") != 0) return DGM_OK;
    const char *method = dgm_xml_attribute(e, "Algorithm");
    DGM_FAIL_IF(method && strstr(method, "xmlenc#"), err, DGM_ERR_UNSUPPORTED,
                "the book is encrypted (digital rights management) and cannot be read");
    return DGM_OK;
}

// ---- pages ---------------------------------------------------------------------------------------

static dgm_status read_page(book *b, size_t member, bool xml, dgm_error *err)
{
    char *data;
    size_t size;
    int source;
    DGM_TRY(dgm_package_load(b->p, member, &data, &size, err));
    DGM_TRY(dgm_document_add_source(b->d, data, size, &source, err));
    DGM_TRY(dgm_package_part(b->p, member, source, false, err));
    const dgm_status st = dgm_html_read(b->d, source, xml, err);
    if (st == DGM_ERR_FORMAT) dgm_error_prefix(err, "%s", dgm_zip_name(dgm_package_zip(b->p), member));
    return st;
}

static dgm_status read_book(book *b, dgm_error *err)
{
    static const char encryption[] = "META-INF/encryption.xml";
    if (dgm_zip_find(dgm_package_zip(b->p), encryption) >= 0) DGM_TRY(walk_member(b, encryption, take_method, err));
    DGM_TRY(walk_member(b, "META-INF/container.xml", take_root, err));
    DGM_FAIL_IF(!b->opf, err, DGM_ERR_FORMAT, "META-INF/container.xml names no package document");
    DGM_TRY(walk_member(b, b->opf, take_item, err));
    for (size_t i = 0; i < b->count; i++) {
        const page *p = &b->pages[i];
        if (dgm_package_has(b->p, p->member)) continue; // it is listed twice
        if (p->kind == PAGE_CONTENTS)
            DGM_TRY(dgm_office_part(b->d, b->p, p->member, &contents, err));
        else
            DGM_TRY(read_page(b, p->member, p->kind == PAGE_XHTML, err));
    }
    return DGM_OK;
}

static dgm_status read_epub(dgm_document *d, dgm_error *err)
{
    book b = {.d = d};
    DGM_TRY(dgm_package_open(d, &b.p, err));
    const dgm_status st = read_book(&b, err);
    dgm_free(b.opf);
    dgm_free(b.pages);
    return st;
}

static bool sniff_epub(dgm_text data)
{
    static const char begin[] = "mimetypeapplication/epub+zip";
    enum { HEADER = 30 };
    return data.size > HEADER + sizeof begin && memcmp(data.data, "PK\3\4", 4) == 0 &&
           memcmp(data.data + HEADER, begin, sizeof begin - 1) == 0;
}

const dgm_document_reader dgm_epub_reader = {
    .format = {.size = sizeof(dgm_document_format),
               .name = "epub",
               .endings = "epub",
               .summary = "books: pages and table of contents"},
    .sniff = sniff_epub,
    .binary = true,
    .read = read_epub,
    .write = dgm_package_write,
};
