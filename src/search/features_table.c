// SPDX-License-Identifier: MIT
// The table of features: for each, how one knows that it was asked for, where it works, what it
// cannot be combined with, and the reason. Nothing else in the library or the program decides about
// combinations; docs/manual/FEATURES.md is printed from here (`dragoman features --markdown`).
//
// A feature that a search or a way of writing is not named for is refused there, so a new search
// starts with nothing and is added row by row. Refused is what has no meaning; what has one and is
// not built yet says so (`later`).
#include "search/features.h"

#include <string.h>

// In the order of search_table.c.
enum {
    GREEDY = 1 << 0,
    BEAM = 1 << 1,
    CUBE = 1 << 2,
    SAMPLE = 1 << 3,
    DOUBLE = 1 << 4,
    MASK = 1 << 5,
    ONE_WORD = GREEDY | BEAM | CUBE | SAMPLE, // searches of one word a step
    ALL_SEARCHES = ONE_WORD | DOUBLE | MASK
};

enum {
    L2R = 1 << DGM_WRITES_L2R,
    R2L = 1 << DGM_WRITES_R2L,
    PAIRS_L2R = 1 << DGM_WRITES_PAIRS_L2R,
    PAIRS_R2L = 1 << DGM_WRITES_PAIRS_R2L,
    PAIRS_BOTH = 1 << DGM_WRITES_PAIRS_BOTH,
    WHOLE = 1 << DGM_WRITES_WHOLE,
    PAIRS = PAIRS_L2R | PAIRS_R2L | PAIRS_BOTH,
    ALL_WRITINGS = L2R | R2L | PAIRS | WHOLE
};

#define BIT(feature) DGM_FEATURE_BIT(DGM_FEATURE_##feature)

const dgm_search_row dgm_search_rows[] = {
    {"greedy", L2R | R2L, "it takes one word a step"},
    {"beam", L2R | R2L, "it takes one word a step"},
    {"cube", L2R | R2L, "it takes one word a step"},
    {"sample", L2R | R2L | PAIRS, "it draws words step by step"},
    {"double", PAIRS, "it takes two words a step"},
    {"mask-predict", WHOLE, "it fills in masked words"},
    {NULL, 0, NULL},
};

const dgm_writing_row dgm_writing_rows[DGM_WRITES_COUNT] = {
    [DGM_WRITES_L2R] = {"l2r", "a model that writes one word a step, from left to right"},
    [DGM_WRITES_R2L] = {"r2l", "a model that writes one word a step, from right to left"},
    [DGM_WRITES_PAIRS_L2R] = {"pairs-l2r", "a model that writes two words a step, from left to right"},
    [DGM_WRITES_PAIRS_R2L] = {"pairs-r2l", "a model that writes two words a step, from right to left"},
    [DGM_WRITES_PAIRS_BOTH] = {"pairs-both", "a model that writes two words a step, from both ends"},
    [DGM_WRITES_WHOLE] = {"masked", "a model that fills in whole sentences"},
};

// ---- is it asked for? --------------------------------------------------------------------------

static bool by(const dgm_asked *a, const char *search)
{
    return a->search && strcmp(a->search, search) == 0;
}

// One hypothesis is no beam, and what sampling draws is called so by the caller's leave.
static bool asks_beam(const dgm_asked *a)
{
    if (by(a, "mask-predict")) return a->beam > 0;
    if (by(a, "sample")) return a->beam > 0 && a->beam != a->nbest;
    return a->beam > 1;
}

#define ASKS(name, condition)                                                                      \
    static bool name(const dgm_asked *a)                                                           \
    {                                                                                              \
        return condition;                                                                          \
    }
