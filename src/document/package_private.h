// SPDX-License-Identifier: MIT
// Documents that are zip archives: office documents and books. The members that hold text are sources of the document;
// all others are copied as they are packed.
//
// XML in which a paragraph may stand inside another (a footnote, a text box) is cut into several sources, each without
// nesting: where something was cut out stands a mark with the number of its source, which no XML can hold otherwise,
// and writing puts it back (office_part.c).
#ifndef DGM_DOCUMENT_PACKAGE_PRIVATE_H
#define DGM_DOCUMENT_PACKAGE_PRIVATE_H

#include "base/zip.h"
#include "document/document.h"

enum { DGM_MARK_BEGIN = 1, DGM_MARK_END = 2 }; // characters around the number of a source

typedef struct dgm_package dgm_package;

// Opens source 0 as an archive, unpacks all of it once to see that nothing is damaged or too large, and makes it the
// document's state.
dgm_status dgm_package_open(dgm_document *d, dgm_package **p, dgm_error *err);
dgm_zip *dgm_package_zip(dgm_package *p);

// A member's bytes, to be freed by dgm_free. What is no UTF-8 is refused.
dgm_status dgm_package_load(dgm_package *p, size_t member, char **data, size_t *size, dgm_error *err);
// Says that a member's text is in this source. marked: other sources were cut out of it.
dgm_status dgm_package_part(dgm_package *p, size_t member, int source, bool marked, dgm_error *err);
bool dgm_package_has(const dgm_package *p, size_t member); // was it said of this member?
// Memory that lives as long as the package; NULL: none left.
void *dgm_package_keep(dgm_package *p, size_t size);

// The `write` of such readers: the archive with the sources in place. One that is not changed is not packed again.
dgm_status dgm_package_write(const dgm_document *d, dgm_document_sink put, void *cookie, dgm_error *err);

#endif
