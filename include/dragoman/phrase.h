// SPDX-License-Identifier: MIT
// Dragoman tools: phrase tables, phrase-based translation and its tuning.
// Conventions as in tools.h.
#ifndef DRAGOMAN_PHRASE_H
#define DRAGOMAN_PHRASE_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- phrase tables ----------------------------------------------------------------------------

enum { DGM_PHRASE_WORDS_MAX = 7 }; // longest phrase

typedef struct dgm_phrase_options {
    size_t size;
    int max_length;      // of a phrase, 1 to DGM_PHRASE_WORDS_MAX. Default 5
    int max_sentence;    // pairs with more words on a side are left out. Default 100
    uint64_t prune;      // pairs seen this often or less are left out, but no translation of a
                         // single word. Default 0
    int limit;           // translations kept per source phrase, the most frequent; 0: all. Default 50
    uint64_t memory;     // bytes for sorting; what does not fit goes to disk. Default 1 GiB
    const char *folder;  // for that. NULL: $TMPDIR, else /tmp
    const char *subwords;   // phrases of this model's tokens. NULL: words between blanks
    const char *filter;     // only source phrases of this text. NULL: all
    const char *reordering; // where the reordering table of a table of text goes. NULL: nowhere
    int bits;               // of a compact table's numbers: 8, 16, or 0 for floats. Default 0
    dgm_progress progress;
} dgm_phrase_options;

DGM_API void dgm_phrase_init(dgm_phrase_options *options, size_t size);
static inline void dgm_phrase_default(dgm_phrase_options *options)
{
    dgm_phrase_init(options, sizeof *options);
}

// Index 0: source, 1: target.
typedef struct dgm_phrase_report {
    size_t size;
    uint64_t lines, pairs, empty, too_long; // lines = pairs + empty + too_long
    uint64_t tokens[2], phrases[2];         // phrases: distinct ones
    uint64_t extracted, distinct, kept;     // phrase pairs
    uint64_t spilled;                       // bytes that went to disk
} dgm_phrase_report;

// Extracts and scores the phrase pairs of an aligned text (plain or gzip files; links as
// dgm_align writes them) and writes a table: Moses' text if the name ends in .gz or .txt, else
// compact, to be mapped.
DGM_API dgm_status dgm_phrase_extract(const char *source, const char *target, const char *links,
                                      const char *output, const dgm_phrase_options *options,
                                      dgm_phrase_report *report, dgm_error *error);
// Reads a table (text with or without its reordering table, or compact) and writes it, by the name
// as above. bits: of a compact table made from text, 0, 8 or 16.
DGM_API dgm_status dgm_phrase_convert(const char *input, const char *input_reordering,
                                      const char *output, const char *output_reordering, int bits,
                                      dgm_error *error);

// ---- phrase-based translation -----------------------------------------------------------------

typedef struct dgm_phrasal_options {
    size_t size;
    const char *table;      // phrase table, text or compact
    const char *reordering; // reordering table of a text one, or NULL
    const char *lm;         // language model, ARPA or compact
    const char *weights;    // weights file; NULL: usual ones
    int uniform;            // all weights 1 instead
    const char *subwords;   // table and language model are over this model's tokens
    const char *detokenize; // language: the result is text, not words between blanks. NULL: words
    int pops;               // hypotheses per stack taken from the cubes. Default 400
    int stack;              // of them kept. Default 200
    int jump;               // distortion limit, 0 to 56. Default 6
    int table_limit;        // translations looked at per source phrase. Default 20
    int nbest;              // translations wanted. Default 1
    int distinct;           // no two with the same words. Default 0
    int alignment;          // word links of every translation. Default 0
    int lattice;            // the search graph of every line. Default 0
    // Arcs whose best path is further behind the best of all than this times the sum of the
    // weights (their absolute values, without that of unknown words) are left out. Default 0.5
    double lattice_beam;
    int threads; // 0: one per core. Default 1
    const char *tokenize; // language: lines are text, not words between blanks. NULL: words
    // Languages that it translates between, for who compares them with a model's. NULL: not said
    const char *source, *target;
} dgm_phrasal_options;

DGM_API void dgm_phrasal_init(dgm_phrasal_options *options, size_t size);
static inline void dgm_phrasal_default(dgm_phrasal_options *options)
{
    dgm_phrasal_init(options, sizeof *options);
}

