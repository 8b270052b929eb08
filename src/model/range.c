// SPDX-License-Identifier: MIT
// A few sentences of random words through encoder and decoder, while an observer looks at products' inputs.
//
// Words are drawn from all of the vocabulary and from its first sixteenth in turn: the beginning has the frequent
// ones, punctuation and marks, where activations of trained models are largest. Between them stand the tokens that the
// model wants around a sentence.
#include "model/range.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/model_private.h"

enum { SENTENCES = 4, WORDS = 16, STEPS = 6, FREQUENT = 16 };

typedef struct range {
    const dgm_model_info *info;
    dgm_exec *exec;
    dgm_state *state;
    dgm_limits limits;
    dgm_rng rng;
    int32_t *source; // [SENTENCES, limits.source]
    float *hidden;   // [rows * tokens_per_step, hidden]
    float largest;
} range;

static void see(range *r, float x)
{
    if (!isfinite(x)) r->largest = INFINITY;
    if (fabsf(x) > r->largest) r->largest = fabsf(x);
}

static void see_inputs(void *cookie, const dgm_linear *w, const float *largest, int rows)
{
    (void)w;
    for (int i = 0; i < rows; i++) see(cookie, largest[i]);
}

// What is no number anywhere in the model is none in its hidden vectors.
static void see_hidden(range *r, dgm_mat hidden)
{
    dgm_op_read(r->exec, r->hidden, hidden);
    for (int i = 0; i < hidden.rows * hidden.cols; i++) see(r, r->hidden[i]);
}

static int32_t draw(range *r, int vocabulary, int place)
{
    const int few = vocabulary / FREQUENT > 0 ? vocabulary / FREQUENT : 1;
    return (int32_t)dgm_rng_below(&r->rng, (uint64_t)(place % 2 ? vocabulary : few));
}

// What stands around the words of a source.
static int framing(const dgm_model_info *i)
{
    return i->source_prefix_count + i->append_eos + i->source_suffix_count;
}

static dgm_source make_source(range *r, int32_t *ids)
{
    const dgm_model_info *info = r->info;
    const int words = r->limits.source - framing(info);
    int n = 0;
    for (int i = 0; i < info->source_prefix_count; i++) ids[n++] = info->source_prefix[i];
    for (int i = 0; i < words; i++) ids[n++] = draw(r, info->source_vocab, i);
    if (info->append_eos) ids[n++] = info->source_eos;
    for (int i = 0; i < info->source_suffix_count; i++) ids[n++] = info->source_suffix[i];
    return (dgm_source){ids, n};
}

static dgm_status encode(range *r, int32_t slots[SENTENCES], dgm_error *err)
{
    dgm_source sources[SENTENCES];
    for (int i = 0; i < SENTENCES; i++) sources[i] = make_source(r, r->source + i * r->limits.source);
    return dgm_encode(r->state, SENTENCES, sources, slots, err);
}

// The start, what the model wants behind it, then random words; the last one ends the sentence.
static int32_t next_word(range *r, int step, int half)
{
    const dgm_model_info *info = r->info;
    if (step == 0) return half ? info->start_second : info->start;
    if (step <= info->target_prefix_count && info->tokens_per_step == 1) return info->target_prefix[step - 1];
    if (step == r->limits.target - 1) return info->eos;
    return draw(r, info->target_vocab, step);
}

static dgm_status steps(range *r, const int32_t *slots, dgm_error *err)
{
    int32_t rows[SENTENCES], made[SENTENCES];
    DGM_TRY(dgm_start(r->state, SENTENCES, slots, rows, err));
    for (int step = 0; step < r->limits.target; step++) {
        dgm_step_row next[SENTENCES];
        dgm_step_result out = {.rows = made};
        for (int i = 0; i < SENTENCES; i++)
            next[i] = (dgm_step_row){rows[i], {next_word(r, step, 0), next_word(r, step, 1)}};
        DGM_TRY(dgm_step(r->state, SENTENCES, next, &out, err));
        see_hidden(r, out.hidden);
        for (int i = 0; i < SENTENCES; i++) rows[i] = made[i];
        dgm_retain(r->state, SENTENCES, rows);
    }
    return DGM_OK;
}

// Of a model that fills in whole sentences: every other word is masked.
static dgm_status refine(range *r, const int32_t *slots, dgm_error *err)
{
    int32_t ids[SENTENCES][STEPS], wanted[STEPS];
    dgm_refine_target targets[SENTENCES];
    const int count = r->limits.target;
    for (int i = 0; i < SENTENCES; i++) {
        for (int j = 0; j < count; j++) {
            wanted[j] = j;
            ids[i][j] = j % 2 ? r->info->mask : draw(r, r->info->target_vocab, i);
        }
        targets[i] = (dgm_refine_target){slots[i], ids[i], count, wanted, count, NULL};
    }
    dgm_mat hidden;
    DGM_TRY(dgm_refine(r->state, SENTENCES, targets, &hidden, err));
    see_hidden(r, hidden);
    return DGM_OK;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static dgm_status open_range(range *r, const dgm_model *m, dgm_error *err)
{
    const dgm_model_info *info = r->info = dgm_model_describe(m);
    DGM_FAIL_IF(framing(info) >= info->max_source, err, DGM_ERR_FORMAT,
                "the model has no room for words between the tokens around a sentence");
    const bool whole = info->mask >= 0;
    const int target = smaller(whole ? STEPS : STEPS + info->target_prefix_count, info->max_target);
    r->limits = (dgm_limits){.slots = SENTENCES,
                             .rows = whole ? SENTENCES * target : SENTENCES,
                             .source = smaller(framing(info) + WORDS, info->max_source),
                             .target = target};
    r->rng.state = 1;
    const size_t vectors = (size_t)r->limits.rows * (size_t)info->tokens_per_step;
    r->source = dgm_malloc((size_t)SENTENCES * (size_t)r->limits.source * sizeof *r->source);
    r->hidden = dgm_malloc(vectors * (size_t)info->hidden * sizeof *r->hidden);
    if (!r->source || !r->hidden) return dgm_no_memory(err);
    const dgm_bytes bytes = dgm_bytes_add(dgm_state_bytes(m, &r->limits), dgm_bytes_both(1 << 16));
    DGM_TRY(dgm_exec_open(m->backend, bytes, &r->exec, err));
    return dgm_state_open(m, r->exec, &r->limits, &r->state, err);
}

dgm_status dgm_model_range(const dgm_model *m, float *largest, dgm_error *err)
{
    range r = {0};
    int32_t slots[SENTENCES];
    const dgm_observer observer = {.inputs = see_inputs, .cookie = &r};
    dgm_status st = open_range(&r, m, err);
    if (st == DGM_OK) {
        dgm_exec_observe(r.exec, &observer);
        st = encode(&r, slots, err);
        if (st == DGM_OK) st = r.info->mask >= 0 ? refine(&r, slots, err) : steps(&r, slots, err);
        dgm_state_close(&r.state);
    }
    dgm_exec_close(&r.exec);
    dgm_free(r.source);
    dgm_free(r.hidden);
    *largest = r.largest;
    return st;
}
