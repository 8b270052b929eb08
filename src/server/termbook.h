// SPDX-License-Identifier: MIT
// Terms of one direction with an index, made once and shared by requests: which of them stand in a text? A glossary of
// a hundred thousand terms is looked through in the time that its text takes, not in the time that its terms would.
#ifndef DGM_SERVER_TERMBOOK_H
#define DGM_SERVER_TERMBOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Where `source` stands in a sentence, `target` must stand in its translation.
typedef struct dgm_term {
    const char *source, *target;
} dgm_term;

// Never changes; any number of threads.
typedef struct dgm_termbook dgm_termbook;

// Copies terms, whose order counts; no source is empty. Of several with one source each is found.
dgm_status dgm_termbook_make(dgm_termbook **book, const dgm_term *terms, size_t count, dgm_error *err);
dgm_termbook *dgm_termbook_hold(dgm_termbook *book); // one more who drops it
void dgm_termbook_drop(dgm_termbook **book);         // the last one frees it; accepts NULL inside

size_t dgm_termbook_count(const dgm_termbook *book);
const dgm_term *dgm_termbook_at(const dgm_termbook *book, size_t number);
size_t dgm_termbook_bytes(size_t count, size_t letters); // of memory, about; letters of both sides

// Sets bit n of `marks` (a bit for each term, 64 a number) for every term whose source stands in the text, within
// words, too; ASCII letters in any case. Other bits stay; those that are set must come from the same text.
void dgm_termbook_mark(const dgm_termbook *book, const char *text, size_t size, uint64_t *marks);

#endif
