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

// Other weights for the lines submitted from now on; no call may be under way.
DGM_API dgm_status dgm_lmbr_set(dgm_translator *t, const dgm_lmbr *lmbr, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
