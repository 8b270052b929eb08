// SPDX-License-Identifier: MIT
// The race of settings: successive halving on growing parts of the text, in generations.
//
//   1. The most careful settings of every model translate a part of the text; the best of them is what losses count
//   against.
//   2. The first generation: beams and choices of words together, everything else one by one. Round by round the parts
//      double; who is surely over the budget, or surely slower than what is within it, goes, and of the rest the half
//      that promises more goes on.
//   3. Further generations: the neighbours of the best three, of several beams, which differ from them in one axis.
//      With a long text they are looked for on a quarter of it: what is found late would otherwise have waited for all
//      lines of what was not.
//   4. The last ones take turns, on lines that are new to them and then again, until they are known well enough.
//   5. What cannot change a translation (batch, threads) is compared on speed alone.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tools/tune_private.h"

enum { KEEP = 6, PARENTS = 3, BLOCK = 32, BLOCKS = 4, RUNGS = 32, PROFILED = 64, QUARTER = 200 };
#define FIRST_SHARE 0.45  // of the time for the first generation,
#define SEARCH_SHARE 0.75 // for all of them;
#define BEGIN_SHARE 0.25  // where a quarter of the text comes first, for the first generation there
#define QUARTER_SHARE 0.5 // and for all that stay with the quarter

// ---- time --------------------------------------------------------------------------------------

// Seconds of a line; of one that has not run, the mean of the others, or half of what the careful settings take.
double dgm_tune_cost(const dgm_tune_work *t, size_t trial)
{
    const dgm_tune_trial *own = &t->trials[trial], *careful = &t->trials[t->careful];
    if (own->timed) return own->seconds / (double)own->timed;
    double seconds = 0;
    size_t lines = 0;
    for (size_t i = 0; i < t->trial_count; i++) {
        if (i == t->careful) continue;
        seconds += t->trials[i].seconds;
        lines += t->trials[i].timed;
    }
    if (lines) return seconds / (double)lines;
    return careful->timed ? careful->seconds / (double)careful->timed / 2 : 0;
}

bool dgm_tune_late(const dgm_tune_work *t, double until)
{
    return !t->o->complete && t->clock >= until;
}

// ---- places ------------------------------------------------------------------------------------

static int value_at(const dgm_tune_space *s, int axis, const char *text)
{
    for (int i = 1; axis >= 0 && i < s->count[axis]; i++)
        if (strcmp(s->axes[axis].values[i - 1], text) == 0) return i;
    return 0;
}

static void put(const dgm_tune_work *t, dgm_tune_place *p, const char *setting, const char *text)
{
    const int axis = dgm_tune_space_axis(&t->space, setting);
    if (axis >= 0) p->at[axis] = (int8_t)value_at(&t->space, axis, text);
}

// Puts a place on the list of those to be tried.
static dgm_status wait(dgm_tune_work *t, const dgm_tune_place *p, dgm_error *err)
{
    DGM_TRY(dgm_grow(&t->waiting, &t->waiting_cap, t->waiting_count + 1, sizeof *t->waiting, err));
    t->waiting[t->waiting_count++] = (struct dgm_tune_waiting){.place = *p};
    return DGM_OK;
}

// Exact products, the whole vocabulary, a beam of four at least, nothing pruned.
static dgm_status careful_trial(dgm_tune_work *t, int model, int *trial, dgm_error *err)
{
    dgm_tune_place p = {.model = model};
    put(t, &p, "precision", "--precision f32");
    put(t, &p, "shortlist", "--shortlist all");
    if (!t->models[model].masked) { // to say it leaves out what the model's file has of a search
        char beam[32];
        snprintf(beam, sizeof beam, "--beam %d", t->models[model].beam < 4 ? 4 : t->models[model].beam);
        put(t, &p, "beam", beam);
    }
    DGM_TRY(dgm_tune_step_try(t, &p, NULL, -1, trial, err));
    if (*trial >= 0) return DGM_OK;
    const dgm_tune_place own = {.model = model}; // a device without f32, or settings that the caller holds
    return dgm_tune_step_try(t, &own, NULL, -1, trial, err);
}

