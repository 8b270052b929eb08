// SPDX-License-Identifier: MIT
// `translate --lmbr-tune`: settings of LMBR by BLEU on a development set.
//
// Every trial translates the whole set, as later translations are made. T is kept: it only weighs
// what lambda weighs. The others are factors, so a step multiplies or divides one of them:
//
//     start    p: precision of words in the evidence's best translations; r: how much lower it is
//              from one length of n-grams to the next; scale: a line's translations are e^-1 times
//              as likely as its best one, in the mean (each unless given); of a lattice, its best
//              PATHS texts are taken for its translations. A phrase-based system is asked
//              about every line before the first trial
//     climb    for steps of 4, 2, 1.4 and 1.2: lambda, scale, p, r in turn, up and else down while
//              BLEU rises by 0.01; the same step again after a round in which something rose
//
// (4 is for lambda and scale alone, whose size nobody knows.) Trials are remembered; there are a
// few dozen. The result is a settings file.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "translate/lmbr.h"

enum { LAMBDA, SCALE, P, R, COUNT };
enum { TRIALS_MAX = 160, WINDOW = 256, ROUNDS = 3, PATHS = 100 };
static const double gain = 0.01; // BLEU that a step must bring

typedef struct trial {
    double x[COUNT], bleu;
} trial;

typedef struct tuner {
    dgm_translator *t;
    const text_file *source, *reference;
    dgm_input *inputs;        // [lines]
    evidence_window evidence; // of all lines
    const setting_values *set;
    dgm_lmbr weights;
    dgm_line *system; // [lines]
    char **texts;     // [lines] owned
    trial trials[TRIALS_MAX];
    int count;
    bool quiet, failed;
} tuner;

// ---- one trial ---------------------------------------------------------------------------------

