// SPDX-License-Identifier: MIT
// Office documents: docx, pptx, xlsx (Office Open XML) and odt, ods, odp (OpenDocument). Which members hold text, and
// how.
#include <string.h>

#include "base/mem.h"
#include "base/xml.h"
#include "document/office_private.h"

// ---- Office Open XML -----------------------------------------------------------------------------

static const dgm_office_grammar word = {
    .paragraph = "p",
    .text = "t",
    .run = "r",
    .around = "hyperlink ins moveTo smartTag customXml sdt sdtContent fldSimple dir bdo",
    .breaks = "br cr tab ptab",
    .keeps_space = true,
};
// Slides, and drawings in all three formats.
static const dgm_office_grammar drawing = {.paragraph = "p", .text = "t", .run = "r", .breaks = "br"};
// Cells, and the notes of cells.
static const dgm_office_grammar cells = {
    .paragraph = "si is text", .text = "t", .run = "r", .keeps_space = true, .flags = DGM_SEGMENT_LINES};
// Comments that are plain text.
static const dgm_office_grammar plain = {.paragraph = "text", .flags = DGM_SEGMENT_LINES};

// Types of parts with text, by what [Content_Types].xml says of them.
static const struct part_type {
    const char *type; // a part of it
    const dgm_office_grammar *grammar;
} part_types[] = {
    {"wordprocessingml.document.main+", &word},
    {"wordprocessingml.template.main+", &word},
    {"ms-word.document.macroEnabled.main+", &word},
    {"ms-word.template.macroEnabledTemplate.main+", &word},
    {"wordprocessingml.header+", &word},
    {"wordprocessingml.footer+", &word},
    {"wordprocessingml.footnotes+", &word},
    {"wordprocessingml.endnotes+", &word},
    {"wordprocessingml.comments+", &word},
    {"presentationml.slide+", &drawing},
    {"presentationml.notesSlide+", &drawing},
    {"presentationml.comments+", &plain},
    {"drawingml.diagramData+", &drawing},
    {"drawingml.diagramDrawing+", &drawing},
    {"drawingml.chart+", &drawing},
    {"officedocument.drawing+", &drawing},
    {"spreadsheetml.sharedStrings+", &cells},
    {"spreadsheetml.worksheet+", &cells},
    {"spreadsheetml.comments+", &cells},
    {"ms-excel.threadedcomments+", &plain},
};

static const dgm_office_grammar *grammar_of(const char *type)
{
    for (size_t i = 0; i < sizeof part_types / sizeof *part_types; i++)
        if (strstr(type, part_types[i].type)) return part_types[i].grammar;
    return NULL;
}

typedef struct found_part {
    size_t member;
    const dgm_office_grammar *grammar;
} found_part;

typedef struct types_walk {
    dgm_zip *zip;
    found_part *parts;
    size_t count, cap;
} types_walk;

static dgm_status take_type(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    types_walk *w = cookie;
    if (e->kind != DGM_XML_OPEN || strcmp(dgm_xml_local(e->name), "Override") != 0) return DGM_OK;
    const char *name = dgm_xml_attribute(e, "PartName"), *type = dgm_xml_attribute(e, "ContentType");
    const dgm_office_grammar *grammar = name && type ? grammar_of(type) : NULL;
    if (!grammar) return DGM_OK;
    const int member = dgm_zip_find(w->zip, name + (name[0] == '/'));
    DGM_FAIL_IF(member < 0, err, DGM_ERR_FORMAT, "the part '%.100s' is missing", name);
    DGM_TRY(dgm_grow(&w->parts, &w->cap, w->count + 1, sizeof *w->parts, err));
    w->parts[w->count++] = (found_part){(size_t)member, grammar};
    return DGM_OK;
}

static dgm_status find_parts(dgm_package *p, types_walk *w, dgm_error *err)
{
    static const char types[] = "[Content_Types].xml";
    char *data;
    size_t size;
    const int member = dgm_zip_find(w->zip, types);
    DGM_FAIL_IF(member < 0, err, DGM_ERR_FORMAT, "an archive, but no Office document: %s is missing", types);
    DGM_TRY(dgm_package_load(p, (size_t)member, &data, &size, err));
    const dgm_status st = dgm_xml_walk((dgm_text){data, size}, take_type, w, err);
    dgm_free(data);
    if (st == DGM_ERR_FORMAT) dgm_error_prefix(err, "%s", types);
    return st;
}

static dgm_status read_ooxml(dgm_document *d, dgm_error *err)
{
    dgm_package *p;
    DGM_TRY(dgm_package_open(d, &p, err));
    types_walk w = {.zip = dgm_package_zip(p)};
    dgm_status st = find_parts(p, &w, err);
    if (st == DGM_OK && w.count == 0)
        st = dgm_fail(err, DGM_ERR_FORMAT, "an archive, but no Office document: no part of it has text");
    for (size_t i = 0; i < w.count && st == DGM_OK; i++)
        if (!dgm_package_has(p, w.parts[i].member))
            st = dgm_office_part(d, p, w.parts[i].member, w.parts[i].grammar, err);
    dgm_free(w.parts);
    return st;
}

