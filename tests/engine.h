// SPDX-License-Identifier: MIT
// What tests of whole translators share: opening one, all that it says of a few texts in one string,
// a lexical table for the models of pieces. Functions fail the running cmocka test on errors. Include
// cmocka.h first.
#ifndef DGM_TESTS_ENGINE_H
#define DGM_TESTS_ENGINE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/dragoman.h"

static inline dgm_translator *open_with(const dgm_settings *s, const char *path)
{
    dgm_translator *t = NULL;
    dgm_error error;
    if (dgm_open(&t, path, s, &error) != DGM_OK) fail_msg("%s", error.text);
    return t;
}

// With default settings but for these; details: scores of tokens and links between words, too.
static inline dgm_translator *open_usual(const char *path, int beam, int raw, bool details)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = beam;
    s.raw = raw;
    s.token_scores = details;
    s.alignment = details ? DGM_ALIGN_WORDS : DGM_ALIGN_NONE;
    return open_with(&s, path);
}

// The result of one text, which does not fail.
static inline dgm_results *translate_one(dgm_translator *t, const char *text)
{
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_translate(t, &text, 1, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(r->items[0]->status, DGM_OK);
    return r;
}

// A line behind a growing text, which begins as NULL.
static inline void append_line(char **out, const char *text)
{
    const size_t have = *out ? strlen(*out) : 0, size = strlen(text);
    *out = realloc(*out, have + size + 2);
    assert_non_null(*out);
    memcpy(*out + have, text, size);
    memcpy(*out + have + size, "\n", 2);
}

// All translations of the results, with the bits of their scores if asked for; the caller frees it.
static inline char *results_text(const dgm_results *r, bool scores)
{
    char *out = NULL, number[32];
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->items[i]->count; k++) {
            append_line(&out, r->items[i]->translations[k]->text);
            if (!scores) continue;
            snprintf(number, sizeof number, "%a", (double)r->items[i]->translations[k]->sum);
            append_line(&out, number);
        }
    return out;
}

static inline char *translate_texts(dgm_translator *t, const char *const *texts, size_t count,
                                    bool scores)
{
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, texts, count, &r, NULL), DGM_OK);
    assert_int_equal(r->failed, 0);
    char *out = results_text(r, scores);
    dgm_results_free(&r);
    return out;
}

// A lexical table in which every letter may become three; false if it cannot be written.
static inline bool put_letters(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) return false;
    for (char s = 'a'; s <= 'z'; s++)
        for (int k = 0; k < 3; k++)
            fprintf(f, "%c %c 0.%d\n", 'a' + (s - 'a' + 5 * k) % 26, s, 9 - k);
    return fclose(f) == 0;
}

#endif
