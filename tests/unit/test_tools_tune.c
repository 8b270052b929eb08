// SPDX-License-Identifier: MIT
// `dragoman tune`: its decisions on numbers made up here, and whole runs on tiny models that are recorded, replayed,
// stopped and continued. Nothing that hangs on a clock is asserted.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "scratch.h"
#include "tools/tune_private.h"

static const char pieces[] = "tests/data/models/transformer-pieces.gguf";
static const char recurrent[] = "tests/data/models/rnn-bahdanau-pieces.gguf";

// ---- speed -------------------------------------------------------------------------------------

enum { TRIALS = 4, OCCASIONS = 12 };
static const double truth[TRIALS] = {-3, -3.5, -3.52, -5};

// Measurements of trials whose occasions differ much more than the trials do; a hole for every third.
static size_t measure(dgm_tune_timing *t, double noise)
{
    dgm_rng rng = {7};
    size_t n = 0;
    for (int o = 0; o < OCCASIONS; o++) {
        const double occasion = 4 * dgm_rng_unit(&rng) - 2;
        for (int i = 0; i < TRIALS; i++) {
            const double rest = noise * (dgm_rng_unit(&rng) + dgm_rng_unit(&rng) + dgm_rng_unit(&rng) - 1.5) * 2;
            if ((o + i) % 3) t[n++] = (dgm_tune_timing){i, o, truth[i] + occasion + rest};
        }
    }
    return n;
}

static void test_fit(void **state)
{
    (void)state;
    dgm_tune_timing t[TRIALS * OCCASIONS];
    double mean[TRIALS + 1], half[TRIALS + 1], noise, quiet;
    size_t n = measure(t, 0);
    assert_int_equal(dgm_tune_fit(t, n, TRIALS + 1, OCCASIONS, mean, half, &quiet, NULL), DGM_OK);
    for (int i = 1; i < TRIALS; i++) assert_true(fabs(mean[i] - mean[0] - (truth[i] - truth[0])) < 1e-6);
    assert_true(mean[TRIALS] == 0 && half[TRIALS] == 0); // it was never measured
    const double narrow = half[0];
    n = measure(t, 0.2);
    assert_int_equal(dgm_tune_fit(t, n, TRIALS + 1, OCCASIONS, mean, half, &noise, NULL), DGM_OK);
    assert_true(noise > 0.1 && noise < 0.4 && noise > 3 * quiet);
    assert_true(half[0] > 3 * narrow);
    for (int i = 1; i < TRIALS; i++)
        assert_true(fabs(mean[i] - mean[0] - (truth[i] - truth[0])) < 2 * hypot(half[i], half[0]));
}

// ---- decisions ---------------------------------------------------------------------------------

// loss, low, high, within, speed, half, lines
static const dgm_tune_view views[] = {
    {0, 0, 0, 1, 0, 0.01, 100},               // 0 the careful one
    {0.1, 0.05, 0.15, 0.99, 1, 0.01, 100},    // 1 surely within
    {0.1, -0.3, 0.5, 0.6, 0.5, 0.01, 50},     // 2 surely slower than 1
    {0.9, 0.5, 1.3, 0.0, 2, 0.01, 50},        // 3 surely over
    {0.15, -0.1, 0.4, 0.6, 1.5, 0.01, 100},   // 4 faster, within by its loss
    {0.15, -0.4, 0.7, 0.5, 1.495, 0.02, 50},  // 5 as fast as 4, on fewer lines
    {0.05, -0.1, 0.3, 0.8, 1.496, 0.01, 100}, // 6 as fast as 4, better
};
enum { VIEWS = sizeof views / sizeof views[0] };

