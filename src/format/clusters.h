// SPDX-License-Identifier: MIT
// Clusters of hidden vectors in model files: centroids, and for each the tokens that a decoder
// whose vector is nearest to it may produce (docs/internals/FORMAT.md, section 2.7). A file holds one block
// per translation direction, per target language or for everything. vocabsel/cluster.c uses them while
// translating, the cluster tool makes them.
#ifndef DGM_FORMAT_CLUSTERS_H
#define DGM_FORMAT_CLUSTERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "format/gguf.h"

enum { DGM_CLUSTERS_MAX = 65536, DGM_CLUSTERS_BLOCKS_MAX = 4096, DGM_CLUSTERS_BEST_MAX = 64 };

// A block where it lies in a model file, checked, with an index of its lists; borrows from the
// file.
typedef struct dgm_clusters_view {
    const char *source, *target; // languages it is for; "": any
    int count, width;            // centroids and their size
    int targets;                 // of the target vocabulary
    int best;                    // top-K whose union the lists are
    int longest;                 // list
    uint64_t entries;            // of all lists
    const dgm_tensor *centroids; // f16 [count, width]
    const uint8_t *lists;
    uint32_t *at; // [count + 1]
} dgm_clusters_view;

int dgm_clusters_blocks(const dgm_gguf *g); // 0: the file has no clusters
// The block for a direction: the one of just this pair, else of this target, else for everything;
// -1: none. A code "" (the model does not say that language) matches blocks for any language, and a
// lone block whatever it is for.
int dgm_clusters_find(const dgm_gguf *g, const char *source, const char *target);
// Checks everything, the fit to the file's vocabularies too. On failure nothing is kept.
dgm_status dgm_clusters_view_open(dgm_clusters_view *v, const dgm_gguf *g, int block,
                                  dgm_error *err);
void dgm_clusters_view_close(dgm_clusters_view *v); // accepts all zero

// A whole block in memory, for tools. Lists ascend.
typedef struct dgm_clusters {
    const char *source, *target;
    int count, width, targets, best;
    uint16_t *centroids; // f16 [count, width]
    uint64_t *at;        // [count + 1]
    int32_t *ids;        // [at[count]]
} dgm_clusters;

// Puts blocks into a model file that is being written as a copy of g, all its keys and tensors
// (dgm_gguf_set_copies was called; tensors are added here): each instead of the block for the same
// languages, or as a new one, as if they were stored one after the other. They must live until the
// file is written. count 0: all blocks are left out.
dgm_status dgm_clusters_store(const dgm_clusters *const *c, int count, const dgm_gguf *g,
                              dgm_gguf_writer *w, dgm_error *err);

#endif
