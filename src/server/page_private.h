// SPDX-License-Identifier: MIT
// Private to the pages: what scripts/embed_page makes of src/server/page, how it is filled in, and how it is sent.
#ifndef DGM_SERVER_PAGE_PRIVATE_H
#define DGM_SERVER_PAGE_PRIVATE_H

#include "server/server_private.h"

extern const unsigned char dgm_page_translate[], dgm_page_status[];
extern const size_t dgm_page_translate_size, dgm_page_status_size;

// A page as it lies in the program. Where {{name}} stands in it, the field of this name is written.
typedef struct dgm_page_field {
    const char *name;
    void (*put)(dgm_writer *w, void *user);
} dgm_page_field;

typedef struct dgm_page {
    int which; // DGM_PAGE_...
    const unsigned char *data;
    size_t size;
    const dgm_page_field *fields;
    size_t field_count;
    bool cached; // clients may keep it, and ask whether it is still the same
} dgm_page;

// Text as HTML, also inside of a quoted attribute.
void dgm_page_put(dgm_writer *w, const char *text, size_t size);
void dgm_page_put_string(dgm_writer *w, const char *text);
// What addresses begin with: "" (they are relative), or "/mt/" where the server has a prefix.
void dgm_page_put_base(dgm_writer *w, const dgm_server *s);
void dgm_page_put_title(dgm_writer *w, const dgm_server *s);

// Fills the page in and answers with it: with the headers of a page, compressed where the client likes it, 304 where
// the client has it already.
void dgm_page_answer(dgm_request *q, int status, const dgm_page *page, void *user);

#endif
