// SPDX-License-Identifier: MIT
// The passes of training and the search for the best links; see align_private.h for the scheme and
// align.h for the formulas.
#include <math.h>

#include "base/attr.h"
#include "align/align_private.h"
#include "base/lower_bound.h"

enum { AHEAD = 6 }; // occurrences between a prefetch and its use

void dgm_align_set_tension(dgm_aligner *a, double tension)
{
    a->tension = tension;
    for (int n = 0; n <= a->b->max_length; n++) a->ratio[n] = n ? (float)exp(-tension / n) : 1.0f;
}

dgm_align_ray dgm_align_ray_of(const dgm_aligner *a, int i, int m, int n)
{
    dgm_align_ray ray;
    int at = (i + 1) * n, whole = at / m;
    float part = (float)(at % m) / (float)m; // the diagonal is at j + 1 = whole + part
    ray.split = whole;
    ray.step = 1.0f / (float)n;
    ray.ratio = a->ratio[n];
    ray.dist_up = (1 - part) * ray.step;
    ray.dist_down = part * ray.step;
    float tension = (float)a->tension;
    ray.up = expf(-tension * ray.dist_up);
    ray.down = expf(-tension * ray.dist_down);
    return ray;
}

// Row e, spread over the worker's array. Every word that stands in a sentence with e is in the row,
// so that old values need no clearing.
static void spread(const dgm_aligner *a, uint32_t e, float *prob)
{
    for (uint64_t k = a->row_at[e]; k < a->row_at[e + 1]; k++)
        prob[a->row_word[k]] = a->row_prob[k];
}

// First occurrence of e in pairs >= pair.
static uint64_t occurrence(const dgm_aligner *a, uint32_t e, uint32_t pair)
{
    uint64_t at;
    DGM_LOWER_BOUND(uint64_t, at, a->occ_at[e], a->occ_at[e + 1], a->occ_pair[at] < pair);
    return at;
}

static inline void prefetch(const dgm_aligner *a, uint64_t o, uint64_t end)
{
    if (o + AHEAD >= end) return;
    uint64_t k = a->to->start[a->occ_pair[o + AHEAD]];
    __builtin_prefetch(&a->to->token[k]);
    __builtin_prefetch(&a->sum[k], 1);
}

// ---- visits -----------------------------------------------------------------------------------

// A source word in one sentence pair: the target words are f[0 .. n), their sums begin at `at`.
typedef struct visit {
    uint64_t at;
    int n, position;
    const uint32_t *f;
    dgm_align_ray ray;
} visit;

// Visits the occurrences of every source word in the pairs of a shard, with its row t(. | e) spread
// out in prob. Inlined with its visitor, which is called about 10^9 times an iteration.
static DGM_ALWAYS_INLINE void visit_shard(dgm_aligner *a, int worker, int item,
                                          void (*visitor)(dgm_aligner *a, const visit *v,
                                                          const float *prob))
{
    float *prob = a->worker[worker].prob;
    const uint32_t first = a->shard[item], last = a->shard[item + 1];
    for (uint32_t e = 0; e < a->from->types; e++) {
        uint64_t o = occurrence(a, e, first), end = a->occ_at[e + 1];
        if (o == end || a->occ_pair[o] >= last) continue;
        spread(a, e, prob);
        for (; o < end && a->occ_pair[o] < last; o++) {
            prefetch(a, o, end);
            const uint32_t p = a->occ_pair[o];
            const uint64_t k = a->to->start[p];
            const int n = (int)(a->to->start[p + 1] - k);
            const int m = (int)(a->from->start[p + 1] - a->from->start[p]);
            const int i = (int)a->occ_pos[o];
            const visit v = {k, n, i, a->to->token + k, dgm_align_ray_of(a, i, m, n)};
            visitor(a, &v, prob);
        }
    }
}

// ---- gather -----------------------------------------------------------------------------------

static void add_products(const dgm_align_ray *ray, int n, const uint32_t *f, const float *prob,
                         float *sum)
{
    float w = ray->up, r = ray->ratio;
    for (int j = ray->split; j < n; j++) {
        sum[j] += w * prob[f[j]];
        w *= r;
    }
    w = ray->down;
    for (int j = ray->split - 1; j >= 0; j--) {
        sum[j] += w * prob[f[j]];
        w *= r;
    }
}

static void add_pair(dgm_aligner *a, const visit *v, const float *prob)
{
    add_products(&v->ray, v->n, v->f, prob, a->sum + v->at);
}

