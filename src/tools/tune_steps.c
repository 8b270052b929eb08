// SPDX-License-Identifier: MIT
// The steps of a tuning run: a model is looked at, a setting is tried, a part of the text is translated. Each asks the
// record first and measures only what is not there; the clock of the run goes by what the steps took then.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tools/progress.h"
#include "tools/tune_private.h"

dgm_status dgm_tune_note(dgm_tune_work *t, dgm_error *err, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    dgm_write_bytes(&t->notes, text, strlen(text) + 1);
    t->note_count++;
    return t->notes.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_tune_tick(dgm_tune_work *t, const char *stage, dgm_error *err)
{
    return dgm_progress_tick(&t->o->progress, stage, fmin(t->clock / t->o->seconds, 1), err);
}

// Closes a step that was measured now.
static dgm_status add_event(dgm_tune_work *t, const char *kind, json_t *event, dgm_error *err)
{
    const double now = dgm_now();
    if (event) json_object_set_new(event, "spent", json_real(now - t->last));
    t->clock += now - t->last;
    t->last = now;
    return dgm_tune_record_add(t->record, kind, event, err);
}

// And one that was read.
static dgm_status take_spent(dgm_tune_work *t, const json_t *event, dgm_error *err)
{
    double spent = 0;
    DGM_TRY(dgm_json_real(event, "spent", 0, 1e9, &spent, err));
    t->clock += spent;
    t->last = dgm_now();
    return DGM_OK;
}

static dgm_status same_text(const json_t *event, const char *key, const char *want, dgm_error *err)
{
    const char *have = "";
    DGM_TRY(dgm_json_string(event, key, &have, err));
    DGM_FAIL_IF(strcmp(have, want) != 0, err, DGM_ERR_FORMAT,
                "the record is of another run: it has '%.200s', not '%.200s'", have, want);
    return DGM_OK;
}

// ---- models ------------------------------------------------------------------------------------

static dgm_status parse_model(const json_t *event, dgm_tune_model *m, dgm_error *err)
{
    const char *given = "", *source = "", *target = "", *name = "";
    int64_t beam = 0;
    DGM_TRY(dgm_json_string(event, "given", &given, err));
    DGM_TRY(dgm_json_string(event, "source", &source, err));
    DGM_TRY(dgm_json_string(event, "target", &target, err));
    DGM_TRY(dgm_json_string(event, "name", &name, err));
    DGM_TRY(dgm_json_int(event, "beam", 0, 65536, &beam, err));
    DGM_TRY(dgm_json_bool(event, "masked", &m->masked, err));
    m->given = dgm_strdup(given);
    m->source = dgm_strdup(source);
    m->target = dgm_strdup(target);
    m->name = dgm_strdup(name);
    m->beam = (int)beam;
    return m->given && m->source && m->target && m->name ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_tune_step_model(dgm_tune_work *t, const char *given, dgm_error *err)
{
    const json_t *event = NULL;
    DGM_FAIL_IF(t->model_count == DGM_TUNE_MODELS, err, DGM_ERR_ARGUMENT, "there may be at most %d models",
                DGM_TUNE_MODELS);
    dgm_tune_model *m = &t->models[t->model_count];
    DGM_TRY(dgm_tune_record_next(t->record, "model", &event, err));
    if (event && !t->bench) {
        t->model_count++;
        DGM_TRY(parse_model(event, m, err));
        return take_spent(t, event, err);
    }
    if (event) DGM_TRY(same_text(event, "given", given, err));
    t->model_count++;
    DGM_TRY(dgm_tune_bench_model(t->bench, t->model_count - 1, given, m, err));
    if (event) return take_spent(t, event, err);
    return add_event(t, "model",
                     json_pack("{s:s,s:s,s:s,s:s,s:i,s:b}", "given", given, "source", m->source, "target", m->target,
                               "name", m->name, "beam", m->beam, "masked", m->masked),
                     err);
}

// ---- settings ----------------------------------------------------------------------------------

static dgm_status ask_try(dgm_tune_work *t, int model, const char *asked, bool beam, dgm_tune_opened *out,
                          dgm_error *err)
{
    const json_t *event = NULL;
    DGM_TRY(dgm_tune_record_next(t->record, "try", &event, err));
    if (event) {
        const char *is = NULL, *refused = NULL;
        DGM_TRY(same_text(event, "asked", asked, err));
        DGM_TRY(dgm_json_string(event, "is", &is, err));
        DGM_TRY(dgm_json_string(event, "refused", &refused, err));
        DGM_FAIL_IF(!is && !refused, err, DGM_ERR_FORMAT,
                    "the record has a 'try' of '%s' without an answer: neither \"is\" nor \"refused\"", asked);
        out->options = is ? dgm_strdup(is) : NULL;
        out->refused = refused ? dgm_strdup(refused) : NULL;
        if (!out->options && !out->refused) return dgm_no_memory(err);
        return take_spent(t, event, err);
    }
    DGM_TRY(dgm_tune_bench_try(t->bench, model, asked, beam, out, err));
    json_t *j = json_pack("{s:i,s:s}", "model", model, "asked", asked);
    if (j && out->options) json_object_set_new(j, "is", json_string(out->options));
    if (j && out->refused) json_object_set_new(j, "refused", json_string(out->refused));
    return add_event(t, "try", j, err);
}

// Is it new? prefix keeps what was asked for and what it became apart. *number: where t->seen_as has its trial.
static dgm_status is_new(dgm_tune_work *t, char prefix, int model, const char *options, uint32_t *number, bool *fresh,
                         dgm_error *err)
{
    dgm_writer w = {0};
    const size_t before = t->seen.count;
    dgm_write_format(&w, "%c%d %s", prefix, model, options);
    const dgm_text key = {w.data ? (const char *)w.data : "", w.size};
    dgm_status st = w.failed ? dgm_no_memory(err) : dgm_words_add(&t->seen, key, number, err);
    dgm_writer_free(&w);
    *fresh = t->seen.count > before;
    if (st == DGM_OK) st = dgm_grow(&t->seen_as, &t->seen_cap, t->seen.count, sizeof *t->seen_as, err);
    if (st == DGM_OK && *fresh) t->seen_as[*number] = -2;
    return st;
}

static dgm_status add_trial(dgm_tune_work *t, const dgm_tune_place *place, char *options, int parent, int *trial,
                            dgm_error *err)
{
    size_t cap = t->trial_cap;
    const dgm_tune_place own = *place; // it may lie in what grows
    DGM_TRY(dgm_grow(&t->views, &cap, t->trial_count + 1, sizeof *t->views, err));
    DGM_TRY(dgm_grow(&t->trials, &t->trial_cap, t->trial_count + 1, sizeof *t->trials, err));
    t->trials[t->trial_count] = (dgm_tune_trial){.place = own,
                                                 .options = options,
                                                 .parent = parent,
                                                 .state = parent >= 0 ? DGM_TUNE_VARIANT : DGM_TUNE_RACING};
    t->views[t->trial_count] = (dgm_tune_view){0};
    *trial = (int)t->trial_count++;
    return DGM_OK;
}

// Does one of the axes that rank hypotheses have a value?
static bool wants_beam(const dgm_tune_work *t, const dgm_tune_place *p)
{
    for (int i = 0; i < t->space.axis_count; i++)
        if (p->at[i] && t->space.axes[i].beam) return true;
    return false;
}

// A model that was made of another is tried for what it has of its own: without that it is the other.
static bool is_worth(const dgm_tune_model *m, const char *options)
{
    for (const char *p = m->only; p && *p;) {
        const size_t n = strcspn(p, "|");
        for (const char *at = options; (at = strstr(at, "--")); at += 2)
            if (strncmp(at, p, n) == 0) return true;
        p += n + (p[n] == '|');
    }
    return !m->only;
}

// What the options become with the model: a new trial, or one that is there.
static dgm_status take_opened(dgm_tune_work *t, const dgm_tune_place *place, int parent, dgm_tune_opened *opened,
                              uint32_t asked, int *trial, dgm_error *err)
{
    uint32_t number = 0;
    bool fresh = false;
    *trial = -2;
    if (!opened->options || !is_worth(&t->models[place->model], opened->options)) return DGM_OK;
    DGM_TRY(is_new(t, '=', place->model, opened->options, &number, &fresh, err));
    if (fresh) {
        DGM_TRY(add_trial(t, place, opened->options, parent, trial, err));
        opened->options = NULL;
        t->seen_as[number] = *trial;
    } else {
        t->same = t->seen_as[number];
        *trial = -1;
    }
    t->seen_as[asked] = t->seen_as[number];
    return DGM_OK;
}

dgm_status dgm_tune_step_try(dgm_tune_work *t, const dgm_tune_place *place, const char *more, int parent, int *trial,
                             dgm_error *err)
{
    dgm_writer w = {0};
    bool fresh = false;
    uint32_t number = 0;
    dgm_tune_opened opened = {0};
    *trial = -1;
    if (parent >= 0)
        dgm_write_text(&w, t->trials[parent].options);
    else
        dgm_tune_space_text(&t->space, place, &w);
    if (more) dgm_write_format(&w, "%s%s", w.size ? " " : "", more);
    char *asked = dgm_writer_take(&w, NULL);
    if (!asked) return dgm_no_memory(err);
    dgm_status st = is_new(t, '?', place->model, asked, &number, &fresh, err);
    if (st == DGM_OK && fresh) {
        st = ask_try(t, place->model, asked, parent < 0 && wants_beam(t, place), &opened, err);
        if (st == DGM_OK) st = take_opened(t, place, parent, &opened, number, trial, err);
    } else if (st == DGM_OK) {
        t->same = t->seen_as[number];
        if (t->same < 0) *trial = -2;
    }
    dgm_free(asked);
    dgm_free(opened.options);
    dgm_free(opened.refused);
    return st;
}

// ---- parts of the text -------------------------------------------------------------------------

static dgm_status careful_first(dgm_tune_work *t, size_t from, size_t to, dgm_error *err)
{
    dgm_tune_run r = {0};
    const dgm_tune_trial *c = &t->trials[t->careful];
    if (dgm_tune_bench_knows(t->bench, from, to)) return DGM_OK;
    DGM_TRY(dgm_tune_bench_run(t->bench, c->place.model, c->options, from, to, true, false, &r, err));
    dgm_tune_run_free(&r);
    return DGM_OK;
}

static dgm_status ask_run(dgm_tune_work *t, size_t trial, size_t from, size_t to, bool rows, dgm_tune_run *out,
                          dgm_error *err)
{
    const json_t *event = NULL;
    const dgm_tune_trial *own = &t->trials[trial];
    int64_t a = 0, b = 0;
    DGM_TRY(dgm_tune_record_next(t->record, "run", &event, err));
    if (event) {
        DGM_TRY(same_text(event, "options", own->options, err));
        DGM_TRY(dgm_json_int(event, "from", 0, INT32_MAX, &a, err));
        DGM_TRY(dgm_json_int(event, "to", 0, INT32_MAX, &b, err));
        DGM_FAIL_IF((size_t)a != from || (size_t)b != to, err, DGM_ERR_FORMAT,
                    "the record is of another run: other lines");
        DGM_TRY(dgm_tune_run_parse(event, t->width, to - from, out, err));
        DGM_FAIL_IF(rows && !out->rows, err, DGM_ERR_FORMAT, "the record has a run without counts");
        return take_spent(t, event, err);
    }
    if (trial != t->careful && rows) DGM_TRY(careful_first(t, from, to, err));
    DGM_TRY(
        dgm_tune_bench_run(t->bench, own->place.model, own->options, from, to, trial == t->careful, rows, out, err));
    json_t *j = dgm_tune_run_json(out, t->width);
    if (j) {
        json_object_set_new(j, "model", json_integer(own->place.model));
        json_object_set_new(j, "options", json_string(own->options));
        json_object_set_new(j, "from", json_integer((json_int_t)from));
        json_object_set_new(j, "to", json_integer((json_int_t)to));
    }
    return add_event(t, "run", j, err);
}

static void add_counts(dgm_tune_counts *sum, const dgm_tune_counts *c)
{
    sum->lines += c->lines;
    sum->steps += c->steps;
    sum->rows += c->rows;
    sum->rank_rows += c->rank_rows;
    sum->dots += c->dots;
    sum->live += c->live;
    sum->leads += c->leads;
    sum->target_tokens += c->target_tokens;
    sum->vocabulary = c->vocabulary;
}

// The rows and samples of a run become the trial's.
static dgm_status keep_rows(dgm_tune_work *t, dgm_tune_trial *own, dgm_tune_run *r, dgm_error *err)
{
    const size_t width = (size_t)t->width;
    DGM_TRY(dgm_grow(&own->rows, &own->row_cap, (own->lines + r->lines) * width, sizeof *own->rows, err));
    memcpy(own->rows + own->lines * width, r->rows, r->lines * width * sizeof *r->rows);
    own->lines += r->lines;
    own->same += r->same;
    for (int i = 0; i < r->sample_count && own->sample_count < DGM_TUNE_SAMPLES; i++) {
        own->samples[own->sample_count++] = r->samples[i];
        r->samples[i] = (dgm_tune_difference){0};
    }
    return DGM_OK;
}

static dgm_status keep_run(dgm_tune_work *t, size_t trial, int occasion, bool rows, double spent, dgm_tune_run *r,
                           dgm_error *err)
{
    dgm_tune_trial *own = &t->trials[trial];
    const bool wall = t->wall || own->by_wall;
    const double time = wall ? r->wall : r->cpu / t->threads;
    DGM_TRY(dgm_grow(&t->timings, &t->timing_cap, t->timing_count + 1, sizeof *t->timings, err));
    t->timings[t->timing_count++] = (dgm_tune_timing){(int)trial, occasion, log(fmax(time, 1e-7) / (double)r->lines)};
    add_counts(&own->counts, &r->counts);
    if (r->bytes > own->bytes) own->bytes = r->bytes;
    own->seconds += spent;
    own->timed += r->lines;
    own->hash = dgm_hash_number(own->hash, r->hash);
    return rows ? keep_rows(t, own, r, err) : DGM_OK;
}

// In an order of the seed's; the careful one comes first where others are compared with it.
static void turn(const dgm_tune_work *t, uint32_t *order, size_t count, int occasion)
{
    dgm_rng rng = {dgm_hash_number(dgm_hash_number(DGM_HASH_START, t->o->seed), (uint64_t)occasion)};
    for (size_t i = count; i > 1; i--) {
        const size_t k = (size_t)dgm_rng_below(&rng, i);
        const uint32_t other = order[k];
        order[k] = order[i - 1];
        order[i - 1] = other;
    }
    for (size_t i = 0; i < count; i++)
        if (order[i] == t->careful) {
            order[i] = order[0];
            order[0] = (uint32_t)t->careful;
        }
}

dgm_status dgm_tune_step_block(dgm_tune_work *t, const uint32_t *trials, size_t count, size_t from, size_t to,
                               dgm_error *err)
{
    const int occasion = t->occasions++;
    uint32_t *order = dgm_malloc((count + 1) * sizeof *order);
    dgm_status st = order ? DGM_OK : dgm_no_memory(err);
    if (order && count) memcpy(order, trials, count * sizeof *order);
    if (order) turn(t, order, count, occasion);
    for (size_t i = 0; st == DGM_OK && i < count; i++) {
        dgm_tune_run r = {0};
        const double before = t->clock;
        const bool rows = t->trials[order[i]].lines == from && t->trials[order[i]].state != DGM_TUNE_VARIANT;
        st = ask_run(t, order[i], from, to, rows, &r, err);
        if (st == DGM_OK) st = keep_run(t, order[i], occasion, rows, t->clock - before, &r, err);
        dgm_tune_run_free(&r);
        if (st == DGM_OK) st = dgm_tune_tick(t, NULL, err);
    }
    dgm_free(order);
    return st;
}

dgm_status dgm_tune_step_profile(dgm_tune_work *t, size_t trial, size_t lines, struct dgm_tune_shares *out,
                                 dgm_error *err)
{
    const json_t *event = NULL;
    const dgm_tune_trial *own = &t->trials[trial];
    DGM_TRY(dgm_tune_record_next(t->record, "profile", &event, err));
    if (event) {
        DGM_TRY(same_text(event, "options", own->options, err));
        DGM_TRY(dgm_json_real(event, "products", 0, 1e9, &out->products, err));
        DGM_TRY(dgm_json_real(event, "output", 0, 1e9, &out->output, err));
        DGM_TRY(dgm_json_real(event, "search", -1e9, 1e9, &out->search, err));
        DGM_TRY(dgm_json_real(event, "adds_per_byte", 0, 1e12, &out->adds_per_byte, err));
        return take_spent(t, event, err);
    }
    DGM_TRY(dgm_tune_bench_profile(t->bench, own->place.model, own->options, lines, out, err));
    return add_event(t, "profile",
                     json_pack("{s:s,s:f,s:f,s:f,s:f}", "options", own->options, "products", out->products, "output",
                               out->output, "search", out->search, "adds_per_byte", out->adds_per_byte),
                     err);
}

// ---- what they say -----------------------------------------------------------------------------

static dgm_status judge_quality(dgm_tune_work *t, size_t trial, dgm_error *err)
{
    enum { SAMPLES = 1000 };
    dgm_tune_trial *own = &t->trials[trial];
    const dgm_tune_trial *careful = &t->trials[t->careful];
    dgm_tune_view *v = &t->views[trial];
    const size_t lines = own->lines < careful->lines ? own->lines : careful->lines;
    v->lines = lines;
    if (trial == t->careful) {
        v->within = 1;
        return DGM_OK;
    }
    if (lines == 0 || lines == own->judged) return DGM_OK;
    dgm_metric_loss loss;
    DGM_TRY(
        dgm_metric_compare(t->metric, own->rows, careful->rows, lines, SAMPLES, t->o->seed, t->o->budget, &loss, err));
    v->loss = loss.loss;
    v->low = loss.low;
    v->high = loss.high;
    v->within = loss.within;
    own->judged = lines;
    return DGM_OK;
}

// Variants in threads are measured by another clock, among themselves: they have a table of their own.
static dgm_status judge_speed(dgm_tune_work *t, bool walls, double *mean, double *half, dgm_error *err)
{
    dgm_tune_timing *own = dgm_malloc((t->timing_count + 1) * sizeof *own);
    double noise = 0;
    size_t count = 0;
    if (!own) return dgm_no_memory(err);
    for (size_t i = 0; i < t->timing_count; i++)
        if (t->trials[t->timings[i].trial].by_wall == walls) own[count++] = t->timings[i];
    const dgm_status st = dgm_tune_fit(own, count, (int)t->trial_count, t->occasions, mean, half, &noise, err);
    for (size_t i = 0; st == DGM_OK && i < t->trial_count; i++) {
        if (t->trials[i].by_wall != walls) continue;
        t->views[i].speed = -mean[i];
        t->views[i].half = half[i];
    }
    if (st == DGM_OK && !walls) t->noise = noise;
    dgm_free(own);
    return st;
}

dgm_status dgm_tune_judge(dgm_tune_work *t, dgm_error *err)
{
    double *mean = dgm_calloc(t->trial_count * 2 + 1, sizeof *mean);
    dgm_tune_state *state = dgm_calloc(t->trial_count + 1, sizeof *state);
    dgm_status st = mean && state ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = judge_speed(t, false, mean, mean + t->trial_count, err);
    if (st == DGM_OK) st = judge_speed(t, true, mean, mean + t->trial_count, err);
    for (size_t i = 0; st == DGM_OK && i < t->trial_count; i++) {
        dgm_tune_trial *own = &t->trials[i];
        if (own->state != DGM_TUNE_VARIANT) st = judge_quality(t, i, err);
        if (t->o->memory && own->bytes > (uint64_t)t->o->memory && own->state == DGM_TUNE_RACING && i != t->careful)
            own->state = DGM_TUNE_MEMORY;
        // What has not run yet takes no part.
        state[i] = own->state == DGM_TUNE_RACING && own->lines == 0 ? DGM_TUNE_NO_TIME : own->state;
    }
    if (st == DGM_OK && !t->o->complete)
        dgm_tune_drop(t->views, t->trial_count, t->lines, t->o->budget, t->o->sure, t->careful, state);
    for (size_t i = 0; st == DGM_OK && i < t->trial_count; i++)
        if (t->trials[i].state == DGM_TUNE_RACING && t->trials[i].lines) t->trials[i].state = state[i];
    dgm_free(mean);
    dgm_free(state);
    return st;
}
