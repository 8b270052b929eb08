// SPDX-License-Identifier: MIT
// `dragoman tune` behind its command line: options, the record's head, and the order of work (tune_private.h).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "base/threads.h"
#include "engine/engine_private.h"
#include "engine/settings_table.h"
#include "tools/tune_private.h"

void dgm_tune_init(dgm_tune_options *out, size_t size)
{
    const dgm_tune_options own = {.size = sizeof own, .budget = 0.2, .seconds = 600, .seed = 1, .sure = 0.8};
    dgm_sized_give(out, size, &own, sizeof own);
}

dgm_status dgm_tune_duration(const char *what, const char *text, double *seconds, dgm_error *err)
{
    static const double units[] = {1, 60, 3600};
    const char *letters = "smh", *unit = NULL;
    dgm_text number = dgm_text_of(text);
    double factor = 1, value = 0;
    if (number.size && (unit = strchr(letters, number.data[number.size - 1])) && *unit) {
        factor = units[unit - letters];
        number.size--;
    }
    const bool fine = dgm_number_f64(number, &value) && value > 0 && value * factor <= 1e7;
    DGM_FAIL_IF(!fine, err, DGM_ERR_ARGUMENT, "%s must be a time such as 90s, 10m or 2h, not '%.80s'", what,
                text ? text : "");
    *seconds = value * factor;
    return DGM_OK;
}

// ---- options -----------------------------------------------------------------------------------

static dgm_status check_allow(const dgm_tune_options *o, dgm_error *err)
{
    static const char *const known[] = {"shortlist", "cluster", "calibrate", "length", "lmbr"};
    bool files = false;
    for (const char *p = o->allow; p && *p;) {
        const size_t n = strcspn(p, ",");
        size_t k = 0;
        while (k < 5 && (strlen(known[k]) != n || strncmp(known[k], p, n) != 0)) k++;
        DGM_FAIL_IF(k == 5, err, DGM_ERR_ARGUMENT,
                    "what may be learnt is shortlist, cluster, calibrate, length and lmbr, not '%.*s'", (int)n, p);
        files |= k < 3;
        p += n + (p[n] == ',');
    }
    DGM_FAIL_IF(files && !o->learned && !o->replay, err, DGM_ERR_ARGUMENT,
                "to learn shortlists, clusters or scales takes a folder for the models that are made");
    DGM_FAIL_IF(dgm_tune_allows(o->allow, "cluster") && !o->corpus && !o->replay, err, DGM_ERR_ARGUMENT,
                "to learn clusters takes a corpus: those of the text itself would know its words too well");
    const bool lmbr = dgm_tune_allows(o->allow, "lmbr") && !o->replay;
    DGM_FAIL_IF(lmbr && !(o->settings && dgm_wants_phrases(o->settings)), err, DGM_ERR_ARGUMENT,
                "weights of LMBR can be tuned where there is evidence: a phrase-based system");
    DGM_FAIL_IF(lmbr && o->reference_count == 0, err, DGM_ERR_ARGUMENT,
                "weights of LMBR are found by BLEU, which takes references");
    return DGM_OK;
}

static dgm_status check_options(const dgm_tune_options *o, dgm_error *err)
{
    DGM_FAIL_IF(!o->input && !o->replay, err, DGM_ERR_ARGUMENT, "tune needs a text");
    DGM_FAIL_IF(!(o->budget >= 0 && o->budget <= 100), err, DGM_ERR_ARGUMENT,
                "the budget must be 0 to 100 points of the metric, not %g", o->budget);
    DGM_FAIL_IF(!(o->sure > 0 && o->sure < 1), err, DGM_ERR_ARGUMENT,
                "how sure a choice must be of the budget is a share above 0 and below 1, not %g", o->sure);
    DGM_FAIL_IF(!(o->seconds > 0 && o->seconds <= 1e7), err, DGM_ERR_ARGUMENT,
                "the time must be above 0 and at most 10000000 s, not %g", o->seconds);
    DGM_FAIL_IF(o->metric && strcmp(o->metric, "bleu") != 0 && strcmp(o->metric, "chrf") != 0, err, DGM_ERR_ARGUMENT,
                "unknown metric '%.60s': known are bleu, chrf", o->metric);
    DGM_FAIL_IF(o->metric && strcmp(o->metric, "bleu") == 0 && o->reference_count == 0 && !o->replay, err,
                DGM_ERR_ARGUMENT,
                "BLEU takes references; without any, settings are compared by their agreement in chrF");
    DGM_FAIL_IF(o->record && o->replay, err, DGM_ERR_ARGUMENT, "what is replayed is not recorded again");
    DGM_FAIL_IF(o->model_count > DGM_TUNE_MODELS, err, DGM_ERR_ARGUMENT, "there may be at most %d models",
                DGM_TUNE_MODELS);
    return check_allow(o, err);
}

