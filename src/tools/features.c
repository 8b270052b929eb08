// SPDX-License-Identifier: MIT
// The table of features (search/features.h) for programs.
#include "dragoman/features.h"

#include "base/sized.h"
#include "engine/engine_private.h"

static unsigned facts_of(uint32_t models)
{
    return (models & DGM_MODELS_RECURRENT ? DGM_FACT_RECURRENT : 0u) |
           (models & DGM_MODELS_OF_WORDS ? DGM_FACT_WORDS : 0u) |
           (models & DGM_MODELS_SELF_NORMALISED ? DGM_FACT_SELF_NORMALISED : 0u) |
           (models & DGM_MODELS_ALIKE ? DGM_FACT_ALIKE : 0u) |
           (models & DGM_MODELS_SCALED ? DGM_FACT_SCALED : 0u);
}

size_t dgm_features_sized(size_t index, dgm_feature_info *out, size_t size)
{
    if (!out || index >= DGM_FEATURE_COUNT) return DGM_FEATURE_COUNT;
    const dgm_feature_row *f = &dgm_feature_table[index];
    dgm_feature_info own = {.name = f->name, .setting = f->setting, .of_some = f->of_some};
    for (int i = 0; i < DGM_FEATURE_COUNT && !own.needs; i++)
        if (f->needs >> i & 1u) own.needs = dgm_feature_table[i].name;
    dgm_sized_give(out, size, &own, sizeof own);
    return DGM_FEATURE_COUNT;
}

size_t dgm_searches(size_t index, dgm_way_info *out)
{
    size_t count = 0;
    while (dgm_search_rows[count].name) count++;
    if (out && index < count) *out = (dgm_way_info){dgm_search_rows[index].name, NULL};
    return count;
}

size_t dgm_writings(size_t index, dgm_way_info *out)
{
    if (out && index < DGM_WRITES_COUNT)
        *out = (dgm_way_info){dgm_writing_rows[index].name, dgm_writing_rows[index].words};
    return DGM_WRITES_COUNT;
}

static dgm_status find(const char *name, uint64_t *features, dgm_error *err)
{
    const int feature = dgm_feature_find(name);
    DGM_FAIL_IF(feature < 0, err, DGM_ERR_ARGUMENT, "there is no feature '%s'", name ? name : "");
    *features |= DGM_FEATURE_BIT(feature);
    return DGM_OK;
}

dgm_status dgm_features_check(const dgm_feature_query *query, int *later, dgm_error *err)
{
    dgm_feature_query own = {0}, *const q = &own;
    DGM_TRY(dgm_sized_take(q, sizeof *q, query, "dgm_feature_query", NULL, err));
    dgm_combination c = {.search = dgm_search_find(q->search),
                         .writing = dgm_writing_find(q->writing),
                         .facts = facts_of(q->models)};
    bool meaning = false;
    if (later) *later = 0;
    DGM_FAIL_IF(q->search && c.search < 0, err, DGM_ERR_ARGUMENT, "there is no search '%s'",
                q->search);
    DGM_FAIL_IF(q->writing && c.writing < 0, err, DGM_ERR_ARGUMENT, "no models write '%s'",
                q->writing);
    for (size_t i = 0; i < q->count; i++) DGM_TRY(find(q->features[i], &c.features, err));
    const dgm_status st = dgm_combination_check(&c, &meaning, err);
    if (later) *later = meaning;
    return st;
}

dgm_status dgm_translator_check(const dgm_translator *t, const char *feature, dgm_error *err)
{
    dgm_combination c = dgm_combination_of(&t->wanted);
    DGM_TRY(find(feature, &c.features, err));
    return dgm_combination_check(&c, NULL, err);
}
