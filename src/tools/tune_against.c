// SPDX-License-Identifier: MIT
// Settings that the caller gives to hold the choice against: when it is made, without them, they translate all of the
// text in turns with it.
#include <string.h>

#include "base/mem.h"
#include "tools/tune_private.h"

enum { ROUNDS = 8 };

// One line of the list becomes a trial, or is one already; -1: the model refuses it, which is noted.
static dgm_status give(dgm_tune_work *t, const char *line, size_t size, int *trial, dgm_error *err)
{
    char *own = dgm_strndup(line, size);
    const dgm_tune_place place = {.model = t->trials[t->chosen].place.model};
    dgm_status st = own ? dgm_tune_step_try(t, &place, own, -1, trial, err) : dgm_no_memory(err);
    if (st == DGM_OK && *trial == -2) st = dgm_tune_note(t, err, "%s cannot be had with this model", own);
    dgm_free(own);
    if (st != DGM_OK) return st;
    if (*trial >= 0) t->trials[*trial].state = DGM_TUNE_AGAINST;
    if (*trial == -1) *trial = t->same;
    return DGM_OK;
}

// What has seen a part of the text begins anew: parts would not fit together.
static void reset(dgm_tune_trial *own)
{
    for (int i = 0; i < own->sample_count; i++) {
        dgm_free(own->samples[i].source);
        dgm_free(own->samples[i].careful);
        dgm_free(own->samples[i].text);
    }
    own->sample_count = 0;
    own->lines = own->judged = 0;
    own->same = 0;
}

static dgm_status gather(dgm_tune_work *t, uint32_t *list, size_t *count, dgm_error *err)
{
    list[(*count)++] = (uint32_t)t->chosen;
    if (t->chosen != t->careful && t->trials[t->chosen].lines < t->lines) reset(&t->trials[t->chosen]);
    for (const char *p = t->against; *p;) {
        const size_t size = strcspn(p, "\n");
        int trial = -1;
        if (size) DGM_TRY(give(t, p, size, &trial, err));
        p += size + (p[size] == '\n');
        bool there = trial < 0;
        for (size_t i = 0; i < *count && !there; i++) there = list[i] == (uint32_t)trial;
        if (trial >= 0) t->trials[trial].given = true;
        if (there) continue;
        if (t->trials[trial].lines < t->lines) reset(&t->trials[trial]);
        list[(*count)++] = (uint32_t)trial;
    }
    return DGM_OK;
}

dgm_status dgm_tune_against(dgm_tune_work *t, dgm_error *err)
{
    size_t count = 0, lines = 2;
    for (const char *p = t->against; p && *p; p++) lines += *p == '\n';
    if (lines == 2) return DGM_OK;
    uint32_t *list = dgm_malloc(lines * sizeof *list);
    dgm_status st = list ? gather(t, list, &count, err) : dgm_no_memory(err);
    const uint32_t careful = (uint32_t)t->careful;
    // The careful settings may have seen less of the text, too.
    const size_t from = t->trials[careful].lines;
    if (st == DGM_OK && from < t->lines) st = dgm_tune_step_block(t, &careful, 1, from, t->lines, err);
    for (size_t r = 0; st == DGM_OK && r < ROUNDS; r++) {
        const size_t begin = t->lines * r / ROUNDS, end = t->lines * (r + 1) / ROUNDS;
        st = dgm_tune_tick(t, "what was given", err);
        if (st == DGM_OK && end > begin) st = dgm_tune_step_block(t, list, count, begin, end, err);
    }
    if (st == DGM_OK) st = dgm_tune_judge(t, err);
    dgm_free(list);
    return st;
}
