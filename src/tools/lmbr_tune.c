// SPDX-License-Identifier: MIT
// Weights of LMBR by BLEU on a development set (`translate --lmbr-tune`, `tune --allow lmbr`).
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
// few dozen.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sized.h"
#include "dragoman/eval.h"
#include "dragoman/evidence.h"
#include "dragoman/score.h"
#include "tools/route_private.h"

enum { LAMBDA, SCALE, P, R, COUNT };
enum { TRIALS_MAX = 160, WINDOW = 256, ROUNDS = 3, PATHS = DGM_LMBR_PATHS };
static const double gain = 0.01; // BLEU that a step must bring

typedef struct trial {
    double x[COUNT], bleu;
} trial;

typedef struct tuner {
    dgm_route *route;
    dgm_translator *t; // the only one of a route without a plan; NULL: there are several
    const dgm_lmbr_tune_options *o;
    const dgm_line *references;
    size_t lines;
    dgm_input *inputs;       // [lines]
    dgm_evidence **decoded;  // [lines] what the phrase-based system says; NULL: the caller has it
    dgm_line *system, *text; // [lines] of the last trial; of the inputs
    dgm_direction *said;     // [lines] what the inputs say of theirs
    char **texts;            // [lines] owned
    dgm_lmbr weights;
    trial trials[TRIALS_MAX];
    int count;
    double until;
    bool asked; // phrase-based systems are asked in every trial
} tuner;

void dgm_lmbr_tune_init(dgm_lmbr_tune_options *out, size_t size)
{
    dgm_lmbr_tune_options own = {.size = sizeof own};
    dgm_lmbr_default(&own.start);
    dgm_sized_give(out, size, &own, sizeof own);
}

static dgm_status tell(const tuner *u, const trial *x, int number, double seconds, dgm_error *err)
{
    const dgm_lmbr_trial told = {sizeof told, number, x->bleu, u->weights, seconds};
    DGM_FAIL_IF(u->o->trial && u->o->trial(u->o->cookie, &told) != 0, err, DGM_ERR_CANCELLED, "stopped on request");
    return DGM_OK;
}

// ---- one trial ---------------------------------------------------------------------------------

static dgm_status keep_text(tuner *u, size_t line, const char *text, size_t size, dgm_error *err)
{
    dgm_free(u->texts[line]);
    u->texts[line] = dgm_strndup(text, size);
    if (!u->texts[line]) return dgm_no_memory(err);
    u->system[line] = (dgm_line){u->texts[line], size};
    return DGM_OK;
}

static dgm_status keep_window(tuner *u, dgm_route_job **job, size_t first, dgm_error *err)
{
    dgm_results *results = NULL;
    DGM_TRY(dgm_route_wait(job, &results, err));
    dgm_status st = DGM_OK;
    if (u->o->rerankers)
        st = dgm_rerank_by(u->o->rerankers, u->o->reranker_count, u->text + first, results, err);
    for (size_t i = 0; st == DGM_OK && i < results->count; i++) {
        const char *text = dgm_result_text(results->items[i]);
        st = keep_text(u, first + i, text, strlen(text), err);
    }
    dgm_results_free(&results);
    return st;
}

// Windows keep the rows of few lines in memory; two of them keep the workers busy.
static dgm_status translate(tuner *u, dgm_error *err)
{
    dgm_route_job *job = NULL, *next = NULL;
    dgm_status st = DGM_OK;
    for (size_t at = 0; at < u->lines + WINDOW && st == DGM_OK; at += WINDOW) {
        const size_t left = at < u->lines ? u->lines - at : 0, count = left < WINDOW ? left : WINDOW;
        if (count) st = dgm_route_submit(u->route, u->inputs + at, count, &next, err);
        if (job) {
            const dgm_status kept = keep_window(u, &job, at - WINDOW, st == DGM_OK ? err : NULL);
            if (st == DGM_OK) st = kept;
        }
        job = next;
        next = NULL;
    }
    dgm_route_cancel(&job);
    return st;
}

