// SPDX-License-Identifier: MIT
// Scores of given translations by models that fill in whole sentences: each word masked on its own, all the others in
// sight (pseudo-log-likelihood). There is no end to score.
#ifndef DGM_TOOLS_PAIRS_MASKED_H
#define DGM_TOOLS_PAIRS_MASKED_H

#include "engine/engine_private.h"

// One thread's memory.
typedef struct dgm_masked_room {
    int tokens; // of one call of the models at most, and of one translation
    int32_t *ids, *wanted, *watch, *top_token;
    dgm_refine_target *targets;
    dgm_terms *terms;
    float *top_score, *watch_score, *log_z;
} dgm_masked_room;

// A translation, and where its source lies.
typedef struct dgm_masked_text {
    const dgm_translator *t;
    dgm_exec *exec;
    dgm_state *const *states; // of the members,
    const int32_t *slots;     // and its slots there, `stride` apart
    size_t stride;
    const int32_t *words;
    int count;
} dgm_masked_text;

dgm_status dgm_masked_open(dgm_masked_room *room, int tokens, int members, dgm_error *err);
void dgm_masked_close(dgm_masked_room *room);
// scores and log_z: [count], the first member's softmax sums.
dgm_status dgm_masked_score(dgm_masked_room *room, const dgm_masked_text *x, float *scores, float *log_z,
                            dgm_error *err);

#endif
