// SPDX-License-Identifier: MIT
// XML parts of office documents: which elements are paragraphs, where text stands in them, what is formatting.
//
// A paragraph is a segment. In OpenDocument text stands in the paragraph itself, and elements around parts of it (a
// span, a link) are inline tags. In the formats of Microsoft's programs a paragraph is a row of runs, each with its
// properties and its text element: what lies between two texts ("</w:t></w:r><w:r><w:rPr>...</w:rPr><w:t>") ends one
// run and begins another, wherever it is put, and is one tag.
#ifndef DGM_DOCUMENT_OFFICE_PRIVATE_H
#define DGM_DOCUMENT_OFFICE_PRIVATE_H

#include "document/package_private.h"

// Names of elements without prefixes, with spaces between them.
typedef struct dgm_office_grammar {
    const char *paragraph;
    const char *text;   // elements whose text counts; NULL: text in the paragraph itself
    const char *run;    // elements of a paragraph around texts of the same properties
    const char *around; // other elements of a paragraph that its text may stand in: links, insertions
    const char *breaks; // end a line
    const char *skip;   // are not looked into: text that was deleted
    bool keeps_space;   // text elements need xml:space="preserve" where spaces stand at their ends
    unsigned flags;     // of segments
} dgm_office_grammar;

// What stands in a paragraph, in order. Places are in the source that the paragraph lies in.
typedef enum dgm_office_kind {
    DGM_OFFICE_PARAGRAPH, // its start tag
    DGM_OFFICE_END,       // its end tag
    DGM_OFFICE_TEXT,      // a part of a text: several may follow each other
    DGM_OFFICE_TEXT_TAG,  // the start tag of a text element
    DGM_OFFICE_OPEN,      // start tag of an element around text
    DGM_OFFICE_CLOSE,
    DGM_OFFICE_RUN,        // start tag of a run
    DGM_OFFICE_PROPERTIES, // of the run around: a whole element
    DGM_OFFICE_FIELD,      // a field begins, as if an element did
    DGM_OFFICE_FIELD_END,
    DGM_OFFICE_BREAK, // a whole element
    DGM_OFFICE_OBJECT // whatever else there is, whole
} dgm_office_kind;

typedef struct dgm_office_item {
    dgm_office_kind kind;
    size_t begin, end;
    uint64_t path; // of the run and text elements it stands in, from the last element around text on: a hash of names
} dgm_office_item;

// Reads a member; its text becomes segments.
dgm_status dgm_office_part(dgm_document *d, dgm_package *p, size_t member, const dgm_office_grammar *g, dgm_error *err);

// Segments of the paragraphs of a source: with runs, without.
dgm_status dgm_office_runs(dgm_document *d, dgm_package *p, int source, const dgm_office_grammar *g,
                           const dgm_office_item *items, size_t count, dgm_error *err);
dgm_status dgm_office_spans(dgm_document *d, int source, const dgm_office_grammar *g, const dgm_office_item *items,
                            size_t count, dgm_error *err);

// Is a name in a list of names with spaces between them? NULL: no list.
bool dgm_office_listed(const char *list, const char *name);

#endif