static dgm_status bleu_of(const tuner *u, dgm_eval_score *score, dgm_error *err)
{
    dgm_eval_options options;
    dgm_eval_default(&options);
    *score = (dgm_eval_score){.size = sizeof *score};
    return dgm_evaluate(&options, (const dgm_line *const[]){u->system}, 1, &u->references, 1, u->lines, score, NULL,
                        err);
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

// Was the trial made by an earlier call?
static bool known_before(const tuner *u, trial *x)
{
    const dgm_lmbr *w = &u->weights;
    for (size_t i = 0; i < u->o->known_count; i++) {
        const dgm_lmbr_trial *k = &u->o->known[i];
        if (k->weights.lambda != w->lambda || k->weights.scale != w->scale || k->weights.p != w->p ||
            k->weights.r != w->r)
            continue;
        x->bleu = k->bleu;
        return true;
    }
    return false;
}

// Fills x->bleu; -1 where the step went out of range or there is no time for another trial.
static dgm_status measure(tuner *u, trial *x, dgm_error *err)
{
    x->bleu = -1;
    for (int i = 0; i < u->count; i++)
        if (same(&u->trials[i], x)) {
            x->bleu = u->trials[i].bleu;
            return DGM_OK;
        }
    const double begin = dgm_now();
    if (u->count == TRIALS_MAX || (u->count && u->until > 0 && begin > u->until)) return DGM_OK;
    set(x, &u->weights);
    const bool known = known_before(u, x);
    if (!known && dgm_route_lmbr_set(u->route, &u->weights, NULL) == DGM_OK) {
        dgm_eval_score score;
        DGM_TRY(translate(u, err));
        DGM_TRY(bleu_of(u, &score, err));
        x->bleu = score.score;
    }
    u->trials[u->count++] = *x;
    return tell(u, x, u->count, known ? 0 : dgm_now() - begin, err);
}

// ---- the climb ---------------------------------------------------------------------------------

// Moves one setting by the factor while that helps.
static dgm_status walk(tuner *u, trial *best, int which, double factor, bool *moved, dgm_error *err)
{
    *moved = false;
    for (;;) {
        trial next = *best;
        next.x[which] *= factor;
        DGM_TRY(measure(u, &next, err));
        if (!(next.bleu >= best->bleu + gain)) return DGM_OK;
        *best = next;
        *moved = true;
    }
}

static dgm_status climb(tuner *u, trial *best, dgm_error *err)
{
    static const double steps[] = {4, 2, 1.4, 1.2};
    DGM_TRY(measure(u, best, err));
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        bool any = true;
        for (int round = 0; any && round < ROUNDS; round++) {
            any = false;
            for (int i = 0; i < (k == 0 || u->o->start.use_thetas ? P : COUNT); i++) {
                bool moved = false;
                DGM_TRY(walk(u, best, i, steps[k], &moved, err));
                if (!moved) DGM_TRY(walk(u, best, i, 1 / steps[k], &moved, err));
                any |= moved;
            }
        }
    }
    return DGM_OK;
}

// ---- the start ---------------------------------------------------------------------------------

// The lines' best translations by the evidence, and how far the others are behind them.
typedef struct taker {
    tuner *u;
    size_t line;
    double behind, others;
    dgm_status st;
} taker;

// The line's best translation becomes the system's.
static int take_best(void *cookie, const dgm_evidence *e)
{
    taker *d = cookie;
    const dgm_evidence_candidate *best = NULL;
    for (size_t k = 0; k < e->count; k++)
        if (!best || e->candidates[k].score > best->score) best = &e->candidates[k];
    d->st = keep_text(d->u, d->line++, best ? best->text : "", best ? best->size : 0, NULL);
    for (size_t k = 0; k < e->count; k++) d->behind += best->score - e->candidates[k].score;
    if (e->count) d->others += (double)e->count - 1;
    return d->st != DGM_OK;
}

// A copy in one block: what the phrase-based system says about the next line.
static int keep_evidence(void *cookie, const dgm_evidence *e)
{
    taker *d = cookie;
    size_t bytes = sizeof *e + e->count * sizeof *e->candidates + e->lattice_size;
    for (size_t k = 0; k < e->count; k++) bytes += e->candidates[k].size;
    dgm_evidence *own = d->u->decoded[d->line] = dgm_malloc(bytes + 1);
    d->st = own ? DGM_OK : dgm_no_memory(NULL);
    if (!own) return 1;
    *own = *e;
    dgm_evidence_candidate *list = (dgm_evidence_candidate *)(void *)(own + 1);
    char *at = (char *)(list + e->count);
    for (size_t k = 0; k < e->count; k++) {
        list[k] = e->candidates[k];
        list[k].text = at;
        if (list[k].size) memcpy(at, e->candidates[k].text, list[k].size);
        at += list[k].size;
    }
    own->candidates = list;
    if (e->lattice) own->lattice = memcpy(at, e->lattice, e->lattice_size);
    d->u->inputs[d->line++].evidence = own;
    return 0;
}

