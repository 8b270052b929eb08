// SPDX-License-Identifier: MIT
// Dragoman tools: files of lattices. Conventions as in tools.h.
#ifndef DRAGOMAN_LATTICE_H
#define DRAGOMAN_LATTICE_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Lattices of a file (docs/manual/LATTICES.md), plain or gzip, one after the other, for dgm_input.
typedef struct dgm_lattices dgm_lattices;
DGM_API dgm_status dgm_lattices_open(dgm_lattices **file, const char *path, dgm_error *error);
// The next one; borrowed until the next call. text NULL: there are no more.
DGM_API dgm_status dgm_lattices_next(dgm_lattices *file, dgm_lattice_text *lattice,
                                     dgm_error *error);
DGM_API void dgm_lattices_close(dgm_lattices **file);

typedef struct dgm_lattice_options {
    size_t size;
    const char *symbols; // OpenFst: table of symbols; labels are its numbers. Default NULL
    int transducer;      // OpenFst: arcs of four fields have two labels. Default 0
    int trim;            // dead ends are dropped, not refused. Default 0
    int lists;       // the files are n-best lists, LINE ||| text ||| features ||| score. Default 0
    double prune;    // arcs whose best path is further behind the best go; < 0: none. Default -1
    size_t max_arcs; // no more arcs than this, except those of the best path. Default 0: any number
    size_t nbest;    // write an n-best list of so many texts instead of lattices. Default 0
    int repeated;    // with texts that several paths say more than once. Default 0
    const char *format; // "lattice" or "openfst". NULL: "lattice"
    // Takes the output where no file is named; other than 0 stops the work.
    int (*write)(void *cookie, const char *text, size_t size);
    void *write_cookie;
} dgm_lattice_options;

DGM_API void dgm_lattice_init(dgm_lattice_options *options, size_t size);
static inline void dgm_lattice_default(dgm_lattice_options *options)
{
    dgm_lattice_init(options, sizeof *options);
}

typedef struct dgm_lattice_report {
    size_t size;
    uint64_t lattices, nodes, arcs; // written
    uint64_t nodes_read, arcs_read;
} dgm_lattice_report;

// Reads files with the same number of lattices each and joins the i-th of all of them, prunes, and
// writes. output NULL: options->write. report NULL: not wanted.
DGM_API dgm_status dgm_lattice_run(const char *const *inputs, size_t count, const char *output,
                                   const dgm_lattice_options *options, dgm_lattice_report *report,
                                   dgm_error *error);

// A path of a lattice and what the translator's models think of it.
typedef struct dgm_scored_path {
    size_t size;
    const char *text;
    double lattice;     // the lattice's score
    float sum;          // log-probability of the models, with the end symbol
    float score;        // of sum + weight * lattice, normalised by length
    size_t token_count; // with the end symbol
} dgm_scored_path;

typedef struct dgm_scored_line {
    size_t size;
    dgm_status status;
    const char *message; // "" when the status is DGM_OK
    const dgm_scored_path *const *paths; // best first
    size_t count;
} dgm_scored_line;

typedef struct dgm_scored_lines {
    size_t size;
    const dgm_scored_line *const *items;
    size_t count, failed;
} dgm_scored_lines;

// Scores the `nbest` best texts of each line's lattice, as dgm_score_pairs does, and ranks them.
DGM_API dgm_status dgm_score_lattices(dgm_translator *t, const dgm_line *sources,
                                      const dgm_lattice_text *lattices, size_t count, size_t nbest,
                                      float weight, dgm_scored_lines **lines, dgm_error *error);
DGM_API void dgm_scored_lines_free(dgm_scored_lines **lines);

#ifdef __cplusplus
}
#endif
#endif