ASKS(asks_beam_width, a->beam_width > 0.0f)
ASKS(asks_diversity, a->diversity > 0.0f)
ASKS(asks_coverage, a->coverage > 0.0f)
ASKS(asks_no_repeat, a->no_repeat > 0)
ASKS(asks_repetition, a->repetition > 0.0f && a->repetition != 1.0f)
ASKS(asks_min_length, a->min_length > 0)
ASKS(asks_max_rows, a->max_rows > 0)
ASKS(asks_top_k, a->top_k > 0)
ASKS(asks_top_p, a->top_p > 0.0f)
ASKS(asks_temperature, a->temperature > 0.0f)
ASKS(asks_seed, a->seed != 0)
ASKS(asks_cube, a->cube)
ASKS(asks_cube_naive, a->cube_naive)
ASKS(asks_cube_key, a->cube_key)
ASKS(asks_cube_key_none, a->cube_key_none)
ASKS(asks_approximate, a->approximate)
ASKS(asks_pairs, a->pairs)
ASKS(asks_iterations, a->iterations > 0)
ASKS(asks_lengths, a->lengths > 0)
ASKS(asks_clusters, a->clusters)
ASKS(asks_shortlist, a->shortlist)
ASKS(asks_source_tokens, a->source_tokens_off)
ASKS(asks_softmax_off, a->softmax_off)
ASKS(asks_alignment, a->alignment)
ASKS(asks_unknown, a->replace_unknown)
ASKS(asks_prefix, a->prefix)
ASKS(asks_end, a->end)
ASKS(asks_constraints, a->constraints)
ASKS(asks_terms, a->terms)
ASKS(asks_keep, a->keep)
ASKS(asks_lmbr, a->lmbr)
ASKS(asks_evidence, a->phrases)
ASKS(asks_lattice, a->lattice)
ASKS(asks_lattice_weight, a->lattice_weight != 0.0f)
ASKS(asks_ensemble, a->models > 1)
ASKS(asks_directions, a->directions)
ASKS(asks_score, a->score)
ASKS(asks_precompute, a->precompute > 0)
ASKS(asks_plain_attention, a->plain_attention)
ASKS(asks_separate_states, a->separate_states)
ASKS(asks_static_scales, a->static_scales)

// ---- the table ---------------------------------------------------------------------------------

static const char only_recurrent[] = "only recurrent models have products with states to save";
static const char only_draws[] = "it says how search sample draws words";

