// SPDX-License-Identifier: MIT
// Private to `dragoman tune` (tune*.c). docs/internals/TUNING.md says how the parts work together:
//
//     tune_space     which settings there are: axes, neighbours, what a model refuses
//     tune_bench     a part of the text through one setting: time, counts of the metric, samples
//     tune_record    everything that was measured, in order; a replay reads it instead of measuring
//     tune_stats     decisions, from numbers alone: speeds with intervals, who is dropped, the front
//     tune_race      rounds on growing parts of the text, generations of neighbours
//     tune_settle    more lines for the last ones, the choice
//     tune_variants  batches and threads, compared on speed alone; tune_against: what the caller gives to compare with
//     tune_learn     models with other shortlists, clusters, scales
//     tune_report    the answer; tune_page, tune_explain: as pictures and sentences; tune_store: in a model file
#ifndef DGM_TOOLS_TUNE_PRIVATE_H
#define DGM_TOOLS_TUNE_PRIVATE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/status.h"
#include "base/words.h"
#include "dragoman/settings.h"
#include "dragoman/tune.h"
#include "metrics/metrics.h"

// ---- space -------------------------------------------------------------------------------------

enum { DGM_TUNE_AXES = 24, DGM_TUNE_VALUES = 12 };

// An optimisation with the values that are tried, as options of `dragoman translate`; value 0 is what the model or the
// caller says.
typedef struct dgm_tune_axis {
    const char *setting;                 // the one that it is about, of dragoman/settings.h
    const char *values[DGM_TUNE_VALUES]; // value 1 and so on; NULL: those of the table of settings
    const char *title;                   // in sentences: "the shortlist"
    const char *allow;                   // only where the caller allows it; NULL: always
    bool beam;                           // says nothing where there is one hypothesis
} dgm_tune_axis;

typedef struct dgm_tune_place {
    int model;
    int8_t at[DGM_TUNE_AXES]; // value of every axis
} dgm_tune_place;

typedef struct dgm_tune_space {
    dgm_tune_axis axes[DGM_TUNE_AXES];
    char *texts[DGM_TUNE_AXES]; // of values that come from the table of settings
    int count[DGM_TUNE_AXES];   // values, with 0
    int axis_count;
} dgm_tune_space;

dgm_status dgm_tune_space_open(dgm_tune_space *s, const dgm_settings *fixed, const char *allow, dgm_error *err);
void dgm_tune_space_close(dgm_tune_space *s);
int dgm_tune_space_axis(const dgm_tune_space *s, const char *setting); // -1: it is not searched
// The options of a place, separated by blanks.
void dgm_tune_space_text(const dgm_tune_space *s, const dgm_tune_place *p, dgm_writer *out);
uint64_t dgm_tune_space_size(const dgm_tune_space *s); // combinations of one model
// "--beam 2 --static-scales" onto settings. text is changed, and borrowed by them.
dgm_status dgm_tune_options_apply(char *text, dgm_settings *s, dgm_error *err);
// The part of the options that belongs to loaded weights.
void dgm_tune_options_weights(const char *text, dgm_writer *out);
// tune.c: a number as short as it says the same float.
void dgm_tune_shorten(char *text, size_t size);
// Is it one of the words in a list with commas between them?
bool dgm_tune_allows(const char *list, const char *word);

// ---- measurements ------------------------------------------------------------------------------

typedef struct dgm_tune_counts { // of dgm_counters
    uint64_t lines, steps, rows, rank_rows, dots, live, leads, target_tokens, vocabulary;
} dgm_tune_counts;

enum { DGM_TUNE_SAMPLES = 3 };

typedef struct dgm_tune_difference {
    uint64_t line; // from 1, in the text
    char *source, *careful, *text;
} dgm_tune_difference;

// One part of the text through one setting.
typedef struct dgm_tune_run {
    double wall, cpu; // seconds
    size_t lines;
    dgm_tune_counts counts;
    uint64_t hash, same, bytes; // of the translations; lines as the careful setting has them; memory
    int64_t *rows;              // [lines][width], NULL: not wanted
    dgm_tune_difference samples[DGM_TUNE_SAMPLES];
    int sample_count;
} dgm_tune_run;

