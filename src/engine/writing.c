// SPDX-License-Identifier: MIT
// How a model writes, and what that asks of the other settings: one word a step from left to right
// or from right to left, two words a step (search "double"), or whole sentences that are filled in
// and corrected (search "mask-predict"). Called while a translator opens (settings.c).
//
// The model decides: --search auto takes what it needs, and a search that it cannot follow is
// refused here, with a sentence, before any memory is planned.
#include <string.h>

#include "engine/engine_private.h"

enum { ITERATIONS = 10, LENGTHS = 5 };

static bool asks(const dgm_settings *s, const char *search)
{
    return s->search && strcmp(s->search, search) == 0;
}

dgm_status dgm_writing_check(const dgm_settings *s, dgm_error *err)
{
    const bool free = !s->search || asks(s, "auto"), mask = asks(s, "mask-predict");
    DGM_FAIL_IF(s->pairs && !free && !asks(s, "double"), err, DGM_ERR_ARGUMENT,
                "the choice of pairs is a setting of the search 'double'");
    DGM_FAIL_IF((s->iterations || s->lengths) && !free && !mask, err, DGM_ERR_ARGUMENT,
                "%s a setting of the search 'mask-predict'",
                s->iterations ? "the number of iterations is" : "the number of lengths is");
    DGM_FAIL_IF(mask && s->beam, err, DGM_ERR_ARGUMENT,
                "mask-predict has no beam: the number of lengths says how many translations it "
                "makes of a sentence");
    return DGM_OK;
}

// What a member needs; NULL: any search of one word a step.
static const char *needed(const dgm_model_info *m)
{
    return m->mask >= 0 ? "mask-predict" : m->tokens_per_step == 2 ? "double" : NULL;
}

static dgm_status check_member(const dgm_translator *t, int i, const char *search, dgm_error *err)
{
    const char *want = needed(dgm_model_describe(t->members[i].model));
    const char *path = dgm_gguf_path(t->members[i].file);
    const bool special = strcmp(search, "double") == 0 || strcmp(search, "mask-predict") == 0;
    if (!want && !special) return DGM_OK;
    if (want && strcmp(want, search) == 0) return DGM_OK;
    const char *how = !want                         ? "writes one word a step"
                      : strcmp(want, "double") == 0 ? "writes two words a step"
                                                    : "fills in whole sentences";
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "%s: the model %s: it cannot follow the search '%s'",
                    path, how, search);
}

dgm_status dgm_writing_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    dgm_search_config *c = &t->config;
    const char *want = needed(dgm_model_describe(t->members[0].model));
    if (want && (!s->search || asks(s, "auto"))) c->search = want;
    for (int i = 0; i < t->member_count; i++) DGM_TRY(check_member(t, i, c->search, err));
    const bool pairs = strcmp(c->search, "double") == 0;
    const bool mask = strcmp(c->search, "mask-predict") == 0;
    DGM_FAIL_IF(s->pairs && !pairs, err, DGM_ERR_ARGUMENT,
                "the choice of pairs is a setting of the search 'double'");
    DGM_FAIL_IF((s->iterations || s->lengths) && !mask, err, DGM_ERR_ARGUMENT,
                "%s a setting of the search 'mask-predict'",
                s->iterations ? "the number of iterations is" : "the number of lengths is");
    DGM_FAIL_IF(mask && s->beam, err, DGM_ERR_ARGUMENT,
                "mask-predict has no beam: the number of lengths says how many translations it "
                "makes of a sentence");
    c->double_exact = pairs && s->pairs && strcmp(s->pairs, "exact") == 0;
    c->iterations = s->iterations ? s->iterations : ITERATIONS;
    if (mask) c->beam = s->lengths ? s->lengths : s->nbest > LENGTHS ? s->nbest : LENGTHS;
    return DGM_OK;
}
