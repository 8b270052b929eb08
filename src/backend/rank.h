// SPDX-License-Identifier: MIT
// rank: projection, normalisation, terms and top-k in one operation, with the data that searches,
// scorers and vocabulary selection fill in. They see no more of a device than this.
#ifndef DGM_BACKEND_RANK_H
#define DGM_BACKEND_RANK_H

#include "backend/types.h"

// dgm_gathered holds a few columns of an output layer, side by side on the device: what a sentence's
// candidates are multiplied with. Its numbers are the layer's own, so a product with it has the same
// bits as the same columns of the whole layer. Opened once and filled again and again, since a
// sentence's columns are gathered once and used in every step.

// Room for up to `capacity` columns of w, from the worker's arena like dgm_exec_mat. NULL: it is
// full. The layer's tensors must stay open.
dgm_gathered *dgm_gathered_open(dgm_exec *x, const dgm_linear *w, int capacity);
// Memory of a worker for `count` of them, with what filling one needs for a moment.
dgm_bytes dgm_gathered_bytes(const dgm_backend *b, const dgm_linear *w, int capacity, int count);
// Column i becomes output ids[i] of the layer; count <= capacity.
void dgm_op_gather_columns(dgm_exec *x, dgm_gathered *g, const int32_t *ids, int count);

// A list that the device makes: all tokens of the lists that it keeps of some centroids
// (dgm_centroids_lists), and a few more.
typedef struct dgm_joint {
    const dgm_centroids *centroids;
    const int32_t *which; // centroids
    int which_count;
    const int32_t *add; // ascending
    int add_count;
} dgm_joint;

// Tokens that may win for one sentence, ascending; NULL in their place means the whole vocabulary.
typedef struct dgm_candidates {
    const int32_t *ids;
    int count;
    // Or NULL. With it there are no ids, nothing is gathered, and there are at most `count` tokens.
    const dgm_joint *joint;
    // [parts of rank]: the columns of ids in their output layers. NULL: not gathered, rank picks
    // them out of the layers itself (see dgm_linear_by_rows).
    dgm_gathered *const *gathered;
} dgm_candidates;

// A number for every token, in device memory: rows for dgm_terms.table, zeros at first. What a
// sentence brings for much of the vocabulary is sent once, when it enters.
dgm_mat dgm_tables_open(dgm_exec *x, int count, int vocabulary); // data NULL: no memory left
// Sets the numbers of tokens ids[0 .. count) in one row; values NULL: to zero.
void dgm_op_set(dgm_exec *x, dgm_mat tables, int row, const int32_t *ids, const float *values,
                int count);

// What is added for a few tokens, ascending.
typedef struct dgm_addition {
    const int32_t *ids;
    const float *values;
    int count;
} dgm_addition;

enum { DGM_ADDITIONS_MAX = 4 };

// What scorers add to one row. The score of token v is
//   base + constant + lambda * log p(v) + table[v] + (value of v in each of the additions)
// and -inf where v is denied, or where allow is given and does not hold v.
typedef struct dgm_terms {
    float base, constant, lambda; // lambda = 1 without an evidence model
    const void *table;            // device: a row of dgm_tables_open, or NULL
    dgm_addition add[DGM_ADDITIONS_MAX]; // in the order in which they are added
    int add_count;
    const int32_t *allow; // ascending; NULL: everything
    int allow_count;
    // 0, or a number that means this very list, always and everywhere: a list of most of the
    // vocabulary comes with one, so that a device need not be sent it again.
    uint64_t allow_name;
    const int32_t *deny; // ascending
    int deny_count;
} dgm_terms;

static inline void dgm_terms_add(dgm_terms *t, const int32_t *ids, const float *values, int count)
{
    if (t->add_count < DGM_ADDITIONS_MAX)
        t->add[t->add_count++] = (dgm_addition){ids, values, count};
}

