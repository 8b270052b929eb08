// SPDX-License-Identifier: MIT
// The answer of a tuning run: points with their intervals, the choice, its command line; as a table and as JSON.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "tools/tune_private.h"

typedef struct box {
    dgm_tune_report pub; // first: what the caller sees
    dgm_tune_point *points;
    const dgm_tune_point **list;
    dgm_tune_sample *samples;
    const dgm_tune_sample **sample_list;
    const char **models, **notes;
    char **owned; // all texts
    size_t owned_count, owned_cap;
} box;

void dgm_tune_report_free(dgm_tune_report **report)
{
    if (!report || !*report) return;
    box *b = (box *)(void *)*report;
    for (size_t i = 0; i < b->owned_count; i++) dgm_free(b->owned[i]);
    dgm_free(b->owned);
    dgm_free(b->points);
    dgm_free(b->list);
    dgm_free(b->samples);
    dgm_free(b->sample_list);
    dgm_free(b->models);
    dgm_free(b->notes);
    dgm_free(b);
    *report = NULL;
}

// Takes a text over; NULL: no memory.
static dgm_status own_text(box *b, char *text, const char **out, dgm_error *err)
{
    if (!text) return dgm_no_memory(err);
    const dgm_status st = dgm_grow(&b->owned, &b->owned_cap, b->owned_count + 1, sizeof *b->owned, err);
    if (st != DGM_OK) {
        dgm_free(text);
        return st;
    }
    *out = b->owned[b->owned_count++] = text;
    return DGM_OK;
}

// ---- points ------------------------------------------------------------------------------------

static double shown_speed(const dgm_tune_work *t, double speed)
{
    return t->latency ? 1000 * exp(-speed) : exp(speed);
}