static dgm_status neighbours(dgm_tune_work *t, const dgm_tune_place *from, dgm_error *err)
{
    for (int i = 0; i < t->space.axis_count; i++)
        for (int v = 0; v < t->space.count[i]; v++) {
            dgm_tune_place p = *from;
            if (p.at[i] == v) continue;
            p.at[i] = (int8_t)v;
            DGM_TRY(wait(t, &p, err));
        }
    return DGM_OK;
}

// Beams with every choice of words, then everything else by itself.
static dgm_status first_places(dgm_tune_work *t, int model, dgm_error *err)
{
    const int beam = dgm_tune_space_axis(&t->space, "beam"), words = dgm_tune_space_axis(&t->space, "shortlist");
    dgm_tune_place p = {.model = model};
    DGM_TRY(wait(t, &p, err));
    for (int b = 0; beam >= 0 && b < t->space.count[beam]; b++)
        for (int w = 0; b + w == 0 || (words >= 0 && w < t->space.count[words]); w++) {
            p.at[beam] = (int8_t)b;
            if (words >= 0) p.at[words] = (int8_t)w;
            DGM_TRY(wait(t, &p, err));
            if (words < 0) break;
        }
    p = (dgm_tune_place){.model = model};
    return neighbours(t, &p, err);
}

// ---- rounds ------------------------------------------------------------------------------------

typedef struct heat {
    uint32_t *list; // [trials] who runs
    size_t count;
    double until;
} heat;

// Who has not seen so many lines: the careful one, then the racing ones.
static void gather(const dgm_tune_work *t, size_t lines, heat *h)
{
    h->count = 0;
    if (t->trials[t->careful].lines < lines) h->list[h->count++] = (uint32_t)t->careful;
    for (size_t i = 0; i < t->trial_count; i++)
        if (i != t->careful && t->trials[i].state == DGM_TUNE_RACING && t->trials[i].lines < lines)
            h->list[h->count++] = (uint32_t)i;
}

// What runs besides, for the sake of its time: the best one that is further.
static int anchor_of(const dgm_tune_work *t, size_t lines)
{
    const size_t best = dgm_tune_choose(t->views, t->trial_count, lines, 0.5);
    return best == SIZE_MAX ? -1 : (int)best;
}

// Takes the least promising ones away until the others can be done in time; those that never ran wait on.
static dgm_status afford(dgm_tune_work *t, heat *h, size_t lines, dgm_error *err)
{
    double seconds = 0;
    if (t->o->complete) return DGM_OK;
    uint32_t *order = dgm_malloc((t->trial_count + 1) * sizeof *order);
    if (!order) return dgm_no_memory(err);
    for (size_t i = 0; i < h->count; i++)
        seconds += dgm_tune_cost(t, h->list[i]) * (double)(lines - t->trials[h->list[i]].lines);
    dgm_tune_state *state = dgm_malloc((t->trial_count + 1) * sizeof *state);
    if (!state) {
        dgm_free(order);
        return dgm_no_memory(err);
    }
    for (size_t i = 0; i < t->trial_count; i++) state[i] = t->trials[i].state;
    size_t racing = dgm_tune_rank(t->views, state, t->trial_count, t->careful, order);
    while (racing > 0 && t->clock + seconds > h->until) {
        dgm_tune_trial *last = &t->trials[order[--racing]];
        if (last->lines >= lines) continue;
        seconds -= dgm_tune_cost(t, order[racing]) * (double)(lines - last->lines);
        last->state = DGM_TUNE_NO_TIME;
    }
    dgm_free(order);
    dgm_free(state);
    gather(t, lines, h);
    return DGM_OK;
}