static void test_drop(void **state)
{
    (void)state;
    dgm_tune_state s[VIEWS] = {DGM_TUNE_RACING};
    dgm_tune_drop(views, VIEWS, 100, 0.2, 0.6, 0, s);
    assert_int_equal(s[0], DGM_TUNE_RACING); // slow, but what everything is counted against
    assert_int_equal(s[1], DGM_TUNE_SLOWER); // than 4, whose loss on the whole text is within
    assert_int_equal(s[2], DGM_TUNE_SLOWER);
    assert_int_equal(s[3], DGM_TUNE_OVER);
    for (int i = 4; i < VIEWS; i++) assert_int_equal(s[i], DGM_TUNE_RACING);

    // On a part of the text nobody goes because of who is fast and within the budget so far, and only what is hopeless
    // is over it.
    dgm_tune_state part[VIEWS] = {DGM_TUNE_RACING};
    dgm_tune_drop(views, VIEWS, 1000, 0.2, 0.6, 0, part);
    assert_int_equal(part[1], DGM_TUNE_RACING);
    assert_int_equal(part[2], DGM_TUNE_RACING);
    assert_int_equal(part[3], DGM_TUNE_OVER);

    // Slower and worse than one that is not sure enough itself.
    const dgm_tune_view two[] = {{0}, {0.5, 0.1, 0.6, 0.5, 2, 0.01, 100}, {0.9, 0.65, 1.2, 0.01, 1, 0.01, 50}};
    dgm_tune_state t[3] = {DGM_TUNE_RACING};
    dgm_tune_drop(two, 3, 100, 0.5, 0.8, 0, t);
    assert_int_equal(t[1], DGM_TUNE_RACING);
    assert_int_equal(t[2], DGM_TUNE_BEATEN);
    dgm_tune_state u[3] = {DGM_TUNE_RACING};
    dgm_tune_drop(two, 3, 100, 0.5, 0.5, 0, u); // and slower than one that is
    assert_int_equal(u[2], DGM_TUNE_SLOWER);
    dgm_tune_state v[3] = {DGM_TUNE_RACING};
    dgm_tune_drop(two, 3, 50, 0.5, 0.8, 0, v); // 50 are all lines: its interval is above the budget
    assert_int_equal(v[2], DGM_TUNE_OVER);
}

static void test_rank(void **state)
{
    (void)state;
    dgm_tune_state s[VIEWS] = {DGM_TUNE_RACING};
    uint32_t order[VIEWS];
    s[3] = DGM_TUNE_OVER;
    assert_int_equal(dgm_tune_rank(views, s, VIEWS, 0, order), VIEWS - 2);
    // Gain times the likelihood of being within the budget: 6 (1.2), 1 (0.99), 4 (0.9), 5 (0.75), 2 (0.3)
    const uint32_t want[] = {6, 1, 4, 5, 2};
    for (int i = 0; i < 5; i++) assert_int_equal(order[i], want[i]);
}

static void test_front_and_choice(void **state)
{
    (void)state;
    bool front[VIEWS];
    dgm_tune_front(views, VIEWS, 100, front);
    const bool want[] = {true, false, false, false, true, false, true};
    for (int i = 0; i < VIEWS; i++) assert_int_equal(front[i], want[i]);
    dgm_tune_front(views, VIEWS, 50, front);
    assert_true(front[3]);                                               // the fastest of all
    assert_int_equal(dgm_tune_choose(views, VIEWS, 100, 0.6), 6); // 4 is as fast and worse
    assert_int_equal(dgm_tune_choose(views, VIEWS, 100, 0.9), 1); // the others are not so sure
    assert_int_equal(dgm_tune_choose(views, VIEWS, 50, 0), 3);
    assert_int_equal(dgm_tune_choose(views, VIEWS, 100, 1), 0);
    assert_true(dgm_tune_choose(views, VIEWS, 101, 0.8) == SIZE_MAX);
}

// How much text an answer takes goes by the square of what is missing.
static void test_lines_for(void **state)
{
    (void)state;
    const dgm_tune_view v = {.loss = 0.1, .low = -0.096, .high = 0.296, .lines = 1000}; // a spread of 0.1
    assert_true(fabs(dgm_tune_lines_for(&v, 0.2, 0.841345) - 1000) < 1);
    assert_true(fabs(dgm_tune_lines_for(&v, 0.15, 0.841345) - 4000) < 4);
    assert_true(fabs(dgm_tune_lines_for(&v, 0.2, 0.977250) - 4000) < 4);
    assert_true(isinf(dgm_tune_lines_for(&v, 0.1, 0.8)));
}

