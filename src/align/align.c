// SPDX-License-Identifier: MIT
// Setup of a word aligner: where each word occurs, which word pairs meet, how the work is cut.
// See align_private.h for the layout.
#include "align/align.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "align/align_private.h"

void dgm_align_params_default(dgm_align_params *o)
{
    *o = (dgm_align_params){
        .model = 2, .p0 = 0.08, .alpha = 0.01, .tension = 4, .optimise_tension = true};
}

dgm_status dgm_align_params_check(const dgm_align_params *o, dgm_error *err)
{
    DGM_FAIL_IF(o->model != 1 && o->model != 2, err, DGM_ERR_ARGUMENT,
                "the alignment model must be 1 or 2, not %d", o->model);
    DGM_FAIL_IF(!(o->p0 >= 0 && o->p0 <= 0.99), err, DGM_ERR_ARGUMENT,
                "the probability of NULL must be between 0 and 0.99, not %g", o->p0);
    DGM_FAIL_IF(!(o->alpha >= 0 && o->alpha <= 1e6) || (o->alpha > 0 && o->alpha < 1e-3), err,
                DGM_ERR_ARGUMENT, "alpha must be 0 or between 0.001 and 1000000, not %g", o->alpha);
    DGM_FAIL_IF(!(o->tension >= DGM_ALIGN_TENSION_MIN && o->tension <= DGM_ALIGN_TENSION_MAX), err,
                DGM_ERR_ARGUMENT, "the tension must be between %g and %g, not %g",
                DGM_ALIGN_TENSION_MIN, DGM_ALIGN_TENSION_MAX, o->tension);
    return DGM_OK;
}

// ---- cutting the work -------------------------------------------------------------------------

// Cuts `count` things with costs into at most `parts` runs of about equal cost; cut [parts + 1].
// Returns the number of runs.
static int cut_evenly(const uint64_t *cost, uint32_t count, int parts, uint32_t *cut)
{
    uint64_t total = 0, sum = 0;
    for (uint32_t i = 0; i < count; i++) total += cost[i];
    uint64_t goal = total / (uint64_t)parts + 1;
    int n = 0;
    cut[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += cost[i];
        if (sum >= goal && n + 1 < parts && i + 1 < count) {
            cut[++n] = i + 1;
            sum = 0;
        }
    }
    cut[++n] = count;
    return n;
}

static dgm_status cut_work(dgm_aligner *a, dgm_error *err)
{
    const dgm_bitext *b = a->b;
    uint32_t types = a->from->types;
    size_t most = types > b->pairs ? types : b->pairs;
    uint64_t *cost = dgm_calloc(most + 1, sizeof *cost);
    a->shards = a->workers > 1 ? 2 * a->workers : 1;
    a->chunk = dgm_malloc((DGM_ALIGN_CHUNKS + 1) * sizeof *a->chunk);
    a->block = dgm_malloc((DGM_ALIGN_BLOCKS + 1) * sizeof *a->block);
    a->shard = dgm_malloc(((size_t)a->shards + 1) * sizeof *a->shard);
    if (!cost || !a->chunk || !a->block || !a->shard) {
        dgm_free(cost);
        return dgm_no_memory(err);
    }
    for (uint32_t e = 0; e < types; e++)
        for (uint64_t o = a->occ_at[e]; o < a->occ_at[e + 1]; o++) {
            uint32_t p = a->occ_pair[o];
            cost[e] += a->to->start[p + 1] - a->to->start[p] + 8;
        }
    a->chunks = cut_evenly(cost, types, DGM_ALIGN_CHUNKS, a->chunk);
    for (uint32_t p = 0; p < b->pairs; p++)
        cost[p] = (b->side[0].start[p + 1] - b->side[0].start[p]) *
                  (b->side[1].start[p + 1] - b->side[1].start[p]);
    a->shards = cut_evenly(cost, b->pairs, a->shards, a->shard);
    for (uint32_t g = 0; g < b->groups; g++)
        cost[g] = (uint64_t)b->group[g].length[1] * (b->group[g].count + b->group[g].length[0]);
    a->blocks = cut_evenly(cost, b->groups, DGM_ALIGN_BLOCKS, a->block);
    dgm_free(cost);
    return DGM_OK;
}

