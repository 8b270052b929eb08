// SPDX-License-Identifier: MIT
// Dragoman tools: lists and lattices of other systems beside a text. Conventions as in tools.h.
#ifndef DRAGOMAN_EVIDENCE_H
#define DRAGOMAN_EVIDENCE_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dgm_evidence_options {
    size_t size;
    // Language code: the translations are words as `dragoman tokenize` and Moses write them, and
    // become text first. NULL: they are text.
    const char *detokenize;
    // A lattice is given as the list of so many texts, its best ones, with their paths' scores.
    // 0: as a lattice.
    size_t nbest;
} dgm_evidence_options;

DGM_API void dgm_evidence_options_init(dgm_evidence_options *options, size_t size);
static inline void dgm_evidence_options_default(dgm_evidence_options *options)
{
    dgm_evidence_options_init(options, sizeof *options);
}

// A file with evidence for the lines of a text, plain or gzip: an n-best list with lines of
//     LINE ||| text ||| features ||| score
// where LINE counts from 0 and does not fall, or lattices (docs/manual/LATTICES.md), one for every line.
// Messages name file and line.
typedef struct dgm_evidence_file dgm_evidence_file;
DGM_API dgm_status dgm_evidence_open(dgm_evidence_file **file, const char *path,
                                     const dgm_evidence_options *options, dgm_error *error);
// What the file says about a line, from 0; asked for in ascending order. Borrowed until the next
// call. A line that is left out has a count of 0; that the file ends before the line is an error.
DGM_API dgm_status dgm_evidence_next_sized(dgm_evidence_file *file, uint64_t line,
                                           dgm_evidence *evidence, size_t size, dgm_error *error);
static inline dgm_status dgm_evidence_next(dgm_evidence_file *file, uint64_t line,
                                           dgm_evidence *evidence, dgm_error *error)
{
    return dgm_evidence_next_sized(file, line, evidence, sizeof *evidence, error);
}
// Number of the next line that the file has something about; *more is 0 at its end, and *line then
// one past the last.
DGM_API dgm_status dgm_evidence_any(dgm_evidence_file *file, uint64_t *line, int *more,
                                    dgm_error *error);
// Is there nothing left? Otherwise an error: the file is longer than the text.
DGM_API dgm_status dgm_evidence_finish(dgm_evidence_file *file, uint64_t lines, dgm_error *error);
DGM_API void dgm_evidence_close(dgm_evidence_file **file);

// What the translator's phrase-based system (dgm_settings.phrase_system) says about lines, handed over in
// their order and borrowed during each call; other than 0 stops. Given to the lines as their evidence it
// steers them as the system itself does. nbest: as in dgm_evidence_options.
DGM_API dgm_status dgm_evidence_decode(dgm_translator *t, const dgm_line *lines, size_t count,
                                       size_t nbest,
                                       int (*take)(void *cookie, const dgm_evidence *evidence),
                                       void *cookie, dgm_error *error);

// The same of lines that say their directions (NULL: they do not), with the system of each.
DGM_API dgm_status dgm_evidence_decode_directed(dgm_translator *t, const dgm_line *lines,
                                                const dgm_direction *directions, size_t count, size_t nbest,
                                                int (*take)(void *cookie, const dgm_evidence *evidence),
                                                void *cookie, dgm_error *error);

// Other weights for the lines submitted from now on; no call may be under way.
DGM_API dgm_status dgm_lmbr_set(dgm_translator *t, const dgm_lmbr *lmbr, dgm_error *error);

// ---- good weights -------------------------------------------------------------------------------

enum { DGM_LMBR_PATHS = 100 }; // texts of a lattice that stand for it where tuning starts

// A trial of tuning: all lines with some weights.
typedef struct dgm_lmbr_trial {
    size_t size;
    int32_t number; // from 1; 0: the evidence's own best translations, before the first
    double bleu;    // -1: weights that there cannot be
    dgm_lmbr weights;
    double seconds; // 0: it was known (dgm_lmbr_tune_options.known)
} dgm_lmbr_trial;

typedef struct dgm_lmbr_tune_options {
    size_t size;
    dgm_lmbr start; // weights to start from. Default dgm_lmbr_default's
    // 1: `start` says where scale, p and r begin; 0: what the evidence itself suggests. Default 0
    int32_t keep_scale, keep_p, keep_r;
    double seconds; // after which no trial is begun but the first; 0 (default): as many as it takes
    void *cookie;   // of the functions
    // Hears of every trial; other than 0 stops. NULL: nobody.
    int (*trial)(void *cookie, const dgm_lmbr_trial *trial);
    // For lines whose evidence is a lattice: it as a list of DGM_LMBR_PATHS texts, asked for in ascending order and
    // borrowed until the next call. NULL: the translator's phrase-based system is asked, if the evidence is its own.
    dgm_status (*list)(void *cookie, size_t line, dgm_evidence *list, dgm_error *error);
    // Models that choose among the translations of every line before it is compared (score.h); NULL: none
    const struct dgm_reranker *rerankers;
    size_t reranker_count;
    // Trials of an earlier call with the same lines, models and settings, which are not made again; NULL: none
    const dgm_lmbr_trial *known;
    size_t known_count;
} dgm_lmbr_tune_options;

DGM_API void dgm_lmbr_tune_init(dgm_lmbr_tune_options *options, size_t size);
static inline void dgm_lmbr_tune_default(dgm_lmbr_tune_options *options)
{
    dgm_lmbr_tune_init(options, sizeof *options);
}

// Finds lambda, scale, p and r by BLEU: climbs from `start`, one weight at a time, a few dozen trials that translate
// all lines (docs/manual/LMBR.md) with all that they bring: prefixes, constraints, lattices, directions. With
// start.use_thetas p and r are not looked at: lambda and scale are found. Lines without evidence are those of the
// translator's phrase-based systems, which are asked once. The translator is left with other weights than it had.
// bleu: NULL, or the best one's. dgm_lmbr_tune_route (route.h): of a route.
DGM_API dgm_status dgm_lmbr_tune(dgm_translator *t, const dgm_input *inputs, const dgm_line *references, size_t count,
                                 const dgm_lmbr_tune_options *options, dgm_lmbr *weights, double *bleu,
                                 dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