void dgm_tune_run_free(dgm_tune_run *r);

// What is known of a model before anything is run.
typedef struct dgm_tune_model {
    char *given; // as the caller says it
    char *source, *target, *name;
    int beam;    // its own
    bool masked; // beams and so on are nothing to it
    // Of one that was made of another: what it is worth trying for, options with "|" between them; NULL: everything.
    const char *only;
} dgm_tune_model;

// Settings as a model takes them: everything that matters is said. NULL texts: refused, and why.
typedef struct dgm_tune_opened {
    char *options, *refused;
} dgm_tune_opened;

typedef struct dgm_tune_text {
    dgm_writer bytes;
    dgm_line *source, **refs;         // [count], [ref_count][count], in the order in which they are taken
    uint64_t *number;                 // [count] of the line in its file, from 1
    size_t count, ref_count, skipped; // skipped: without a reference
} dgm_tune_text;

dgm_status dgm_tune_text_read(dgm_tune_text *t, const dgm_tune_options *o, dgm_error *err);
void dgm_tune_text_free(dgm_tune_text *t);

typedef struct dgm_tune_bench dgm_tune_bench;

dgm_status dgm_tune_bench_open(dgm_tune_bench **b, const dgm_settings *fixed, bool latency, const dgm_tune_text *text,
                               dgm_metric *metric, dgm_error *err);
void dgm_tune_bench_close(dgm_tune_bench **b);
// The model gets number `index`; out's texts are the caller's.
dgm_status dgm_tune_bench_model(dgm_tune_bench *b, int index, const char *given, dgm_tune_model *out, dgm_error *err);
// DGM_OK, too, where the model refuses it.
dgm_status dgm_tune_bench_try(dgm_tune_bench *b, int model, const char *options, bool one_hypothesis_refused,
                              dgm_tune_opened *out, dgm_error *err);
// careful: these are the translations that others are compared with. rows: the metric's counts are wanted.
dgm_status dgm_tune_bench_run(dgm_tune_bench *b, int model, const char *options, size_t from, size_t to, bool careful,
                              bool rows, dgm_tune_run *out, dgm_error *err);
dgm_status dgm_tune_bench_profile(dgm_tune_bench *b, int model, const char *options, size_t lines,
                                  struct dgm_tune_shares *out, dgm_error *err);
// Weights of LMBR for the first `lines` lines, found with a model in about this time.
dgm_status dgm_tune_bench_weights(dgm_tune_bench *b, int model, size_t lines, double seconds,
                                  const dgm_progress *progress, dgm_lmbr *weights, dgm_error *err);
void dgm_tune_bench_hold(dgm_tune_bench *b, const dgm_lmbr *weights); // what is opened from now on has them
bool dgm_tune_bench_knows(const dgm_tune_bench *b, size_t from, size_t to); // the careful translations
void dgm_tune_bench_forget(dgm_tune_bench *b);                              // they will be another setting's

// ---- record ------------------------------------------------------------------------------------

typedef struct dgm_tune_record dgm_tune_record;

// path NULL: nothing is kept. old: it is read first. replay: nothing is written.
dgm_status dgm_tune_record_open(dgm_tune_record **r, const char *path, bool old, bool replay, dgm_error *err);
void dgm_tune_record_close(dgm_tune_record **r);
// The next event of an older run, which must be of this kind; *event NULL: there are no more.
dgm_status dgm_tune_record_next(dgm_tune_record *r, const char *kind, const json_t **event, dgm_error *err);
// Adds an event and takes it over.
dgm_status dgm_tune_record_add(dgm_tune_record *r, const char *kind, json_t *event, dgm_error *err);
json_t *dgm_tune_run_json(const dgm_tune_run *r, int width);
dgm_status dgm_tune_run_parse(const json_t *j, int width, size_t lines, dgm_tune_run *r, dgm_error *err);

// ---- decisions ---------------------------------------------------------------------------------