// ---- where words occur ------------------------------------------------------------------------

static dgm_status index_words(dgm_aligner *a, dgm_error *err)
{
    const dgm_bitext_side *s = a->from;
    a->occ_at = dgm_malloc(((size_t)s->types + 1) * sizeof *a->occ_at);
    a->occ_pair = dgm_malloc(s->token_count * sizeof *a->occ_pair);
    a->occ_pos = dgm_malloc(s->token_count * sizeof *a->occ_pos);
    uint64_t *next = dgm_malloc((size_t)s->types * sizeof *next);
    if (!a->occ_at || !a->occ_pair || !a->occ_pos || !next) {
        dgm_free(next);
        return dgm_no_memory(err);
    }
    a->occ_at[0] = 0;
    for (uint32_t e = 0; e < s->types; e++) {
        next[e] = a->occ_at[e];
        a->occ_at[e + 1] = a->occ_at[e] + s->freq[e];
    }
    for (uint32_t p = 0; p < a->b->pairs; p++)
        for (uint64_t k = s->start[p]; k < s->start[p + 1]; k++) {
            uint64_t o = next[s->token[k]]++;
            a->occ_pair[o] = p;
            a->occ_pos[o] = (uint16_t)(k - s->start[p]);
        }
    dgm_free(next);
    return DGM_OK;
}

// ---- which words meet -------------------------------------------------------------------------

// Two rounds over the words: the first counts the entries of each row into row_at[e + 1], the
// second writes them. The worker's count array serves as "seen with word e" marks.
static void find_rows(void *arg, int worker, int item)
{
    dgm_aligner *a = arg;
    const dgm_bitext_side *to = a->to;
    double *seen = a->worker[worker].count;
    bool fill = a->row_word != NULL;
    for (uint32_t e = a->chunk[item]; e < a->chunk[item + 1]; e++) {
        uint64_t n = 0;
        uint32_t *row = fill ? a->row_word + a->row_at[e] : NULL;
        double mark = fill ? -(double)e - 1 : (double)e + 1;
        for (uint64_t o = a->occ_at[e]; o < a->occ_at[e + 1]; o++) {
            uint32_t p = a->occ_pair[o];
            for (uint64_t k = to->start[p]; k < to->start[p + 1]; k++) {
                uint32_t f = to->token[k];
                if (seen[f] == mark) continue;
                seen[f] = mark;
                if (fill) row[n] = f;
                n++;
            }
        }
        if (!fill) a->row_at[e + 1] = n;
    }
}

static dgm_status build_table(dgm_aligner *a, dgm_error *err)
{
    uint32_t types = a->from->types;
    a->row_at = dgm_malloc(((size_t)types + 1) * sizeof *a->row_at);
    if (!a->row_at) return dgm_no_memory(err);
    dgm_pool_run(a->pool, find_rows, a, a->chunks);
    a->row_at[0] = 0;
    for (uint32_t e = 0; e < types; e++) a->row_at[e + 1] += a->row_at[e];
    uint64_t entries = a->row_at[types];
    a->row_word = dgm_malloc(entries * sizeof *a->row_word);
    a->row_prob = dgm_malloc(entries * sizeof *a->row_prob);
    if (!a->row_word || !a->row_prob)
        return dgm_fail(err, DGM_ERR_MEMORY,
                        "out of memory: the table has %llu word pairs and takes %llu MiB",
                        (unsigned long long)entries, (unsigned long long)(entries * 8 >> 20));
    dgm_pool_run(a->pool, find_rows, a, a->chunks);
    // The same value everywhere: a row of its own length each would favour rare words.
    float uniform = 1.0f / (float)a->to->types;
    for (uint64_t k = 0; k < entries; k++) a->row_prob[k] = uniform;
    for (uint32_t f = 0; f < a->to->types; f++) a->null_prob[f] = uniform;
    return DGM_OK;
}

// ---- open and close ---------------------------------------------------------------------------