// What the phrase-based system says of all lines, window by window.
static dgm_status ask_phrases(tuner *u, size_t nbest, int (*take)(void *, const dgm_evidence *), taker *d,
                              dgm_error *err)
{
    for (size_t at = 0; at < u->lines; at += WINDOW) {
        const size_t count = u->lines - at < WINDOW ? u->lines - at : WINDOW;
        const dgm_status st =
            dgm_evidence_decode_directed(u->t, u->text + at, u->said + at, count, nbest, take, d, err);
        if (d->st != DGM_OK) return dgm_no_memory(err);
        if (st != DGM_OK) dgm_error_prefix(err, "after line %zu", at);
        DGM_TRY(st);
    }
    return DGM_OK;
}

// Every line's. Lattices are asked for once more, as lists.
static dgm_status take_all(tuner *u, taker *d, dgm_error *err)
{
    bool lattices = false;
    for (size_t i = 0; i < u->lines; i++) lattices |= u->inputs[i].evidence && u->inputs[i].evidence->lattice;
    if (lattices && !u->o->list) return u->decoded ? ask_phrases(u, PATHS, take_best, d, err) : DGM_OK;
    for (size_t i = 0; i < u->lines; i++) {
        dgm_evidence e;
        dgm_evidence_default(&e);
        if (lattices)
            DGM_TRY(u->o->list(u->o->cookie, i, &e, err));
        else if (u->inputs[i].evidence)
            e = *u->inputs[i].evidence;
        if (take_best(d, &e) != 0) return dgm_no_memory(err);
    }
    return DGM_OK;
}

// p, r and scale of the evidence itself.
static dgm_status start(tuner *u, trial *x, dgm_error *err)
{
    const dgm_lmbr_tune_options *o = u->o;
    const dgm_lmbr *w = &o->start;
    *x = (trial){.x = {(double)w->lambda, (double)w->scale, (double)w->p, (double)w->r}};
    if (o->keep_scale && o->keep_p && o->keep_r) return DGM_OK;
    if (u->asked) return DGM_OK; // what the systems will say of the lines is not known
    taker d = {.u = u};
    dgm_eval_score score;
    DGM_TRY(take_all(u, &d, err));
    if (d.line < u->lines) return DGM_OK; // lattices that nobody makes lists of
    const double behind = d.others > 0 ? d.behind / d.others : 0;
    if (!o->keep_scale && behind > 1e-4) x->x[SCALE] = 1 / behind;
    DGM_TRY(bleu_of(u, &score, err));
    const double p = score.precisions[0] / 100, last = score.precisions[3] / 100;
    const trial best = {.bleu = score.score};
    DGM_TRY(tell(u, &best, 0, 0, err));
    if (p < 0.05) return DGM_OK; // nothing in common: the usual numbers are better
    if (!o->keep_p) x->x[P] = p;
    if (!o->keep_r) x->x[R] = fmin(fmax(cbrt(last / p), 0.3), 1.0);
    return DGM_OK;
}

// ---- the whole ---------------------------------------------------------------------------------

static bool reads_evidence(const dgm_route *r)
{
    for (int i = 0; i < r->leg_count; i++)
        if (r->legs[i].t->evidence) return true;
    return false;
}

static bool has_systems(const dgm_route *r)
{
    for (int i = 0; i < r->leg_count; i++)
        if (r->legs[i].t->phrase_count) return true;
    return false;
}

dgm_status dgm_route_lmbr_set(dgm_route *r, const dgm_lmbr *lmbr, dgm_error *err)
{
    bool any = false;
    DGM_FAIL_IF(!r || !lmbr, err, DGM_ERR_ARGUMENT, "dgm_route_lmbr_set needs a route and weights");
    for (int i = 0; i < r->leg_count; i++) {
        if (!r->legs[i].t->evidence) continue; // a first step, or of a way without evidence
        DGM_TRY(dgm_lmbr_set(r->legs[i].t, lmbr, err));
        any = true;
    }
    DGM_FAIL_IF(!any, err, DGM_ERR_ARGUMENT, "the translator was opened without LMBR");
    return DGM_OK;
}

