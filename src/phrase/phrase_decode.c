// SPDX-License-Identifier: MIT
// The phrase-based decoder's objects; see phrase_decode.h.
#include "phrase/phrase_decode.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "phrase/phrase_decode_private.h"

#define ARENA_BYTES ((size_t)4 << 30) // address space; paid for when touched
#define CACHE_SLOTS (1u << 16)
#define NO_KEY UINT64_MAX

// ---- parameters -------------------------------------------------------------------------------

void dgm_pb_params_default(dgm_pb_params *p)
{
    *p = (dgm_pb_params){.pops = 400, .stack = 200, .jump = 6, .table_limit = 20, .nbest = 1};
    dgm_pb_weights_default(&p->weights);
}

dgm_status dgm_pb_params_check(const dgm_pb_params *p, dgm_error *err)
{
    DGM_FAIL_IF(p->pops < 1 || p->stack < 1 || p->table_limit < 1 || p->nbest < 1, err,
                DGM_ERR_ARGUMENT, "pops, stack, table limit and n-best size must be 1 or more");
    DGM_FAIL_IF(p->pops > 10000000 || p->nbest > 1000000 || p->table_limit > 1000000, err,
                DGM_ERR_ARGUMENT, "pops, table limit or n-best size is too large");
    DGM_FAIL_IF(p->jump < 0 || p->jump > DGM_PB_JUMP_MAX, err, DGM_ERR_ARGUMENT,
                "the distortion limit must be 0 to %d, not %d", DGM_PB_JUMP_MAX, p->jump);
    for (int k = 0; k < DGM_PB_FEATURES; k++)
        DGM_FAIL_IF(!isfinite(p->weights.w[k]) || fabs(p->weights.w[k]) > 1e6, err,
                    DGM_ERR_ARGUMENT, "a weight is too large");
    return DGM_OK;
}

// ---- model ------------------------------------------------------------------------------------

dgm_status dgm_pb_model_set(dgm_pb_model *m, const dgm_pb_params *params, dgm_error *err)
{
    DGM_TRY(dgm_pb_params_check(params, err));
    m->p = *params;
    m->oriented = m->table->features == DGM_TABLE_FEATURES;
    return DGM_OK;
}

dgm_status dgm_pb_model_open(dgm_pb_model **out, const dgm_phrase_table *table, const dgm_lm *lm,
                             const dgm_pb_params *params, dgm_error *err)
{
    *out = NULL;
    dgm_pb_model *m = dgm_calloc(1, sizeof *m);
    if (!m) return dgm_no_memory(err);
    m->table = table;
    m->lm = lm;
    uint32_t words = table->words[1].count;
    m->lm_word = dgm_malloc(((size_t)words + 1) * sizeof *m->lm_word);
    dgm_status st = m->lm_word ? dgm_pb_model_set(m, params, err) : dgm_no_memory(err);
    for (uint32_t w = 0; st == DGM_OK && w < words; w++)
        m->lm_word[w] = dgm_lm_word(lm, dgm_phrase_table_spell(table, 1, w));
    if (st != DGM_OK) dgm_pb_model_close(&m);
    *out = m;
    return st;
}

void dgm_pb_model_close(dgm_pb_model **m)
{
    if (!*m) return;
    dgm_free((*m)->lm_word);
    dgm_free(*m);
    *m = NULL;
}

// ---- decoder ----------------------------------------------------------------------------------

static dgm_status open_parts(dgm_pb_decoder *d, dgm_error *err)
{
    DGM_TRY(dgm_arena_init(&d->arena, ARENA_BYTES, err));
    dgm_arena_large(&d->arena);
    d->cache = dgm_malloc(CACHE_SLOTS * sizeof *d->cache);
    if (!d->cache) return dgm_no_memory(err);
    for (uint32_t i = 0; i < CACHE_SLOTS; i++) d->cache[i].key = NO_KEY;
    return DGM_OK;
}

dgm_status dgm_pb_decoder_open(dgm_pb_decoder **out, const dgm_pb_model *m, dgm_error *err)
{
    *out = NULL;
    dgm_pb_decoder *d = dgm_calloc(1, sizeof *d);
    if (!d) return dgm_no_memory(err);
    d->m = m;
    dgm_status st = open_parts(d, err);
    if (st != DGM_OK) dgm_pb_decoder_close(&d);
    *out = d;
    return st;
}

void dgm_pb_decoder_close(dgm_pb_decoder **out)
{
    dgm_pb_decoder *d = *out;
    if (!d) return;
    dgm_arena_free(&d->arena);
    for (size_t k = 0; k < d->stack_cap; k++) dgm_free(d->stacks[k].edges);
    dgm_free(d->stacks);
    dgm_free(d->heap);
    dgm_free(d->table);
    dgm_free(d->cache);
    dgm_free(d);
    *out = NULL;
}

const dgm_pb_stats *dgm_pb_decoder_stats(const dgm_pb_decoder *d)
{
    return &d->stats;
}

dgm_status dgm_pb_full(dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_TEXT,
                    "this sentence needs more memory than a decoder may use; fewer pops would do");
}

double dgm_pb_log(double probability)
{
    if (!(probability > 0)) return DGM_PB_LOG_FLOOR;
    double v = log(probability);
    return v < DGM_PB_LOG_FLOOR ? DGM_PB_LOG_FLOOR : v;
}

// Words of a model are below 2^29 for the key to be exact; larger models are asked directly.
double dgm_pb_lm_step(dgm_pb_decoder *d, const dgm_lm_state *state, uint32_t word,
                      dgm_lm_state *next)
{
    static const double LN10 = 2.302585092994045684;
    uint64_t node = state->length ? state->node[state->length - 1] : 0;
    uint64_t key = node << 32 | (uint64_t)state->length << 29 | word;
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    dgm_pb_cached *slot = &d->cache[h >> 48 & (CACHE_SLOTS - 1)];
    if (word >> 29 || slot->key != key) {
        dgm_lm_state out;
        double v = LN10 * dgm_lm_step(d->m->lm, state, word, &out, NULL);
        if (v < DGM_PB_LOG_FLOOR) v = DGM_PB_LOG_FLOOR;
        *slot = (dgm_pb_cached){word >> 29 ? NO_KEY : key, v, out};
    }
    if (next) *next = slot->next;
    return slot->log;
}

dgm_status dgm_pb_decode(dgm_pb_decoder *d, const dgm_text *words, int count,
                         const dgm_pb_translation **list, int *list_count, dgm_error *err)
{
    *list = NULL;
    *list_count = 0;
    DGM_FAIL_IF(count < 0, err, DGM_ERR_ARGUMENT, "a sentence cannot have %d words", count);
    dgm_arena_reset(&d->arena, 0);
    d->source = words;
    d->n = count;
    size_t size = 1024;
    while (size < 2 * (size_t)d->m->p.pops) size *= 2;
    if (size > d->table_size) {
        dgm_free(d->table);
        d->table_size = 0;
        d->table = dgm_calloc(size, sizeof *d->table);
        if (!d->table) return dgm_no_memory(err);
        d->table_size = size;
    }
    DGM_TRY(dgm_pb_collect(d, err));
    DGM_TRY(dgm_pb_search(d, err));
    dgm_pb_translation *found = NULL;
    DGM_TRY(dgm_pb_list(d, &found, list_count, err));
    *list = found;
    return DGM_OK;
}
