// SPDX-License-Identifier: MIT
// `translate --lmbr` and `--evidence`: options, settings files, and the search for good settings.
#ifndef DGM_APPS_CLI_TRANSLATE_LMBR_H
#define DGM_APPS_CLI_TRANSLATE_LMBR_H

#include <stdbool.h>
#include <stdint.h>

#include "dragoman/tools.h"
#include "io/lineio.h"
#include "translate/setup.h"

typedef struct lmbr_options {
    const char *file, *settings, *detokenize, *tune, *dump;
} lmbr_options;

// Settings of evidence from the defaults, --lmbr-settings and the other options, in this order; a
// length penalty of the file is set, too, unless it is given. Returns -1, or the exit code after a
// message.
int lmbr_weights(const lmbr_options *o, setting_values *set);
// --lmbr-dump: the n-grams of a line, from 0.
void lmbr_write(line_writer *out, uint64_t line, const dgm_result *r);
// "p 0.85 r 0.7 ...": two runs with the same text weigh their evidence alike.
void lmbr_describe(const dgm_lmbr *weights, char *text, size_t size);
// One line where lattices were too large for --lmbr-limit.
void lmbr_warn(const dgm_translator *t, const setting_values *set);
// NULL after a message.
dgm_evidence_file *lmbr_open(const lmbr_options *o);

// Evidence of the lines of a window, kept until it is submitted. Start with all zero but file.
typedef struct evidence_window {
    dgm_evidence_file *file; // NULL: evidence_put says what there is
    char *text;              // of all candidates, back to back
    size_t text_used, text_cap;
    dgm_evidence_candidate *candidates;
    size_t candidate_count, candidate_cap;
    dgm_evidence *lines;
    size_t count, cap;
} evidence_window;

// What the file says about line `number`, from 0, which is the window's next one. Adds it to the
// checksum. False after a message.
bool evidence_add(evidence_window *w, uint64_t number, uint32_t *sum);
// The same of what is known already.
void evidence_put(evidence_window *w, const dgm_evidence *e, uint32_t *sum);
void evidence_skip(evidence_window *w); // forgets the lines added
// Points inputs[i] at the evidence of the window's i-th line, until the next evidence_add.
void evidence_attach(evidence_window *w, dgm_input *inputs, size_t count);
// Is the file as long as the text? False after a message.
bool evidence_complete(evidence_window *w, uint64_t lines);
void evidence_free(evidence_window *w);

#define LMBR_OPTIONS(S, E)                                                                         \
    {"lmbr",                                                                                       \
     0,                                                                                            \
     OPTION_TEXT | OPTION_EVIDENCE,                                                                \
     "FILE",                                                                                       \
     offsetof(S, E.file),                                                                          \
     0,                                                                                            \
     0,                                                                                            \
     NULL,                                                                                         \
     "let other systems' translations of the input steer the search; an n-best list, LINE ||| "    \
     "text ||| features ||| score, lines counted from 0, or lattices in the order of the lines; "  \
     "also gzip",                                                                                  \
     NULL,                                                                                         \
     NULL},                                                                                        \
        {"lmbr-settings",                                                                          \
         0,                                                                                        \
         OPTION_TEXT | OPTION_EVIDENCE,                                                            \
         "FILE",                                                                                   \
         offsetof(S, E.settings),                                                                  \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "LMBR: read its settings from FILE, as --lmbr-tune writes it; options win",               \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"lmbr-detokenize",                                                                        \
         0,                                                                                        \
         OPTION_TEXT | OPTION_EVIDENCE,                                                            \
         "LANG",                                                                                   \
         offsetof(S, E.detokenize),                                                                \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "--lmbr: the translations are Moses tokens of this language and become text first",       \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"lmbr-dump",                                                                              \
         0,                                                                                        \
         OPTION_TEXT | OPTION_EVIDENCE,                                                            \
         "FILE",                                                                                   \
         offsetof(S, E.dump),                                                                      \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "LMBR: write what the search knows of every line's evidence to FILE: LINE ||| tokens "    \
         "||| posterior ||| gain, an n-gram a line (docs/manual/LMBR.md)",                         \
         NULL,                                                                                     \
         NULL},                                                                                    \
    {                                                                                              \
        "lmbr-tune", 0, OPTION_TEXT | OPTION_EVIDENCE, "FILE", offsetof(S, E.tune), 0, 0, NULL,    \
            "LMBR: do not translate, but find the settings with which the input's translations "   \
            "have the highest BLEU against FILE, and write them to --output",                      \
            NULL, NULL                                                                             \
    }

#endif
