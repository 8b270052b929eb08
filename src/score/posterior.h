// SPDX-License-Identifier: MIT
// Posteriors of n-grams: how probable it is that a translation drawn from some evidence contains
// the n-gram at least once.
//
// A trie holds all n-grams of up to `order` tokens that were seen. Evidence is a list of
// whole translations with weights that sum to 1, or a lattice of them; P(u) is the sum of the
// weights of those that contain u, however often.
//
//     root -- "das" 0.9 -- "Haus" 0.8 -- "</s>" 0.6        node = n-gram, P in the node
//          \- "Haus" 0.8 - "</s>" 0.6
//          \- "</s>" 1.0
//
// The suffix of an n-gram is an n-gram of the same translations, so it is in the trie, with a P
// that is not smaller. score/lmbr.h makes rows of it.
#ifndef DGM_SCORE_POSTERIOR_H
#define DGM_SCORE_POSTERIOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "lattice/lattice.h"

enum { DGM_LMBR_ORDER = 4 };
// Positions of a lattice's n-grams that 32 bits can number, n-gram by n-gram.
enum { DGM_POSITIONS_MAX = 1 << 28 };

typedef struct dgm_posterior {
    int32_t parent; // node of the n-gram without its last token; 0: the root
    int32_t token;
    int32_t length; // tokens
    uint32_t seen;  // number of the translation that touched it last
    double p;
} dgm_posterior;

// Start with all zero. Capacity and order are kept by dgm_posteriors_clear for the next sentence.
typedef struct dgm_posteriors {
    dgm_posterior *nodes; // [count]; node 0 is the empty n-gram
    size_t count, cap;
    uint32_t *table; // open addressing over (parent, token): node, 0: free
    size_t table_size;
    uint32_t translations;
    int order; // longest n-grams that are counted, up to DGM_LMBR_ORDER; 0: that
} dgm_posteriors;

static inline int dgm_posteriors_order(const dgm_posteriors *p)
{
    return p->order ? p->order : DGM_LMBR_ORDER;
}

void dgm_posteriors_clear(dgm_posteriors *p);
void dgm_posteriors_free(dgm_posteriors *p); // ready for use again

// One translation: every n-gram in it gains `weight` once. The end symbol is the caller's to add.
dgm_status dgm_posteriors_add(dgm_posteriors *p, const int32_t *tokens, size_t count, double weight,
                              dgm_error *err);
// The paths of a lattice of tokens, drawn with probabilities as their exp(scale * score), each with
// `end` behind it; exact, not expected counts. p must be clear. DGM_ERR_UNSUPPORTED: its n-grams
// stand at more than `most` positions (at most DGM_POSITIONS_MAX), the lattice is too large.
dgm_status dgm_posteriors_lattice(dgm_posteriors *p, const dgm_lattice *subwords, double scale,
                                  int32_t end, size_t most, dgm_error *err);
// Node of an n-gram, made if it is new; count 1 .. DGM_LMBR_ORDER.
dgm_status dgm_posteriors_node(dgm_posteriors *p, const int32_t *tokens, int count, uint32_t *node,
                               dgm_error *err);
// 0 for an n-gram that was not seen.
double dgm_posteriors_get(const dgm_posteriors *p, const int32_t *tokens, int count);
// Node of `token` behind a node; 0: none.
uint32_t dgm_posteriors_child(const dgm_posteriors *p, uint32_t parent, int32_t token);

// w[i] = softmax of scale * score[i], in place. Scores must be finite.
void dgm_evidence_weights(double *scores, size_t count, double scale);

#endif
