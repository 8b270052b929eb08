// SPDX-License-Identifier: MIT
// Documents: files of many kinds whose text is translated and whose other bytes stay as they are.
//
//     dgm_document *d = NULL;
//     dgm_document_open(&d, data, size, "page.html", NULL, &error);   refuses what is damaged
//     dgm_document_translate(d, translator, NULL, &error);
//     dgm_document_write(d, put, cookie, &error);
//     dgm_document_close(&d);
//
// Or line by line, for programs that have their own way to translate: dgm_document_line gives the lines to
// translate, plain text without tags; dgm_document_put takes their translations, in any order; what never
// comes back stays as it was. Conventions as in tools.h; docs/manual/DOCUMENTS.md says what is text in
// which kind of file.
#ifndef DRAGOMAN_DOCUMENT_H
#define DRAGOMAN_DOCUMENT_H

#include "dragoman/common.h"
#include "dragoman/memory.h"
#include "dragoman/route.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DGM_DOCUMENT_MAX ((size_t)512 << 20) // bytes of a file, and of all that is packed in it; more is refused

// ---- kinds of files ---------------------------------------------------------------------------

typedef struct dgm_document_format {
    size_t size;
    const char *name;    // "html": what dgm_document_options.format takes
    const char *endings; // of file names, with spaces between them: "html htm xhtml"
    const char *summary; // one line
} dgm_document_format;

// The kind with this index, from 0; NULL: there are no more.
DGM_API const dgm_document_format *dgm_document_format_at(size_t index);
// The kind that a file's name (NULL: none) or its first bytes tell; NULL: it is taken for lines of text.
DGM_API const dgm_document_format *dgm_document_format_of(const char *name, const void *data, size_t size);

// ---- a document -------------------------------------------------------------------------------

typedef struct dgm_document dgm_document;

// Fill with dgm_document_options_default, then change what you like. Strings are borrowed during the call.
typedef struct dgm_document_options {
    size_t size;
    const char *format; // its name; NULL: what the name or the bytes tell. Default NULL.
    // Tables (csv, tsv): the columns to translate, "2,4-6" by number from 1 or by the names in the first row,
    // with commas between them. Default NULL: csv and tsv are refused without it.
    const char *columns;
    // po, xliff: entries that have a translation are translated again. Default 0: empty and fuzzy ones alone.
    int32_t all;
    // Subtitles: no line of a cue is longer than this many columns, unless a word is. Default 0: as the
    // file's own longest line, at least 32.
    int32_t width;
    // BCP 47, of the text and of its translation: headers that name it, plural forms. Default NULL: not known.
    const char *source_language, *target_language;
    // 1: a line that comes again is a line again. Default 0: equal lines are one, whose translation goes to all
    // places.
    int32_t no_memory;
    // xml: names of elements with commas between them, all NULL by default. What lies in ignored ones stays as it is;
    // splitting ones end a sentence, inline ones do not. Which of the others do is found out, unless no_outline is 1.
    const char *ignore_tags, *splitting_tags, *inline_tags;
    int32_t no_outline;
    // Name of the file that the translation goes to: by its ending a PDF becomes text (.txt), or HTML (any other), and
    // ".pdf" is refused. Default NULL: HTML.
    const char *output;
} dgm_document_options;

DGM_API void dgm_document_options_init(dgm_document_options *options, size_t size);
static inline void dgm_document_options_default(dgm_document_options *options)
{
    dgm_document_options_init(options, sizeof *options);
}

// Reads a document; data may be freed afterwards. What is damaged, too large or no text is DGM_ERR_FORMAT
// with what is wrong and where. name: of the file, for its kind and for messages; NULL: none.
DGM_API dgm_status dgm_document_open(dgm_document **document, const void *data, size_t size, const char *name,
                                     const dgm_document_options *options, dgm_error *error);
DGM_API void dgm_document_close(dgm_document **document);

