// SPDX-License-Identifier: MIT
// One line of a constraints file: what the translation of the line beside it must and must not say.
// Grammar and meaning: docs/manual/CONSTRAINTS.md.
//
//     house => Haus | Gebäude<TAB>! Hütte<TAB>^ Das<TAB>$ .
//
//     entries between tabs; "SOURCE => TARGET" a term, "TARGET" forced words, "!" forbidden words,
//     "^" a beginning, "$" an end; "|" between variants; "\" before a character takes it literally
#ifndef DGM_CONSTRAINT_DEMANDS_H
#define DGM_CONSTRAINT_DEMANDS_H

#include "text/unicode.h"

typedef enum dgm_demand_kind {
    DGM_DEMAND_TERM = 0, // one of the variants must occur; with a source: where that occurs
    DGM_DEMAND_FORBID,   // none of the variants may occur
    DGM_DEMAND_BEGIN,    // one variant
    DGM_DEMAND_END       // one variant
} dgm_demand_kind;

// A stretch of dgm_demands.text.
typedef struct dgm_stretch {
    size_t begin, size;
} dgm_stretch;

typedef struct dgm_demand {
    dgm_demand_kind kind;
    dgm_stretch source; // size 0: none
    size_t first, count; // of its variants
} dgm_demand;

// Start with all zero; a call replaces the content and keeps the memory.
typedef struct dgm_demands {
    dgm_demand *items;
    size_t count, item_cap;
    dgm_stretch *variants;
    size_t variant_count, variant_cap;
    dgm_writer text;
} dgm_demands;

// DGM_ERR_TEXT with a message such as "constraint 2: ..." where the line is malformed; nothing of it
// counts then.
dgm_status dgm_demands_parse(dgm_demands *d, dgm_text line, dgm_error *err);
void dgm_demands_free(dgm_demands *d); // ready for use again

static inline dgm_text dgm_demands_text(const dgm_demands *d, dgm_stretch s)
{
    return (dgm_text){s.size ? (const char *)d->text.data + s.begin : "", s.size};
}

#endif
