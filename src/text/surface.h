// SPDX-License-Identifier: MIT
// What every token of a vocabulary writes, as bytes: the alphabet in which constraints are followed.
//
//   "▁Haus"  -> " Haus"     a space mark is a space
//   "<0xE2>" -> "\xE2"      a byte token is its byte
//   "</s>"   -> ""          control tokens write nothing
//   words    -> " Haus"     every word of a word vocabulary begins with a space
//
// A word is a run of letters, marks and digits of scripts that put spaces between words. Tokens that
// begin inside of one continue it, all others break it; both lists are kept, since a finished term
// must not be continued and a forbidden one must. Who reads from the right has lists of his own: there
// a token continues the word behind it by its last character.
//
// Built once per translator, on first use (engine/constrain.c); never changed afterwards.
#ifndef DGM_TEXT_SURFACE_H
#define DGM_TEXT_SURFACE_H

#include "text/vocab.h"

typedef struct dgm_surfaces {
    int32_t count;    // tokens
    uint32_t *at;     // [count + 1] where each begins in bytes
    char *bytes;
    int32_t *breaks;    // [break_count] ascending: the end symbol and tokens that break a word
    int32_t *continues; // [continue_count] ascending: all others
    int break_count, continue_count;
    int32_t *right_breaks, *right_continues; // the same, read from the right
    int right_break_count, right_continue_count;
    uint64_t name; // means `breaks` of these surfaces alone in this process, name + 1 .. 3 the other lists
    int32_t eos;
} dgm_surfaces;

dgm_status dgm_surfaces_open(dgm_surfaces **s, const dgm_vocab *v, dgm_error *err);
// Makes the lists of who reads from the right, of bytes and at.
dgm_status dgm_surfaces_from_right(dgm_surfaces *s, dgm_error *err);
void dgm_surfaces_close(dgm_surfaces **s); // sets NULL; accepts NULL inside

static inline dgm_text dgm_surface(const dgm_surfaces *s, int32_t token)
{
    return (dgm_text){s->bytes + s->at[token], s->at[token + 1] - s->at[token]};
}

// Letters, marks and digits of scripts with spaces between words.
bool dgm_char_in_word(uint32_t code);
// First and last character of a text; false for an empty one.
bool dgm_text_begins_in_word(dgm_text t);
bool dgm_text_ends_in_word(dgm_text t);

#endif
