// SPDX-License-Identifier: MIT
// `translate --lmbr`: options, settings files, and the search for good settings.
#ifndef DGM_APPS_CLI_TRANSLATE_LMBR_H
#define DGM_APPS_CLI_TRANSLATE_LMBR_H

#include <stdbool.h>
#include <stdint.h>

#include "dragoman/tools.h"
#include "translate/setup.h"

typedef struct lmbr_options {
    const char *file, *settings, *thetas, *detokenize, *tune;
    float p, r, t, scale, lambda; // DGM_FROM_MODEL: not given
} lmbr_options;

void lmbr_options_default(lmbr_options *o);
// Weights from the defaults, --lmbr-settings and the other options, in this order. Where the file
// has a length penalty and `penalty` is not given, that is set, too. Returns -1, or the exit code
// after a message.
int lmbr_weights(const lmbr_options *o, dgm_lmbr *weights, float *penalty);
// "p 0.85 r 0.7 ...": two runs with the same text weigh their evidence alike.
void lmbr_describe(const dgm_lmbr *weights, char *text, size_t size);
// NULL after a message.
dgm_evidence_file *lmbr_open(const lmbr_options *o);

// Evidence of the lines of a window, kept until it is submitted. Start with all zero but file.
typedef struct evidence_window {
    dgm_evidence_file *file; // NULL: there is none
    char *text;              // of all guesses, back to back
    size_t text_used, text_cap;
    dgm_guess *guesses;
    size_t guess_count, guess_cap;
    dgm_evidence *lines;
    size_t count, cap;
} evidence_window;

// What the file says about line `number`, from 0, which is the window's next one. Adds it to the
// checksum. False after a message.
bool evidence_add(evidence_window *w, uint64_t number, uint32_t *sum);
void evidence_skip(evidence_window *w); // forgets the lines added
// Points inputs[i] at the evidence of the window's i-th line, until the next evidence_add.
void evidence_attach(evidence_window *w, dgm_input *inputs, size_t count);
// Is the file as long as the text? False after a message.
bool evidence_complete(evidence_window *w, uint64_t lines);
void evidence_free(evidence_window *w);

// --lmbr-tune: finds p, r, scale and lambda for the text `input` and writes them to `output`.
// Returns the exit code.
int lmbr_tune(const lmbr_options *o, engine_options *engine, dgm_settings *settings,
              const char *input, const char *output, bool quiet);

#define LMBR_OPTIONS(S, E)                                                                         \
    {"lmbr", 0, OPTION_TEXT, "FILE", offsetof(S, E.file), 0, 0, NULL,                              \
     "let other systems' translations of the input steer the search: an n-best list, LINE ||| "    \
     "text ||| features ||| score, lines counted from 0, or lattices in the order of the lines; "  \
     "also gzip",                                                                                  \
     NULL, NULL},                                                                                  \
    {"lmbr-settings", 0, OPTION_TEXT, "FILE", offsetof(S, E.settings), 0, 0, NULL,                 \
     "--lmbr: read its settings from FILE, as --lmbr-tune writes it; options win", NULL, NULL},    \
    {"lmbr-lambda", 0, OPTION_REAL, "X", offsetof(S, E.lambda), 0, 1000000, NULL,                  \
     "--lmbr: weight of the models' log-probability (default 1)", NULL, NULL},                     \
    {"lmbr-p", 0, OPTION_REAL, "X", offsetof(S, E.p), 0.000001, 1000000, NULL,                     \
     "--lmbr: precision of single tokens in the evidence; the lower, the more its n-grams weigh "  \
     "(default 0.5)",                                                                              \
     NULL, NULL},                                                                                  \
    {"lmbr-r", 0, OPTION_REAL, "X", offsetof(S, E.r), 0.000001, 1000000, NULL,                     \
     "--lmbr: ratio of precisions from one length of n-grams to the next; the lower, the more "    \
     "long ones weigh (default 0.55)",                                                             \
     NULL, NULL},                                                                                  \
    {"lmbr-t", 0, OPTION_REAL, "X", offsetof(S, E.t), 0.000001, 1000000, NULL,                     \
     "--lmbr: divides all that evidence adds; every token costs 1/X (default 10)", NULL, NULL},    \
    {"lmbr-scale", 0, OPTION_REAL, "X", offsetof(S, E.scale), 0, 1000000, NULL,                    \
     "--lmbr: factor of the evidence's scores; 0 makes all of a line's translations equally "      \
     "likely (default 1)",                                                                         \
     NULL, NULL},                                                                                  \
    {"lmbr-thetas", 0, OPTION_TEXT, "X,X,X,X,X", offsetof(S, E.thetas), 0, 0, NULL,                \
     "--lmbr: what every token gets, and the weights of n-grams of 1 to 4 tokens, instead of p, "  \
     "r and t",                                                                                    \
     NULL, NULL},                                                                                  \
    {"lmbr-detokenize", 0, OPTION_TEXT, "LANG", offsetof(S, E.detokenize), 0, 0, NULL,             \
     "--lmbr: the translations are Moses tokens of this language and become text first", NULL,     \
     NULL},                                                                                        \
    {"lmbr-tune", 0, OPTION_TEXT, "FILE", offsetof(S, E.tune), 0, 0, NULL,                         \
     "--lmbr: do not translate, but find the settings with which the input's translations have "   \
     "the highest BLEU against FILE, and write them to --output",                                  \
     NULL, NULL}

#endif