// Takes the place of whatever was allowed before.
static inline void dgm_terms_allow(dgm_terms *t, const int32_t *ids, int count)
{
    t->allow = ids;
    t->allow_count = count;
    t->allow_name = 0;
}

typedef enum dgm_mix { DGM_MIX_LOG_LINEAR = 0, DGM_MIX_ARITHMETIC, DGM_MIX_COUNT } dgm_mix;

typedef struct dgm_rank_part {
    const dgm_linear *out; // all parts have the same number of outputs
    dgm_mat hidden;        // [rows, inputs of out]
    float weight;          // weights of the parts sum to 1 for a mean
} dgm_rank_part;

typedef struct dgm_rank {
    const dgm_rank_part *parts;
    int part_count;
    dgm_mix mix;
    bool normalise; // false: raw logits are log-probabilities (self-normalised models)
    int rows, k, watch_count;
    const dgm_candidates *const *candidates; // [rows] or NULL; softmax runs over the candidates
    // [rows] or NULL: further candidates of single rows that have a list, at most DGM_MORE_MAX and
    // none of them in that list; not gathered. NULL inside: none.
    const dgm_candidates *const *more;
    const dgm_terms *terms;                  // [rows]
    // [rows] or NULL: with it terms is one for all rows, and what stands here takes the place of its base.
    const float *base;
    const int32_t *never; // ascending: counted in the softmax sum, never chosen
    int never_count;
    const int32_t *watch; // [rows, watch_count]; -1: nothing
    // results (host)
    float *score;       // [rows, k], best first; -inf where there are fewer than k
    int32_t *token;     // [rows, k]; -1 where the score is -inf
    float *watch_score; // [rows, watch_count]; never list and allow/deny do not apply to them
    float *log_z;       // [rows, part_count] or NULL
    int32_t *sizes;     // [rows] or NULL: of how many tokens the softmax was, `more` with them
} dgm_rank;

static inline const dgm_terms *dgm_rank_terms(const dgm_rank *r, int row)
{
    return &r->terms[r->base ? 0 : row];
}

static inline float dgm_rank_base(const dgm_rank *r, int row)
{
    return r->base ? r->base[row] : r->terms[row].base;
}

enum { DGM_MORE_MAX = 256 };

// Ties: lower token id first. Scratch: dgm_rank_bytes before opening the worker, and where rows have
// more candidates dgm_rank_more_bytes for the widest of the output layers.
void dgm_op_rank(dgm_exec *x, const dgm_rank *r);
dgm_bytes dgm_rank_bytes(const dgm_backend *b, int rows, int parts, int vocabulary);
dgm_bytes dgm_rank_more_bytes(const dgm_backend *b, const dgm_linear *out);
// And where candidates are joint.
dgm_bytes dgm_rank_joint_bytes(const dgm_backend *b, int rows, int vocabulary);

// ---- hidden vectors ------------------------------------------------------------------------------

// found[i]: the centroid nearest to row i; the lowest of equals, 0 for a row that is no number.
void dgm_op_closest(dgm_exec *x, const dgm_centroids *c, dgm_mat rows, int32_t *found);
// Scratch for so many rows and centroids.
dgm_bytes dgm_closest_bytes(const dgm_backend *b, int rows, int centroids);

// How far apart rows are: of the pair i, |a - b|^2 and |a|^2 + |b|^2 for a = rows[one[i]] and b =
// rows[two[i]], summed in double precision.
typedef struct dgm_distance {
    double apart, length;
} dgm_distance;

void dgm_op_distances(dgm_exec *x, dgm_mat rows, const int32_t *one, const int32_t *two, int count,
                      dgm_distance *out);
// Copies `in` to the rows of `kept` from row `first` on: a hidden vector lasts until the next step,
// what a search wants of it later it keeps in rows of its own (dgm_exec_mat).
void dgm_op_keep(dgm_exec *x, dgm_mat kept, int first, dgm_mat in);

// Copies device rows to host floats.
void dgm_op_read(dgm_exec *x, float *host, dgm_mat in);

#endif
