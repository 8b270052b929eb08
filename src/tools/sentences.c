// SPDX-License-Identifier: MIT
// Sentences of a text, for programs; see dragoman/text.h.
#include "base/mem.h"
#include "dragoman/text.h"
#include "text/split.h"

dgm_status dgm_sentences(const char *text, size_t size, const char *language,
                         dgm_sentence **sentences, size_t *count, dgm_error *err)
{
    DGM_FAIL_IF(!sentences || !count || (!text && size), err, DGM_ERR_ARGUMENT,
                "dgm_sentences needs a text and where to put its sentences");
    *sentences = NULL;
    *count = 0;
    dgm_text in = {text, size};
    size_t bad = dgm_utf8_first_bad(in);
    DGM_FAIL_IF(bad < size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    dgm_pieces found = {0};
    dgm_status st = dgm_split_sentences(in, dgm_language_of(dgm_text_of(language ? language : "")),
                                        &found, err);
    if (st == DGM_OK) {
        *sentences = dgm_malloc((found.count ? found.count : 1) * sizeof **sentences);
        if (!*sentences) st = dgm_no_memory(err);
    }
    for (size_t i = 0; st == DGM_OK && i < found.count; i++)
        (*sentences)[i] = (dgm_sentence){found.items[i].begin, found.items[i].end};
    if (st == DGM_OK) *count = found.count;
    dgm_pieces_free(&found);
    return st;
}

void dgm_sentences_free(dgm_sentence **sentences)
{
    if (!sentences) return;
    dgm_free(*sentences);
    *sentences = NULL;
}
