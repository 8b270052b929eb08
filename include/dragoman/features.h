// SPDX-License-Identifier: MIT
// Dragoman tools: which features can be combined. Conventions as in tools.h.
//
// One table says it for everybody: dgm_open refuses what cannot be combined, a line that brings a
// feature of its own (a prefix, constraints, a lattice) fails with the same sentence, and programs can
// ask before they do anything. `dragoman features` prints the table, docs/manual/FEATURES.md holds it.
#ifndef DRAGOMAN_FEATURES_H
#define DRAGOMAN_FEATURES_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Something that can be asked for beside a model and a text.
typedef struct dgm_feature_info {
    size_t size;
    const char *name;    // that of the program's option, without dashes: "beam-width"
    const char *setting; // "dgm_settings.beam_width"; NULL: a feature of the program alone
    const char *needs;   // another feature that it requires; NULL: none
    int of_some; // it is a setting of some searches or kinds of models: with others there is nothing to set
} dgm_feature_info;

// How many features there are, and the one with this index, from 0 (out may be NULL).
DGM_API size_t dgm_features_sized(size_t index, dgm_feature_info *out, size_t size);
static inline size_t dgm_features(size_t index, dgm_feature_info *out)
{
    return dgm_features_sized(index, out, sizeof *out);
}

// A search, or a way in which models write.
typedef struct dgm_way_info {
    const char *name; // "beam", "r2l"
    const char *text; // "a model that writes one word a step, from right to left"; a search: NULL
} dgm_way_info;

DGM_API size_t dgm_searches(size_t index, dgm_way_info *out); // likewise
DGM_API size_t dgm_writings(size_t index, dgm_way_info *out);

// What is true of all models; features that need it are refused elsewhere.
enum {
    DGM_MODELS_RECURRENT = 1,
    DGM_MODELS_OF_WORDS = 2, // vocabularies of words, not of subwords
    DGM_MODELS_SELF_NORMALISED = 4,
    DGM_MODELS_ALIKE = 8,   // they write in the same way
    DGM_MODELS_SCALED = 16, // they hold static scales, and products are in i8 or i16
    DGM_MODELS_ANY = 31     // nothing is known of them: nothing is refused
};

typedef struct dgm_feature_query {
    size_t size;
    const char *const *features; // [count] names
    size_t count;
    const char *search;  // NULL: not chosen yet
    const char *writing; // NULL: no model is known yet
    uint32_t models;     // DGM_MODELS_...
} dgm_feature_query;

// Can all of it be combined? DGM_ERR_ARGUMENT or, where the models are to blame, DGM_ERR_UNSUPPORTED:
// the error is the sentence that dgm_open would give. *later (NULL allowed): 1: it would have a
// meaning and is not built yet.
DGM_API dgm_status dgm_features_check(const dgm_feature_query *query, int *later, dgm_error *error);

// Can a feature be combined with what a translator was opened with? For features that come with lines.
DGM_API dgm_status dgm_translator_check(const dgm_translator *t, const char *feature,
                                        dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