// How many hypotheses a trial has, as the beam is what quality hangs on most; with its model.
static int beam_of(const dgm_tune_work *t, size_t trial)
{
    const char *at = strstr(t->trials[trial].options, "--beam ");
    int beam = 0;
    if (at) sscanf(at, "--beam %d", &beam);
    return t->trials[trial].place.model * 1024 + beam;
}

// Is one with as many hypotheses before it?
static bool beam_is_there(const dgm_tune_work *t, const uint32_t *order, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (beam_of(t, order[i]) == beam_of(t, order[at])) return true;
    return false;
}

// The half that promises more goes on. On few lines a promise is speed alone, so the best of every beam goes on as
// well: whether a wide one is needed is not known yet.
static void keep_half(dgm_tune_work *t, const uint32_t *order, size_t racing)
{
    const size_t keep = racing / 2 > KEEP ? racing / 2 : KEEP;
    size_t extra = 0;
    for (size_t i = keep; i < racing; i++) {
        const bool first = extra < KEEP && !beam_is_there(t, order, i);
        extra += first;
        if (!first) t->trials[order[i]].state = DGM_TUNE_HALVED;
    }
}

static dgm_status halve(dgm_tune_work *t, size_t lines, dgm_error *err)
{
    uint32_t *order = dgm_malloc((t->trial_count + 1) * sizeof *order);
    dgm_tune_state *state = dgm_malloc((t->trial_count + 1) * sizeof *state);
    const bool fine = order && state;
    for (size_t i = 0; fine && i < t->trial_count; i++) {
        state[i] = t->trials[i].state;
        if (t->trials[i].lines != lines && state[i] == DGM_TUNE_RACING) state[i] = DGM_TUNE_HALVED; // not asked
    }
    if (fine) keep_half(t, order, dgm_tune_rank(t->views, state, t->trial_count, t->careful, order));
    dgm_free(order);
    dgm_free(state);
    return fine ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_tune_tell(dgm_tune_work *t, size_t lines, dgm_error *err)
{
    const dgm_tune_view *base = &t->views[t->careful];
    bool *front = dgm_calloc(t->trial_count + 1, sizeof *front);
    dgm_writer w = {0};
    if (!front) return dgm_no_memory(err);
    dgm_tune_front(t->views, t->trial_count, lines, front);
    dgm_write_format(&w, "%.0f s, %zu lines: times as fast, loss, settings\n", t->clock, lines);
    for (size_t i = 0; i < t->trial_count; i++)
        if (front[i] && t->trials[i].state != DGM_TUNE_VARIANT)
            dgm_write_format(&w, "  %5.2f  %6.2f (%.2f to %.2f)  %s%s%s\n", exp(t->views[i].speed - base->speed),
                             t->views[i].loss, t->views[i].low, t->views[i].high,
                             t->model_count > 1 ? t->models[t->trials[i].place.model].given : "",
                             t->model_count > 1 ? " " : "", t->trials[i].options);
    char *text = dgm_writer_take(&w, NULL);
    if (text && t->o->front) t->o->front(t->o->front_cookie, text);
    dgm_free(front);
    const bool fine = text != NULL;
    dgm_free(text);
    return fine ? DGM_OK : dgm_no_memory(err);
}

// Lines [from, to) in blocks, all of the heat in turns.
static dgm_status run_part(dgm_tune_work *t, heat *h, size_t from, size_t to, dgm_error *err)
{
    size_t blocks = (to - from) / BLOCK;
    blocks = blocks < 1 ? 1 : blocks > BLOCKS ? BLOCKS : blocks;
    for (size_t b = 0; b < blocks; b++) {
        const size_t begin = from + (to - from) * b / blocks, end = from + (to - from) * (b + 1) / blocks;
        DGM_TRY(dgm_tune_step_block(t, h->list, h->count, begin, end, err));
    }
    return DGM_OK;
}

static dgm_status run_round(dgm_tune_work *t, heat *h, size_t from, size_t to, bool last, bool *ran, dgm_error *err)
{
    char stage[96];
    *ran = false;
    gather(t, to, h);
    DGM_TRY(afford(t, h, to, err));
    size_t others = 0;
    for (size_t i = 0; i < h->count; i++) others += h->list[i] != t->careful;
    if (others == 0) return DGM_OK;
    const int anchor = anchor_of(t, to);
    if (anchor >= 0) h->list[h->count++] = (uint32_t)anchor;
    snprintf(stage, sizeof stage, "%zu settings, %zu lines", others, to);
    DGM_TRY(dgm_tune_tick(t, stage, err));
    // The careful one may be behind or ahead; whoever has these lines runs for its time alone.
    DGM_TRY(run_part(t, h, from, to, err));
    DGM_TRY(dgm_tune_judge(t, err));
    if (!last) DGM_TRY(halve(t, to, err));
    *ran = true;
    return dgm_tune_tell(t, to, err);
}

// The rounds up to the part of that many lines.
static dgm_status run_generation(dgm_tune_work *t, size_t most, double until, dgm_error *err)
{
    size_t rungs[RUNGS];
    const int count = dgm_tune_rungs(t->lines, rungs);
    heat h = {.until = until, .list = dgm_malloc((t->trial_count + 2) * sizeof *h.list)};
    if (!h.list) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    bool ran = true;
    for (int r = 0; st == DGM_OK && r < count && rungs[r] <= most; r++)
        st = run_round(t, &h, r ? rungs[r - 1] : 0, rungs[r], r == count - 1, &ran, err);
    dgm_free(h.list);
    return st;
}

// ---- generations -------------------------------------------------------------------------------

// Makes trials of what waits, as many as the time may do in a first round.
static dgm_status admit(dgm_tune_work *t, double until, size_t *admitted, dgm_error *err)
{
    size_t rungs[RUNGS], done = 0;
    dgm_tune_rungs(t->lines, rungs);
    double seconds = 0;
    *admitted = 0;
    while (done < t->waiting_count) {
        int trial = -1;
        // Halving makes about the same of every round; half of the time is for the first two.
        if (!t->o->complete && t->clock + 2 * seconds > until) break;
        DGM_TRY(dgm_tune_step_try(t, &t->waiting[done++].place, NULL, -1, &trial, err));
        if (trial < 0) continue;
        seconds += dgm_tune_cost(t, (size_t)trial) * (double)rungs[0];
        ++*admitted;
        DGM_TRY(dgm_tune_tick(t, "looking at settings", err));
    }
    t->waiting_count -= done;
    memmove(t->waiting, t->waiting + done, t->waiting_count * sizeof *t->waiting);
    return DGM_OK;
}

// What waits already comes behind what was added after `old`.
static dgm_status put_last(dgm_tune_work *t, size_t old, dgm_error *err)
{
    const size_t size = sizeof *t->waiting, fresh = t->waiting_count - old;
    struct dgm_tune_waiting *copy = dgm_malloc((old + 1) * size);
    if (!copy) return dgm_no_memory(err);
    if (old) memcpy(copy, t->waiting, old * size);
    if (fresh) memmove(t->waiting, t->waiting + old, fresh * size);
    if (old) memcpy(t->waiting + fresh, copy, old * size);
    dgm_free(copy);
    return DGM_OK;
}

// The best three get neighbours, each of another beam as long as there are such: the fastest of a narrow one are alike,
// and may all turn out to be over the budget.
static dgm_status breed(dgm_tune_work *t, dgm_error *err)
{
    uint32_t *order = dgm_malloc((t->trial_count + 1) * sizeof *order);
    dgm_tune_state *state = dgm_malloc((t->trial_count + 1) * sizeof *state);
    const size_t old = t->waiting_count;
    dgm_status st = order && state ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        for (size_t i = 0; i < t->trial_count; i++) state[i] = t->trials[i].state;
        const size_t racing = dgm_tune_rank(t->views, state, t->trial_count, t->careful, order);
        int parents = 0;
        for (int alike = 0; alike < 2; alike++)
            for (size_t i = 0; st == DGM_OK && i < racing && parents < PARENTS; i++) {
                if (beam_is_there(t, order, i) != (alike == 1)) continue;
                st = neighbours(t, &t->trials[order[i]].place, err);
                parents++;
            }
    }
    if (st == DGM_OK) st = put_last(t, old, err);
    dgm_free(order);
    dgm_free(state);
    return st;
}