static void test_rungs(void **state)
{
    (void)state;
    size_t r[32];
    for (size_t lines = 10; lines < 5000; lines += 7) {
        const int n = dgm_tune_rungs(lines, r);
        assert_true(n >= 1 && r[n - 1] == lines && r[0] >= 1);
        for (int i = 1; i < n; i++) assert_true(r[i] > r[i - 1] && r[i] <= 2 * r[i - 1]);
        assert_true(n == 1 || r[0] >= 40);
    }
    assert_int_equal(dgm_tune_rungs(10, r), 1);
    assert_true(dgm_tune_rungs(3000, r) >= 6);
}

// ---- quality -----------------------------------------------------------------------------------

static void test_compare(void **state)
{
    (void)state;
    enum { LINES = 60 };
    dgm_metric_options o;
    dgm_metric *m = NULL;
    dgm_metric_options_default(&o, DGM_METRIC_BLEU);
    assert_int_equal(dgm_metric_open(&m, &o, NULL), DGM_OK);
    const size_t width = (size_t)dgm_metric_width(m);
    int64_t *rows = calloc(LINES * width, sizeof *rows), *base = calloc(LINES * width, sizeof *base);
    const dgm_text ref = dgm_text_of("the small cat sat on the old mat"),
                   bad = dgm_text_of("the small dog sat on an old mat");
    for (size_t i = 0; i < LINES; i++) {
        assert_int_equal(dgm_metric_segment(m, i % 6 ? ref : bad, &ref, 1, base + i * width, NULL), DGM_OK);
        assert_int_equal(dgm_metric_segment(m, i % 3 ? ref : bad, &ref, 1, rows + i * width, NULL), DGM_OK);
    }
    dgm_metric_loss same, worse, again;
    assert_int_equal(dgm_metric_compare(m, base, base, LINES, 400, 1, 0.2, &same, NULL), DGM_OK);
    assert_true(same.loss == 0 && same.low == 0 && same.high == 0 && same.within == 1);
    assert_int_equal(dgm_metric_compare(m, rows, base, LINES, 400, 1, 0.2, &worse, NULL), DGM_OK);
    assert_true(worse.loss > 1 && worse.low > 0 && worse.low < worse.loss && worse.high > worse.loss &&
                worse.within < 0.05);
    assert_int_equal(dgm_metric_compare(m, rows, base, LINES, 400, 1, 0.2, &again, NULL), DGM_OK);
    assert_memory_equal(&again, &worse, sizeof again);
    dgm_metric_close(&m);
    free(rows);
    free(base);
}

// ---- the space ---------------------------------------------------------------------------------

static void test_space(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_tune_space space, held;
    dgm_settings_default(&s);
    assert_int_equal(dgm_tune_space_open(&space, &s, "length,lmbr", NULL), DGM_OK);
    for (int i = 0; i < space.axis_count; i++) {
        assert_true(space.count[i] > 1);
        for (int v = 1; v < space.count[i]; v++) { // all of it are options that there are
            dgm_settings own = s;
            char text[128];
            dgm_error err = {""};
            snprintf(text, sizeof text, "%s", space.axes[i].values[v - 1]);
            if (dgm_tune_options_apply(text, &own, &err) != DGM_OK) fail_msg("%s", err.text);
            assert_memory_not_equal(&own, &s, sizeof s);
        }
    }
    assert_true(dgm_tune_space_axis(&space, "beam") >= 0 && dgm_tune_space_axis(&space, "length-penalty") >= 0);
    s.beam = 3;
    assert_int_equal(dgm_tune_space_open(&held, &s, NULL, NULL), DGM_OK);
    assert_int_equal(dgm_tune_space_axis(&held, "beam"), -1); // the caller holds it
    assert_int_equal(dgm_tune_space_axis(&held, "length-penalty"), -1);
    assert_true(dgm_tune_space_size(&held) < dgm_tune_space_size(&space));
    dgm_writer w = {0};
    dgm_tune_options_weights("--precision i8 --beam 2 --static-scales", &w);
    assert_int_equal(w.size, strlen("--precision i8 --static-scales"));
    dgm_writer_free(&w);
    dgm_tune_space_close(&space);
    dgm_tune_space_close(&held);
}