static bool keep_window(tuner *u, dgm_job **job, size_t first)
{
    dgm_results *results = NULL;
    dgm_error error;
    if (dgm_wait(job, &results, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        return false;
    }
    for (size_t i = 0; i < results->count; i++) {
        const char *text = dgm_result_text(results->items[i]);
        free(u->texts[first + i]);
        u->texts[first + i] = need(strdup(text));
        u->system[first + i] = (dgm_line){u->texts[first + i], strlen(text)};
    }
    dgm_results_free(&results);
    return true;
}

// Windows keep the rows of few lines in memory; two of them keep the workers busy.
static bool translate(tuner *u)
{
    const size_t lines = u->source->count;
    dgm_job *job = NULL, *next = NULL;
    dgm_error error;
    bool fine = true;
    for (size_t at = 0; at < lines + WINDOW && fine; at += WINDOW) {
        const size_t left = at < lines ? lines - at : 0, count = left < WINDOW ? left : WINDOW;
        if (count && dgm_submit(u->t, u->inputs + at, count, &next, &error) != DGM_OK) {
            fail(EXIT_RUNTIME, "%s", error.text);
            fine = false;
        }
        if (job) fine = keep_window(u, &job, at - WINDOW) && fine;
        job = next;
        next = NULL;
    }
    dgm_results *results = NULL;
    if (job && dgm_wait(&job, &results, &error) == DGM_OK) dgm_results_free(&results);
    return fine;
}

static double bleu_of(const tuner *u, dgm_eval_score *score)
{
    dgm_eval_options options;
    dgm_error error;
    const dgm_line *system = u->system, *reference = u->reference->lines;
    dgm_eval_default(&options);
    if (dgm_evaluate(&options, &system, 1, &reference, 1, u->source->count, score, NULL, &error) !=
        DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        return -1;
    }
    return score->score;
}

static void set(const trial *x, dgm_lmbr *w)
{
    w->lambda = (float)x->x[LAMBDA];
    w->scale = (float)x->x[SCALE];
    w->p = (float)x->x[P];
    w->r = (float)x->x[R];
}

static bool same(const trial *a, const trial *b)
{
    for (int i = 0; i < COUNT; i++)
        if (fabs(a->x[i] - b->x[i]) > 1e-6 * fabs(a->x[i])) return false;
    return true;
}

// Fills x->bleu; -1 when nothing could be measured any more.
static void measure(tuner *u, trial *x)
{
    dgm_error error;
    dgm_eval_score score = {.size = sizeof score};
    x->bleu = -1;
    for (int i = 0; i < u->count; i++)
        if (same(&u->trials[i], x)) {
            x->bleu = u->trials[i].bleu;
            return;
        }
    if (u->failed || u->count == TRIALS_MAX) return;
    set(x, &u->weights);
    const double begin = seconds();
    if (dgm_lmbr_set(u->t, &u->weights, &error) == DGM_OK) {
        u->failed = !translate(u);
        if (!u->failed) u->failed = (x->bleu = bleu_of(u, &score)) < 0;
    } // else the step went out of range: no good
    u->trials[u->count++] = *x;
    if (!u->quiet && !u->failed)
        fprintf(stderr, "%3d  BLEU %.3f  lambda %.4f  scale %.4f  p %.4f  r %.4f  (%.1f s)\n",
                u->count, x->bleu, x->x[LAMBDA], x->x[SCALE], x->x[P], x->x[R], seconds() - begin);
}

// ---- the climb ---------------------------------------------------------------------------------

// Moves one setting by the factor while that helps.
static bool walk(tuner *u, trial *best, int which, double factor)
{
    bool moved = false;
    for (;;) {
        trial next = *best;
        next.x[which] *= factor;
        measure(u, &next);
        if (!(next.bleu >= best->bleu + gain)) return moved;
        *best = next;
        moved = true;
    }
}

static void climb(tuner *u, trial *best)
{
    static const double steps[] = {4, 2, 1.4, 1.2};
    measure(u, best);
    for (size_t k = 0; k < sizeof steps / sizeof steps[0] && !u->failed; k++) {
        bool moved = true;
        for (int round = 0; moved && round < ROUNDS; round++) {
            moved = false;
            for (int i = 0; i < (k == 0 ? P : COUNT); i++)
                moved |= walk(u, best, i, steps[k]) || walk(u, best, i, 1 / steps[k]);
        }
    }
}

// How far the translations of all lines are behind the best of their line, and how many they are.
typedef struct distance {
    double behind, others;
} distance;

// The line's best translation by the evidence becomes the system's.
static void take_best(tuner *u, size_t line, const dgm_evidence *e, distance *d)
{
    const dgm_evidence_candidate *best = NULL;
    for (size_t k = 0; k < e->count; k++)
        if (!best || e->candidates[k].score > best->score) best = &e->candidates[k];
    const size_t size = best ? best->size : 0;
    free(u->texts[line]);
    u->texts[line] = need(calloc(size + 1, 1));
    if (size) memcpy(u->texts[line], best->text, size);
    u->system[line] = (dgm_line){u->texts[line], size};
    for (size_t k = 0; k < e->count; k++) d->behind += best->score - e->candidates[k].score;
    if (e->count) d->others += (double)e->count - 1;
}

typedef struct best_taker {
    tuner *u;
    distance *d;
    size_t line;
} best_taker;

static int take_next(void *cookie, const dgm_evidence *e)
{
    best_taker *b = cookie;
    take_best(b->u, b->line++, e, b->d);
    return 0;
}

static int put_next(void *cookie, const dgm_evidence *e)
{
    uint32_t sum = 0;
    evidence_put(cookie, e, &sum);
    return 0;
}

// What the phrase-based system says of all lines, window by window.
static bool ask_phrases(tuner *u, size_t nbest, int (*take)(void *, const dgm_evidence *),
                        void *cookie)
{
    const size_t lines = u->source->count;
    dgm_error error;
    for (size_t at = 0; at < lines; at += WINDOW) {
        const size_t count = lines - at < WINDOW ? lines - at : WINDOW;
        if (dgm_evidence_decode(u->t, u->source->lines + at, count, nbest, take, cookie, &error) ==
            DGM_OK)
            continue;
        fail(EXIT_RUNTIME, "after line %zu: %s", at, error.text);
        return false;
    }
    return true;
}

// Every line's. Lattices are asked for once more, as lists.
static bool take_all(tuner *u, const lmbr_options *o, distance *d)
{
    best_taker best = {u, d, 0};
    dgm_evidence_file *lists = NULL;
    dgm_error error;
    bool fine = true, lattices = false;
    for (size_t i = 0; i < u->source->count; i++) lattices |= u->inputs[i].evidence->lattice != NULL;
    if (lattices && !o->file) return ask_phrases(u, PATHS, take_next, &best);
    if (lattices && !(lists = lmbr_open(o, PATHS))) return false;
    for (size_t i = 0; i < u->source->count && fine; i++) {
        dgm_evidence e = *u->inputs[i].evidence;
        fine = !lists || dgm_evidence_next(lists, i, &e, &error) == DGM_OK;
        if (fine)
            take_best(u, i, &e, d);
        else
            fail(EXIT_RUNTIME, "%s", error.text);
    }
    dgm_evidence_close(&lists);
    return fine;
}

// p, r and scale of the evidence itself.
static bool start(tuner *u, const lmbr_options *o, trial *x)
{
    const dgm_lmbr *w = &u->weights;
    *x = (trial){.x = {(double)w->lambda, (double)w->scale, (double)w->p, (double)w->r}};
    if (o->settings) return true;
    distance d = {0};
    if (!take_all(u, o, &d)) return false;
    const double behind = d.others > 0 ? d.behind / d.others : 0;
    if (!settings_given(u->set, "lmbr-scale") && behind > 1e-4) x->x[SCALE] = 1 / behind;
    dgm_eval_score score = {.size = sizeof score};
    if (bleu_of(u, &score) < 0) return false;
    const double p = score.precisions[0] / 100, last = score.precisions[3] / 100;
    if (!u->quiet) fprintf(stderr, "     BLEU %.3f  best of the evidence\n", score.score);
    if (p < 0.05) return true; // nothing in common: the usual numbers are better
    if (!settings_given(u->set, "lmbr-p")) x->x[P] = p;
    if (!settings_given(u->set, "lmbr-r")) x->x[R] = fmin(fmax(cbrt(last / p), 0.3), 1.0);
    return true;
}

// ---- files -------------------------------------------------------------------------------------

static bool read_all(tuner *u)
{
    const size_t lines = u->source->count;
    uint32_t sum = 0;
    u->inputs = need(calloc(lines + 1, sizeof *u->inputs));
    u->system = need(calloc(lines + 1, sizeof *u->system));
    u->texts = need(calloc(lines + 1, sizeof *u->texts));
    for (size_t i = 0; i < lines; i++) {
        dgm_input_default(&u->inputs[i]);
        u->inputs[i].text = u->source->lines[i].data;
        u->inputs[i].text_size = u->source->lines[i].size;
        if (!evidence_add(&u->evidence, i, &sum)) return false;
    }
    if (!u->evidence.file && !ask_phrases(u, 0, put_next, &u->evidence)) return false;
    evidence_attach(&u->evidence, u->inputs, lines);
    return evidence_complete(&u->evidence, lines);
}

static int write_settings(const tuner *u, const trial *best, const char *output)
{
    dgm_lmbr w = u->weights;
    set(best, &w);
    line_writer *out = writer_open(output);
    if (!out) return EXIT_RUNTIME;
    writer_format(out, "# LMBR settings: BLEU %.2f on %zu lines, %d trials\n", best->bleu,
                  u->source->count, u->count);
    writer_format(out, "lambda = %.6g\nscale = %.6g\np = %.6g\nr = %.6g\nt = %.6g\n",
                  (double)w.lambda, (double)w.scale, (double)w.p, (double)w.r, (double)w.t);
    writer_format(out, "order = %d\n", (int)u->set->settings.lmbr_order);
    writer_format(out, "length_penalty = %.6g\n", (double)dgm_describe(u->t)->length_penalty);
    return writer_close(out) ? EXIT_FINE : EXIT_RUNTIME;
}

int lmbr_tune(const lmbr_options *o, const engine_options *engine, const char *input,
              const char *output, bool quiet)
{
    text_file source = {0}, reference = {0};
    tuner *u = need(calloc(1, sizeof *u));
    trial best = {0};
    int code = EXIT_RUNTIME;
    u->source = &source;
    u->reference = &reference;
    u->set = &engine->set;
    u->weights = engine->set.settings.lmbr;
    u->quiet = quiet;
    if (!text_file_read(&source, input) || !text_file_read(&reference, o->tune)) goto end;
    if (source.count != reference.count || source.count == 0) {
        fail(EXIT_RUNTIME, "'%s' has %zu lines, the input %zu", o->tune, reference.count,
             source.count);
        goto end;
    }
    if (o->file && !(u->evidence.file = lmbr_open(o, 0))) goto end;
    code = engine_open(engine, &u->t);
    if (code >= 0) goto end;
    code = EXIT_RUNTIME;
    if (!read_all(u) || !start(u, o, &best)) goto end;
    climb(u, &best);
    if (!quiet) lmbr_warn(u->t, u->set);
    if (!u->failed) code = write_settings(u, &best, output);
end:
    dgm_close(&u->t);
    for (size_t i = 0; u->texts && i < source.count; i++) free(u->texts[i]);
    free(u->texts);
    free(u->inputs);
    free(u->system);
    evidence_free(&u->evidence);
    text_file_free(&source);
    text_file_free(&reference);
    free(u);
    return code;
}
