// SPDX-License-Identifier: MIT
// See pairs_masked.h.
//
//     y1 y2 y3    [mask] y2 y3   y1 [mask] y3   y1 y2 [mask]      one call of the models has as many as it has room for
#include "tools/pairs_masked.h"

#include <string.h>

#include "base/mem.h"

dgm_status dgm_masked_open(dgm_masked_room *room, int tokens, int members, dgm_error *err)
{
    const size_t n = (size_t)tokens;
    room->tokens = tokens;
    room->ids = dgm_calloc(n, sizeof *room->ids);
    room->wanted = dgm_calloc(n, sizeof *room->wanted);
    room->watch = dgm_calloc(n, sizeof *room->watch);
    room->top_token = dgm_calloc(n, sizeof *room->top_token);
    room->targets = dgm_calloc(n, sizeof *room->targets);
    room->terms = dgm_calloc(n, sizeof *room->terms);
    room->top_score = dgm_calloc(n, sizeof *room->top_score);
    room->watch_score = dgm_calloc(n, sizeof *room->watch_score);
    room->log_z = dgm_calloc(n * (size_t)members, sizeof *room->log_z);
    if (!room->ids || !room->wanted || !room->watch || !room->top_token || !room->targets || !room->terms ||
        !room->top_score || !room->watch_score || !room->log_z)
        return dgm_no_memory(err);
    return DGM_OK;
}

void dgm_masked_close(dgm_masked_room *room)
{
    void *const arrays[] = {room->ids,   room->wanted,    room->watch,       room->top_token, room->targets,
                            room->terms, room->top_score, room->watch_score, room->log_z};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) dgm_free(arrays[i]);
    *room = (dgm_masked_room){0};
}

// Targets with words first .. first + count - 1 masked, one each.
static void mask(dgm_masked_room *room, const dgm_masked_text *x, int32_t sign, int first, int count)
{
    for (int i = 0; i < count; i++) {
        int32_t *ids = room->ids + (size_t)i * (size_t)x->count;
        memcpy(ids, x->words, (size_t)x->count * sizeof *ids);
        room->watch[i] = ids[first + i];
        room->wanted[i] = first + i;
        ids[first + i] = sign;
        room->terms[i] = (dgm_terms){.lambda = 1};
        room->targets[i] =
            (dgm_refine_target){.ids = ids, .count = x->count, .wanted = &room->wanted[i], .wanted_count = 1};
    }
}

static dgm_status score_some(dgm_masked_room *room, const dgm_masked_text *x, int first, int count, dgm_error *err)
{
    const dgm_translator *t = x->t;
    dgm_rank_part parts[DGM_PARTS_MAX];
    mask(room, x, dgm_model_describe(t->members[0].model)->mask, first, count);
    for (int m = 0; m < t->member_count; m++) {
        dgm_mat hidden;
        for (int i = 0; i < count; i++) room->targets[i].slot = x->slots[(size_t)m * x->stride];
        DGM_TRY(dgm_refine(x->states[m], count, room->targets, &hidden, err));
        parts[m] = (dgm_rank_part){dgm_model_output(t->members[m].model), hidden, t->members[m].weight};
    }
    const dgm_rank r = {.parts = parts,
                        .part_count = t->member_count,
                        .mix = t->config.mix,
                        .normalise = t->config.normalise,
                        .rows = count,
                        .k = 1,
                        .watch_count = 1,
                        .terms = room->terms,
                        .watch = room->watch,
                        .score = room->top_score,
                        .token = room->top_token,
                        .watch_score = room->watch_score,
                        .log_z = room->log_z};
    dgm_op_rank(x->exec, &r);
    return dgm_exec_status(x->exec, err);
}

dgm_status dgm_masked_score(dgm_masked_room *room, const dgm_masked_text *x, float *scores, float *log_z,
                            dgm_error *err)
{
    const int most = x->count > 0 ? room->tokens / x->count : 0;
    for (int first = 0, count; first < x->count; first += count) {
        count = x->count - first < most ? x->count - first : most;
        DGM_TRY(score_some(room, x, first, count, err));
        for (int i = 0; i < count; i++) {
            scores[first + i] = room->watch_score[i];
            log_z[first + i] = room->log_z[i * x->t->member_count];
        }
    }
    return DGM_OK;
}