// ---- OpenDocument --------------------------------------------------------------------------------

static const dgm_office_grammar open_document = {
    .paragraph = "p h", .around = "span a meta", .breaks = "line-break tab", .skip = "tracked-changes"};

static dgm_status check_encrypted(dgm_package *p, dgm_error *err)
{
    char *data;
    size_t size;
    const int member = dgm_zip_find(dgm_package_zip(p), "META-INF/manifest.xml");
    if (member < 0) return DGM_OK;
    DGM_TRY(dgm_package_load(p, (size_t)member, &data, &size, err));
    const bool encrypted = strstr(data, "encryption-data") != NULL;
    dgm_free(data);
    DGM_FAIL_IF(encrypted, err, DGM_ERR_UNSUPPORTED, "the document is encrypted: save it without a password");
    return DGM_OK;
}

static dgm_status read_odf(dgm_document *d, dgm_error *err)
{
    static const char *const names[] = {"content.xml", "styles.xml"}; // headers and footers are in styles
    dgm_package *p;
    DGM_TRY(dgm_package_open(d, &p, err));
    DGM_TRY(check_encrypted(p, err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int member = dgm_zip_find(dgm_package_zip(p), names[i]);
        DGM_FAIL_IF(member < 0 && i == 0, err, DGM_ERR_FORMAT, "an archive, but no OpenDocument: %s is missing",
                    names[i]);
        if (member >= 0) DGM_TRY(dgm_office_part(d, p, (size_t)member, &open_document, err));
    }
    return DGM_OK;
}

// ---- which kind is it? -----------------------------------------------------------------------------

static bool holds(dgm_text t, const char *what)
{
    const size_t n = strlen(what);
    for (size_t i = 0; i + n <= t.size; i++)
        if (memcmp(t.data + i, what, n) == 0) return true;
    return false;
}

// A name in the directory, which stands at the archive's end.
static bool lists(dgm_text data, const char *name)
{
    enum { END = 1 << 16 };
    if (data.size < 4 || memcmp(data.data, "PK\3\4", 4) != 0) return false;
    const size_t skip = data.size > END ? data.size - END : 0;
    return holds((dgm_text){data.data + skip, data.size - skip}, name);
}

static bool sniff_docx(dgm_text data)
{
    return lists(data, "word/document");
}

static bool sniff_pptx(dgm_text data)
{
    return lists(data, "ppt/presentation");
}

static bool sniff_xlsx(dgm_text data)
{
    return lists(data, "xl/workbook");
}

// Its first member says what it is, and is not compressed.
static bool has_type(dgm_text data, const char *type)
{
    char begin[128];
    enum { HEADER = 30 };
    const size_t n = strlen(strcat(strcpy(begin, "mimetypeapplication/vnd.oasis.opendocument."), type));
    return data.size > HEADER + n && memcmp(data.data, "PK\3\4", 4) == 0 && memcmp(data.data + HEADER, begin, n) == 0;
}

static bool sniff_odt(dgm_text data)
{
    return has_type(data, "text");
}

static bool sniff_ods(dgm_text data)
{
    return has_type(data, "spreadsheet");
}

static bool sniff_odp(dgm_text data)
{
    return has_type(data, "presentation");
}

#define OFFICE(its_name, its_endings, what, sniffs, reads)                                                             \
    {                                                                                                                  \
        .format = {.size = sizeof(dgm_document_format), .name = its_name, .endings = its_endings, .summary = what},    \
        .sniff = sniffs, .binary = true, .read = reads, .write = dgm_package_write                                     \
    }

const dgm_document_reader dgm_docx_reader =
    OFFICE("docx", "docx docm dotx dotm", "Word: paragraphs, tables, text boxes, headers, footers, notes, comments",
           sniff_docx, read_ooxml);
const dgm_document_reader dgm_pptx_reader = OFFICE(
    "pptx", "pptx pptm ppsx", "PowerPoint: slides, their notes, tables, diagrams, comments", sniff_pptx, read_ooxml);
const dgm_document_reader dgm_xlsx_reader =
    OFFICE("xlsx", "xlsx xlsm xltx", "Excel: texts of cells, comments, text boxes; no formulas, no names of sheets",
           sniff_xlsx, read_ooxml);
const dgm_document_reader dgm_odt_reader = OFFICE(
    "odt", "odt ott", "OpenDocument text: paragraphs, tables, notes, comments, headers, footers", sniff_odt, read_odf);
const dgm_document_reader dgm_ods_reader =
    OFFICE("ods", "ods ots", "OpenDocument spreadsheet: texts of cells, comments", sniff_ods, read_odf);
const dgm_document_reader dgm_odp_reader =
    OFFICE("odp", "odp otp", "OpenDocument presentation: slides and their notes", sniff_odp, read_odf);