const dgm_feature_row dgm_feature_table[DGM_FEATURE_COUNT] = {
    // The search itself.
    [DGM_FEATURE_BEAM] = {.name = "beam",
                          .of_some = true,
                          .setting = "dgm_settings.beam",
                          .asked = asks_beam,
                          .places = {{BEAM | CUBE | DOUBLE, ALL_WRITINGS}},
                          .why = "greedy search has one hypothesis, sample draws as many "
                                 "translations as nbest says, mask-predict makes as many as "
                                 "lengths says"},
    [DGM_FEATURE_BEAM_WIDTH] = {.name = "beam-width",
                                .of_some = true,
                                .setting = "dgm_settings.beam_width",
                                .asked = asks_beam_width,
                                .places = {{BEAM | CUBE | DOUBLE | MASK, ALL_WRITINGS}},
                                .why = "without a beam whose hypotheses compete there is nothing "
                                       "to prune"},
    [DGM_FEATURE_DIVERSITY] = {.name = "diversity",
                               .of_some = true,
                               .setting = "dgm_settings.diversity",
                               .asked = asks_diversity,
                               .places = {{BEAM | CUBE | DOUBLE, ALL_WRITINGS}},
                               .why = "it lets hypotheses of one beam give way to each other; those of greedy "
                                      "search and mask-predict do not compete, and what sample draws is drawn "
                                      "independently: how diverse that is, temperature says"},
    [DGM_FEATURE_COVERAGE] = {.name = "coverage-penalty",
                              .setting = "dgm_settings.coverage_penalty",
                              .asked = asks_coverage},
    [DGM_FEATURE_NO_REPEAT] = {.name = "no-repeat-ngram",
                               .setting = "dgm_settings.no_repeat_ngram",
                               .asked = asks_no_repeat},
    [DGM_FEATURE_REPETITION] = {.name = "repetition-penalty",
                                .setting = "dgm_settings.repetition_penalty",
                                .asked = asks_repetition},
    [DGM_FEATURE_MIN_LENGTH] = {.name = "min-length",
                                .setting = "dgm_settings.min_length",
                                .asked = asks_min_length},
    [DGM_FEATURE_MAX_ROWS] = {.name = "max-rows",
                              .setting = "dgm_settings.max_rows",
                              .asked = asks_max_rows},
    [DGM_FEATURE_TOP_K] = {.name = "top-k",
                           .of_some = true,
                           .setting = "dgm_settings.top_k",
                           .asked = asks_top_k,
                           .places = {{SAMPLE, ALL_WRITINGS}},
                           .why = only_draws},
    [DGM_FEATURE_TOP_P] = {.name = "top-p",
                           .of_some = true,
                           .setting = "dgm_settings.top_p",
                           .asked = asks_top_p,
                           .places = {{SAMPLE, ALL_WRITINGS}},
                           .why = only_draws},
    [DGM_FEATURE_TEMPERATURE] = {.name = "temperature",
                                 .of_some = true,
                                 .setting = "dgm_settings.temperature",
                                 .asked = asks_temperature,
                                 .places = {{SAMPLE, ALL_WRITINGS}},
                                 .why = only_draws},
    [DGM_FEATURE_SEED] = {.name = "seed",
                          .of_some = true,
                          .setting = "dgm_settings.seed",
                          .asked = asks_seed,
                          .places = {{SAMPLE, ALL_WRITINGS}},
                          .why = only_draws},
    [DGM_FEATURE_CUBE] = {.name = "cube",
                          .of_some = true,
                          .setting = "dgm_settings.cube",
                          .asked = asks_cube,
                          .places = {{CUBE, ALL_WRITINGS}},
                          .why = "it is a setting of search cube"},
    [DGM_FEATURE_CUBE_NAIVE] = {.name = "cube-naive",
                                .of_some = true,
                                .setting = "dgm_settings.cube",
                                .asked = asks_cube_naive,
                                .places = {{CUBE, ALL_WRITINGS}},
                                .why = "it is a setting of search cube"},
    [DGM_FEATURE_CUBE_KEY] = {.name = "cube-key",
                              .of_some = true,
                              .setting = "dgm_settings.cube_key",
                              .asked = asks_cube_key,
                              .places = {{CUBE, ALL_WRITINGS}},
                              .why = "it is a setting of search cube"},
    [DGM_FEATURE_CUBE_KEY_NONE] = {.name = "cube-key-none",
                                   .of_some = true,
                                   .setting = "dgm_settings.cube_key",
                                   .asked = asks_cube_key_none,
                                   .places = {{CUBE, ALL_WRITINGS}},
                                   .why = "it is a setting of search cube"},
    [DGM_FEATURE_APPROXIMATE] = {.name = "approximate-scores",
                                 .of_some = true,
                                 .setting = "dgm_settings.approximate_scores",
                                 .asked = asks_approximate,
                                 .places = {{CUBE, ALL_WRITINGS}},
                                 .excludes = BIT(CUBE_NAIVE) | BIT(CUBE_KEY_NONE),
                                 .why = "other searches have the model's own scores",
                                 .why_not = "its scores are the model's own"},
    [DGM_FEATURE_PAIRS] = {.name = "pairs",
                           .of_some = true,
                           .setting = "dgm_settings.pairs",
                           .asked = asks_pairs,
                           .places = {{DOUBLE, ALL_WRITINGS}},
                           .why = "it is a setting of search double"},
    [DGM_FEATURE_ITERATIONS] = {.name = "iterations",
                                .of_some = true,
                                .setting = "dgm_settings.iterations",
                                .asked = asks_iterations,
                                .places = {{MASK, ALL_WRITINGS}},
                                .why = "it is a setting of search mask-predict"},
    [DGM_FEATURE_LENGTHS] = {.name = "lengths",
                             .of_some = true,
                             .setting = "dgm_settings.lengths",
                             .asked = asks_lengths,
                             .places = {{MASK, ALL_WRITINGS}},
                             .why = "it is a setting of search mask-predict"},
    // Scores and what is reported.
    [DGM_FEATURE_CLUSTERS] = {.name = "shortlist-cluster",
                              .setting = "dgm_settings.shortlist",
                              .asked = asks_clusters},
    [DGM_FEATURE_SHORTLIST] = {.name = "shortlist",
                               .setting = "dgm_settings.shortlist",
                               .asked = asks_shortlist},
    [DGM_FEATURE_SOURCE_TOKENS] = {.name = "source-tokens-off",
                                   .setting = "dgm_settings.source_tokens",
                                   .asked = asks_source_tokens,
                                   .needs = BIT(SHORTLIST)},
    [DGM_FEATURE_SOFTMAX_OFF] = {.name = "softmax-off",
                                 .setting = "dgm_settings.softmax",
                                 .asked = asks_softmax_off,
                                 .facts = DGM_FACT_SELF_NORMALISED,
                                 .why = "it was not trained to be self-normalised, so its scores "
                                        "need the softmax (force-off leaves it out all the same)"},
    [DGM_FEATURE_ALIGNMENT] = {.name = "alignment",
                               .setting = "dgm_settings.alignment",
                               .asked = asks_alignment},
    [DGM_FEATURE_UNKNOWN] = {.name = "unknown",
                             .setting = "dgm_settings.unknown",
                             .asked = asks_unknown,
                             .facts = DGM_FACT_WORDS,
                             .why = "unknown words are replaced by the source words that they "
                                    "attend to, which takes a vocabulary of words and attention"},
    // What a translation must and must not hold.
    [DGM_FEATURE_PREFIX] = {.name = "prefix",
                            .setting = "dgm_input.prefix",
                            .asked = asks_prefix},
    [DGM_FEATURE_END] = {.name = "forced-end",
                         .setting = "dgm_input.constraints, '$ WORDS'",
                         .asked = asks_end},
    [DGM_FEATURE_CONSTRAINTS] = {.name = "constraints",
                                 .setting = "dgm_input.constraints",
                                 .asked = asks_constraints},
    [DGM_FEATURE_TERMS] = {.name = "terms",
                           .setting = "dgm_settings.terms",
                           .asked = asks_terms},
    [DGM_FEATURE_KEEP] = {.name = "keep",
                          .setting = "dgm_settings.keep",
                          .asked = asks_keep},
    // Evidence.
    [DGM_FEATURE_LMBR] = {.name = "lmbr",
                          .setting = "dgm_settings.evidence",
                          .asked = asks_lmbr},
    [DGM_FEATURE_EVIDENCE] = {.name = "evidence",
                              .setting = "dgm_settings.phrase_system",
                              .asked = asks_evidence},
    [DGM_FEATURE_LMBR_THETAS] = {.name = "lmbr-thetas", .needs = BIT(LMBR)},
    [DGM_FEATURE_LMBR_TUNE] = {.name = "lmbr-tune", .needs = BIT(LMBR)},
    [DGM_FEATURE_LMBR_DUMP] = {.name = "lmbr-dump", .needs = BIT(LMBR)},
    [DGM_FEATURE_LATTICE] = {.name = "lattice",
                             .setting = "dgm_settings.lattices",
                             .asked = asks_lattice},
    [DGM_FEATURE_LATTICE_WEIGHT] = {.name = "lattice-weight",
                                    .setting = "dgm_settings.lattice_weight",
                                    .asked = asks_lattice_weight,
                                    .needs = BIT(LATTICE)},
    // Models.
    [DGM_FEATURE_ENSEMBLE] = {.name = "ensemble",
                              .setting = "dgm_open_ensemble",
                              .asked = asks_ensemble,
                              .facts = DGM_FACT_ALIKE,
                              .why = "its members choose words together: all must write in the same way"},
    [DGM_FEATURE_DIRECTIONS] = {.name = "directions",
                                .setting = "dgm_settings.direction_later",
                                .asked = asks_directions},
    [DGM_FEATURE_RERANK] = {.name = "rerank"},
    [DGM_FEATURE_PIVOT] = {.name = "pivot"},
    [DGM_FEATURE_SOURCE_AUTO] = {.name = "source-auto"},
    [DGM_FEATURE_SCORE] = {.name = "score",
                           .setting = "dgm_score_pairs",
                           .asked = asks_score},
    [DGM_FEATURE_PRECOMPUTE] = {.name = "precompute",
                                .of_some = true,
                                .setting = "dgm_settings.precompute",
                                .asked = asks_precompute,
                                .places = {{ONE_WORD, L2R | R2L}},
                                .facts = DGM_FACT_RECURRENT,
                                .why = only_recurrent},
    [DGM_FEATURE_PLAIN_ATTENTION] = {.name = "plain-attention",
                                     .of_some = true,
                                     .setting = "dgm_settings.plain_attention",
                                     .asked = asks_plain_attention,
                                     .places = {{ONE_WORD, L2R | R2L}},
                                     .facts = DGM_FACT_RECURRENT,
                                     .why = only_recurrent},
    [DGM_FEATURE_SEPARATE_STATES] = {.name = "separate-states",
                                     .of_some = true,
                                     .setting = "dgm_settings.separate_states",
                                     .asked = asks_separate_states,
                                     .places = {{ONE_WORD, L2R | R2L}},
                                     .facts = DGM_FACT_RECURRENT,
                                     .why = only_recurrent},
    [DGM_FEATURE_STATIC_SCALES] = {.name = "static-scales",
                                   .setting = "dgm_settings.static_scales",
                                   .asked = asks_static_scales,
                                   .facts = DGM_FACT_SCALED,
                                   .why = "it takes scales of activations, which 'dragoman quantize "
                                          "--calibrate TEXT' stores, and products in i8 or i16"},
    // Jobs of the program.
    [DGM_FEATURE_RESUME] = {.name = "resume"},
    [DGM_FEATURE_FORMAT] = {.name = "format"},
};