static void test_duration(void **state)
{
    (void)state;
    double s = 0;
    assert_int_equal(dgm_tune_duration("--time", "90", &s, NULL), DGM_OK);
    assert_true(s == 90);
    assert_int_equal(dgm_tune_duration("--time", "1.5h", &s, NULL), DGM_OK);
    assert_true(s == 5400);
    static const char *const bad[] = {"", "m", "0", "-3", "1d", "10 m", "1e9h", "nan"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dgm_tune_duration("--time", bad[i], &s, NULL), DGM_ERR_ARGUMENT);
}

// ---- whole runs --------------------------------------------------------------------------------

static const char *text(const char *name, int lines, int seed)
{
    static const char *const words[] = {"house", "good", "morning", "a", "b", "c", "mouse", "small", "old", "sat"};
    dgm_rng rng = {(uint64_t)seed};
    static char all[1 << 15];
    all[0] = 0;
    for (int i = 0; i < lines; i++) {
        for (int k = 0; k < 4; k++) {
            strcat(all, words[dgm_rng_below(&rng, 10)]);
            strcat(all, k < 3 ? " " : ".\n");
        }
    }
    return put(name, all, strlen(all));
}

static const char *lines_of(const char *name, const char *lines)
{
    return put(name, lines, strlen(lines));
}

// What is left of the space is small: three beams' worth of precisions and searches.
static dgm_tune_options usual(dgm_settings *s, const char *const *models, const char *const *refs)
{
    dgm_tune_options o;
    dgm_settings_default(s);
    s->finish = "refill";
    s->beam_width = 0.001f;
    s->activations = "polynomial";
    s->threads = 2;
    dgm_tune_default(&o);
    o.models = models;
    o.model_count = 1;
    o.references = refs;
    o.reference_count = 1;
    o.settings = s;
    o.seconds = 60;
    o.budget = 5;
    return o;
}