static double share(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

static dgm_status add_samples(box *b, const dgm_tune_trial *own, dgm_tune_point *p, size_t *used, dgm_error *err)
{
    p->samples = b->sample_list + *used;
    for (int i = 0; i < own->sample_count; i++) {
        dgm_tune_sample *s = &b->samples[*used];
        *s = (dgm_tune_sample){.size = sizeof *s, .line = own->samples[i].line};
        DGM_TRY(own_text(b, dgm_strdup(own->samples[i].source), &s->source, err));
        DGM_TRY(own_text(b, dgm_strdup(own->samples[i].careful), &s->careful, err));
        DGM_TRY(own_text(b, dgm_strdup(own->samples[i].text), &s->text, err));
        b->sample_list[(*used)++] = s;
        p->sample_count++;
    }
    return DGM_OK;
}

static void fill_speed(const dgm_tune_work *t, size_t trial, dgm_tune_point *p)
{
    const dgm_tune_trial *own = &t->trials[trial];
    dgm_tune_view v = t->views[trial];
    // A variant is measured by another clock: what counts is how it compares with the first one.
    if (own->by_wall) {
        size_t first = trial;
        while (first > 0 && t->trials[first - 1].by_wall) first--;
        v.speed += t->views[own->parent].speed - t->views[first].speed;
        v.half = fmax(v.half, t->views[own->parent].half);
    }
    const double low = shown_speed(t, v.speed - v.half), high = shown_speed(t, v.speed + v.half);
    p->speed = shown_speed(t, v.speed);
    p->speed_low = fmin(low, high);
    p->speed_high = fmax(low, high);
    p->gain = exp(v.speed - t->views[t->careful].speed);
}

static void fill_quality(const dgm_tune_work *t, size_t trial, dgm_tune_point *p)
{
    const dgm_tune_trial *own = &t->trials[trial];
    const dgm_tune_view *v = &t->views[trial];
    int64_t sum[DGM_METRIC_WIDTH_MAX];
    dgm_metric_score score;
    dgm_metric_sum(t->metric, own->rows, own->lines, sum);
    dgm_metric_score_of(t->metric, sum, &score);
    p->lines = own->lines;
    p->quality = score.score;
    p->loss = v->loss;
    p->loss_low = v->low;
    p->loss_high = v->high;
    p->sure = v->within;
    p->same = share(own->same, own->lines);
    if (v->within >= t->o->sure) p->flags |= DGM_TUNE_WITHIN;
    if (own->lines == t->lines) p->flags |= DGM_TUNE_WHOLE;
}

static dgm_status fill_point(const dgm_tune_work *t, box *b, size_t trial, dgm_tune_point *p, size_t *used,
                             dgm_error *err)
{
    const dgm_tune_trial *own = &t->trials[trial];
    const size_t source = own->parent >= 0 ? (size_t)own->parent : trial;
    const dgm_tune_counts *c = &own->counts;
    *p = (dgm_tune_point){.size = sizeof *p, .model = own->place.model, .bytes = own->bytes};
    DGM_TRY(own_text(b, dgm_strdup(own->options), &p->options, err));
    p->state = dgm_tune_state_text(own->state);
    if (t->trials[source].lines == 0) {
        p->flags = DGM_TUNE_UNTRIED;
        p->state = "not tried";
        return DGM_OK;
    }
    if (own->parent >= 0) p->flags |= DGM_TUNE_TIMED;
    if (own->given) p->flags |= DGM_TUNE_GIVEN;
    if (trial == t->careful) {
        p->flags |= DGM_TUNE_CAREFUL;
        p->state = "the most careful";
    }
    if (trial == t->sure) p->flags |= DGM_TUNE_SURE;
    if (trial == (t->variant == SIZE_MAX ? t->chosen : t->variant)) {
        p->flags |= DGM_TUNE_CHOSEN;
        p->state = "chosen";
    }
    fill_quality(t, source, p);
    fill_speed(t, trial, p);
    p->rows_per_step = share(c->rows, c->steps);
    p->steps_per_line = share(c->steps, c->lines);
    p->active_share =
        c->vocabulary && c->rank_rows ? (double)c->dots / ((double)c->rank_rows * (double)c->vocabulary) : 0;
    p->merged_share = c->live ? 1 - share(c->leads, c->live) : 0;
    return add_samples(b, &t->trials[source], p, used, err);
}

// Places that nobody came to. What is waiting may have been tried in another way.
static dgm_status add_waiting(const dgm_tune_work *t, box *b, dgm_error *err)
{
    for (size_t i = 0; i < t->waiting_count; i++) {
        dgm_writer key = {0};
        const dgm_tune_place *place = &t->waiting[i].place;
        dgm_tune_space_text(&t->space, place, &key);
        char *options = dgm_writer_take(&key, NULL);
        if (!options) return dgm_no_memory(err);
        dgm_write_format(&key, "?%d %s", place->model, options);
        const bool seen = !key.failed && dgm_words_find(&t->seen, (dgm_text){(char *)key.data, key.size}) >= 0;
        dgm_writer_free(&key);
        if (seen) {
            dgm_free(options);
            continue;
        }
        dgm_tune_point *p = &b->points[b->pub.count];
        *p =
            (dgm_tune_point){.size = sizeof *p, .model = place->model, .flags = DGM_TUNE_UNTRIED, .state = "not tried"};
        DGM_TRY(own_text(b, options, &p->options, err));
        b->pub.count++;
    }
    return DGM_OK;
}

// Chosen, then by lines, then what is faster; what was not tried last.
static int compare_points(const void *context, uint32_t x, uint32_t y)
{
    const dgm_tune_point *a = (const dgm_tune_point *)context + x, *b = (const dgm_tune_point *)context + y;
    const uint32_t chosen = DGM_TUNE_CHOSEN;
    if ((a->flags & chosen) != (b->flags & chosen)) return a->flags & chosen ? -1 : 1;
    if (a->lines != b->lines) return a->lines > b->lines ? -1 : 1;
    if (a->gain != b->gain) return a->gain > b->gain ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void mark_front(const dgm_tune_work *t, box *b, bool *front)
{
    dgm_tune_front(t->views, t->trial_count, t->enough, front);
    for (size_t i = 0; i < t->trial_count; i++)
        if (front[i] && t->trials[i].state != DGM_TUNE_VARIANT && t->trials[i].state != DGM_TUNE_AGAINST)
            b->points[i].flags |= DGM_TUNE_FRONT;
}

static dgm_status make_points(const dgm_tune_work *t, box *b, dgm_error *err)
{
    const size_t most = t->trial_count + t->waiting_count + 1;
    size_t used = 0;
    b->points = dgm_calloc(most, sizeof *b->points);
    b->list = dgm_calloc(most, sizeof *b->list);
    b->samples = dgm_calloc(most * DGM_TUNE_SAMPLES, sizeof *b->samples);
    b->sample_list = dgm_calloc(most * DGM_TUNE_SAMPLES, sizeof *b->sample_list);
    bool *front = dgm_calloc(most, sizeof *front);
    uint32_t *order = dgm_calloc(most, sizeof *order);
    dgm_status st =
        b->points && b->list && b->samples && b->sample_list && front && order ? DGM_OK : dgm_no_memory(err);
    for (size_t i = 0; st == DGM_OK && i < t->trial_count; i++) st = fill_point(t, b, i, &b->points[i], &used, err);
    if (st == DGM_OK) {
        b->pub.count = t->trial_count;
        mark_front(t, b, front);
        st = add_waiting(t, b, err);
    }
    if (st == DGM_OK) {
        dgm_sort_indices(order, b->pub.count, compare_points, b->points);
        for (size_t i = 0; i < b->pub.count; i++) b->list[i] = &b->points[order[i]];
        b->pub.points = b->list;
        b->pub.careful = &b->points[t->careful];
        b->pub.chosen = &b->points[t->variant == SIZE_MAX ? t->chosen : t->variant];
        b->pub.sure = t->sure == SIZE_MAX ? NULL : &b->points[t->sure];
    }
    dgm_free(front);
    dgm_free(order);
    return st;
}

// ---- the rest ----------------------------------------------------------------------------------

// A word of a shell's command line.
static void put_word(dgm_writer *w, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=%@";
    const bool quoted = !*word || word[strspn(word, plain)];
    if (quoted) dgm_write_text(w, "'");
    for (const char *p = word; *p; p++) {
        if (*p == '\'')
            dgm_write_text(w, "'\\''");
        else
            dgm_write_bytes(w, p, 1);
    }
    if (quoted) dgm_write_text(w, "'");
}

// What the caller holds and the chosen options do not say already.
static void put_held(dgm_writer *w, const char *held, const char *chosen)
{
    for (const char *p = held; (p = strstr(p, "--"));) {
        const char *next = strstr(p + 2, " --");
        const size_t size = next ? (size_t)(next - p) : strlen(p), name = strcspn(p, " ");
        bool said = false;
        for (const char *q = chosen; (q = strstr(q, "--")) && !said; q += 2)
            said = strcspn(q, " ") == name && strncmp(p, q, name) == 0;
        if (!said) dgm_write_format(w, " %.*s", (int)size, p);
        p += size;
    }
}

static dgm_status make_command(const dgm_tune_work *t, box *b, dgm_error *err)
{
    dgm_writer w = {0};
    char *names = dgm_strdup(t->models[b->pub.chosen->model].given);
    if (!names) return dgm_no_memory(err);
    dgm_write_text(&w, "dragoman translate");
    for (char *p = names; p;) {
        char *plus = strchr(p, '+');
        if (plus) *plus = 0;
        dgm_write_text(&w, " -m ");
        put_word(&w, p);
        p = plus ? plus + 1 : NULL;
    }
    dgm_free(names);
    put_held(&w, t->fixed_text, b->pub.chosen->options);
    dgm_write_format(&w, " %s", b->pub.chosen->options);
    return own_text(b, dgm_writer_take(&w, NULL), &b->pub.command, err);
}

static dgm_status make_lists(const dgm_tune_work *t, box *b, dgm_error *err)
{
    b->models = dgm_calloc((size_t)t->model_count + 1, sizeof *b->models);
    b->notes = dgm_calloc(t->note_count + 1, sizeof *b->notes);
    if (!b->models || !b->notes) return dgm_no_memory(err);
    for (int i = 0; i < t->model_count; i++) DGM_TRY(own_text(b, dgm_strdup(t->models[i].given), &b->models[i], err));
    const char *note = (const char *)t->notes.data;
    for (size_t i = 0; i < t->note_count; i++, note += strlen(note) + 1)
        DGM_TRY(own_text(b, dgm_strdup(note), &b->notes[i], err));
    b->pub.models = b->models;
    b->pub.model_count = (size_t)t->model_count;
    b->pub.notes = b->notes;
    b->pub.note_count = t->note_count;
    return DGM_OK;
}

static dgm_status fill_report(const dgm_tune_work *t, box *b, dgm_error *err)
{
    dgm_tune_report *r = &b->pub;
    char metric[32];
    const dgm_tune_model *m = &t->models[t->trials[t->chosen].place.model];
    *r = (dgm_tune_report){.size = sizeof *r,
                           .agreement = t->agreement,
                           .latency = t->latency,
                           .budget = t->o->budget,
                           .level = t->o->sure,
                           .seconds = t->clock,
                           .lines = t->lines,
                           .seed = t->o->seed,
                           .noise = t->noise,
                           .chosen_shares = t->chosen_shares,
                           .careful_shares = t->careful_shares,
                           .possible = dgm_tune_space_size(&t->space) * (uint64_t)t->model_count};
    r->clock = t->latency ? "the time that a line takes, one at a time, by the clock on the wall"
               : t->wall  ? "the clock on the wall"
                          : "CPU time, divided by the number of threads; threads by the clock on the wall";
    dgm_metric_name(t->metric, metric, sizeof metric);
    DGM_TRY(own_text(b, dgm_strdup(metric), &r->metric, err));
    DGM_TRY(own_text(b, dgm_strdup(t->o->input), &r->input, err));
    DGM_TRY(own_text(b, dgm_strdup(m->source), &r->source, err));
    DGM_TRY(own_text(b, dgm_strdup(m->target), &r->target, err));
    DGM_TRY(make_lists(t, b, err));
    DGM_TRY(make_points(t, b, err));
    return make_command(t, b, err);
}

dgm_status dgm_tune_report_make(const dgm_tune_work *t, dgm_tune_report **out, dgm_error *err)
{
    box *b = dgm_calloc(1, sizeof *b);
    if (!b) return dgm_no_memory(err);
    dgm_tune_report *r = &b->pub;
    const dgm_status st = fill_report(t, b, err);
    if (st == DGM_OK)
        *out = r;
    else
        dgm_tune_report_free(&r);
    return st;
}

// ---- as text -----------------------------------------------------------------------------------

static void put_head(const dgm_tune_report *r, dgm_writer *w)
{
    dgm_write_format(w, "\n  %6s  %-26s  %-23s  %5s  %s\n", "faster",
                     r->latency ? "ms a line (95 %)" : "lines/s (95 %)", "loss (95 %)", "sure", "settings");
}

static void put_row(const dgm_tune_report *r, const dgm_tune_point *p, dgm_writer *w)
{
    const bool several = r->model_count > 1;
    char speed[64], loss[64];
    snprintf(speed, sizeof speed, "%.1f (%.1f to %.1f)", p->speed, p->speed_low, p->speed_high);
    snprintf(loss, sizeof loss, "%.2f (%.2f to %.2f)", p->loss, p->loss_low, p->loss_high);
    dgm_write_format(w, "%c %6.2f  %-26s  %-23s  %3.0f %%  %s%s%s\n", p->flags & DGM_TUNE_CHOSEN ? '*' : ' ', p->gain,
                     speed, loss, 100 * p->sure, several ? r->models[p->model] : "", several ? " " : "", p->options);
}

// The chosen settings without the threads and batches that were found for them: the same once more.
static bool is_shown(const dgm_tune_report *r, const dgm_tune_point *p)
{
    const size_t size = strlen(p->options);
    if (p == r->chosen) return true;
    return !(r->chosen->flags & DGM_TUNE_TIMED && p->model == r->chosen->model &&
             strncmp(p->options, r->chosen->options, size) == 0 && r->chosen->options[size] == ' ');
}

// The fastest whose loss is within the budget by itself, where that is faster than the choice.
static const dgm_tune_point *bolder(const dgm_tune_report *r)
{
    const dgm_tune_point *best = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const dgm_tune_point *p = r->points[i];
        if (!(p->flags & DGM_TUNE_FRONT) || p->flags & DGM_TUNE_WITHIN || p->loss > r->budget) continue;
        if (p->gain <= r->chosen->gain) continue;
        if (!best || p->gain > best->gain) best = p;
    }
    return best;
}

static void put_choice(const dgm_tune_report *r, dgm_writer *w)
{
    const dgm_tune_point *c = r->chosen, *bold = bolder(r);
    dgm_write_format(w,
                     "\nchosen    %.2f times as fast; %.2f %s lost on %llu lines (95 %%: %.2f to %.2f), %.0f %% sure "
                     "to be within %g\n",
                     c->gain, c->loss, r->metric, (unsigned long long)c->lines, c->loss_low, c->loss_high,
                     100 * c->sure, r->budget);
    if (bold)
        dgm_write_format(w, "bolder    %.2f times as fast, but %.0f %% sure instead of %.0f (--sure): %s\n", bold->gain,
                         100 * bold->sure, 100 * r->level, bold->options);
    if (r->sure && r->sure->gain < c->gain && c->sure < r->sure->sure)
        dgm_write_format(w, "safer     %.2f times as fast, %.0f %% sure: %s\n", r->sure->gain, 100 * r->sure->sure,
                         r->sure->options);
}

// What was given to compare with: those within the budget, fastest first.
static void put_given(const dgm_tune_report *r, dgm_writer *w)
{
    size_t count = 0, within = 0;
    for (size_t i = 0; i < r->count; i++) {
        const uint32_t flags = r->points[i]->flags;
        count += (flags & DGM_TUNE_GIVEN) != 0;
        within += (flags & DGM_TUNE_GIVEN) && (flags & DGM_TUNE_WITHIN);
    }
    if (count == 0) return;
    dgm_write_format(w, "given     %zu settings, %zu of them within the budget:\n", count, within);
    for (size_t i = 0; i < r->count; i++) {
        const uint32_t flags = r->points[i]->flags;
        if ((flags & DGM_TUNE_GIVEN) && (flags & DGM_TUNE_WITHIN)) put_row(r, r->points[i], w);
    }
}

void dgm_tune_put_table(const dgm_tune_report *r, dgm_writer *w)
{
    size_t tried = 0, untried = 0;
    for (size_t i = 0; i < r->count; i++) {
        untried += (r->points[i]->flags & DGM_TUNE_UNTRIED) != 0;
        tried += (r->points[i]->flags & (DGM_TUNE_UNTRIED | DGM_TUNE_TIMED)) == 0;
    }
    if (r->agreement)
        dgm_write_text(w, "There are no references: quality is agreement with the most careful settings, not whether a "
                          "translation is right.\n");
    dgm_write_format(w, "careful   %s%s%s: %s %.2f on %llu lines, %.1f %s\n",
                     r->model_count > 1 ? r->models[r->careful->model] : "", r->model_count > 1 ? " " : "",
                     r->careful->options, r->metric, r->careful->quality, (unsigned long long)r->careful->lines,
                     r->careful->speed, r->latency ? "ms a line" : "lines/s");
    put_head(r, w);
    for (size_t i = 0; i < r->count; i++)
        if (r->points[i]->flags & (DGM_TUNE_CHOSEN | DGM_TUNE_FRONT) && is_shown(r, r->points[i]))
            put_row(r, r->points[i], w);
    put_choice(r, w);
    dgm_write_format(w, "tried     %zu settings in %.0f s", tried, r->seconds);
    if (untried) dgm_write_format(w, ", no time for %zu more (--json lists them)", untried);
    dgm_write_format(w, "; noise of one measurement %.1f %%\n", 100 * r->noise);
    put_given(r, w);
    for (size_t i = 0; i < r->note_count; i++) dgm_write_format(w, "note      %s\n", r->notes[i]);
    dgm_write_format(w, "\n%s\n", r->command);
}

static json_t *point_json(const dgm_tune_report *r, const dgm_tune_point *p)
{
    json_t *flags = json_array(), *samples = json_array();
    static const char *const names[] = {"careful", "chosen", "sure",    "front", "within",
                                        "whole",   "timed",  "untried", "given"};
    for (int i = 0; i < 9; i++)
        if (p->flags >> i & 1u) json_array_append_new(flags, json_string(names[i]));
    for (size_t i = 0; i < p->sample_count; i++)
        json_array_append_new(samples, json_pack("{s:I,s:s,s:s,s:s}", "line", (json_int_t)p->samples[i]->line, "source",
                                                 p->samples[i]->source, "careful", p->samples[i]->careful, "text",
                                                 p->samples[i]->text));
    json_t *j = json_pack("{s:s,s:s,s:o,s:s}", "model", r->models[p->model], "options", p->options, "is", flags,
                          "state", p->state);
    if (j && !(p->flags & DGM_TUNE_UNTRIED))
        json_object_update_new(
            j, json_pack("{s:I,s:f,s:[f,f,f],s:f,s:[f,f,f],s:f,s:f,s:I,s:f,s:f,s:f,s:f}", "lines", (json_int_t)p->lines,
                         "quality", p->quality, "loss", p->loss, p->loss_low, p->loss_high, "sure", p->sure, "speed",
                         p->speed, p->speed_low, p->speed_high, "gain", p->gain, "same", p->same, "bytes",
                         (json_int_t)p->bytes, "rows_per_step", p->rows_per_step, "steps_per_line", p->steps_per_line,
                         "active_share", p->active_share, "merged_share", p->merged_share));
    if (j && p->sample_count)
        json_object_set_new(j, "samples", samples);
    else
        json_decref(samples);
    return j;
}

static char *json_text(const dgm_tune_report *r)
{
    dgm_json_init();
    json_t *points = json_array(), *models = json_array(), *notes = json_array();
    for (size_t i = 0; i < r->count; i++) json_array_append_new(points, point_json(r, r->points[i]));
    for (size_t i = 0; i < r->model_count; i++) json_array_append_new(models, json_string(r->models[i]));
    for (size_t i = 0; i < r->note_count; i++) json_array_append_new(notes, json_string(r->notes[i]));
    json_t *j = json_pack("{s:s,s:s,s:o,s:o,s:s,s:b,s:s,s:s,s:f,s:f,s:f,s:I,s:I,s:f,s:I,s:o,s:o,s:o}", "command",
                          r->command, "input", r->input, "models", models, "notes", notes, "metric", r->metric,
                          "agreement", r->agreement, "for", r->latency ? "latency" : "throughput", "clock", r->clock,
                          "budget", r->budget, "level", r->level,
                          "seconds", r->seconds, "lines", (json_int_t)r->lines, "seed",
                          (json_int_t)r->seed, "noise", r->noise, "possible", (json_int_t)r->possible, "chosen",
                          point_json(r, r->chosen), "careful", point_json(r, r->careful), "points", points);
    char *text = j ? dgm_json_text(j, JSON_INDENT(1)) : NULL;
    json_decref(j);
    return text;
}

dgm_status dgm_tune_write(const dgm_tune_report *report, const char *kind, char **text, dgm_error *err)
{
    static const struct {
        const char *name;
        void (*put)(const dgm_tune_report *r, dgm_writer *w);
    } forms[] = {{"table", dgm_tune_put_table},
                 {"svg", dgm_tune_put_svg},
                 {"html", dgm_tune_put_page},
                 {"explain", dgm_tune_put_explain}};
    DGM_FAIL_IF(!report || !kind || !text, err, DGM_ERR_ARGUMENT,
                "a report, a kind of text and a place for it are needed");
    *text = NULL;
    if (strcmp(kind, "json") == 0) {
        *text = json_text(report);
        return *text ? DGM_OK : dgm_no_memory(err);
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(forms[i].name, kind) != 0) continue;
        dgm_writer w = {0};
        forms[i].put(report, &w);
        *text = dgm_writer_take(&w, NULL);
        return *text ? DGM_OK : dgm_no_memory(err);
    }
    return dgm_fail(err, DGM_ERR_ARGUMENT, "a report is written as table, json, svg, html or explain, not as '%.40s'",
                    kind);
}