void dgm_tune_shorten(char *text, size_t size)
{
    double value = 0;
    char own[32];
    if (!dgm_number_f64(dgm_text_of(text), &value)) return;
    for (int digits = 1; digits < 9; digits++) {
        double again = 0;
        snprintf(own, sizeof own, "%.*g", digits, value);
        if (!dgm_number_f64(dgm_text_of(own), &again) || (float)again != (float)value) continue;
        snprintf(text, size, "%s", own);
        return;
    }
}

// The options that stand for what the caller holds, but for threads; values with blanks in them are left to the caller.
static char *fixed_text(const dgm_settings *s)
{
    dgm_settings usual;
    dgm_writer w = {0};
    char a[256], b[256];
    dgm_settings_default(&usual);
    for (size_t i = 0; dgm_setting_at(i); i++) {
        const dgm_setting *row = dgm_setting_at(i);
        if (row->flags & DGM_SETTING_NO_OPTION || strcmp(row->name, "threads") == 0) continue;
        if (dgm_settings_get(s, row->name, a, sizeof a, NULL) != DGM_OK ||
            dgm_settings_get(&usual, row->name, b, sizeof b, NULL) != DGM_OK)
            continue;
        const bool flag = row->kind == DGM_SETTING_FLAG;
        if (strcmp(a, b) == 0 || strchr(a, ' ') || (flag && strcmp(a, "1") != 0)) continue;
        if (row->kind == DGM_SETTING_FLOAT) dgm_tune_shorten(a, sizeof a);
        dgm_write_format(&w, "%s--%s%s%s", w.size ? " " : "", row->name, flag ? "" : " ", flag ? "" : a);
    }
    return dgm_writer_take(&w, NULL);
}

static dgm_status take_settings(dgm_tune_work *t, dgm_error *err)
{
    int precision = 0;
    DGM_TRY(dgm_settings_take(t->o->settings, &t->fixed, err));
    DGM_TRY(dgm_settings_check(&t->fixed, &precision, err));
    t->fixed_text = fixed_text(&t->fixed);
    if (!t->fixed_text) return dgm_no_memory(err);
    t->latency = t->o->latency != 0;
    DGM_FAIL_IF(t->o->threads < 0 || t->o->threads > 1024, err, DGM_ERR_ARGUMENT,
                "the number of threads must be between 0 and 1024, not %d", (int)t->o->threads);
    t->fixed.threads = t->o->threads ? t->o->threads : t->latency ? 1 : 0;
    t->wall = t->latency || (t->fixed.device && strncmp(t->fixed.device, "cpu", 3) != 0);
    if (t->wall && t->fixed.threads == 0 && !t->latency) return DGM_OK; // a device knows what is good for it
    if (t->fixed.threads == 0) t->fixed.threads = dgm_cpu_count();
    t->threads = t->fixed.threads;
    return DGM_OK;
}

static dgm_status open_metric(dgm_tune_work *t, dgm_error *err)
{
    dgm_metric_options m;
    const char *name = t->o->metric ? t->o->metric : t->agreement ? "chrf" : "bleu";
    dgm_metric_options_default(&m, strcmp(name, "bleu") == 0 ? DGM_METRIC_BLEU : DGM_METRIC_CHRF);
    DGM_TRY(dgm_metric_open(&t->metric, &m, err));
    t->width = dgm_metric_width(t->metric);
    return DGM_OK;
}

// ---- the head of the record --------------------------------------------------------------------

// What has to be the same for a record to be continued or replayed.
static uint64_t text_hash(const dgm_tune_text *t)
{
    return dgm_hash_bytes(DGM_HASH_START, t->bytes.data, t->bytes.size);
}

static json_t *models_of(const dgm_tune_options *o)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < o->model_count; i++) json_array_append_new(list, json_string(o->models[i]));
    if (list && o->model_count == 0) json_array_append_new(list, json_string("default"));
    return list;
}

static json_t *head_of(const dgm_tune_work *t)
{
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)text_hash(&t->text));
    json_t *head = json_pack(
        "{s:i,s:s,s:s,s:I,s:b,s:s,s:f,s:b,s:f,s:I,s:b,s:s,s:i}", "version", 1, "input", t->o->input, "text", hash,
        "lines", (json_int_t)t->lines, "agreement", t->agreement, "metric",
        t->o->metric   ? t->o->metric
        : t->agreement ? "chrf"
                       : "bleu",
        "budget", t->o->budget, "latency", t->latency, "seconds", t->o->seconds, "seed", (json_int_t)t->o->seed,
        "complete", t->o->complete != 0, "allow", t->o->allow ? t->o->allow : "", "threads", t->threads);
    if (head) json_object_set_new(head, "sure", json_real(t->o->sure));
    if (head) json_object_set_new(head, "memory", json_integer((json_int_t)t->o->memory));
    if (head) json_object_set_new(head, "against", json_string(t->against ? t->against : ""));
    if (head) json_object_set_new(head, "models", models_of(t->o));
    if (head) json_object_set_new(head, "settings", json_string(t->fixed_text));
    return head;
}

