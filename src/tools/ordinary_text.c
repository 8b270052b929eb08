// SPDX-License-Identifier: MIT
// Tidy text and text in ordinary case, for programs; see dragoman/text.h.
#include "base/mem.h"
#include "dragoman/text.h"
#include "engine/engine_private.h"
#include "text/capitals.h"
#include "text/tidy.h"
#include "text/titles.h"

// What the functions of this file ask for.
static dgm_status check(const char *name, const char *text, size_t size, char **out, size_t *out_size, dgm_error *err)
{
    DGM_FAIL_IF(!out || !out_size || (!text && size), err, DGM_ERR_ARGUMENT,
                "%s needs a text and where to put the new one", name);
    *out = NULL;
    *out_size = 0;
    const size_t bad = dgm_utf8_first_bad((dgm_text){text, size});
    DGM_FAIL_IF(bad < size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    return DGM_OK;
}

static dgm_status hand_over(dgm_text made, char **out, size_t *out_size, dgm_error *err)
{
    *out = dgm_strndup(made.size ? made.data : "", made.size);
    if (!*out) return dgm_no_memory(err);
    *out_size = made.size;
    return DGM_OK;
}

dgm_status dgm_tidy(const char *text, size_t size, char **tidy, size_t *tidy_size, dgm_error *err)
{
    DGM_TRY(check("dgm_tidy", text, size, tidy, tidy_size, err));
    dgm_tidied made = {0};
    bool changed = false;
    dgm_status st = dgm_tidy_text((dgm_text){text, size}, &made, &changed, err);
    const dgm_text result = {changed ? (const char *)made.text.data : text, changed ? made.text.size : size};
    if (st == DGM_OK) st = hand_over(result, tidy, tidy_size, err);
    dgm_tidied_free(&made);
    return st;
}

dgm_status dgm_ordinary_case(const dgm_translator *t, const char *text, size_t size, char **out, size_t *out_size,
                             dgm_error *err)
{
    DGM_FAIL_IF(!t, err, DGM_ERR_ARGUMENT, "dgm_ordinary_case needs a translator");
    DGM_TRY(check("dgm_ordinary_case", text, size, out, out_size, err));
    dgm_text in = {text, size};
    dgm_tokens scratch = {0};
    dgm_writer made = {0};
    bool lowered = false;
    dgm_status st = dgm_capitals_lower(t->source, in, &scratch, &made, &lowered, err);
    if (st == DGM_OK && !lowered) st = dgm_titles_lower(t->source, in, t->source_language, &made, &lowered, err);
    if (lowered) in.data = (const char *)made.data;
    if (st == DGM_OK) st = hand_over(in, out, out_size, err);
    dgm_tokens_free(&scratch);
    dgm_writer_free(&made);
    return st;
}