static char *json_of(const dgm_tune_options *o)
{
    dgm_tune_report *r = NULL;
    dgm_error err = {""};
    char *out = NULL;
    if (dgm_tune(o, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_true(r->chosen->flags & DGM_TUNE_CHOSEN && r->careful->flags & DGM_TUNE_CAREFUL);
    assert_true(r->chosen->loss <= o->budget);
    assert_non_null(strstr(r->command, "dragoman translate -m "));
    static const char *const kinds[] = {"table", "svg", "html", "explain"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(dgm_tune_write(r, kinds[i], &out, NULL), DGM_OK);
        assert_true(strlen(out) > 40);
        dgm_string_free(&out);
    }
    assert_int_equal(dgm_tune_write(r, "poem", &out, NULL), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_tune_write(r, "json", &out, NULL), DGM_OK);
    dgm_tune_report_free(&r);
    assert_null(r);
    return out;
}

// The first `lines` lines of a file and a piece of the next one, as a run that was killed leaves it.
static const char *beginning(const char *path, const char *name, int lines)
{
    dgm_mapfile f = {0};
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    size_t at = 0;
    for (int n = 0; n < lines && at < f.size; at++) n += f.data[at] == '\n';
    const char *out = put(name, f.data, at + 20 < f.size ? at + 20 : f.size);
    dgm_mapfile_close(&f);
    return out;
}

// The record with other names for what was answered.
static const char *without_answers(const char *path, const char *name)
{
    dgm_mapfile f = {0};
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    char *copy = dgm_malloc(f.size + 1);
    assert_non_null(copy);
    memcpy(copy, f.data, f.size);
    copy[f.size] = 0;
    for (char *p = copy; (p = strstr(p, "\"is\"")); p++) p[1] = 'x';
    for (char *p = copy; (p = strstr(p, "\"refused\"")); p++) p[1] = 'x';
    const char *out = put(name, copy, f.size);
    dgm_free(copy);
    dgm_mapfile_close(&f);
    return out;
}

static void test_record_replay_resume(void **state)
{
    (void)state;
    const char *const models[] = {pieces};
    const char *const refs[] = {text("ref", 24, 2)};
    char record[128], half[128];
    dgm_settings s;
    dgm_tune_options o = usual(&s, models, refs);
    dgm_tune_report *r = NULL;
    snprintf(record, sizeof record, "%s/record", folder);
    o.input = text("src", 24, 1);
    o.against = lines_of("given", "# by hand\n--beam 2 --precision f32\n--beam 2 --precision f32\n\n--beam 5\n");
    o.record = record;
    char *live = json_of(&o);
    int given = 0;
    for (const char *p = live; (p = strstr(p, "\"given\"")); p++) given++;
    assert_true(given >= 2 && given <= 4);                      // the chosen and the careful settings stand there twice
    assert_int_equal(dgm_tune(&o, &r, NULL), DGM_ERR_ARGUMENT); // the record is not written over
    assert_null(r);

    dgm_tune_options replay;
    dgm_tune_default(&replay);
    replay.replay = record;
    replay.budget = 5;
    char *again = json_of(&replay);
    assert_string_equal(again, live);
    dgm_string_free(&again);

    // Of a run that was stopped the answer is that of the measurements it ends up with.
    snprintf(half, sizeof half, "%s", beginning(record, "half", 30));
    o.record = half;
    o.resume = 1;
    char *resumed = json_of(&o);
    replay.replay = half;
    again = json_of(&replay);
    assert_string_equal(again, resumed);
    dgm_string_free(&again);
    dgm_string_free(&resumed);

    // With another budget, seed or text it is another run.
    dgm_error err = {""};
    o.budget = 1;
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "another budget"));
    o.budget = 5;
    o.input = text("other", 24, 9);
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "another text"));
    replay.replay = beginning(record, "short", 12);
    assert_int_equal(dgm_tune(&replay, &r, &err), DGM_ERR_FORMAT);
    replay.replay = without_answers(record, "unanswered");
    assert_int_equal(dgm_tune(&replay, &r, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "without an answer"));
    replay.replay = beginning(record, "short", 12);
    // A record of nothing.
    static const char *const heads[] = {"{\"tune\": {\"lines\": 9}}\n", "{\"tune\": {\"models\": [\"a\"]}}\n"};
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(replay.replay, "w");
        assert_true(f && fputs(heads[i], f) >= 0 && fclose(f) == 0);
        assert_int_equal(dgm_tune(&replay, &r, &err), DGM_ERR_FORMAT);
        assert_non_null(strstr(err.text, "no models or no lines"));
    }
    static const char nameless[] = "{\"tune\": {\"models\": [\"a\"], \"lines\": 9}}\n";
    replay.replay = put("nameless", nameless, sizeof nameless - 1);
    assert_int_equal(dgm_tune(&replay, &r, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "does not name its text"));
    dgm_string_free(&live);
}

