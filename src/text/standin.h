// SPDX-License-Identifier: MIT
// Stand-ins: what a model damages is replaced by something that it copies, and put back into the
// translation.
//
//     "Hello {name}, it costs $1,299.99."     what was lost is {name} and 1,299.99
//     "Hello X1, it costs $17."               translated again
//     "Hallo X1, es kostet 17 Dollar."
//     "Hallo {name}, es kostet 1.299,99 Dollar."
//
// Letters with a digit stand for what is no language, numbers for numbers, so that grammar and currencies
// stay the model's business. English and German models that were tried copy both as they are.
#ifndef DGM_TEXT_STANDIN_H
#define DGM_TEXT_STANDIN_H

#include "text/protect.h"
#include "text/vocab.h"

enum { DGM_STANDINS_MAX = 8, DGM_STANDIN_ROUNDS = 2 };

typedef struct dgm_standin {
    char word[24];
    size_t begin, end;      // in the sentence with the stand-ins
    size_t from, to;        // in the sentence: what it stands for
    size_t form, form_size; // what is written in its place, in dgm_standins.forms
    bool number;
    bool before, behind; // a space was put there that the sentence has not
    bool hyphen, stop;   // the sentence has one behind it
} dgm_standin;

// Start with all zero.
typedef struct dgm_standins {
    dgm_standin items[DGM_STANDINS_MAX];
    size_t count;
    dgm_writer text, forms;
} dgm_standins;

void dgm_standins_free(dgm_standins *s);

// Fills s->text with the sentence, stand-ins in place of what is not kept. Round 0 has numbers for
// numbers; round 1 letters for most of them, and stand-ins also for addresses, placeholders and code that
// were kept. What is found beyond DGM_STANDINS_MAX stays.
dgm_status dgm_standins_make(dgm_standins *s, const dgm_protector *p, dgm_text text,
                             const dgm_protected *found, size_t count, const unsigned char *kept,
                             int round, dgm_error *err);

// For numbers and times that a translation lost only because it has them in a form of another language ("1.852
// people", "5 000 people", "19.30 p.m." in English): items that write them right, in the translation as it is.
dgm_status dgm_standins_respell(dgm_standins *s, const dgm_protector *p, dgm_text text,
                                const dgm_protected *found, size_t count, const unsigned char *kept,
                                dgm_text translation, dgm_error *err);

// How many stand-ins did not arrive in a translation, came more than once, or are part of a new
// compound.
size_t dgm_standins_faults(const dgm_standins *s, dgm_text translation);

// Puts what they stand for into out->data[from ...]. spans (NULL or [count]): of tokens in it, which are
// moved along; a token of a stand-in has the span of what it stood for.
dgm_status dgm_standins_restore(const dgm_standins *s, dgm_writer *out, size_t from, dgm_span *spans,
                                size_t count, dgm_error *err);

// Where a place of the sentence with stand-ins is in the sentence.
size_t dgm_standins_place(const dgm_standins *s, size_t pos);

#endif
