// SPDX-License-Identifier: MIT
// Dragoman tools: the fastest settings for a text within a budget of quality. Conventions as in tools.h.
//
// Settings are tried on growing parts of a text, those that lose are left out, and what is left is compared with the
// most careful settings on all of it (docs/manual/TUNE.md). Everything that was measured can be recorded; the same
// record, options and seed give the same answer again, without a model.
#ifndef DRAGOMAN_TUNE_H
#define DRAGOMAN_TUNE_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DGM_TUNE_MODELS = 16 }; // that may be offered, with those that are made of them

typedef struct dgm_tune_options {
    size_t size;
    // What may be chosen from, as dgm_open takes it; "a.gguf+b.gguf" is an ensemble. None: the default model.
    const char *const *models;
    size_t model_count;
    const char *input; // the text, also gzip
    // References of it, line by line. None: quality is how much a translation agrees with that of the most careful
    // settings of the first model, in chrF.
    const char *const *references;
    size_t reference_count;
    const char *metric; // "bleu" or "chrf". NULL: "bleu" with references, "chrf" without
    double budget;      // points of the metric that may be lost against the most careful settings. Default 0.2
    int32_t latency;    // 0: as many lines a second as possible; 1: one line at a time, as soon as possible. Default 0
    double seconds;     // after which nothing new is begun. Default 600
    uint64_t seed;      // of the order of the lines, of bootstrap samples and of turns. Default 1
    // What is not to be searched: a field that does not have its default value is taken as it is, but for `threads`,
    // which is not looked at. NULL: defaults.
    const dgm_settings *settings;
    int32_t threads; // how many there may be; 0 (default): one per core, with `latency` 1
    int64_t memory;  // settings that need more bytes for weights and work are left out. 0 (default): none
    int32_t
        complete; // 1: everything that can be combined is tried on all of the text, whatever time it takes. Default 0
    // What may be learnt besides, with commas between: "shortlist", "cluster", "calibrate" make models in the folder
    // `learned`, from `corpus` (source text) and `corpus_target`; "length" tries length penalties, "lmbr" finds weights
    // of evidence (settings->phrase_system) by dgm_lmbr_tune on up to 1,000 lines. NULL: nothing. Default NULL
    const char *allow;
    const char *corpus, *corpus_target, *learned;
    // Lines of options, e.g. "--beam 4 --shortlist all": when the choice is made, without them, these settings
    // translate all of the text in turns with the chosen ones; lines that begin with # are left out. NULL: none
    const char *against;
    const char *record; // what was measured is written to this file. NULL: nowhere
    int32_t resume;     // 1: go on with the record of a run that was stopped; 0: it must not be there. Default 0
    const char *replay; // a record: no model is run, and models, text and references may be left out
    dgm_progress progress;
    // Hears after every round what the front looks like, a few lines of text. NULL: nobody.
    void (*front)(void *cookie, const char *text);
    void *front_cookie;
    // How sure it must be that a choice is within the budget: share of bootstrap samples in which it is. Default 0.8
    double sure;
} dgm_tune_options;

DGM_API void dgm_tune_init(dgm_tune_options *options, size_t size);
static inline void dgm_tune_default(dgm_tune_options *options)
{
    dgm_tune_init(options, sizeof *options);
}

// "90", "90s", "10m", "1.5h".
DGM_API dgm_status dgm_tune_duration(const char *what, const char *text, double *seconds, dgm_error *error);

typedef struct dgm_tune_sample { // of a line that comes out differently
    size_t size;
    uint64_t line; // from 1
    const char *source, *careful, *text;
} dgm_tune_sample;

// What a point of the report is.
enum {
    DGM_TUNE_CAREFUL = 1, // what losses are counted against
    DGM_TUNE_CHOSEN = 2,
    DGM_TUNE_SURE = 4,      // the fastest whose whole interval of the loss is within the budget
    DGM_TUNE_FRONT = 8,     // nothing is both faster and better
    DGM_TUNE_WITHIN = 16,   // its loss is within the budget, as sure as asked for
    DGM_TUNE_WHOLE = 32,    // it translated all of the text
    DGM_TUNE_TIMED = 64,    // a variant of the chosen one that cannot change a translation
    DGM_TUNE_UNTRIED = 128, // there was no time for it
    DGM_TUNE_GIVEN = 256    // it stands in `against`
};

// Settings that were tried, or were to be tried.
typedef struct dgm_tune_point {
    size_t size;
    int32_t model;                       // index of models
    const char *options;                 // of `dragoman translate`: "--beam 2 --precision i8 --shortlist lexical"
    uint32_t flags;                      // DGM_TUNE_...
    const char *state;                   // in words: "chosen", "slower", "over the budget", ...
    uint64_t lines;                      // that it translated
    double quality;                      // of these lines
    double loss, loss_low, loss_high;    // against the careful settings on the same lines, 95 % interval
    double sure;                         // share of bootstrap samples in which it is within the budget
    double speed, speed_low, speed_high; // lines a second, or of latency milliseconds a line; 95 % interval
    double gain;                         // times as fast as the careful settings
    double same;                         // share of lines that come out as by the careful settings
    uint64_t bytes;                      // of weights and work
    const dgm_tune_sample *const *samples;
    size_t sample_count;
    // What was counted while it translated: see dgm_counters.
    double rows_per_step, active_share, merged_share, steps_per_line;
} dgm_tune_point;

typedef struct dgm_tune_report {
    size_t size;
    const char *const *models; // as they were given, and what was made of them
    size_t model_count;
    const dgm_tune_point *const *points; // best first
    size_t count;
    const dgm_tune_point *careful, *chosen, *sure; // sure: NULL where none is
    const char *command;                           // "dragoman translate -m ..."
    const char *metric;                            // "BLEU", "chrF2"
    int32_t agreement;                             // 1: with the careful settings, there are no references
    int32_t latency;
    const char *clock;      // what speeds are measured by, in words
    double budget, seconds; // seconds: that were taken
    uint64_t lines, seed;
    double noise;             // of a single measurement of speed, as a share
    uint64_t possible;        // combinations of the values that were looked at, those that are refused included
    const char *const *notes; // what else should be known, a sentence each
    size_t note_count;
    const char *input;           // as it was given
    const char *source, *target; // languages, "": the model does not say
    // Where the time of the chosen and of the careful settings goes; all zero: it was not looked at.
    struct dgm_tune_shares {
        double products;      // of it: products with weights,
        double output;        // products with the output layer and choosing among its tokens,
        double search;        // search and bookkeeping
        double adds_per_byte; // multiply-adds for every byte of weights that was read
    } chosen_shares, careful_shares;
    double level; // how sure a choice had to be: `sure` of the options
} dgm_tune_report;

DGM_API dgm_status dgm_tune(const dgm_tune_options *options, dgm_tune_report **report, dgm_error *error);
DGM_API void dgm_tune_report_free(dgm_tune_report **report);

// A report as text; dgm_string_free releases it. kind: "table" (the front, for people), "json", "svg", "html" (one page
// with the figure, everything that was tried and translations that differ) or "explain" (why optimisations paid or did
// not, sentences with numbers).
DGM_API dgm_status dgm_tune_write(const dgm_tune_report *report, const char *kind, char **text, dgm_error *error);

// Writes the chosen model with the chosen settings as its defaults, and with what they were tuned on in its card.
DGM_API dgm_status dgm_tune_store(const dgm_tune_report *report, const char *output, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