static dgm_status run(tuner *u, const dgm_input *inputs, trial *best, dgm_error *err)
{
    bool missing = false;
    DGM_FAIL_IF(!reads_evidence(u->route), err, DGM_ERR_ARGUMENT, "the translator was opened without LMBR");
    u->inputs = dgm_calloc(u->lines + 1, sizeof *u->inputs);
    u->system = dgm_calloc(u->lines + 1, sizeof *u->system);
    u->text = dgm_calloc(u->lines + 1, sizeof *u->text);
    u->texts = dgm_calloc(u->lines + 1, sizeof *u->texts);
    u->said = dgm_calloc(u->lines + 1, sizeof *u->said);
    if (!u->inputs || !u->system || !u->text || !u->texts || !u->said) return dgm_no_memory(err);
    for (size_t i = 0; i < u->lines; i++) {
        const void *at = (const char *)inputs + i * inputs->size;
        DGM_TRY(dgm_sized_take(&u->inputs[i], sizeof u->inputs[i], at, "dgm_input", "dgm_input_default", err));
        u->inputs[i].size = sizeof u->inputs[i];
        if (u->inputs[i].direction) u->said[i] = *u->inputs[i].direction;
        u->text[i] = (dgm_line){u->inputs[i].text, u->inputs[i].text_size};
        missing |= !u->inputs[i].evidence;
    }
    u->asked = missing && !u->t;
    DGM_FAIL_IF(u->asked && !has_systems(u->route), err, DGM_ERR_ARGUMENT,
                "the translator was opened without a phrase-based system");
    if (missing && u->t) {
        taker d = {.u = u};
        u->decoded = dgm_calloc(u->lines + 1, sizeof *u->decoded);
        if (!u->decoded) return dgm_no_memory(err);
        DGM_TRY(ask_phrases(u, 0, keep_evidence, &d, err));
    }
    DGM_TRY(start(u, best, err));
    return climb(u, best, err);
}

dgm_status dgm_lmbr_tune(dgm_translator *t, const dgm_input *inputs, const dgm_line *references, size_t count,
                         const dgm_lmbr_tune_options *options, dgm_lmbr *weights, double *bleu, dgm_error *err)
{
    dgm_route *route = NULL;
    DGM_FAIL_IF(!t, err, DGM_ERR_ARGUMENT,
                "tuning takes a translator, lines with references and a place for the weights");
    DGM_TRY(dgm_route_of(&route, t, err));
    const dgm_status st = dgm_lmbr_tune_route(route, inputs, references, count, options, weights, bleu, err);
    dgm_route_close(&route);
    return st;
}

dgm_status dgm_lmbr_tune_route(dgm_route *route, const dgm_input *inputs, const dgm_line *references, size_t count,
                               const dgm_lmbr_tune_options *options, dgm_lmbr *weights, double *bleu, dgm_error *err)
{
    dgm_lmbr_tune_options own;
    dgm_lmbr_tune_default(&own);
    DGM_FAIL_IF(!route || !inputs || !references || !weights || count == 0, err, DGM_ERR_ARGUMENT,
                "tuning takes a translator, lines with references and a place for the weights");
    if (options)
        DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_lmbr_tune_options", "dgm_lmbr_tune_default", err));
    tuner *u = dgm_calloc(1, sizeof *u);
    if (!u) return dgm_no_memory(err);
    trial best = {0};
    u->route = route;
    u->t = route->plan ? NULL : route->legs[0].t;
    u->o = &own;
    u->references = references;
    u->lines = count;
    u->weights = own.start;
    u->until = own.seconds > 0 ? dgm_now() + own.seconds : 0;
    const dgm_status st = run(u, inputs, &best, err);
    *weights = own.start;
    if (st == DGM_OK) set(&best, weights);
    if (st == DGM_OK && bleu) *bleu = best.bleu;
    for (size_t i = 0; u->texts && i < count; i++) dgm_free(u->texts[i]);
    for (size_t i = 0; u->decoded && i < count; i++) dgm_free(u->decoded[i]);
    dgm_free(u->texts);
    dgm_free(u->decoded);
    dgm_free(u->said);
    dgm_free(u->inputs);
    dgm_free(u->system);
    dgm_free(u->text);
    dgm_free(u);
    return st;
}
