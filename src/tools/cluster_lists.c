// SPDX-License-Identifier: MIT
// The lists of clusters: which tokens are listed at a centroid (cluster.c has the method).
//
//     weight of t at c = sum over vectors v, c the j-th nearest of v, t the r-th best of v:
//                        nearness[j] * 2 / (r * r + 1);   t is listed where it is > least * hits(c)
//
// Memory: a bit per centroid and token, and the weights of as many tokens as fit in WEIGHTS bytes:
// larger vocabularies take several walks.
#include <string.h>

#include "base/mem.h"
#include "engine/engine_private.h"
#include "tools/cluster_private.h"

enum { WEIGHTS = 1 << 28 };

static const float nearness[DGM_CLUSTER_NEAR_MAX] = {1,     0.5f, 0.25f, 0.15f,
                                                     0.1f, 0.07f, 0.05f, 0.04f};

static void weigh(dgm_cluster_work *w, size_t count, void *cookie)
{
    (void)cookie;
    const size_t best = (size_t)w->record.best, near = (size_t)w->o->near;
    for (size_t i = 0; i < count; i++) {
        const int32_t *found = w->found + i * near, *ids = w->predictions + i * best;
        if (w->first == 0) w->hits[found[0]]++;
        for (size_t j = 0; j < near && found[j] >= 0; j++) {
            float *weights = w->weights + (size_t)found[j] * (size_t)w->window;
            for (int r = 0; r < w->o->best; r++) {
                const int32_t id = ids[r] - w->first;
                if (ids[r] >= w->first && id < w->window)
                    weights[id] += nearness[j] * 2 / (float)((r + 1) * (r + 1) + 1);
            }
        }
    }
}

// Bits of the window's tokens that weigh enough.
static void choose(dgm_cluster_work *w)
{
    for (int c = 0; c < w->o->centroids; c++) {
        const float *weights = w->weights + (size_t)c * (size_t)w->window;
        const float least = (float)(w->o->least * (double)w->hits[c]);
        uint64_t *bits = w->bits + (size_t)c * w->words;
        for (int i = 0; i < w->window && w->first + i < w->out.targets; i++)
            if (weights[i] > least)
                bits[(w->first + i) >> 6] |= (uint64_t)1 << ((w->first + i) & 63);
    }
}

static dgm_status weigh_all(dgm_cluster_work *w, dgm_error *err)
{
    const size_t centroids = (size_t)w->o->centroids;
    const size_t room = WEIGHTS / (centroids * sizeof *w->weights);
    w->window = room < (size_t)w->out.targets ? (int)room : w->out.targets;
    w->weights = dgm_malloc(centroids * (size_t)w->window * sizeof *w->weights);
    if (!w->weights) return dgm_no_memory(err);
    for (w->first = 0; w->first < w->out.targets; w->first += w->window) {
        memset(w->weights, 0, centroids * (size_t)w->window * sizeof *w->weights);
        DGM_TRY(dgm_cluster_walk(w, w->o->centroids, w->o->near, weigh, NULL, err));
        choose(w);
    }
    return DGM_OK;
}

// The bits as lists; what ends a sentence is in all of them.
static dgm_status write_lists(dgm_cluster_work *w, const dgm_vocab_spec *target, dgm_error *err)
{
    const int end = dgm_modelfile_end(target);
    uint64_t entries = 0, n = 0;
    for (int c = 0; c < w->o->centroids; c++) {
        uint64_t *bits = w->bits + (size_t)c * w->words;
        if (end >= 0) bits[end >> 6] |= (uint64_t)1 << (end & 63);
        for (size_t i = 0; i < w->words; i++) entries += (uint64_t)__builtin_popcountll(bits[i]);
    }
    w->out.ids = dgm_malloc(entries * sizeof *w->out.ids);
    if (!w->out.ids) return dgm_no_memory(err);
    for (int c = 0; c < w->o->centroids; c++) {
        for (size_t i = 0; i < w->words; i++)
            for (uint64_t left = w->bits[(size_t)c * w->words + i]; left; left &= left - 1)
                w->out.ids[n++] = (int32_t)(i * 64) + __builtin_ctzll(left);
        w->out.at[c + 1] = n;
    }
    return DGM_OK;
}

static void summarise(dgm_cluster_work *w)
{
    dgm_cluster_report *r = &w->report;
    const double targets = (double)w->out.targets;
    double sum = 0;
    r->lines = w->record.lines;
    r->vectors = w->record.records;
    r->centroids = w->o->centroids;
    r->targets = w->out.targets;
    r->least = 1;
    for (int c = 0; c < w->o->centroids; c++) {
        const double share = (double)(w->out.at[c + 1] - w->out.at[c]) / targets;
        sum += share * (double)w->hits[c];
        r->empty += w->hits[c] == 0;
        if (share < r->least) r->least = share;
        if (share > r->most) r->most = share;
    }
    r->share = r->vectors ? sum / (double)r->vectors : 0;
}

dgm_status dgm_cluster_lists(dgm_cluster_work *w, dgm_error *err)
{
    const size_t centroids = (size_t)w->o->centroids;
    dgm_vocab_spec target = {0};
    DGM_TRY(dgm_modelfile_vocab(w->file, DGM_TARGET, &target, err));
    w->out.targets = target.size;
    w->words = ((size_t)target.size + 63) / 64;
    w->bits = dgm_calloc(centroids * w->words, sizeof *w->bits);
    w->hits = dgm_calloc(centroids, sizeof *w->hits);
    w->out.at = dgm_calloc(centroids + 1, sizeof *w->out.at);
    if (!w->bits || !w->hits || !w->out.at) return dgm_no_memory(err);
    DGM_TRY(weigh_all(w, err));
    DGM_TRY(write_lists(w, &target, err));
    summarise(w);
    return DGM_OK;
}