// Batches and threads take a text of some hundred lines; they become variants of the choice.
static void test_variants(void **state)
{
    (void)state;
    const char *const models[] = {pieces};
    const char *const refs[] = {text("ref5", 400, 2)};
    dgm_settings s;
    dgm_tune_options o = usual(&s, models, refs);
    dgm_tune_report *r = NULL;
    dgm_error err = {""};
    s.precision = "i8";
    s.search = "beam";
    s.shortlist = "all";
    s.max_length = 4;
    o.input = text("src5", 400, 1);
    if (dgm_tune(&o, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    size_t variants = 0;
    for (size_t i = 0; i < r->count; i++) variants += (r->points[i]->flags & DGM_TUNE_TIMED) != 0;
    assert_true(variants >= 2);
    assert_int_equal(r->chosen->lines, 400);
    dgm_tune_report_free(&r);
}

// No references, several models, one line at a time.
static void test_agreement(void **state)
{
    (void)state;
    const char *const models[] = {
        recurrent, "tests/data/models/rnn-bahdanau-pieces.gguf+tests/data/models/rnn-bahdanau-pieces.gguf"};
    dgm_settings s;
    dgm_tune_options o = usual(&s, models, NULL);
    dgm_tune_report *r = NULL;
    dgm_error err = {""};
    s.precision = "f32";
    s.precompute = 100;
    o.model_count = 2;
    o.reference_count = 0;
    o.latency = 1;
    o.input = text("src2", 16, 3);
    if (dgm_tune(&o, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_true(r->agreement && r->latency);
    assert_true(r->careful->quality > 99.99);
    assert_int_equal(r->model_count, 2);
    bool ensemble = false;
    for (size_t i = 0; i < r->count; i++) ensemble |= r->points[i]->model == 1 && r->points[i]->lines == 16;
    assert_true(ensemble);
    dgm_tune_report_free(&r);
}

// Scales that a model's file switches on can be switched off.
static void check_scales_off(const char *model)
{
    const char *const models[] = {model};
    const char *output = in_folder("scaled.gguf");
    const dgm_tune_point chosen = {.size = sizeof chosen,
                                   .options = "--precision i8 --beam 2 --shortlist all --static-scales"};
    const dgm_tune_report r = {.size = sizeof r,
                               .models = models,
                               .model_count = 1,
                               .careful = &chosen,
                               .chosen = &chosen,
                               .metric = "BLEU",
                               .input = "dev.en",
                               .source = "",
                               .target = ""};
    dgm_error err = {""};
    dgm_translator *t = NULL;
    dgm_settings s;
    if (dgm_tune_store(&r, output, &err) != DGM_OK) fail_msg("%s", err.text);
    for (int off = 0; off < 2; off++) {
        dgm_settings_default(&s);
        if (off) assert_int_equal(dgm_settings_set(&s, "no-static-scales", "1", NULL), DGM_OK);
        if (dgm_open(&t, output, &s, &err) != DGM_OK) fail_msg("%s", err.text);
        assert_int_equal(dgm_describe(t)->static_scales, !off);
        dgm_close(&t);
    }
}

// Scales are learnt: one more model, tried with them alone.
static void test_learn(void **state)
{
    (void)state;
    const char *const models[] = {pieces};
    const char *const refs[] = {text("ref4", 16, 2)};
    char record[128];
    dgm_settings s;
    dgm_tune_options o = usual(&s, models, refs);
    dgm_tune_report *r = NULL;
    dgm_error err = {""};
    s.precision = "i8";
    snprintf(record, sizeof record, "%s/learning", folder);
    o.input = text("src4", 16, 1);
    o.allow = "shortlist,calibrate"; // there is no list to cut: that is noted
    o.learned = in_folder("learned");
    o.record = record;
    if (dgm_tune(&o, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(r->model_count, 2);
    assert_true(r->note_count >= 3);
    assert_non_null(strstr(r->models[1], "transformer-pieces.scales.gguf"));
    assert_int_equal(access(r->models[1], R_OK), 0);
    size_t scaled = 0;
    for (size_t i = 0; i < r->count; i++) {
        const dgm_tune_point *p = r->points[i];
        if (p->flags & DGM_TUNE_UNTRIED) continue;
        assert_int_equal(strstr(p->options, "--static-scales") != NULL, p->model == 1);
        scaled += p->model == 1;
    }
    assert_true(scaled > 0);
    check_scales_off(r->models[1]);
    dgm_tune_report_free(&r);
    char *again = NULL;
    dgm_tune_options replay;
    dgm_tune_default(&replay);
    replay.replay = record;
    replay.budget = 5;
    again = json_of(&replay);
    assert_non_null(strstr(again, "static-scales"));
    dgm_string_free(&again);
}

static void test_store(void **state)
{
    (void)state;
    const char *const models[] = {pieces};
    const char *output = in_folder("tuned.gguf");
    dgm_tune_point chosen = {.size = sizeof chosen,
                             .options = "--precision i16 --beam 3 --search cube --cube-key state:0.2 --finish first:1 "
                                        "--shortlist all --beam-width 0.2 --threads 2",
                             .gain = 2};
    dgm_tune_point careful = chosen;
    const dgm_tune_point *list[] = {&chosen};
    const dgm_tune_report r = {.size = sizeof r,
                               .models = models,
                               .model_count = 1,
                               .points = list,
                               .count = 1,
                               .careful = &careful,
                               .chosen = &chosen,
                               .command = "",
                               .metric = "BLEU",
                               .input = "dev.en",
                               .source = "",
                               .target = "",
                               .lines = 10,
                               .budget = 0.2};
    dgm_error err = {""};
    dgm_translator *t = NULL;
    char *card = NULL;
    if (dgm_tune_store(&r, output, &err) != DGM_OK) fail_msg("%s", err.text);
    if (dgm_open(&t, output, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_describe(t)->beam, 3);
    assert_string_equal(dgm_describe(t)->search, "cube");
    assert_string_equal(dgm_describe(t)->precision, "i16");
    assert_string_equal(dgm_describe(t)->finish, "first:1");
    assert_string_equal(dgm_describe(t)->cube_key, "state:0.2");
    assert_true(dgm_describe(t)->beam_width == 0.2f);
    assert_int_equal(dgm_describe(t)->threads, 1); // a machine's, not a model's
    dgm_close(&t);

    // Who asks for a beam gets a beam search: the settings of a search belong together.
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = 1;
    if (dgm_open(&t, output, &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(dgm_describe(t)->search, "greedy");
    dgm_close(&t);
    dgm_settings_default(&s);
    s.beam_width = 0; // said, and so it is off
    if (dgm_open(&t, output, &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_true(dgm_describe(t)->beam_width == 0);
    assert_string_equal(dgm_describe(t)->search, "beam");
    dgm_close(&t);
    dgm_settings_default(&s);
    s.nbest = 2;
    if (dgm_open(&t, output, &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(dgm_describe(t)->search, "beam");
    dgm_close(&t);

    dgm_inspect_options o;
    dgm_inspect_default(&o);
    o.card = 1;
    assert_int_equal(dgm_inspect(output, &o, &card, NULL), DGM_OK);
    assert_non_null(strstr(card, "dragoman tune"));
    assert_non_null(strstr(card, "dev.en"));
    dgm_string_free(&card);
}

static void test_bad_input(void **state)
{
    (void)state;
    const char *const models[] = {pieces};
    const char *const refs[] = {text("ref3", 20, 2)}, *const blank[] = {put("blank", "\n\n\n\n\n\n\n\n\n\n\n\n", 12)};
    dgm_settings s;
    dgm_tune_options o = usual(&s, models, refs);
    dgm_tune_report *r = NULL;
    dgm_error err = {""};
    o.input = text("one", 1, 1);
    o.reference_count = 0;
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_TEXT);
    assert_non_null(strstr(err.text, "has 1 line"));
    o.reference_count = 1;
    o.input = text("twelve", 12, 1);
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_TEXT);
    assert_non_null(strstr(err.text, "has 20 lines"));
    o.references = blank;
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_TEXT);
    assert_non_null(strstr(err.text, "empty"));
    o.references = refs;
    o.input = text("twenty", 20, 1);
    o.seconds = 1e-6;
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "too few"));
    o.seconds = 60;
    o.budget = NAN;
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_ARGUMENT);
    o.budget = 1;
    o.against = lines_of("wrong", "--beam 2\n--beam many\n");
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_TEXT);
    assert_non_null(strstr(err.text, "wrong:2"));
    o.against = lines_of("bare", "beam 2\n");
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_TEXT);
    o.against = NULL;
    o.allow = "magic";
    assert_int_equal(dgm_tune(&o, &r, &err), DGM_ERR_ARGUMENT);
    assert_null(r);
    assert_int_equal(dgm_tune(NULL, &r, &err), DGM_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_rank),
        cmocka_unit_test(test_front_and_choice),
        cmocka_unit_test(test_lines_for),
        cmocka_unit_test(test_rungs),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_duration),
        cmocka_unit_test(test_record_replay_resume),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_learn),
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_bad_input),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