// A system in one file: lines of `name = value` (docs/manual/PHRASES.md), names of files in it being
// relative to its folder.
typedef struct dgm_phrasal_file dgm_phrasal_file;
DGM_API dgm_status dgm_phrasal_file_open(dgm_phrasal_file **file, const char *path,
                                         dgm_error *error);
// The defaults with what the file says; strings are the file's.
DGM_API void dgm_phrasal_file_options_sized(const dgm_phrasal_file *file,
                                            dgm_phrasal_options *options, size_t size);
static inline void dgm_phrasal_file_options(const dgm_phrasal_file *file,
                                            dgm_phrasal_options *options)
{
    dgm_phrasal_file_options_sized(file, options, sizeof *options);
}
DGM_API void dgm_phrasal_file_close(dgm_phrasal_file **file);

typedef struct dgm_phrasal_item {
    size_t size;
    dgm_line text;
    dgm_line features; // "LexicalReordering0= ... UnknownWordPenalty0= 0"
    dgm_line links;    // "0-0 1-2 ..." with `alignment`
    double score;
} dgm_phrasal_item;

typedef struct dgm_phrasal_result {
    size_t size;
    const dgm_phrasal_item *const *items; // best first, at least one
    size_t count;
    dgm_line lattice; // with `lattice`: a block of docs/manual/LATTICES.md
} dgm_phrasal_result;

typedef struct dgm_phrasal dgm_phrasal;

DGM_API dgm_status dgm_phrasal_open(dgm_phrasal **p, const dgm_phrasal_options *options,
                                    dgm_error *error);
DGM_API void dgm_phrasal_close(dgm_phrasal **p);
// Translates lines and hands the results over in their order, `first` + i being the number of line
// i in its lattice's name; other than 0 stops the work. Results are borrowed during the call.
DGM_API dgm_status dgm_phrasal_translate(dgm_phrasal *p, const dgm_line *lines, size_t count,
                                         uint64_t first,
                                         int (*take)(void *cookie, const dgm_phrasal_result *r),
                                         void *cookie, dgm_error *error);

typedef struct dgm_phrasal_stats {
    size_t size;
    uint64_t lines, words, unknown; // source words, copied ones
    uint64_t hypotheses, evaluated, recombined, edges;
} dgm_phrasal_stats;

DGM_API void dgm_phrasal_count_sized(const dgm_phrasal *p, dgm_phrasal_stats *stats, size_t size);
static inline void dgm_phrasal_count(const dgm_phrasal *p, dgm_phrasal_stats *stats)
{
    dgm_phrasal_count_sized(p, stats, sizeof *stats);
}

// ---- tuning -----------------------------------------------------------------------------------

// Minimum error rate training: finds weights under which the best translations of a development
// set have the highest BLEU.
typedef struct dgm_mert_options {
    size_t size;
    // Its nbest is the list of every round, `distinct` is advised. NULL: the defaults, with 100
    // distinct translations. Default NULL.
    const dgm_phrasal_options *system;
    const char *lists;          // tune on these lists (Moses' format) instead of decoding
    int lattice; // tune on search graphs, pruned by the system's lattice_beam. Default 0: lists
    int rounds;                 // of decoding and tuning, at most. Default 8
    int restarts;               // random starting points of every search. Default 3
    int directions;             // random directions beside the axes. Default 10
    uint64_t seed;              // default 1
    int threads;                // of the search for weights; 0: one per core. Default 1
    // How far weights may go from the best ones decoded so far before they are decoded themselves:
    // the sum of the differences, absolute weights adding up to 1. A round that was better doubles
    // it, one that was worse halves it. 0: anywhere, from the last weights on. Default -1: 0 with
    // lists, 0.1 with graphs
    double radius;
    // Called after every round (0: before the first): BLEU of the best translations under the
    // weights used, and BLEU that the new weights promise on the lists or graphs; hypotheses of
    // all lists, or arcs of all graphs. Other than 0 stops.
    int (*report)(void *cookie, int round, double bleu, double promised, uint64_t hypotheses);
    void *cookie;
} dgm_mert_options;

DGM_API void dgm_mert_init(dgm_mert_options *options, size_t size);
static inline void dgm_mert_default(dgm_mert_options *options)
{
    dgm_mert_init(options, sizeof *options);
}
// source: words (or text, with subwords) to translate; references: texts of the same lines. The
// weights file is written after every round.
DGM_API dgm_status dgm_mert(const char *source, const char *const *references,
                            size_t reference_count, const char *output,
                            const dgm_mert_options *options, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