typedef struct dgm_tune_timing {
    int trial, occasion;
    double log_time; // of a line
} dgm_tune_timing;

// log_time = trial + occasion + noise: mean [trials] and the half of its 95 % interval; both 0 of a trial without any.
dgm_status dgm_tune_fit(const dgm_tune_timing *t, size_t count, int trials, int occasions, double *mean, double *half,
                        double *noise, dgm_error *err);

// What decisions look at. speed: the logarithm of lines a second, half of its interval.
typedef struct dgm_tune_view {
    double loss, low, high, within;
    double speed, half;
    size_t lines;
} dgm_tune_view;

typedef enum dgm_tune_state {
    DGM_TUNE_RACING = 0,
    DGM_TUNE_OVER,    // surely over the budget
    DGM_TUNE_SLOWER,  // surely slower than one that is surely within the budget
    DGM_TUNE_BEATEN,  // surely slower and worse than another
    DGM_TUNE_HALVED,  // others promised more
    DGM_TUNE_NO_TIME, // for more lines
    DGM_TUNE_MEMORY,  // it needs too much
    DGM_TUNE_VARIANT, // of the chosen one, compared on speed alone
    DGM_TUNE_AGAINST, // given by the caller, tried when the choice was made
} dgm_tune_state;

const char *dgm_tune_state_text(dgm_tune_state s);

// What the intervals decide; only racing ones change. `careful` stays. lines: of the whole text, after which nothing
// will be known better; sure: the share of samples within the budget that makes a choice.
void dgm_tune_drop(const dgm_tune_view *v, size_t count, size_t lines, double budget, double sure, size_t careful,
                   dgm_tune_state *state);
// Order of the racing ones by what they promise, best first; returns how many. order [count].
size_t dgm_tune_rank(const dgm_tune_view *v, const dgm_tune_state *state, size_t count, size_t careful,
                     uint32_t *order);
// Nothing of at least so many lines is both faster and better.
void dgm_tune_front(const dgm_tune_view *v, size_t count, size_t lines, bool *front);
// The fastest of those with at least `lines` lines of whose samples at least the share `sure` is within the budget; of
// equally fast ones the best. SIZE_MAX: there is none.
size_t dgm_tune_choose(const dgm_tune_view *v, size_t count, size_t lines, double sure);
// About how many lines of such a text it takes to be so sure of it; INFINITY: it is over the budget.
double dgm_tune_lines_for(const dgm_tune_view *v, double budget, double sure);
// Sizes of the growing parts of a text, the last is `lines`; returns how many. rungs [32].
int dgm_tune_rungs(size_t lines, size_t *rungs);

// ---- a run ---------------------------------------------------------------------------------------

typedef struct dgm_tune_trial {
    dgm_tune_place place;
    char *options;
    int64_t *rows; // [lines][width]
    size_t lines, row_cap;
    uint64_t same, bytes, hash;
    dgm_tune_counts counts;
    dgm_tune_difference samples[DGM_TUNE_SAMPLES];
    int sample_count;
    double seconds; // that it took in all, for estimates
    size_t timed;   // lines in these
    size_t judged;  // lines that its view is of
    dgm_tune_state state;
    int parent;   // of a variant; -1: none
    bool given;   // it stands in the caller's list
    bool by_wall; // a variant in threads: CPU time says nothing about it
} dgm_tune_trial;

