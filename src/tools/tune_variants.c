// SPDX-License-Identifier: MIT
// What cannot change a translation, batches and threads: compared on speed alone when the choice is made.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/tune_private.h"

enum { LEAST_FOR_BATCHES = 400 };
#define BATCH_SHARE 0.88 // of the time is over when batches begin; half of the rest is theirs

// Was it faster than another one in every round in which both ran?
static bool always_faster(const dgm_tune_work *t, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < t->timing_count; i++)
        for (size_t k = 0; k < t->timing_count; k++)
            if (t->timings[i].trial == (int)a && t->timings[k].trial == (int)b &&
                t->timings[i].occasion == t->timings[k].occasion && t->timings[i].log_time >= t->timings[k].log_time)
                return false;
    return true;
}

// Do they all say the same?
static dgm_status check_same(dgm_tune_work *t, const uint32_t *list, size_t count, dgm_error *err)
{
    for (size_t i = 1; i < count; i++)
        if (t->trials[list[i]].hash != t->trials[list[0]].hash)
            DGM_TRY(dgm_tune_note(t, err, "translations with %s are not those with %s, which should not be",
                                  t->trials[list[i]].options, t->trials[list[0]].options));
    return DGM_OK;
}

// Runs list[0], which is there, and variants of the chosen settings; *best is list[0] unless another one is surely
// faster, and in every round.
static dgm_status race_variants(dgm_tune_work *t, uint32_t *list, size_t count, double until, size_t *best,
                                dgm_error *err)
{
    enum { ROUNDS = 4 };
    const size_t step = t->lines / ROUNDS;
    double round = dgm_tune_cost(t, t->chosen) * (double)(step * count);
    *best = list[0];
    size_t rounds = 0;
    for (; count > 1 && rounds < ROUNDS && !dgm_tune_late(t, until - round); rounds++) {
        const double before = t->clock;
        DGM_TRY(dgm_tune_tick(t, "batches and threads", err));
        DGM_TRY(dgm_tune_step_block(t, list, count, step * rounds, step * (rounds + 1), err));
        round = t->clock - before;
    }
    if (rounds == 0) return DGM_OK;
    DGM_TRY(dgm_tune_judge(t, err));
    for (size_t i = 1; i < count; i++) {
        const dgm_tune_view *v = &t->views[list[i]], *b = &t->views[*best], *first = &t->views[list[0]];
        const bool surely = v->speed - first->speed > sqrt(v->half * v->half + first->half * first->half);
        if (v->speed > b->speed && surely && always_faster(t, list[i], list[0])) *best = list[i];
    }
    return DGM_OK;
}

enum { MOST = 8, SIZE = 96 };

// Adds a variant to the list where the model takes it.
static dgm_status add(dgm_tune_work *t, const char *more, bool by_wall, uint32_t *list, size_t *count, dgm_error *err)
{
    int trial = -1;
    DGM_TRY(dgm_tune_step_try(t, &t->trials[t->chosen].place, more, (int)t->chosen, &trial, err));
    if (trial < 0) return DGM_OK;
    t->trials[trial].by_wall = by_wall;
    list[(*count)++] = (uint32_t)trial;
    return DGM_OK;
}

// Batches go by the clock of all others: what a thread waits for at the end of a short text is not theirs.
static dgm_status race_batches(dgm_tune_work *t, int *tokens, dgm_error *err)
{
    static const int sizes[] = {1024, 2048, 4096, 16384, 32768};
    uint32_t list[MOST] = {(uint32_t)t->chosen};
    size_t count = 1, best = 0;
    char more[SIZE];
    *tokens = 0;
    if (t->fixed.batch_tokens || t->fixed.batch) return DGM_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        snprintf(more, sizeof more, "--batch-tokens %d", sizes[i]);
        DGM_TRY(add(t, more, false, list, &count, err));
    }
    DGM_TRY(race_variants(t, list, count, (BATCH_SHARE + 1) / 2 * t->o->seconds, &best, err));
    if (best != t->chosen) sscanf(strstr(t->trials[best].options, "--batch-tokens"), "--batch-tokens %d", tokens);
    return DGM_OK;
}

dgm_status dgm_tune_variants(dgm_tune_work *t, dgm_error *err)
{
    uint32_t list[MOST];
    char more[SIZE];
    size_t count = 0;
    int tokens = 0;
    t->variant = SIZE_MAX;
    if (t->latency || dgm_tune_late(t, t->o->seconds)) return DGM_OK;
    if (t->lines < LEAST_FOR_BATCHES)
        return dgm_tune_note(t, err, "batches and threads were not compared: that takes a text of %d lines",
                             LEAST_FOR_BATCHES);
    DGM_TRY(race_batches(t, &tokens, err));
    for (int n = t->threads; n >= 1 && count < 4; n /= 2) {
        snprintf(more, sizeof more, tokens ? "--threads %d --batch-tokens %d" : "--threads %d", n, tokens);
        DGM_TRY(add(t, more, true, list, &count, err));
    }
    if (count == 0) return DGM_OK;
    DGM_TRY(race_variants(t, list, count, t->o->seconds, &t->variant, err));
    if (t->trials[list[0]].timed) return check_same(t, list, count, err);
    if (!tokens) t->variant = SIZE_MAX; // there was no time
    return DGM_OK;
}