static dgm_status compare_heads(const json_t *old, const json_t *own, dgm_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)own, key, value)
    {
        const json_t *before = json_object_get(old, key);
        const bool same = json_is_number(value) && json_is_number(before)
                              ? json_number_value(value) == json_number_value(before)
                              : json_equal(value, before);
        DGM_FAIL_IF(!same && strcmp(key, "input") != 0, err, DGM_ERR_ARGUMENT,
                    "the record is of a run with another %s: what it says does not hold here", key);
    }
    return DGM_OK;
}

// A replay takes from the record what was not given: everything that a run depends on but the seed and the budget,
// which must be the same.
static dgm_status take_head(dgm_tune_work *t, dgm_tune_options *o, const json_t *head, dgm_error *err)
{
    int64_t lines = 0, seed = (int64_t)o->seed, threads = 1;
    bool latency = false, complete = false;
    const char *settings = "", *against = "";
    DGM_TRY(dgm_json_int(head, "lines", 1, INT32_MAX, &lines, err));
    DGM_TRY(dgm_json_int(head, "seed", INT64_MIN, INT64_MAX, &seed, err));
    DGM_TRY(dgm_json_int(head, "threads", 0, 65536, &threads, err));
    DGM_TRY(dgm_json_real(head, "budget", 0, 100, &o->budget, err));
    DGM_TRY(dgm_json_real(head, "sure", 0, 1, &o->sure, err));
    DGM_TRY(dgm_json_int(head, "memory", 0, INT64_MAX, &o->memory, err));
    DGM_TRY(dgm_json_real(head, "seconds", 0, 1e7, &o->seconds, err));
    DGM_TRY(dgm_json_bool(head, "agreement", &t->agreement, err));
    DGM_TRY(dgm_json_bool(head, "latency", &latency, err));
    DGM_TRY(dgm_json_bool(head, "complete", &complete, err));
    DGM_TRY(dgm_json_string(head, "metric", &o->metric, err));
    DGM_TRY(dgm_json_string(head, "allow", &o->allow, err));
    DGM_TRY(dgm_json_string(head, "input", &o->input, err));
    DGM_TRY(dgm_json_string(head, "settings", &settings, err));
    DGM_TRY(dgm_json_string(head, "against", &against, err));
    t->against = dgm_strdup(against);
    if (!t->against) return dgm_no_memory(err);
    dgm_free(t->fixed_text);
    t->fixed_text = dgm_strdup(settings);
    t->borrowed = dgm_strdup(settings);
    if (!t->fixed_text || !t->borrowed) return dgm_no_memory(err);
    DGM_TRY(dgm_tune_options_apply(t->borrowed, &t->fixed, err));
    t->replayed = json_array_size(json_object_get(head, "models"));
    DGM_FAIL_IF(t->replayed == 0 || lines == 0, err, DGM_ERR_FORMAT, "the record '%s' names no models or no lines",
                o->replay);
    DGM_FAIL_IF(!o->input, err, DGM_ERR_FORMAT, "the record '%s' does not name its text", o->replay);
    o->seed = (uint64_t)seed;
    o->complete = complete;
    t->latency = latency;
    t->wall |= latency;
    t->threads = (int)threads;
    t->lines = (size_t)lines;
    return DGM_OK;
}

// The caller's list, one setting a line.
static dgm_status keep_given(void *cookie, dgm_text line, dgm_error *err)
{
    dgm_writer *w = cookie;
    if (line.size == 0 || line.data[0] == '#') return DGM_OK;
    char *own = dgm_strndup(line.data, line.size);
    dgm_settings s;
    dgm_settings_default(&s);
    const dgm_status st = own ? dgm_tune_options_apply(own, &s, err) : dgm_no_memory(err);
    dgm_free(own);
    dgm_write_bytes(w, line.data, line.size);
    dgm_write_text(w, "\n");
    return st == DGM_ERR_ARGUMENT ? DGM_ERR_TEXT : st; // the file is to blame
}

static dgm_status read_against(dgm_tune_work *t, const char *path, dgm_error *err)
{
    dgm_writer w = {0};
    const dgm_status st = dgm_lines_each(path, keep_given, &w, err);
    t->against = dgm_writer_take(&w, NULL);
    return st == DGM_OK && !t->against ? dgm_no_memory(err) : st;
}

