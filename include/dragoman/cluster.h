// SPDX-License-Identifier: MIT
// Dragoman tools: clusters of a model's hidden vectors. Conventions as in tools.h.
#ifndef DRAGOMAN_CLUSTER_H
#define DRAGOMAN_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// How clusters of a model's hidden vectors are learnt (docs/manual/CLUSTERS.md).
typedef struct dgm_cluster_options {
    size_t size;
    const char *text;    // source text that the model translates, also gzip
    uint64_t lines;      // of it; 0: all. Default 0
    const char *vectors; // file for the recorded vectors: kept, and continued if it is there.
                         // NULL: a scratch file. Default NULL
    int centroids;       // 1 to 65536. Default 600
    int best;            // tokens of each recorded vector that join its centroid's list. Default 16
    int near;            // centroids whose lists a vector's tokens join, 1 to 8; the further ones count
                         // less. 1: as published. Default 6
    double least;        // weight per vector of a cluster below which a token is left out of its
                         // list. 0: none is, as published. Default 0.00001
    const char *from;    // model file with clusters: its centroids are kept, lists are made anew.
                         // NULL: k-means. Default NULL
    int record_best;     // tokens recorded, at least `best`, at most 64: lists of other sizes can be
                         // made from one file. Default 16
    int iterations;      // of k-means. Default 20
    uint64_t sample;     // vectors that k-means sees; 0: 256 per centroid. All of them join lists
    uint64_t seed;       // Default 1
    int beam;            // of the translation. Default 1
    const char *precision;       // of the translation; NULL: the model's
    const char *source, *target; // languages that the block is for; NULL: the model's, if it has
                                 // one of that side, "": any
    int threads;                 // 0: one per core. Default 1
    int remove;                  // write the model without clusters
    dgm_progress progress;
    const char *device; // where the text is translated and clusters are learnt, as in dgm_settings;
                        // NULL: the CPU. Default NULL
} dgm_cluster_options;

DGM_API void dgm_cluster_init(dgm_cluster_options *options, size_t size);
static inline void dgm_cluster_default(dgm_cluster_options *options)
{
    dgm_cluster_init(options, sizeof *options);
}

typedef struct dgm_cluster_report {
    size_t size;
    uint64_t lines, vectors; // recorded
    uint64_t sample;         // vectors that k-means saw
    double first_loss, loss; // mean squared distance to the nearest centroid, before and after
    int centroids, targets;  // targets: tokens of the vocabulary
    int empty;               // centroids that no vector is nearest to
    double share;            // of the vocabulary in a centroid's list, mean over the vectors,
    double least, most;      // and its extremes over the centroids
    uint64_t bytes;          // in the model file
    char source[64], target[64]; // languages that the block is for, "": any
} dgm_cluster_report;

// Learns clusters and writes the model with them. options NULL is an error; report NULL: not wanted.
DGM_API dgm_status dgm_cluster_make(const char *model, const char *output,
                                    const dgm_cluster_options *options, dgm_cluster_report *report,
                                    dgm_error *error);

// Of every direction that a text has.
typedef struct dgm_cluster_reports {
    size_t size, count;
    const dgm_cluster_report *const *items; // in the order in which the text has the directions
} dgm_cluster_reports;

// Learns the clusters of every direction of a text whose lines have different ones and writes the model
// with all of them, one block a direction: what dgm_cluster_make gives for the lines of each by
// themselves, one after the other. directions: a file with the direction of every line, "SOURCE TARGET",
// "TARGET" or nothing. options->source and target: what lines do not say; "": the blocks are for any
// language of that side. options->lines counts lines of the whole text; options->vectors names files,
// with ".SOURCE-TARGET" behind it ("any" for any). reports NULL: not wanted.
DGM_API dgm_status dgm_cluster_make_directions(const char *model, const char *output,
                                               const char *directions,
                                               const dgm_cluster_options *options,
                                               dgm_cluster_reports **reports, dgm_error *error);
DGM_API void dgm_cluster_reports_free(dgm_cluster_reports **reports); // sets NULL

typedef struct dgm_cluster_measure {
    size_t size;
    uint64_t lines, vectors;
    double share;             // of the vocabulary in the nearest centroid's list, mean
    double recall;            // share of the vectors whose best token is in it
    int centroids, used;
    uint64_t *hits;           // [centroids] vectors nearest to each,
    uint32_t *sizes;          // [centroids] tokens in its list; both freed by dgm_cluster_free
} dgm_cluster_measure;

// What the model's clusters give for a text that the model translates with its whole vocabulary.
// options->vectors is a file for this text's vectors.
DGM_API dgm_status dgm_cluster_test(const char *model, const char *text,
                                    const dgm_cluster_options *options,
                                    dgm_cluster_measure *measure, dgm_error *error);
DGM_API void dgm_cluster_free(dgm_cluster_measure *measure);

#ifdef __cplusplus
}
#endif
#endif
