// SPDX-License-Identifier: MIT
// Text in Markdown: escaped where it would mean something, wrapped as its paragraph was.
#ifndef DGM_DOCUMENT_MD_TEXT_H
#define DGM_DOCUMENT_MD_TEXT_H

#include "document/document.h"

extern const dgm_escape dgm_md_escape;

dgm_status dgm_md_write(const dgm_document *d, size_t index, dgm_text encoded, dgm_writer *out, dgm_error *err);
// "&nbsp;" as text of the segment.
dgm_status dgm_md_entity(dgm_document *d, dgm_text raw, dgm_error *err);
// An identifier ("max_size") or an address, which the engine looks after, is shown to the model as it is; else shown
// is "": other code would be translated.
void dgm_md_shown(dgm_text text, bool address, char *shown, size_t room);

#endif