static dgm_status allocate(dgm_aligner *a, dgm_error *err)
{
    const dgm_bitext *b = a->b;
    uint32_t types = a->to->types;
    a->workers = dgm_pool_threads(a->pool);
    a->worker = dgm_calloc((size_t)a->workers, sizeof *a->worker);
    if (!a->worker) return dgm_no_memory(err);
    for (int i = 0; i < a->workers; i++) {
        a->worker[i].prob = dgm_calloc(types, sizeof(float));
        a->worker[i].count = dgm_calloc(types, sizeof(double));
        if (!a->worker[i].prob || !a->worker[i].count) return dgm_no_memory(err);
    }
    a->null_prob = dgm_malloc((size_t)types * sizeof *a->null_prob);
    a->sum = dgm_malloc(a->to->token_count * sizeof *a->sum);
    a->null_post = dgm_malloc(a->to->token_count * sizeof *a->null_post);
    a->ratio = dgm_malloc(((size_t)b->max_length + 1) * sizeof *a->ratio);
    a->chunk_dist = dgm_calloc(DGM_ALIGN_CHUNKS + 1, sizeof(double));
    a->chunk_kl = dgm_calloc(DGM_ALIGN_CHUNKS + 1, sizeof(double));
    a->block_value = dgm_calloc(DGM_ALIGN_BLOCKS, sizeof(double));
    a->mass_at = dgm_malloc(((size_t)b->groups + 1) * sizeof *a->mass_at);
    if (!a->null_prob || !a->sum || !a->null_post || !a->ratio || !a->chunk_dist || !a->chunk_kl ||
        !a->block_value || !a->mass_at)
        return dgm_no_memory(err);
    a->mass_at[0] = 0;
    for (uint32_t g = 0; g < b->groups; g++)
        a->mass_at[g + 1] = a->mass_at[g] + b->group[g].length[1 - a->from_side];
    a->mass = dgm_calloc(a->mass_at[b->groups], sizeof *a->mass);
    return a->mass ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_aligner_open(dgm_aligner **out, const dgm_bitext *b, int from,
                            const dgm_align_params *params, dgm_pool *pool, dgm_error *err)
{
    *out = NULL;
    DGM_TRY(dgm_align_params_check(params, err));
    dgm_aligner *a = dgm_calloc(1, sizeof *a);
    if (!a) return dgm_no_memory(err);
    a->b = b;
    a->from_side = from;
    a->from = &b->side[from];
    a->to = &b->side[1 - from];
    a->o = *params;
    a->pool = pool;
    dgm_status st = allocate(a, err);
    if (st == DGM_OK) st = index_words(a, err);
    if (st == DGM_OK) st = cut_work(a, err);
    if (st == DGM_OK) st = build_table(a, err);
    if (st != DGM_OK) {
        dgm_aligner_close(&a);
        return st;
    }
    dgm_align_set_tension(a, params->model == 1 ? 0 : params->tension);
    *out = a;
    return DGM_OK;
}

void dgm_aligner_close(dgm_aligner **out)
{
    dgm_aligner *a = *out;
    if (!a) return;
    void *const parts[] = {a->occ_at,      a->occ_pair,   a->occ_pos,  a->row_at,    a->row_word,
                           a->row_prob,    a->null_prob,  a->sum,      a->null_post, a->ratio,
                           a->chunk,       a->chunk_dist, a->chunk_kl, a->shard,     a->block,
                           a->block_value, a->mass_at,    a->mass};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) dgm_free(parts[i]);
    for (int i = 0; a->worker && i < a->workers; i++) {
        dgm_free(a->worker[i].prob);
        dgm_free(a->worker[i].count);
    }
    dgm_free(a->worker);
    dgm_free(a);
    *out = NULL;
}

// ---- questions --------------------------------------------------------------------------------

double dgm_aligner_tension(const dgm_aligner *a)
{
    return a->tension;
}

uint64_t dgm_aligner_entries(const dgm_aligner *a)
{
    return a->row_at[a->from->types];
}

float dgm_aligner_probability(const dgm_aligner *a, uint32_t e, uint32_t f)
{
    if (f >= a->to->types) return 0;
    if (e == UINT32_MAX) return a->null_prob[f];
    if (e >= a->from->types) return 0;
    for (uint64_t k = a->row_at[e]; k < a->row_at[e + 1]; k++)
        if (a->row_word[k] == f) return a->row_prob[k];
    return 0;
}
