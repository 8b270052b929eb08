// SPDX-License-Identifier: MIT
// Which language a text is in, for programs; see dragoman/text.h.
#include <string.h>

#include "base/mem.h"
#include "dragoman/text.h"
#include "dragoman/tools.h"
#include "text/detect.h"

enum { CODES_MAX = 512 };

// "en,de" as an array of strings in one block.
static dgm_status cut_codes(const char *among, const char ***codes, size_t *count, dgm_error *err)
{
    const size_t size = strlen(among);
    *count = 0;
    *codes = dgm_malloc((CODES_MAX + 1) * sizeof **codes + size + 1);
    if (!*codes) return dgm_no_memory(err);
    char *text = (char *)(*codes + CODES_MAX + 1);
    memcpy(text, among, size + 1);
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, ',');
        if (next) *next++ = 0;
        while (*at == ' ') at++;
        if (*at && strlen(at) < DGM_DETECT_CODE && *count < CODES_MAX) (*codes)[(*count)++] = at;
    }
    DGM_FAIL_IF(*count == 0, err, DGM_ERR_ARGUMENT, "'%.60s' is no list of language codes such as en,de,fr", among);
    return DGM_OK;
}

dgm_status dgm_detect(const char *text, size_t size, const char *among, dgm_detected *found, size_t most,
                      size_t *count, dgm_error *err)
{
    DGM_FAIL_IF((!text && size) || (!found && most) || !count, err, DGM_ERR_ARGUMENT,
                "dgm_detect needs a text and where to put languages");
    const char **codes = NULL;
    size_t code_count = 0, known = 0;
    dgm_language_candidate candidates[DGM_DETECT_MOST];
    dgm_writer clean = {0};
    *count = 0;
    dgm_status st = among && among[0] ? cut_codes(among, &codes, &code_count, err) : DGM_OK;
    if (st == DGM_OK) st = dgm_utf8_repair((dgm_text){text, size}, &clean, NULL, err);
    if (st == DGM_OK && clean.size)
        known = dgm_detect_language((dgm_text){(const char *)clean.data, clean.size}, codes, code_count, candidates);
    for (; *count < known && *count < most; ++*count) {
        dgm_detected *d = &found[*count];
        memcpy(d->language, candidates[*count].code, sizeof d->language);
        d->confidence = candidates[*count].confidence;
    }
    dgm_writer_free(&clean);
    dgm_free((void *)codes);
    return st;
}
