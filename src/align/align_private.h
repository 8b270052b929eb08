// SPDX-License-Identifier: MIT
// Private to the word aligner (align.c: table and setup, align_em.c: the passes, align_tension.c).
//
// The table t(f | e) holds only pairs of words that meet in some sentence pair, as rows by e:
//
//     row_at[e] .. row_at[e + 1]     row_word: f        row_prob: t(f | e)        8 bytes a pair
//
// and all passes go word by word, not sentence by sentence: for one e its row is spread over an
// array indexed by f (which stays in the cache), then all sentences with e are visited through
// occ_*. So a look-up costs one cached load instead of a hash probe in gigabytes: per iteration
// there are about 10^9 look-ups but only 3 * 10^7 visits for a million pairs. Counts of a row are
// complete when its visits are, hence need no table of their own.
//
//     gather   per shard of sentences:  sum[j] = sum_i w(i, j) t(f_j | e_i)
//     settle   per group of lengths:    likelihood, NULL posteriors, sum[j] := factor of posteriors
//     count    per chunk of words:      expected counts, new t(. | e)
//
// Order of floating-point sums: a sum[j] is made by one shard in the order of e, a count by one
// chunk in the order of occurrences, totals by adding chunks and blocks in order. None depends on
// the number of threads or shards.
#ifndef DGM_ALIGN_ALIGN_PRIVATE_H
#define DGM_ALIGN_ALIGN_PRIVATE_H

#include "align/align.h"

#define DGM_ALIGN_TENSION_MIN 0.1
#define DGM_ALIGN_TENSION_MAX 30.0
#define DGM_ALIGN_FLOOR 1e-30f // smallest t: keeps sums positive and floats normal

enum { DGM_ALIGN_CHUNKS = 256, DGM_ALIGN_BLOCKS = 64 };

typedef struct dgm_align_worker {
    float *prob;   // [types of `to`] the spread row
    double *count; // [types of `to`]
} dgm_align_worker;

struct dgm_aligner {
    const dgm_bitext *b;
    const dgm_bitext_side *from, *to;
    int from_side;
    dgm_align_params o;
    dgm_pool *pool;
    double tension;
    int rounds;

    uint64_t *occ_at;   // [from types + 1]
    uint32_t *occ_pair; // [from tokens] pair of an occurrence, ascending per word
    uint16_t *occ_pos;  // [from tokens] its position there
    uint64_t *row_at;   // [from types + 1]
    uint32_t *row_word; // [entries]
    float *row_prob;    // [entries]
    float *null_prob;   // [to types]
    float *sum;         // [to tokens]
    float *null_post;   // [to tokens] posterior of NULL
    float *ratio;       // [max_length + 1] exp(-tension / n)

    uint32_t *chunk; // [chunks + 1] words
    int chunks;
    double *chunk_dist, *chunk_kl; // [chunks + 1]; the last is NULL's row
    uint32_t *shard;               // [shards + 1] pairs
    int shards;
    uint32_t *block; // [blocks + 1] groups
    int blocks;
    double *block_value; // [blocks]
    uint64_t *mass_at;   // [groups + 1]
    double *mass;        // posteriors of not NULL by group and target position
    double probe;        // tension that the block pass of align_tension.c looks at

    dgm_align_worker *worker; // [threads]
    int workers;
    int16_t *link; // viterbi's output during its pass
};

// Weights w(i, j) = exp(-tension |(i+1)/m - (j+1)/n|) of one i along j: they fall geometrically on
// both sides of the diagonal. Positions j >= split have up * ratio^(j - split), positions below
// split have down * ratio^(split - 1 - j).
typedef struct dgm_align_ray {
    int split;
    float up, down, ratio;
    float dist_up, dist_down, step; // the distances |i/m - j/n| of the same two series
} dgm_align_ray;

dgm_align_ray dgm_align_ray_of(const dgm_aligner *a, int i, int m, int n);
void dgm_align_set_tension(dgm_aligner *a, double tension);

// align_tension.c: moves the tension towards the maximum of the expected log-likelihood, given
// `mass` and the expected sum of distances.
void dgm_align_optimise(dgm_aligner *a, double distance);

// align_gamma.c: digamma and log-gamma of x > 0, absolute error below 1e-11 for x >= 1e-3.
void dgm_gamma_pair(double x, double *digamma, double *lgamma);

#endif
