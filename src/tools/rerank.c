// SPDX-License-Identifier: MIT
// Re-ranking: another model's opinion on finished translations (`dragoman translate --rerank`).
//
// The other model is usually one that writes from right to left: it has seen the end of a sentence
// when it scores its beginning. It reads the texts with its own vocabularies, so it need not share
// any with the models that made them. Per translation
//
//     score  =  score + weight * (the other model's log-probability, normalised by length)
//
// and a line's translations are sorted by that (equal ones stay in order). A line with a
// translation that the other model cannot take, e.g. one that is too long for it, stays as it is:
// half of a list cannot be compared with the other half.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"

// The results are the caller's to change.
static dgm_translation **list_of(const dgm_result *r)
{
    return (dgm_translation **)(uintptr_t)r->translations;
}

static bool has_choice(const dgm_result *r)
{
    return r->status == DGM_OK && r->pieces > 0 && r->count > 0;
}

static void sort(dgm_translation **list, size_t count)
{
    for (size_t i = 1; i < count; i++) { // insertion: stable, and lists are short
        dgm_translation *const t = list[i];
        size_t at = i;
        DGM_INSERT(list, at, t, t->score > list[at - 1]->score);
    }
}

static void apply(const dgm_result *r, const dgm_pair_score *const *scores, float weight)
{
    dgm_translation **list = list_of(r);
    for (size_t k = 0; k < r->count; k++)
        if (scores[k]->status != DGM_OK) return;
    for (size_t k = 0; k < r->count; k++) list[k]->score += weight * scores[k]->score;
    sort(list, r->count);
}

dgm_status dgm_rerank(dgm_translator *t, float weight, const dgm_line *sources,
                      dgm_results *results, dgm_error *err)
{
    DGM_FAIL_IF(!(weight >= 0.0f && weight <= 1e6f), err, DGM_ERR_ARGUMENT,
                "the weight of a re-ranker must be between 0 and 1e+06, not %g", (double)weight);
    size_t count = 0, at = 0;
    for (size_t i = 0; i < results->count; i++)
        if (has_choice(results->items[i])) count += results->items[i]->count;
    dgm_pair *pairs = dgm_calloc(count ? count : 1, sizeof *pairs);
    if (!pairs) return dgm_no_memory(err);
    for (size_t i = 0; i < results->count; i++)
        for (size_t k = 0; has_choice(results->items[i]) && k < results->items[i]->count; k++) {
            const dgm_translation *one = results->items[i]->translations[k];
            const dgm_line source = one->pivot ? (dgm_line){one->pivot, strlen(one->pivot)} : sources[i];
            pairs[at++] = (dgm_pair){source, {one->text, one->text_size}};
        }
    dgm_pair_scores *scores = NULL;
    const dgm_status st = dgm_score_pairs(t, pairs, count, &scores, err);
    dgm_free(pairs);
    if (st != DGM_OK) return st;
    at = 0;
    for (size_t i = 0; i < results->count; i++) {
        if (!has_choice(results->items[i])) continue;
        apply(results->items[i], scores->items + at, weight);
        at += results->items[i]->count;
    }
    dgm_pair_scores_free(&scores);
    return DGM_OK;
}

void dgm_results_trim(dgm_results *results, size_t most)
{
    for (size_t i = 0; i < results->count; i++) {
        dgm_result *r = (dgm_result *)(uintptr_t)results->items[i];
        while (r->count > most && r->count > 1) dgm_translation_free(r->translations[--r->count]);
    }
}