// Whom one generation had no time for may have it in the next, whose share of the time is larger.
static void revive(dgm_tune_work *t)
{
    for (size_t i = 0; i < t->trial_count; i++)
        if (t->trials[i].state == DGM_TUNE_NO_TIME) t->trials[i].state = DGM_TUNE_RACING;
}

// Generations on parts of up to that many lines, until the best have no neighbours left or the time is over.
static dgm_status breed_on(dgm_tune_work *t, size_t most, double first, double until, dgm_error *err)
{
    for (int g = 0; !dgm_tune_late(t, until); g++) {
        const double end = g ? until : first;
        const int before = t->occasions;
        size_t admitted = 0;
        DGM_TRY(admit(t, end, &admitted, err));
        DGM_TRY(run_generation(t, most, end, err));
        if (t->occasions == before && g > 0) break; // nothing is left, or nothing that there is time for
        revive(t);
        DGM_TRY(breed(t, err));
    }
    return DGM_OK;
}

static dgm_status generations(dgm_tune_work *t, dgm_error *err)
{
    const double all = t->o->seconds;
    size_t rungs[RUNGS];
    const int count = dgm_tune_rungs(t->lines, rungs);
    const size_t quarter = count > 2 && rungs[count - 3] >= QUARTER ? rungs[count - 3] : 0;
    for (int m = 0; m < t->model_count; m++) DGM_TRY(first_places(t, m, err));
    if (quarter) DGM_TRY(breed_on(t, quarter, BEGIN_SHARE * all, QUARTER_SHARE * all, err));
    return breed_on(t, t->lines, (quarter ? SEARCH_SHARE : FIRST_SHARE) * all, SEARCH_SHARE * all, err);
}