static void gather(void *arg, int worker, int item)
{
    dgm_aligner *a = arg;
    const uint32_t first = a->shard[item], last = a->shard[item + 1];
    for (uint64_t k = a->to->start[first]; k < a->to->start[last]; k++) a->sum[k] = 0;
    visit_shard(a, worker, item, add_pair);
}

// ---- settle -----------------------------------------------------------------------------------

// Z_j of a group: the same weights as everywhere, added over i. z [n]
static void partition(const dgm_aligner *a, int m, int n, double *z)
{
    for (int j = 0; j < n; j++) z[j] = 0;
    for (int i = 0; i < m; i++) {
        dgm_align_ray ray = dgm_align_ray_of(a, i, m, n);
        float w = ray.up;
        for (int j = ray.split; j < n; j++) {
            z[j] += w;
            w *= ray.ratio;
        }
        w = ray.down;
        for (int j = ray.split - 1; j >= 0; j--) {
            z[j] += w;
            w *= ray.ratio;
        }
    }
}

static double null_weight(const dgm_aligner *a, int m)
{
    return a->o.model == 1 ? 1.0 / (m + 1) : a->o.p0;
}

static void settle(void *arg, int worker, int item)
{
    dgm_aligner *a = arg;
    (void)worker;
    double z[DGM_BITEXT_LENGTH_MAX], total = 0;
    for (uint32_t g = a->block[item]; g < a->block[item + 1]; g++) {
        const dgm_bitext_group *group = &a->b->group[g];
        int m = group->length[a->from_side], n = group->length[1 - a->from_side];
        double p0 = null_weight(a, m), *mass = a->mass + a->mass_at[g];
        partition(a, m, n, z);
        for (int j = 0; j < n; j++) {
            z[j] = (1 - p0) / z[j];
            mass[j] = 0;
        }
        for (uint32_t p = group->first; p < group->first + group->count; p++)
            for (int j = 0; j < n; j++) {
                uint64_t k = a->to->start[p] + (uint64_t)j;
                double null = p0 * (double)a->null_prob[a->to->token[k]];
                double all = null + z[j] * (double)a->sum[k];
                total += log(all);
                null /= all;
                a->null_post[k] = (float)null;
                mass[j] += 1 - null;
                a->sum[k] = (float)(z[j] / all);
            }
    }
    a->block_value[item] = total;
}

// ---- count ------------------------------------------------------------------------------------

// Expected counts of one occurrence; returns its expected distance from the diagonal.
static double add_counts(const dgm_align_ray *ray, int n, const uint32_t *f, const float *prob,
                         const float *factor, double *count)
{
    float w = ray->up, r = ray->ratio, d = ray->dist_up, dist = 0;
    for (int j = ray->split; j < n; j++) {
        float post = w * prob[f[j]] * factor[j];
        count[f[j]] += (double)post;
        dist += post * d;
        d += ray->step;
        w *= r;
    }
    w = ray->down;
    d = ray->dist_down;
    for (int j = ray->split - 1; j >= 0; j--) {
        float post = w * prob[f[j]] * factor[j];
        count[f[j]] += (double)post;
        dist += post * d;
        d += ray->step;
        w *= r;
    }
    return (double)dist;
}

// New probabilities from counts. word NULL: the row is all words in order. Returns the divergence
// of the new posterior from the prior (variational Bayes) or 0.
static double normalise(double alpha, const uint32_t *word, uint64_t size, const double *count,
                        float *prob)
{
    double total = 0, kl = 0;
    for (uint64_t k = 0; k < size; k++) total += count[word ? word[k] : k];
    if (alpha == 0) {
        double scale = total > 0 ? 1 / total : 0;
        for (uint64_t k = 0; k < size; k++) {
            float p = (float)(count[word ? word[k] : k] * scale);
            prob[k] = p > DGM_ALIGN_FLOOR ? p : DGM_ALIGN_FLOOR;
        }
        return 0;
    }
    double psi_all, ln_all, psi, ln, unused, ln_prior, ln_prior_all;
    dgm_gamma_pair(total + alpha * (double)size, &psi_all, &ln_all);
    dgm_gamma_pair(alpha, &unused, &ln_prior);
    dgm_gamma_pair(alpha * (double)size, &unused, &ln_prior_all);
    kl = ln_all - ln_prior_all;
    for (uint64_t k = 0; k < size; k++) {
        double c = count[word ? word[k] : k];
        dgm_gamma_pair(c + alpha, &psi, &ln);
        kl += ln_prior - ln + c * (psi - psi_all);
        float p = (float)exp(psi - psi_all);
        prob[k] = p > DGM_ALIGN_FLOOR ? p : DGM_ALIGN_FLOOR;
    }
    return kl;
}

