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
// Of many directions, a model is asked about lines in those that it has, each in its own.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "dragoman/tools.h"
#include "base/sized.h"
#include "engine/engine_private.h"
#include "format/directed.h"
#include "format/languages.h"

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

// ---- directions --------------------------------------------------------------------------------

// Does the model translate between these languages? One that says nothing of its own may.
static bool offers(const dgm_translator *t, const char *source, const char *target)
{
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    if (l->count[0] == 0 || l->count[1] == 0 || !source || !target) return true;
    for (int i = 0; i < l->count[0]; i++)
        for (int k = 0; k < l->count[1]; k++)
            if (dgm_languages_offers(l, i, k) && dgm_language_matches(source, l->code[0][i]) &&
                dgm_language_matches(target, l->code[1][k]))
                return true;
    return false;
}

static bool is_for(const dgm_reranker *r, const dgm_result *line)
{
    if (!has_choice(line)) return false;
    if (r->direction && !dgm_direction_means(dgm_text_of(r->direction), line->source_code, line->target_code))
        return false;
    return !r->directed || offers(r->translator, line->source_code, line->target_code);
}

// ---- one model -----------------------------------------------------------------------------------

typedef struct asking {
    const dgm_reranker *r;
    bool *takes; // [lines]
    dgm_pair *pairs;
    dgm_direction *directions; // NULL: the model's own
    size_t count;
} asking;

static void free_asking(asking *a)
{
    dgm_free(a->takes);
    dgm_free(a->pairs);
    dgm_free(a->directions);
}

// All translations of the lines that the model is for.
static dgm_status collect(asking *a, const dgm_line *sources, const dgm_results *results, dgm_error *err)
{
    const dgm_languages *l = dgm_model_describe(a->r->translator->members[0].model)->languages;
    size_t most = 0;
    for (size_t i = 0; i < results->count; i++) most += results->items[i]->count;
    a->takes = dgm_calloc(results->count + 1, sizeof *a->takes);
    a->pairs = dgm_calloc(most + 1, sizeof *a->pairs);
    if (a->r->directed && l->count[0] && l->count[1]) a->directions = dgm_calloc(most + 1, sizeof *a->directions);
    if (!a->takes || !a->pairs || (a->r->directed && l->count[0] && l->count[1] && !a->directions))
        return dgm_no_memory(err);
    for (size_t i = 0; i < results->count; i++) {
        const dgm_result *line = results->items[i];
        a->takes[i] = is_for(a->r, line);
        for (size_t k = 0; a->takes[i] && k < line->count; k++) {
            const dgm_translation *one = line->translations[k];
            const dgm_line source = one->pivot ? (dgm_line){one->pivot, strlen(one->pivot)} : sources[i];
            if (a->directions) a->directions[a->count] = (dgm_direction){line->source_code, line->target_code};
            a->pairs[a->count++] = (dgm_pair){source, {one->text, one->text_size}};
        }
    }
    return DGM_OK;
}

static dgm_status rerank(const dgm_reranker *r, const dgm_line *sources, dgm_results *results, dgm_error *err)
{
    asking a = {.r = r};
    dgm_pair_scores *scores = NULL;
    DGM_FAIL_IF(!(r->weight >= 0.0f && r->weight <= 1e6f), err, DGM_ERR_ARGUMENT,
                "the weight of a re-ranker must be between 0 and 1e+06, not %g", (double)r->weight);
    dgm_status st = collect(&a, sources, results, err);
    if (st == DGM_OK) st = dgm_score_directed_pairs(r->translator, a.pairs, a.directions, a.count, &scores, err);
    for (size_t i = 0, at = 0; st == DGM_OK && i < results->count; i++) {
        if (!a.takes[i]) continue;
        apply(results->items[i], scores->items + at, r->weight);
        at += results->items[i]->count;
    }
    dgm_pair_scores_free(&scores);
    free_asking(&a);
    return st;
}

dgm_status dgm_rerank(dgm_translator *t, float weight, const dgm_line *sources,
                      dgm_results *results, dgm_error *err)
{
    const dgm_reranker own = {.size = sizeof own, .translator = t, .weight = weight};
    return rerank(&own, sources, results, err);
}

dgm_status dgm_rerank_by(const dgm_reranker *rerankers, size_t count, const dgm_line *sources, dgm_results *results,
                         dgm_error *err)
{
    for (size_t i = 0; i < count; i++) {
        dgm_reranker own = {0};
        const void *at = (const char *)rerankers + i * rerankers->size;
        DGM_TRY(dgm_sized_take(&own, sizeof own, at, "dgm_reranker", NULL, err));
        DGM_FAIL_IF(!own.translator, err, DGM_ERR_ARGUMENT, "re-ranker %zu has no translator", i + 1);
        DGM_TRY(rerank(&own, sources, results, err));
    }
    return DGM_OK;
}

void dgm_results_trim(dgm_results *results, size_t most)
{
    for (size_t i = 0; i < results->count; i++) {
        dgm_result *r = (dgm_result *)(uintptr_t)results->items[i];
        while (r->count > most && r->count > 1) dgm_translation_free(r->translations[--r->count]);
    }
}
