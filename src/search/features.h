// SPDX-License-Identifier: MIT
// Which features go together: one table (features_table.c), asked when a translator or a search is
// opened, when a line brings a feature of its own, by the program before it does anything, and by
// `dragoman features`, which prints it.
//
//     dgm_asked          what was asked for, flat: settings, search, how the models write
//       | the predicate of every row
//     dgm_combination    search, writing, facts about the models, set of features
//       | dgm_combination_check
//     DGM_OK, or the one sentence that says which two things cannot be combined and why
//
// What is not known yet (no model is loaded, the search is left to it) refuses nothing.
#ifndef DGM_SEARCH_FEATURES_H
#define DGM_SEARCH_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "model/model.h"

// How a model writes; bits of dgm_feature_place.writings, as those of searches are of the others.
typedef enum dgm_writing {
    DGM_WRITES_L2R = 0, // one word a step, from left to right
    DGM_WRITES_R2L,
    DGM_WRITES_PAIRS_L2R, // two words a step
    DGM_WRITES_PAIRS_R2L,
    DGM_WRITES_PAIRS_BOTH, // the first and the last, then inwards
    DGM_WRITES_WHOLE,      // whole sentences, filled in
    DGM_WRITES_COUNT
} dgm_writing;

// What some features want of every model; bits of dgm_combination.facts.
enum {
    DGM_FACT_RECURRENT = 1,
    DGM_FACT_WORDS = 2, // vocabularies of words, not of subwords
    DGM_FACT_SELF_NORMALISED = 4,
    DGM_FACT_ALIKE = 8, // all models write in the same way
    DGM_FACT_SCALED = 16, // static scales are stored, and products are in i8 or i16
    DGM_FACTS_ALL = 31
};

typedef enum dgm_feature {
    DGM_FEATURE_BEAM = 0,
    DGM_FEATURE_BEAM_WIDTH,
    DGM_FEATURE_DIVERSITY,
    DGM_FEATURE_COVERAGE,
    DGM_FEATURE_NO_REPEAT,
    DGM_FEATURE_REPETITION,
    DGM_FEATURE_MIN_LENGTH,
    DGM_FEATURE_MAX_ROWS,
    DGM_FEATURE_TOP_K,
    DGM_FEATURE_TOP_P,
    DGM_FEATURE_TEMPERATURE,
    DGM_FEATURE_SEED,
    DGM_FEATURE_CUBE,
    DGM_FEATURE_CUBE_NAIVE,
    DGM_FEATURE_CUBE_KEY,
    DGM_FEATURE_CUBE_KEY_NONE,
    DGM_FEATURE_APPROXIMATE,
    DGM_FEATURE_PAIRS,
    DGM_FEATURE_ITERATIONS,
    DGM_FEATURE_LENGTHS,
    DGM_FEATURE_CLUSTERS,
    DGM_FEATURE_SHORTLIST,
    DGM_FEATURE_SOURCE_TOKENS,
    DGM_FEATURE_SOFTMAX_OFF,
    DGM_FEATURE_ALIGNMENT,
    DGM_FEATURE_UNKNOWN,
    DGM_FEATURE_PREFIX,
    DGM_FEATURE_END,
    DGM_FEATURE_CONSTRAINTS,
    DGM_FEATURE_TERMS,
    DGM_FEATURE_KEEP,
    DGM_FEATURE_LMBR,
    DGM_FEATURE_EVIDENCE,
    DGM_FEATURE_LMBR_THETAS,
    DGM_FEATURE_LMBR_TUNE,
    DGM_FEATURE_LMBR_DUMP,
    DGM_FEATURE_LATTICE,
    DGM_FEATURE_LATTICE_WEIGHT,
    DGM_FEATURE_ENSEMBLE,
    DGM_FEATURE_DIRECTIONS,
    DGM_FEATURE_RERANK,
    DGM_FEATURE_PIVOT,
    DGM_FEATURE_SOURCE_AUTO,
    DGM_FEATURE_SCORE,
    DGM_FEATURE_PRECOMPUTE,
    DGM_FEATURE_PLAIN_ATTENTION,
    DGM_FEATURE_SEPARATE_STATES,
    DGM_FEATURE_STATIC_SCALES,
    DGM_FEATURE_RESUME,
    DGM_FEATURE_FORMAT,
    DGM_FEATURE_COUNT
} dgm_feature;

