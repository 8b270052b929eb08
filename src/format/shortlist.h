// SPDX-License-Identifier: MIT
// Lexical shortlists: for every source token the target tokens it may become, and target tokens
// that are always allowed. Stored in a model file (docs/internals/FORMAT.md, section 2.6) or in Marian's
// binary file. vocabsel/lexical.c uses them while translating, the shortlist tool makes them.
#ifndef DGM_FORMAT_SHORTLIST_H
#define DGM_FORMAT_SHORTLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "format/gguf.h"

#define DGM_SHORTLIST_BEST_MAX 1000 // longest list of one source token
#define DGM_SHORTLIST_NEXT_MAX 256  // most continuations of one target token

// A whole list in memory, for tools. Lists are ascending and without repetition.
typedef struct dgm_shortlist {
    int sources, targets; // sizes of the vocabularies
    bool copy;            // source ids are allowed as target ids (one shared vocabulary)
    uint64_t *at;         // [sources + 1]
    int32_t *ids;         // [at[sources]]
    int32_t *frequent;    // always allowed
    int frequent_count;
    // Continuations: target tokens that are allowed behind a target token. NULL: none.
    uint64_t *next_at; // [targets + 1]
    int32_t *next_ids; // [next_at[targets]]
} dgm_shortlist;

void dgm_shortlist_close(dgm_shortlist **s); // sets NULL; accepts NULL inside
// Room for `entries` ids and `frequent` frequent ones; numbers are zero.
dgm_status dgm_shortlist_open(dgm_shortlist **s, int sources, int targets, uint64_t entries,
                              int frequent, dgm_error *err);
int dgm_shortlist_longest(const dgm_shortlist *s); // ids of the longest list
// Room for `entries` continuations; numbers are zero.
dgm_status dgm_shortlist_open_next(dgm_shortlist *s, uint64_t entries, dgm_error *err);

// ---- in a model file --------------------------------------------------------------------------

// A list where it lies in a model file, checked, with an index of its rows. Borrows from the file.
typedef struct dgm_shortlist_view {
    int sources, targets, longest;
    bool copy;
    const uint8_t *data;
    uint32_t *row; // [sources + 1] where the list of a source token begins in data
    const int32_t *frequent;
    int frequent_count;
    const uint8_t *next; // NULL: no continuations
    uint32_t *next_row;  // [targets + 1]
    int next_longest;
} dgm_shortlist_view;

bool dgm_shortlist_present(const dgm_gguf *g);
// Checks everything, the fit to the file's vocabularies too. On failure nothing is kept.
dgm_status dgm_shortlist_view_open(dgm_shortlist_view *v, const dgm_gguf *g, dgm_error *err);
void dgm_shortlist_view_close(dgm_shortlist_view *v); // accepts all zero
// The list of one source token, ascending; out [longest]. Returns its length.
int dgm_shortlist_view_row(const dgm_shortlist_view *v, int source, int32_t *out);
// The continuations of one target token likewise; out [next_longest].
int dgm_shortlist_view_next(const dgm_shortlist_view *v, int target, int32_t *out);

dgm_status dgm_shortlist_load(dgm_shortlist **s, const dgm_gguf *g, dgm_error *err);
// Sets the keys of a model file that is being written; g is the model it was made for. Replaces an
// older list. dgm_shortlist_drop only removes it.
dgm_status dgm_shortlist_store(const dgm_shortlist *s, const dgm_gguf *g, dgm_gguf_writer *w,
                               dgm_error *err);
void dgm_shortlist_drop(dgm_gguf_writer *w);

// ---- Marian's binary file ---------------------------------------------------------------------

// Marian knows only "the first N ids" as always allowed: other frequent tokens are written into the
// list of the source's end symbol, which is in every sentence. Reading gives them back as part of
// that list.
dgm_status dgm_shortlist_marian_write(const dgm_shortlist *s, int source_eos, dgm_writer *out,
                                      dgm_error *err);
// targets: size of the target vocabulary, ids are checked against it; sources likewise.
dgm_status dgm_shortlist_marian_read(dgm_shortlist **s, const void *data, size_t size, int sources,
                                     int targets, dgm_error *err);

#endif