// Values that a model takes by themselves: of the others there is no combination either.
typedef struct taken {
    bool value[DGM_TUNE_AXES][DGM_TUNE_VALUES + 1];
} taken;

static dgm_status take_values(dgm_tune_work *t, int model, taken *out, dgm_error *err)
{
    *out = (taken){0};
    for (int i = 0; i < t->space.axis_count; i++)
        for (int v = 0; v < t->space.count[i]; v++) {
            dgm_tune_place p = {.model = model};
            int trial = -1;
            p.at[i] = (int8_t)v;
            if (v) DGM_TRY(dgm_tune_step_try(t, &p, NULL, -1, &trial, err));
            out->value[i][v] = trial != -2;
        }
    return DGM_OK;
}

// The next place of the values that are taken, as a counter with a wheel for every axis; false behind the last.
static bool next_place(const dgm_tune_work *t, const taken *values, dgm_tune_place *p)
{
    for (int i = 0; i < t->space.axis_count; i++) {
        do p->at[i]++;
        while (p->at[i] < t->space.count[i] && !values->value[i][p->at[i]]);
        if (p->at[i] < t->space.count[i]) return true;
        p->at[i] = 0;
    }
    return false;
}

// Every place there is, on all of the text.
static dgm_status all_places(dgm_tune_work *t, dgm_error *err)
{
    for (int m = 0; m < t->model_count; m++) {
        taken values;
        dgm_tune_place p = {.model = m};
        DGM_TRY(take_values(t, m, &values, err));
        do DGM_TRY(wait(t, &p, err));
        while (next_place(t, &values, &p));
    }
    size_t admitted = 0;
    DGM_TRY(admit(t, 0, &admitted, err));
    heat h = {.list = dgm_malloc((t->trial_count + 2) * sizeof *h.list)};
    if (!h.list) return dgm_no_memory(err);
    gather(t, t->lines, &h);
    dgm_status st = run_part(t, &h, 0, t->lines, err);
    dgm_free(h.list);
    return st == DGM_OK ? dgm_tune_judge(t, err) : st;
}

