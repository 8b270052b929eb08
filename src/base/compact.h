// SPDX-License-Identifier: MIT
// Compact files, which are used as they are mapped: language models and phrase tables.
//
//     8 bytes that say what it is | header | section | section | ...
//
// A section is an array at the next multiple of 8 bytes. Readers check every section against the
// file's size, once, when it is opened; offsets inside sections are checked where they are used, so
// that opening a large file touches no more than its header.
//
// Both kinds hold tables of words (dgm_spellings): where each spelling begins, a hash table from
// spellings to numbers, the bytes of all spellings.
#ifndef DGM_BASE_COMPACT_H
#define DGM_BASE_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/mapfile.h"
#include "base/words.h"

enum { DGM_COMPACT_MAGIC = 8, DGM_COMPACT_KIND = 5 }; // bytes: the kind, then the version

typedef struct dgm_compact {
    const uint8_t *data; // the whole, as in the file
    size_t size;
    uint8_t *owned;   // built in memory
    dgm_mapfile file; // or mapped; neither: borrowed
} dgm_compact;

// Maps a file. If it does not begin with the kind's bytes it is text: *compact is false, nothing is
// open, and a pipe, which cannot be read again, is refused (`what`: "models").
dgm_status dgm_compact_map(dgm_compact *c, const char *path, const uint8_t *magic, const char *what,
                           bool *compact, dgm_error *err);
void dgm_compact_close(dgm_compact *c); // accepts all zero
// Makes an object of `size` bytes, all zero, whose first member is a dgm_compact, gives it the bytes
// and lets `read` fill in the rest. *out belongs to the caller; on failure it is NULL, and the bytes
// remain the caller's.
dgm_status dgm_compact_read(void *out, size_t size, const dgm_compact *bytes,
                            dgm_status (*read)(void *object, dgm_error *err), dgm_error *err);
dgm_status dgm_compact_save(const dgm_compact *c, const char *path, dgm_error *err);

// Checks kind and version ("not a language model of this version") and stands behind them.
dgm_status dgm_compact_begin(const dgm_compact *c, const uint8_t *magic, const char *what,
                             dgm_reader *r, dgm_error *err);
// The next section of count elements; NULL, and the reader is bad, when they do not fit.
const void *dgm_section(dgm_reader *r, uint64_t count, uint64_t size);
// All sections were there?
dgm_status dgm_compact_end(const dgm_reader *r, dgm_error *err);

void dgm_section_begin(dgm_writer *w); // zeros up to the next multiple of 8 bytes

// ---- words -------------------------------------------------------------------------------------

#define DGM_NO_SPELLING UINT32_MAX

typedef struct dgm_spellings {
    uint32_t count;
    uint64_t bytes, slot_count; // slot_count: power of two
    const uint64_t *at;         // [count + 1] where a word begins in text
    const uint32_t *slots;      // [slot_count] 0 = free, else word + 1; by hash of the spelling
    const char *text;           // [bytes]
} dgm_spellings;

// The sections; count, bytes and slot_count were read from the header. The slots' number is checked.
bool dgm_spellings_fit(const dgm_spellings *s);
void dgm_spellings_read(dgm_spellings *s, dgm_reader *r);
uint32_t dgm_spellings_find(const dgm_spellings *s, dgm_text word); // or DGM_NO_SPELLING
dgm_text dgm_spellings_get(const dgm_spellings *s, uint32_t word);  // "" where there is none

uint64_t dgm_spellings_slots(const dgm_words *words); // for the header
// The sections; order: number in the file -> number in words, NULL: the same.
dgm_status dgm_spellings_write(const dgm_words *words, const uint32_t *order, dgm_writer *w,
                               dgm_error *err);

#endif
