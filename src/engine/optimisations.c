// SPDX-License-Identifier: MIT
// The switches that leave a translation as it is and change what it costs, and what they did:
// settings become a dgm_tuning of every model, counters of the models become dgm_optimisations.
#include <string.h>

#include "dragoman/tools.h"
#include "base/sized.h"
#include "engine/engine_private.h"

static const char *const activation_names[] = {"polynomial", "table", "libm", NULL};

static int find_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!name || strcmp(names[i], name) == 0) return i;
    return -1;
}

void dgm_optimisations_device(dgm_translator *t, const dgm_settings *s)
{
    t->activations = find_name(activation_names, s->activations);
    if (t->activations) dgm_backend_activations(t->backend, (dgm_activations)t->activations);
}

dgm_status dgm_optimisations_tune(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    dgm_tuning tuning = {
        .precompute = s->precompute,
        .plain_attention = s->plain_attention != 0,
        .separate_rows = s->separate_states != 0,
    };
    t->merging = !tuning.separate_rows;
    for (int i = 0; i < t->member_count; i++)
        DGM_TRY(dgm_model_tune(t->members[i].model, &tuning, err));
    return DGM_OK;
}

void dgm_optimisations_count_sized(const dgm_translator *t, dgm_optimisations *counts, size_t size)
{
    dgm_optimisations own = {0}, *const out = &own;
    dgm_translator *mine = (dgm_translator *)(uintptr_t)t; // the lock is not part of the value
    dgm_model_counts n = {0};
    pthread_mutex_lock(&mine->lock);
    dgm_workers_optimisations(t, &n, &out->early_stops);
    out->unknown_words = t->unknown_words;
    out->unknown_translated = t->unknown_translated;
    pthread_mutex_unlock(&mine->lock);
    out->rows = n.rows;
    out->distinct = n.distinct;
    out->state_rows = n.state_rows;
    out->state_products = n.state_products;
    out->source_words = n.source_words;
    out->source_found = n.source_found;
    out->target_words = n.target_words;
    out->target_found = n.target_found;
    out->context_products = n.context_products;
    out->activation_values = n.activations;
    out->activations = activation_names[t->activations];
    out->merging = t->merging;
    for (int i = 0; i < t->member_count; i++) {
        const dgm_model_info *m = dgm_model_describe(t->members[i].model);
        out->plain_attention |= m->plain_attention;
        out->table_bytes += m->table_bytes;
        out->table_words[0] += m->table_words[0];
        out->table_words[1] += m->table_words[1];
    }
    dgm_sized_give(counts, size, &own, sizeof own);
}