#define DGM_FEATURE_BIT(feature) ((uint64_t)1 << (feature))

// Everything that features depend on. Zero: not asked for, except where said.
typedef struct dgm_asked {
    const char *search;  // NULL or "auto": not chosen yet
    int writing;         // dgm_writing of the first model; -1: no model is loaded yet
    unsigned facts;      // that hold for every model; DGM_FACTS_ALL while none is loaded
    int models;          // how many
    int beam, nbest;     // as the caller said; 0: not
    int min_length, max_rows, no_repeat, top_k, iterations, lengths, precompute;
    float beam_width, diversity, coverage, repetition, temperature, top_p, lattice_weight;
    uint64_t seed;
    bool cube, cube_key, pairs; // they were given
    bool cube_naive, cube_key_none; // with these values
    bool shortlist, source_tokens_off; // any but the whole vocabulary was chosen; without the source's
    bool approximate;           // scores as accelerated cube pruning has them
    bool clusters, softmax_off, alignment, replace_unknown, plain_attention, separate_states;
    bool static_scales;
    bool lmbr, phrases, lattice, terms, keep;
    bool directions; // lines have their own
    bool prefix, end, constraints; // of a line: its beginning, its end alone, anything else
    bool score;                    // given translations are scored
} dgm_asked;

typedef struct dgm_combination {
    int search, writing; // index of dgm_search_rows, dgm_writing; -1: not known yet
    unsigned facts;
    uint64_t features; // DGM_FEATURE_BIT
} dgm_combination;

// Searches and writings that a feature works with, both as bits.
typedef struct dgm_feature_place {
    unsigned searches, writings;
} dgm_feature_place;

enum { DGM_FEATURE_PLACES = 2 };

typedef struct dgm_feature_row {
    const char *name;    // that of the option, without dashes
    const char *setting; // where the library takes it from; NULL: a feature of the program
    bool of_some;        // a setting of some searches or kinds of models: elsewhere there is nothing to set
    bool (*asked)(const dgm_asked *a); // NULL: only named (dgm_feature_find)
    dgm_feature_place places[DGM_FEATURE_PLACES]; // any of them; all zero: everywhere
    unsigned facts;                               // all of them are needed
    uint64_t needs, excludes;                     // other features
    const char *why;     // behind a colon: why it is not to be had elsewhere
    const char *why_not; // the same for what it excludes; NULL: why
    // Where it would have a meaning and is not built yet, and which of `excludes` would have one.
    dgm_feature_place later;
    uint64_t excludes_later;
} dgm_feature_row;

typedef struct dgm_search_row {
    const char *name;
    unsigned writings;
    const char *why;
} dgm_search_row;

typedef struct dgm_writing_row {
    const char *name;
    const char *words; // "a model that ..."
} dgm_writing_row;

extern const dgm_feature_row dgm_feature_table[DGM_FEATURE_COUNT];
extern const dgm_search_row dgm_search_rows[]; // as dgm_search_table; a NULL name at the end
extern const dgm_writing_row dgm_writing_rows[DGM_WRITES_COUNT];

dgm_writing dgm_writing_of(const dgm_model_info *m);
int dgm_feature_find(const char *name); // -1: there is none
int dgm_search_find(const char *name);  // likewise; "auto", NULL: -1
int dgm_writing_find(const char *name); // likewise

dgm_combination dgm_combination_of(const dgm_asked *a);
// DGM_ERR_UNSUPPORTED where the models are to blame, else DGM_ERR_ARGUMENT. *later (NULL allowed):
// what was refused would have a meaning.
dgm_status dgm_combination_check(const dgm_combination *c, bool *later, dgm_error *err);
// Both.
dgm_status dgm_asked_check(const dgm_asked *a, dgm_error *err);

#endif
