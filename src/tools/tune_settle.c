// SPDX-License-Identifier: MIT
// The end of a race: the last ones take turns, on lines that they have not seen as long as there are some, so that
// their losses are known better, too, and then on what they know, until their speeds are told apart; then the choice.
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "tools/tune_private.h"

enum { FINALISTS = 6, TURNS = 24, BLOCK = 32 };
#define TIMING_SHARE 0.88 // of the time is over when they have to be told apart
#define SURELY 0.975      // of the samples are within the budget: so is the 95 % interval
#define UNLIKELY 0.05     // more lines would hardly help

size_t dgm_tune_most_lines(const dgm_tune_work *t)
{
    size_t most = 0;
    for (size_t i = 0; i < t->trial_count; i++)
        if (i != t->careful && t->views[i].lines > most) most = t->views[i].lines;
    return most;
}

// Where nothing but the careful settings has seen enough and is sure enough, fewer lines are enough: who is chosen by
// them gets more.
static void choose(dgm_tune_work *t)
{
    enum { LEAST = 40 };
    t->chosen = dgm_tune_choose(t->views, t->trial_count, t->enough, t->o->sure);
    while ((t->chosen == SIZE_MAX || t->chosen == t->careful) && t->enough / 2 >= LEAST) {
        t->enough /= 2;
        t->chosen = dgm_tune_choose(t->views, t->trial_count, t->enough, t->o->sure);
    }
    t->sure = dgm_tune_choose(t->views, t->trial_count, t->enough, SURELY);
    if (t->chosen == SIZE_MAX) t->chosen = t->careful;
}

// May more lines make it the choice? It is at least about as fast as what is chosen now, and not surely over the
// budget; what has seen everything has to be within it.
static bool may_win(const dgm_tune_work *t, size_t trial)
{
    const dgm_tune_view *best = &t->views[t->chosen], *v = &t->views[trial];
    const dgm_tune_state state = t->trials[trial].state;
    if (trial == t->careful || v->lines < t->enough || state == DGM_TUNE_MEMORY || state == DGM_TUNE_VARIANT)
        return false;
    if (v->within < (v->lines == t->lines ? t->o->sure : UNLIKELY)) return false;
    return best->speed - v->speed < 2 * (best->half + v->half);
}

// The chosen one, then those that may win, best promises first.
static dgm_status finalists(const dgm_tune_work *t, uint32_t *list, size_t *count, dgm_error *err)
{
    uint32_t *order = dgm_malloc((t->trial_count + 1) * sizeof *order);
    dgm_tune_state *state = dgm_malloc((t->trial_count + 1) * sizeof *state);
    const bool fine = order && state;
    *count = 0;
    list[(*count)++] = (uint32_t)t->chosen;
    for (size_t i = 0; fine && i < t->trial_count; i++)
        state[i] = i != t->chosen && may_win(t, i) ? DGM_TUNE_RACING : DGM_TUNE_HALVED;
    const size_t racing = fine ? dgm_tune_rank(t->views, state, t->trial_count, t->careful, order) : 0;
    for (size_t i = 0; i < racing && *count < FINALISTS; i++) list[(*count)++] = order[i];
    dgm_free(order);
    dgm_free(state);
    return fine ? DGM_OK : dgm_no_memory(err);
}

// Where the next part of the text begins: behind what the one that is least far has seen; t->lines: all have seen all.
static size_t next_part(const dgm_tune_work *t, const uint32_t *list, size_t count)
{
    size_t from = t->lines;
    for (size_t i = 0; i < count; i++)
        if (t->trials[list[i]].lines < from) from = t->trials[list[i]].lines;
    return from;
}

// Seconds that lines [from, to) take with all of these, and with the careful settings where they are behind.
static double part_cost(const dgm_tune_work *t, const uint32_t *list, size_t count, size_t from, size_t to)
{
    const size_t behind = t->trials[t->careful].lines;
    double seconds = behind < to ? dgm_tune_cost(t, t->careful) * (double)(to - behind) : 0;
    for (size_t i = 0; i < count; i++) seconds += dgm_tune_cost(t, list[i]) * (double)(to - from);
    return seconds;
}

// One turn of the last ones. *again counts the turns on lines that all of them have seen; *done: there is no time, or
// no need, for more.
static dgm_status take_turn(dgm_tune_work *t, int *again, bool *done, dgm_error *err)
{
    uint32_t list[FINALISTS + 1];
    const uint32_t careful = (uint32_t)t->careful;
    const double until = TIMING_SHARE * t->o->seconds;
    size_t step = t->lines / 8 > BLOCK ? t->lines / 8 : t->lines < BLOCK ? t->lines : BLOCK, count = 0;
    DGM_TRY(finalists(t, list, &count, err));
    size_t from = next_part(t, list, count);
    const bool fresh = from < t->lines;
    *done = !fresh && *again >= 3 && (count == 1 || t->views[t->chosen].half < 0.01);
    if (*done) return DGM_OK;
    if (!fresh) {
        if (*again % 4 == 0 && t->chosen != careful) list[count++] = careful;
        from = step * (size_t)*again % (t->lines - step + 1);
        ++*again;
    }
    if (from + step > t->lines) step = t->lines - from;
    while (step > BLOCK && dgm_tune_late(t, until - part_cost(t, list, count, from, from + step))) step /= 2;
    *done = dgm_tune_late(t, until - part_cost(t, list, count, from, from + step));
    if (*done) return DGM_OK;
    const size_t to = from + step, behind = t->trials[careful].lines;
    DGM_TRY(dgm_tune_tick(t, fresh ? "more lines for the last ones" : "timing the last ones", err));
    if (behind < to) DGM_TRY(dgm_tune_step_block(t, &careful, 1, behind, to, err));
    DGM_TRY(dgm_tune_step_block(t, list, count, from, to, err));
    DGM_TRY(dgm_tune_judge(t, err));
    choose(t);
    return fresh ? dgm_tune_tell(t, t->enough, err) : DGM_OK;
}

// Nothing but the careful settings is surely enough within the budget. What would help?
static dgm_status advise(dgm_tune_work *t, dgm_error *err)
{
    const size_t bold = dgm_tune_choose(t->views, t->trial_count, t->enough, 0.5);
    if (bold == SIZE_MAX || bold == t->careful)
        return dgm_tune_note(t, err, "nothing that was tried is within the budget but the most careful settings");
    const dgm_tune_view *v = &t->views[bold];
    const double lines = dgm_tune_lines_for(v, t->o->budget, t->o->sure);
    char text[64] = "a longer text";
    if (lines < 1e6) snprintf(text, sizeof text, "a text of about %.0f lines", ceil(lines / 100) * 100);
    return dgm_tune_note(t, err,
                         "%zu lines are too few to be %.0f %% sure of a loss within %g: %s may tell; settings that are "
                         "%.2f times as fast are within it by %.0f %%, which --sure 50 would take",
                         v->lines, 100 * t->o->sure, t->o->budget, text, exp(v->speed - t->views[t->careful].speed),
                         100 * v->within);
}

dgm_status dgm_tune_settle(dgm_tune_work *t, dgm_error *err)
{
    t->enough = dgm_tune_most_lines(t);
    choose(t);
    bool done = false;
    for (int turn = 0, again = 0; turn < TURNS && !done; turn++) DGM_TRY(take_turn(t, &again, &done, err));
    return t->chosen == t->careful ? advise(t, err) : DGM_OK;
}
