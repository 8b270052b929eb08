// SPDX-License-Identifier: MIT
// See capitals.h. Of a word's forms, "london", "London" and "LONDON", the one is taken whose subwords are
// the most usual in the vocabulary, which was made from text in ordinary case.
#include "text/capitals.h"

#include <string.h>

#include "base/mem.h"

static bool is_letter(uint32_t code)
{
    return dgm_char_class(code) & (DGM_CHAR_LETTER | DGM_CHAR_MARK);
}

// Are all letters that have a case capitals, two or more of them in one word?
static bool is_raised(dgm_text text)
{
    size_t run = 0, longest = 0;
    for (size_t pos = 0; pos < text.size;) {
        uint32_t code;
        pos += dgm_utf8_next(text.data + pos, text.size - pos, &code);
        const unsigned class = dgm_char_class(code);
        if (class & DGM_CHAR_LOWER && code != 0xDF)
            return false; // capitals are often written with a small sharp s
        run = class & DGM_CHAR_UPPER ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    return longest > 1;
}

typedef enum form { LOWER, TITLE, UPPER, FORMS } form;

// Writes the word in a form; false where its length would change.
static bool write_form(dgm_text word, form f, char *out)
{
    for (size_t pos = 0; pos < word.size;) {
        uint32_t code;
        const size_t n = dgm_utf8_next(word.data + pos, word.size - pos, &code);
        const bool raised = f == UPPER || (f == TITLE && pos == 0);
        char bytes[4];
        if (dgm_utf8_put(raised ? code : dgm_char_lower(code), bytes) != n) return false;
        memcpy(out + pos, bytes, n);
        pos += n;
    }
    return true;
}

// How usual a spelling is: its subwords' scores. Those of byte-pair models are ranks, whose sums say
// nothing: there fewer subwords are better.
static dgm_status rate(const dgm_vocab *v, dgm_text word, dgm_tokens *scratch, double *score,
                       dgm_error *err)
{
    enum { RANKS = -100, UNKNOWN = -30 };
    DGM_TRY(dgm_vocab_encode(v, word, scratch, err));
    double sum = 0, lowest = 0;
    for (size_t i = 0; i < scratch->count; i++) {
        double s = dgm_vocab_score(v, scratch->ids[i]);
        if (dgm_vocab_is_unknown(v, scratch->ids[i])) s = UNKNOWN;
        sum += s;
        if (s < lowest) lowest = s;
    }
    *score = lowest < RANKS ? -1e7 * (double)scratch->count + sum : sum;
    return DGM_OK;
}

// The word, all capitals, in its most usual form.
static dgm_status lower_word(const dgm_vocab *v, dgm_text word, bool first, dgm_tokens *scratch,
                             char *out, bool *fine, dgm_error *err)
{
    enum { LONGEST = 64 };
    char best[LONGEST], made[LONGEST];
    double highest = 0;
    *fine = word.size <= LONGEST;
    for (int f = LOWER; *fine && f < FORMS; f++) {
        double score;
        if (f == TITLE && word.size == 1) continue;
        if (!write_form(word, (form)f, made)) {
            *fine = false;
            break;
        }
        DGM_TRY(rate(v, (dgm_text){made, word.size}, scratch, &score, err));
        if (f != LOWER && score <= highest) continue;
        highest = score;
        memcpy(best, made, word.size);
    }
    if (!*fine) return DGM_OK;
    if (first) { // a sentence begins with a capital
        uint32_t code;
        const size_t n = dgm_utf8_next(word.data, word.size, &code);
        memcpy(best, word.data, n);
    }
    memcpy(out, best, word.size);
    return DGM_OK;
}

dgm_status dgm_capitals_lower(const dgm_vocab *v, dgm_text text, dgm_tokens *scratch,
                              dgm_writer *out, bool *lowered, dgm_error *err)
{
    const size_t start = out->size;
    *lowered = false;
    if (dgm_vocab_get_kind(v) != DGM_VOCAB_SENTENCEPIECE || !is_raised(text)) return DGM_OK;
    dgm_write_bytes(out, text.data, text.size);
    if (out->failed) return dgm_no_memory(err);
    char *made = (char *)out->data + start;
    bool first = true, fine = true;
    for (size_t pos = 0; pos < text.size && fine;) {
        uint32_t code;
        size_t end = pos, n = dgm_utf8_next(text.data + pos, text.size - pos, &code);
        if (!is_letter(code)) {
            pos += n;
            continue;
        }
        while (end < text.size) {
            n = dgm_utf8_next(text.data + end, text.size - end, &code);
            if (!is_letter(code)) break;
            end += n;
        }
        DGM_TRY(lower_word(v, (dgm_text){text.data + pos, end - pos}, first, scratch, made + pos,
                           &fine, err));
        first = false;
        pos = end;
    }
    *lowered = fine && memcmp(made, text.data, text.size) != 0;
    if (!*lowered) out->size = start;
    return DGM_OK;
}

void dgm_capitals_raise(char *text, size_t size)
{
    for (size_t pos = 0; pos < size;) {
        uint32_t code;
        char bytes[4];
        const size_t n = dgm_utf8_next(text + pos, size - pos, &code);
        if (code == 0xDF) // sharp s: as long as two letters
            memcpy(text + pos, "SS", 2);
        else if (dgm_utf8_put(dgm_char_upper(code), bytes) == n)
            memcpy(text + pos, bytes, n);
        pos += n;
    }
}