static void count_null(dgm_aligner *a, double *count)
{
    for (uint32_t f = 0; f < a->to->types; f++) count[f] = 0;
    for (size_t k = 0; k < a->to->token_count; k++)
        count[a->to->token[k]] += (double)a->null_post[k];
    a->chunk_kl[a->chunks] = normalise(a->o.alpha, NULL, a->to->types, count, a->null_prob);
}

static void count_words(void *arg, int worker, int item)
{
    dgm_aligner *a = arg;
    float *prob = a->worker[worker].prob;
    double *count = a->worker[worker].count, dist = 0, kl = 0;
    if (item == a->chunks) {
        count_null(a, count);
        return;
    }
    for (uint32_t e = a->chunk[item]; e < a->chunk[item + 1]; e++) {
        uint64_t row = a->row_at[e], size = a->row_at[e + 1] - row;
        spread(a, e, prob);
        for (uint64_t k = row; k < row + size; k++) count[a->row_word[k]] = 0;
        for (uint64_t o = a->occ_at[e], end = a->occ_at[e + 1]; o < end; o++) {
            prefetch(a, o, end);
            uint32_t p = a->occ_pair[o];
            uint64_t k = a->to->start[p];
            int n = (int)(a->to->start[p + 1] - k);
            int m = (int)(a->from->start[p + 1] - a->from->start[p]);
            dgm_align_ray ray = dgm_align_ray_of(a, a->occ_pos[o], m, n);
            dist += add_counts(&ray, n, a->to->token + k, prob, a->sum + k, count);
        }
        kl += normalise(a->o.alpha, a->row_word + row, size, count, a->row_prob + row);
    }
    a->chunk_dist[item] = dist;
    a->chunk_kl[item] = kl;
}

double dgm_aligner_iterate(dgm_aligner *a)
{
    double objective = 0, distance = 0;
    dgm_pool_run(a->pool, gather, a, a->shards);
    dgm_pool_run(a->pool, settle, a, a->blocks);
    for (int i = 0; i < a->blocks; i++) objective += a->block_value[i];
    if (a->rounds > 0)
        for (int i = 0; i <= a->chunks; i++) objective -= a->chunk_kl[i];
    dgm_pool_run(a->pool, count_words, a, a->chunks + 1);
    for (int i = 0; i < a->chunks; i++) distance += a->chunk_dist[i];
    if (a->o.model == 2 && a->o.optimise_tension && a->rounds > 0) dgm_align_optimise(a, distance);
    a->rounds++;
    return objective;
}

// ---- best links -------------------------------------------------------------------------------

// Score of NULL on the scale of w t: p0 t(f | NULL) Z_j / (1 - p0).
static void start_links(void *arg, int worker, int item)
{
    dgm_aligner *a = arg;
    (void)worker;
    double z[DGM_BITEXT_LENGTH_MAX];
    for (uint32_t g = a->block[item]; g < a->block[item + 1]; g++) {
        const dgm_bitext_group *group = &a->b->group[g];
        int m = group->length[a->from_side], n = group->length[1 - a->from_side];
        double p0 = null_weight(a, m);
        partition(a, m, n, z);
        for (uint32_t p = group->first; p < group->first + group->count; p++)
            for (int j = 0; j < n; j++) {
                uint64_t k = a->to->start[p] + (uint64_t)j;
                double null = (double)a->null_prob[a->to->token[k]];
                a->sum[k] = (float)(p0 * null * z[j] / (1 - p0));
                a->link[k] = -1;
            }
    }
}

static inline void challenge(float score, int16_t i, float *best, int16_t *link)
{
    if (score > *best || (score == *best && i < *link)) {
        *best = score;
        *link = i;
    }
}

static void challenge_pair(dgm_aligner *a, const visit *v, const float *prob)
{
    float w = v->ray.up, *best = a->sum + v->at;
    int16_t *link = a->link + v->at;
    const int16_t i = (int16_t)v->position;
    for (int j = v->ray.split; j < v->n; j++) {
        challenge(w * prob[v->f[j]], i, &best[j], &link[j]);
        w *= v->ray.ratio;
    }
    w = v->ray.down;
    for (int j = v->ray.split - 1; j >= 0; j--) {
        challenge(w * prob[v->f[j]], i, &best[j], &link[j]);
        w *= v->ray.ratio;
    }
}

static void find_links(void *arg, int worker, int item)
{
    visit_shard(arg, worker, item, challenge_pair);
}

void dgm_aligner_viterbi(dgm_aligner *a, int16_t *link)
{
    a->link = link;
    dgm_pool_run(a->pool, start_links, a, a->blocks);
    dgm_pool_run(a->pool, find_links, a, a->shards);
    a->link = NULL;
}