// ---- the careful settings ----------------------------------------------------------------------

// Of the careful settings of all models those with the best score on the first lines.
static size_t best_careful(const dgm_tune_work *t, const int *careful, size_t lines)
{
    size_t best = (size_t)careful[0];
    double top = -1;
    for (int m = 0; m < t->given_count; m++) {
        int64_t sum[DGM_METRIC_WIDTH_MAX];
        dgm_metric_score score;
        dgm_metric_sum(t->metric, t->trials[careful[m]].rows, lines, sum);
        dgm_metric_score_of(t->metric, sum, &score);
        if (score.score > top) best = (size_t)careful[m];
        top = fmax(top, score.score);
    }
    return best;
}

static dgm_status start(dgm_tune_work *t, dgm_error *err)
{
    int careful[DGM_TUNE_MODELS];
    uint32_t list[DGM_TUNE_MODELS];
    size_t rungs[RUNGS];
    const int count = dgm_tune_rungs(t->lines, rungs);
    for (int m = 0; m < t->given_count; m++) {
        DGM_TRY(careful_trial(t, m, &careful[m], err));
        DGM_FAIL_IF(careful[m] < 0, err, DGM_ERR_ARGUMENT, "%s cannot translate with these settings",
                    t->models[m].given);
        list[m] = (uint32_t)careful[m];
    }
    t->careful = (size_t)careful[0];
    const bool several = t->given_count > 1 && !t->agreement;
    const size_t lines = t->o->complete ? t->lines : several ? rungs[count > 2 ? 2 : count - 1] : rungs[0];
    heat h = {.list = list, .count = several ? (size_t)t->given_count : 1};
    DGM_TRY(dgm_tune_tick(t, "the most careful settings", err));
    DGM_TRY(run_part(t, &h, 0, lines, err));
    if (several) t->careful = best_careful(t, careful, lines);
    if (t->careful != (size_t)careful[0] && t->bench) dgm_tune_bench_forget(t->bench);
    const double need = t->clock + 2 * dgm_tune_cost(t, t->careful) * (double)lines;
    DGM_FAIL_IF(
        !t->o->complete && need > t->o->seconds, err, DGM_ERR_ARGUMENT,
        "%g s are too few: the most careful settings took %.1f s for %zu lines, which is where comparing begins",
        t->o->seconds, t->clock, lines);
    return dgm_tune_judge(t, err);
}

// ---- the whole -----------------------------------------------------------------------------------

// Nothing but the careful settings has run: there was no time, or nothing else there is.
static dgm_status alone(dgm_tune_work *t, dgm_error *err)
{
    DGM_FAIL_IF(t->trial_count > 1 || t->waiting_count, err, DGM_ERR_ARGUMENT,
                "%g s are too few: there was no time to try anything beside the most careful settings", t->o->seconds);
    t->chosen = t->careful;
    t->sure = t->careful;
    t->variant = SIZE_MAX;
    return dgm_tune_note(t, err, "there is nothing to search: all settings that matter to this model are held");
}

dgm_status dgm_tune_race(dgm_tune_work *t, dgm_error *err)
{
    DGM_TRY(start(t, err));
    DGM_TRY(t->o->complete ? all_places(t, err) : generations(t, err));
    if (dgm_tune_most_lines(t) == 0) return alone(t, err);
    DGM_TRY(dgm_tune_settle(t, err));
    DGM_TRY(dgm_tune_variants(t, err));
    const size_t lines = t->lines < PROFILED ? t->lines : PROFILED;
    DGM_TRY(dgm_tune_step_profile(t, t->chosen, lines, &t->chosen_shares, err));
    return dgm_tune_step_profile(t, t->careful, lines, &t->careful_shares, err);
}