static dgm_status begin_record(dgm_tune_work *t, dgm_tune_options *o, dgm_error *err)
{
    const json_t *old = NULL;
    if (!o->replay && o->against) DGM_TRY(read_against(t, o->against, err));
    if (!o->replay) {
        DGM_TRY(dgm_tune_text_read(&t->text, o, err));
        t->lines = t->text.count;
        t->agreement = o->reference_count == 0;
        if (t->text.skipped)
            DGM_TRY(dgm_tune_note(t, err, "%zu lines have no reference and were left out", t->text.skipped));
    }
    DGM_TRY(dgm_tune_record_open(&t->record, o->replay ? o->replay : o->record, o->resume, o->replay != NULL, err));
    DGM_TRY(dgm_tune_record_next(t->record, "tune", &old, err));
    if (o->replay) return take_head(t, o, old, err);
    json_t *head = head_of(t);
    if (!head) return dgm_no_memory(err);
    if (!old) return dgm_tune_record_add(t->record, "tune", head, err);
    const dgm_status st = compare_heads(old, head, err);
    json_decref(head);
    return st;
}

// ---- the whole -----------------------------------------------------------------------------------

static dgm_status take_models(dgm_tune_work *t, dgm_error *err)
{
    const dgm_tune_options *o = t->o;
    if (t->bench) {
        for (size_t i = 0; i < o->model_count; i++) DGM_TRY(dgm_tune_step_model(t, o->models[i], err));
        return o->model_count ? DGM_OK : dgm_tune_step_model(t, "default", err);
    }
    for (size_t i = 0; i < t->replayed; i++) DGM_TRY(dgm_tune_step_model(t, NULL, err));
    return DGM_OK;
}

static void close_tuning(dgm_tune_work *t)
{
    for (size_t i = 0; i < t->trial_count; i++) {
        dgm_tune_trial *own = &t->trials[i];
        for (int k = 0; k < own->sample_count; k++) {
            dgm_free(own->samples[k].source);
            dgm_free(own->samples[k].careful);
            dgm_free(own->samples[k].text);
        }
        dgm_free(own->options);
        dgm_free(own->rows);
    }
    for (int i = 0; i < t->model_count; i++) {
        dgm_free(t->models[i].given);
        dgm_free(t->models[i].source);
        dgm_free(t->models[i].target);
        dgm_free(t->models[i].name);
    }
    dgm_free(t->fixed_text);
    dgm_free(t->borrowed);
    dgm_free(t->against);
    dgm_free(t->trials);
    dgm_free(t->views);
    dgm_free(t->timings);
    dgm_free(t->waiting);
    dgm_words_free(&t->seen);
    dgm_free(t->seen_as);
    dgm_writer_free(&t->notes);
    dgm_tune_bench_close(&t->bench);
    dgm_metric_close(&t->metric);
    dgm_tune_space_close(&t->space);
    dgm_tune_text_free(&t->text);
    dgm_tune_record_close(&t->record);
}

static dgm_status run(dgm_tune_work *t, dgm_tune_options *o, dgm_tune_report **report, dgm_error *err)
{
    DGM_TRY(check_options(o, err));
    DGM_TRY(take_settings(t, err));
    t->last = dgm_now();
    DGM_TRY(begin_record(t, o, err));
    DGM_TRY(open_metric(t, err));
    DGM_TRY(dgm_tune_space_open(&t->space, &t->fixed, o->allow, err));
    if (!o->replay) DGM_TRY(dgm_tune_bench_open(&t->bench, &t->fixed, t->latency, &t->text, t->metric, err));
    DGM_TRY(take_models(t, err));
    DGM_TRY(dgm_tune_learn(t, err));
    DGM_TRY(dgm_tune_race(t, err));
    DGM_TRY(dgm_tune_against(t, err));
    return dgm_tune_report_make(t, report, err);
}

dgm_status dgm_tune(const dgm_tune_options *given, dgm_tune_report **report, dgm_error *err)
{
    dgm_tune_options own;
    dgm_tune_default(&own);
    DGM_FAIL_IF(!given || !report, err, DGM_ERR_ARGUMENT, "tune needs options and a place for its report");
    *report = NULL;
    DGM_TRY(dgm_sized_take(&own, sizeof own, given, "dgm_tune_options", "dgm_tune_default", err));
    dgm_tune_work *t = dgm_calloc(1, sizeof *t);
    if (!t) return dgm_no_memory(err);
    t->o = &own;
    const dgm_status st = run(t, &own, report, err);
    close_tuning(t);
    dgm_free(t);
    return st;
}
