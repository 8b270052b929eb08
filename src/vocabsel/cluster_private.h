// SPDX-License-Identifier: MIT
// Private to vocabsel/: what cluster.c asks of a set of centroids (cluster_set.c).
#ifndef DGM_VOCABSEL_CLUSTER_PRIVATE_H
#define DGM_VOCABSEL_CLUSTER_PRIVATE_H

#include "backend/device.h"
#include "vocabsel/vocabsel.h"

const dgm_gguf *dgm_cluster_set_file(const dgm_cluster_set *s);
int dgm_cluster_set_longest(const dgm_cluster_set *s); // tokens of the longest list
int dgm_cluster_set_length(const dgm_cluster_set *s, int centroid);
// The device has the lists, without what is never chosen.
bool dgm_cluster_set_kept(const dgm_cluster_set *s);
// The tokens of one centroid, ascending; returns how many. out has room for the longest list.
int dgm_cluster_set_decode(const dgm_cluster_set *s, int centroid, int32_t *out);
const dgm_centroids *dgm_cluster_set_centroids(const dgm_cluster_set *s);
int dgm_cluster_set_targets(const dgm_cluster_set *s); // of the target vocabulary

#endif