typedef struct dgm_document_info {
    size_t size;
    const char *format; // its name
    size_t lines;       // to translate, different ones unless no_memory is set
    size_t places;      // that they go to
    size_t tags;        // inline tags in them
    const char *notice; // what people should know, in one line ("a PDF becomes HTML"); NULL: nothing
} dgm_document_info;

DGM_API const dgm_document_info *dgm_document_describe(const dgm_document *document);

// Line `index`, from 0: UTF-8 without line breaks, tags taken out; no zero byte ends it. NULL: there is no such line.
DGM_API const char *dgm_document_line(const dgm_document *document, size_t index, size_t *size);
// Its translation. links: of its words, which white space separates (DGM_ALIGN_WORDS); none: tags are placed
// by the position of the words. A line is put at most once.
DGM_API dgm_status dgm_document_put(dgm_document *document, size_t index, const char *text, size_t size,
                                    const dgm_link *links, size_t link_count, dgm_error *error);

// Lines that a translation memory knows get their translation from it and are no longer asked for: the others move up.
// Called before the first dgm_document_put. *known: how many there were; NULL: nobody wants to know.
DGM_API dgm_status dgm_document_recall(dgm_document *document, const dgm_memory *memory, size_t *known,
                                       dgm_error *error);

// The document with all translations that were put.
typedef int (*dgm_document_sink)(void *cookie, const char *data, size_t size); // not 0: stop, DGM_ERR_IO
DGM_API dgm_status dgm_document_write(const dgm_document *document, dgm_document_sink put, void *cookie,
                                      dgm_error *error);
// The same into a file, which has its name only when it is whole; one whose name ends in .gz is compressed.
DGM_API dgm_status dgm_document_save(const dgm_document *document, const char *path, dgm_error *error);

// ---- translating a whole document ---------------------------------------------------------------

typedef struct dgm_document_work {
    size_t size;
    dgm_progress progress;
    uint64_t failed; // filled in: lines that could not be translated; they stay as they are
    // What goes with line i of dgm_document_line (prefix, constraints, evidence, lattice, direction); its text is not
    // looked at. As many as the document has lines, or NULL: nothing does.
    const dgm_input *inputs;
    size_t input_count;
} dgm_document_work;

// Translates all lines and puts them. Open the translator with settings.alignment = DGM_ALIGN_WORDS, so that tags
// find their words. work NULL: nobody watches.
DGM_API dgm_status dgm_document_translate(dgm_document *document, dgm_translator *translator, dgm_document_work *work,
                                          dgm_error *error);
// The same through a route: by two models one behind the other, each line from the language that it is in (route.h).
DGM_API dgm_status dgm_document_translate_route(dgm_document *document, dgm_route *route, dgm_document_work *work,
                                                dgm_error *error);

// ---- tags by themselves -------------------------------------------------------------------------

enum { DGM_TAGS_MOST = 4096 }; // in one text

typedef enum dgm_tag_kind {
    DGM_TAG_OPEN = 0,  // <b>
    DGM_TAG_CLOSE = 1, // </b>
    DGM_TAG_EMPTY = 2  // <br/>
} dgm_tag_kind;

// A tag that was taken out of a text: it stood before the byte `at`. Tags are in the order of the source; those at
// one place in the order in which they stood.
typedef struct dgm_tag {
    size_t at;
    int32_t kind; // dgm_tag_kind
    int32_t pair; // OPEN and CLOSE that belong together have the same number; -1: it has no partner
} dgm_tag;

// Where the tags belong in a translation: places[i] is the byte before which tags[i] stands. order[i] is the index of
// the tag that is written as number i: pairs are nested, each tag stands there once. Text is UTF-8; links are
// of words between white space, as dgm_translation.links has them; without links words are taken by position.
DGM_API dgm_status dgm_tags_place(const char *source, size_t source_size, const dgm_tag *tags, size_t count,
                                  const char *translation, size_t translation_size, const dgm_link *links,
                                  size_t link_count, size_t *places, size_t *order, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