typedef struct dgm_tune_work {
    const dgm_tune_options *o;
    dgm_settings fixed; // what the caller holds
    char *fixed_text;   // the same as options
    char *borrowed;     // texts of `fixed` in a replay
    char *against;      // the caller's list, one setting a line; NULL: none
    size_t replayed;    // models of a replay
    bool latency, wall; // wall: what speeds are measured by
    int threads;
    dgm_tune_text text;
    size_t lines;
    dgm_tune_space space;
    dgm_metric *metric;
    int width;
    bool agreement;
    dgm_tune_record *record;
    dgm_tune_bench *bench; // NULL: a replay
    dgm_tune_model models[DGM_TUNE_MODELS];
    int model_count, given_count; // given_count: without those that were made
    dgm_tune_trial *trials;
    dgm_tune_view *views; // [trial_cap]
    size_t trial_count, trial_cap;
    int *seen_as; // the trial that it became, by its number there; -2: none
    size_t seen_cap;
    int same;
    dgm_words seen; // options that were looked at, with the number of the model before them
    dgm_tune_timing *timings;
    size_t timing_count, timing_cap;
    int occasions;
    size_t careful;            // index of trials
    size_t chosen, sure;       // likewise; sure: SIZE_MAX where none is
    size_t enough;             // lines that settings were compared on when the race ended: who has these may be chosen
    size_t variant;            // of the chosen one, with options that make it faster; SIZE_MAX: none
    double clock, last, noise; // clock: seconds of the run, as recorded; last: real time of the last event
    struct dgm_tune_shares chosen_shares, careful_shares;
    dgm_writer notes; // each with a NUL behind it
    size_t note_count;
    struct dgm_tune_waiting { // what there was no time for yet
        dgm_tune_place place;
    } * waiting;
    size_t waiting_count, waiting_cap;
} dgm_tune_work;

// tune_race.c: finds the settings; fills trials, views, careful, chosen.
dgm_status dgm_tune_race(dgm_tune_work *t, dgm_error *err);
dgm_status dgm_tune_tell(dgm_tune_work *t, size_t lines, dgm_error *err); // the front so far, for people
// tune_settle.c: fills enough, chosen, sure.
dgm_status dgm_tune_settle(dgm_tune_work *t, dgm_error *err);
size_t dgm_tune_most_lines(const dgm_tune_work *t); // that anything beside the careful settings has
// tune_race.c
double dgm_tune_cost(const dgm_tune_work *t, size_t trial); // seconds of a line, or about so many
bool dgm_tune_late(const dgm_tune_work *t, double until);   // may nothing more be begun?
// tune_variants.c: fills variant.
dgm_status dgm_tune_variants(dgm_tune_work *t, dgm_error *err);
// tune_steps.c: what a race is made of; each step is measured, or read from the record.
dgm_status dgm_tune_step_model(dgm_tune_work *t, const char *given, dgm_error *err);
// *trial: index of the new one; -1: it was there, as t->same; -2: it is refused. place->model, and the place unless
// `more` alone says it.
dgm_status dgm_tune_step_try(dgm_tune_work *t, const dgm_tune_place *place, const char *more, int parent, int *trial,
                             dgm_error *err);
// Lines [from, to) through all of these, in turning order; rows are kept where they follow what a trial has.
dgm_status dgm_tune_step_block(dgm_tune_work *t, const uint32_t *trials, size_t count, size_t from, size_t to,
                               dgm_error *err);
// Where the time goes, on the first lines.
dgm_status dgm_tune_step_profile(dgm_tune_work *t, size_t trial, size_t lines, struct dgm_tune_shares *out,
                                 dgm_error *err);
dgm_status dgm_tune_judge(dgm_tune_work *t, dgm_error *err); // views and states of all trials
dgm_status dgm_tune_note(dgm_tune_work *t, dgm_error *err, const char *fmt, ...) DGM_PRINTF(3, 4);
dgm_status dgm_tune_tick(dgm_tune_work *t, const char *stage, dgm_error *err);
// tune_against.c: the caller's list.
dgm_status dgm_tune_against(dgm_tune_work *t, dgm_error *err);
// tune_learn.c: adds models.
dgm_status dgm_tune_learn(dgm_tune_work *t, dgm_error *err);
// tune_report.c
void dgm_tune_put_table(const dgm_tune_report *r, dgm_writer *w);
dgm_status dgm_tune_report_make(const dgm_tune_work *t, dgm_tune_report **out, dgm_error *err);
// tune_page.c, tune_explain.c: forms of dgm_tune_write.
void dgm_tune_put_svg(const dgm_tune_report *r, dgm_writer *w);
void dgm_tune_put_page(const dgm_tune_report *r, dgm_writer *w);
void dgm_tune_put_explain(const dgm_tune_report *r, dgm_writer *w);

#endif
