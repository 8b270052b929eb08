// SPDX-License-Identifier: MIT
// XML by expat: a walk over a document in memory, with the place of everything in the source, so that a writer can give
// the source back with other text in it.
//
// Nothing is fetched, and no entity that a document declares is expanded in its text: it comes as an event of its own.
// A document that nests entities in entities, or hides long ones, is refused, and so is one that grows in attributes
// (expat's limit): a file cannot grow on reading. Names are as written, prefix and all.
#ifndef DGM_BASE_XML_H
#define DGM_BASE_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/status.h"

enum { DGM_XML_DEPTH = 256 }; // elements inside each other, at most

typedef enum dgm_xml_kind {
    DGM_XML_OPEN,    // a start tag; of "<a/>" the whole tag
    DGM_XML_CLOSE,   // an end tag; of "<a/>" empty, behind the tag
    DGM_XML_TEXT,    // a part of a text: several may follow each other. A CDATA section is one
    DGM_XML_ENTITY,  // a reference to what the document or its type declares, "&nbsp;", which was not read
    DGM_XML_COMMENT, // whole
    DGM_XML_OTHER    // processing instructions, what belongs to the document type
} dgm_xml_kind;

typedef struct dgm_xml_event {
    dgm_xml_kind kind;
    size_t begin, end;             // bytes of the source
    const char *name;              // of an element; NULL otherwise
    const char *const *attributes; // DGM_XML_OPEN: names and values in turn, NULL behind them
    dgm_text text;                 // DGM_XML_TEXT: with entities and character references resolved, lines ended by "\n"
} dgm_xml_event;

// What it returns other than DGM_OK ends the walk.
typedef dgm_status (*dgm_xml_taker)(void *cookie, const dgm_xml_event *event, dgm_error *err);

// All of a document in UTF-8, whatever encoding it declares; a byte order mark may precede it. Messages begin with
// "line N: ", those of `take` about the format, too.
dgm_status dgm_xml_walk(dgm_text source, dgm_xml_taker take, void *cookie, dgm_error *err);

// The name without a prefix: "p" of "w:p".
const char *dgm_xml_local(const char *name);
// The value of an attribute of a start tag, by its name as written; NULL: it has none.
const char *dgm_xml_attribute(const dgm_xml_event *open, const char *name);
// Where the value of an attribute stands inside a start tag, without its quotes. False: it is not there.
bool dgm_xml_attribute_place(dgm_text tag, const char *name, size_t *begin, size_t *end);

// Text as content of an element: &, < and > become entities; in an attribute quotes, tabs and ends of lines, too. What
// no XML can hold (control characters) is left out.
void dgm_xml_write(dgm_writer *w, dgm_text text);
void dgm_xml_write_attribute(dgm_writer *w, dgm_text text);

#endif
