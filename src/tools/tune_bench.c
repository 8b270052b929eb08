// SPDX-License-Identifier: MIT
// Measuring for `dragoman tune`: a part of the text goes through one setting; what comes back is its time, the metric's
// counts of every line, and some lines that came out differently.
//
// Weights are loaded once for all settings that share them (dgm_open_like). A few translators stay open, so that what
// takes turns is warm; the first lines that a new translator gets are not timed.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/evidence.h"
#include "dragoman/features.h"
#include "dragoman/profile.h"
#include "tools/tune_private.h"

enum { LENDERS = 4, KEPT = 48, MEMBERS = 8, WARM_LINES = 32, MOST_THREADS = 512 };

typedef struct holder {
    int model;
    char *options; // of a lender: those that belong to the weights
    dgm_translator *t;
    uint64_t used;
    bool warm;
} holder;

typedef struct offered {
    char *names; // back to back
    dgm_member members[MEMBERS];
    size_t count;
} offered;

struct dgm_tune_bench {
    dgm_settings fixed;
    bool latency;
    const dgm_tune_text *text;
    dgm_metric *metric;
    int width;
    offered models[DGM_TUNE_MODELS];
    holder lenders[LENDERS], kept[KEPT];
    uint64_t uses, memory; // memory: that open translators may hold
    char **careful;        // [lines], NULL: not known
    dgm_text *refs;        // of a line
};

dgm_status dgm_tune_bench_open(dgm_tune_bench **out, const dgm_settings *fixed, bool latency, const dgm_tune_text *text,
                               dgm_metric *metric, dgm_error *err)
{
    dgm_tune_bench *b = *out = dgm_calloc(1, sizeof *b);
    if (!b) return dgm_no_memory(err);
    b->fixed = *fixed;
    b->latency = latency;
    b->text = text;
    b->metric = metric;
    b->width = dgm_metric_width(metric);
    b->memory = dgm_memory_available() / 4;
    b->careful = dgm_calloc(text->count + 1, sizeof *b->careful);
    b->refs = dgm_calloc(text->ref_count + 1, sizeof *b->refs);
    return b->careful && b->refs ? DGM_OK : dgm_no_memory(err);
}

static void release(holder *h)
{
    dgm_close(&h->t);
    dgm_free(h->options);
    *h = (holder){0};
}

void dgm_tune_bench_forget(dgm_tune_bench *b)
{
    for (size_t i = 0; b->careful && i < b->text->count; i++) {
        dgm_free(b->careful[i]);
        b->careful[i] = NULL;
    }
}

void dgm_tune_bench_close(dgm_tune_bench **bench)
{
    dgm_tune_bench *b = *bench;
    if (!b) return;
    for (int i = 0; i < KEPT; i++) release(&b->kept[i]);
    for (int i = 0; i < LENDERS; i++) release(&b->lenders[i]);
    for (int i = 0; i < DGM_TUNE_MODELS; i++) dgm_free(b->models[i].names);
    dgm_tune_bench_forget(b);
    dgm_free(b->careful);
    dgm_free(b->refs);
    dgm_free(b);
    *bench = NULL;
}

// ---- translators -------------------------------------------------------------------------------

// "a+b" are two models, unless there is a file of that name.
static dgm_status split_members(offered *m, const char *given, dgm_error *err)
{
    m->names = dgm_strdup(given);
    if (!m->names) return dgm_no_memory(err);
    const bool one = dgm_file_exists(given);
    for (char *p = m->names; p;) {
        char *plus = one ? NULL : strchr(p, '+');
        DGM_FAIL_IF(m->count == MEMBERS, err, DGM_ERR_ARGUMENT, "'%s': an ensemble has at most %d models", given,
                    MEMBERS);
        DGM_FAIL_IF(!*p || plus == p, err, DGM_ERR_ARGUMENT, "'%s': there is no name beside a '+'", given);
        if (plus) *plus = 0;
        m->members[m->count++] = (dgm_member){p, 0};
        p = plus ? plus + 1 : NULL;
    }
    return DGM_OK;
}

static holder *find(holder *list, int count, int model, const char *options)
{
    for (int i = 0; i < count; i++)
        if (list[i].t && list[i].model == model && strcmp(list[i].options, options) == 0) return &list[i];
    return NULL;
}

// The place that nobody has used for the longest time, made free.
static holder *oldest(holder *list, int count)
{
    holder *h = &list[0];
    for (int i = 1; i < count; i++)
        if (list[i].used < h->used) h = &list[i];
    release(h);
    return h;
}

static dgm_status open_lender(dgm_tune_bench *b, int model, const char *options, holder **out, dgm_error *err)
{
    char *own = dgm_strdup(options), *borrowed = dgm_strdup(options);
    dgm_settings s = b->fixed;
    dgm_translator *t = NULL;
    s.threads = 1;
    dgm_status st = own && borrowed ? dgm_tune_options_apply(borrowed, &s, err) : dgm_no_memory(err);
    const offered *m = &b->models[model];
    if (st == DGM_OK) st = dgm_open_ensemble(&t, m->members, m->count, &s, err);
    dgm_free(borrowed);
    if (st != DGM_OK) {
        dgm_free(own);
        return st;
    }
    *out = oldest(b->lenders, LENDERS);
    **out = (holder){model, own, t, ++b->uses, false};
    return DGM_OK;
}

static dgm_status lender_of(dgm_tune_bench *b, int model, const char *options, holder **out, dgm_error *err)
{
    dgm_writer w = {0};
    dgm_tune_options_weights(options, &w);
    char *weights = dgm_writer_take(&w, NULL);
    if (!weights) return dgm_no_memory(err);
    *out = find(b->lenders, LENDERS, model, weights);
    const dgm_status st = *out ? DGM_OK : open_lender(b, model, weights, out, err);
    if (st == DGM_OK) (*out)->used = ++b->uses;
    dgm_free(weights);
    return st;
}

// The memory of a new translator is paid for when it is first touched: a few lines do that, which nobody times.
static dgm_status warm_up(const dgm_tune_bench *b, holder *h, dgm_error *err)
{
    dgm_input inputs[WARM_LINES];
    const size_t most = b->latency ? 1 : WARM_LINES, count = b->text->count < most ? b->text->count : most;
    dgm_results *r = NULL;
    if (h->warm) return DGM_OK;
    for (size_t i = 0; i < count; i++) {
        const dgm_line line = b->text->source[i];
        inputs[i] = (dgm_input){.size = sizeof *inputs, .text = line.data, .text_size = line.size};
    }
    DGM_TRY(dgm_translate_inputs(h->t, inputs, count, &r, err));
    dgm_results_free(&r);
    h->warm = true;
    return DGM_OK;
}

// Makes room for one more: those that were not used for the longest time go, as long as all together hold too much
// memory.
static holder *room(dgm_tune_bench *b)
{
    for (;;) {
        uint64_t bytes = 0;
        int threads = 0;
        holder *empty = NULL, *last = NULL;
        for (int i = 0; i < KEPT; i++) {
            holder *h = &b->kept[i];
            dgm_counters c;
            if (!h->t) {
                empty = h;
                continue;
            }
            dgm_count(h->t, &c);
            bytes += c.arena_peak;
            threads += dgm_describe(h->t)->threads;
            if (!last || h->used < last->used) last = h;
        }
        if (empty && (!last || (bytes < b->memory && threads < MOST_THREADS))) return empty;
        release(last);
    }
}

static dgm_status translator_of(dgm_tune_bench *b, int model, const char *options, holder **out, dgm_settings *settings,
                                dgm_error *err)
{
    holder *h = find(b->kept, KEPT, model, options), *lender = NULL;
    if (h && !settings) {
        h->used = ++b->uses;
        *out = h;
        return DGM_OK;
    }
    DGM_TRY(lender_of(b, model, options, &lender, err));
    char *own = dgm_strdup(options), *borrowed = dgm_strdup(options);
    dgm_settings s = b->fixed;
    dgm_translator *t = NULL;
    dgm_status st = own && borrowed ? dgm_tune_options_apply(borrowed, &s, err) : dgm_no_memory(err);
    if (st == DGM_OK) st = dgm_open_like(&t, lender->t, &s, err);
    if (settings) *settings = s; // numbers only: its texts are gone
    dgm_free(borrowed);
    if (st != DGM_OK) {
        dgm_close(&t);
        dgm_free(own);
        return st;
    }
    h = room(b);
    *h = (holder){model, own, t, ++b->uses, false};
    *out = h;
    return DGM_OK;
}

dgm_status dgm_tune_bench_model(dgm_tune_bench *b, int index, const char *given, dgm_tune_model *out, dgm_error *err)
{
    holder *h = NULL;
    DGM_TRY(split_members(&b->models[index], given, err));
    DGM_TRY(lender_of(b, index, "", &h, err));
    const dgm_translator_info *i = dgm_describe(h->t);
    *out = (dgm_tune_model){.given = dgm_strdup(given),
                            .source = dgm_strdup(i->source_language),
                            .target = dgm_strdup(i->target_language),
                            .name = dgm_strdup(i->name),
                            .beam = i->beam,
                            .masked = strcmp(i->search, "mask-predict") == 0};
    return out->given && out->source && out->target && out->name ? DGM_OK : dgm_no_memory(err);
}

// ---- what settings become ----------------------------------------------------------------------

// Options that describe() says in another way, or not where they say nothing.
static bool is_told(const char *name, size_t n)
{
    static const char *const told[] = {"precision",  "beam",     "shortlist", "finish",        "search",
                                       "iterations", "lengths",  "margin",    "beam-width",    "cube-key",
                                       "pairs",      "softmax",  "cube",      "static-scales", "no-static-scales"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strlen(told[i]) == n && strncmp(told[i], name, n) == 0) return true;
    return false;
}

static void put_number(dgm_writer *w, const char *name, float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", (double)value);
    dgm_tune_shorten(text, sizeof text);
    dgm_write_format(w, " --%s %s", name, text);
}

static void describe_search(const dgm_translator_info *i, const dgm_settings *s, dgm_writer *w)
{
    if (strcmp(i->search, "mask-predict") == 0) {
        dgm_write_format(w, " --iterations %d --lengths %d", (int)i->iterations, (int)i->beam);
        return;
    }
    dgm_write_format(w, " --beam %d", (int)i->beam);
    if (strcmp(i->search, "cube") == 0) {
        dgm_write_text(w, " --search cube");
        if (s->cube) dgm_write_format(w, " --cube %s", s->cube);
        if (strcmp(i->cube_key, "token") != 0) dgm_write_format(w, " --cube-key %s", i->cube_key);
    }
    if (strcmp(i->pairs, "exact") == 0) dgm_write_text(w, " --pairs exact");
    if (i->beam == 1) return;
    dgm_write_format(w, " --finish %s", i->finish);
    if (strcmp(i->finish, "margin") == 0) put_number(w, "margin", i->margin);
    if (i->beam_width > 0) put_number(w, "beam-width", i->beam_width);
}

// What settings became with the model and the defaults of its file, as options that say all of it.
static char *describe(const dgm_translator *t, const dgm_settings *s, const char *options)
{
    const dgm_translator_info *i = dgm_describe(t);
    dgm_writer w = {0};
    dgm_write_format(&w, "--precision %s", i->precision);
    describe_search(i, s, &w);
    dgm_write_format(&w, " --shortlist %s", i->shortlist);
    if (strcmp(i->softmax, "on") != 0) dgm_write_format(&w, " --softmax %s", i->softmax);
    if (i->static_scales) dgm_write_text(&w, " --static-scales");
    for (const char *p = options; (p = strstr(p, "--"));) {
        const size_t name = strcspn(p + 2, " ");
        const char *next = strstr(p + 2, " --");
        const size_t size = next ? (size_t)(next - p) : strlen(p);
        if (!is_told(p + 2, name)) dgm_write_format(&w, " %.*s", (int)size, p);
        p += size;
    }
    return dgm_writer_take(&w, NULL);
}

// Activations are those of recurrent cells: whether a model has such, the table of features knows.
static bool is_idle(const dgm_translator *t, const char *options)
{
    return strstr(options, "--activations") && dgm_translator_check(t, "precompute", NULL) != DGM_OK;
}

dgm_status dgm_tune_bench_try(dgm_tune_bench *b, int model, const char *options, bool one_hypothesis_refused,
                              dgm_tune_opened *out, dgm_error *err)
{
    holder *h = NULL;
    dgm_settings s;
    dgm_error own = {0};
    *out = (dgm_tune_opened){0};
    const dgm_status st = translator_of(b, model, options, &h, &s, &own);
    const bool refused = st == DGM_ERR_ARGUMENT || st == DGM_ERR_UNSUPPORTED;
    if (st != DGM_OK && !refused) {
        if (err) *err = own;
        return st;
    }
    const dgm_translator_info *i = h ? dgm_describe(h->t) : NULL;
    const bool single = i && (i->beam == 1 || strcmp(i->search, "mask-predict") == 0);
    if (refused)
        out->refused = dgm_strdup(own.text);
    else if (single && one_hypothesis_refused)
        out->refused = dgm_strdup("it says nothing where there is one hypothesis");
    else if (is_idle(h->t, options))
        out->refused = dgm_strdup("it says nothing to this model");
    else
        out->options = describe(h->t, &s, options);
    return out->refused || out->options ? DGM_OK : dgm_no_memory(err);
}

// ---- a part of the text ------------------------------------------------------------------------

typedef struct part {
    dgm_tune_bench *b;
    size_t from, to;
    dgm_results **results; // of every call
    size_t calls;
} part;

static const char *text_of(const part *p, size_t line)
{
    const size_t i = line - p->from;
    return p->b->latency ? dgm_result_text(p->results[i]->items[0]) : dgm_result_text(p->results[0]->items[i]);
}

static dgm_status translate_part(part *p, dgm_translator *t, dgm_tune_run *out, dgm_error *err)
{
    const size_t count = p->to - p->from;
    dgm_input *inputs = dgm_calloc(count + 1, sizeof *inputs);
    p->results = dgm_calloc(count + 1, sizeof *p->results);
    dgm_status st = inputs && p->results ? DGM_OK : dgm_no_memory(err);
    for (size_t i = 0; st == DGM_OK && i < count; i++) {
        const dgm_line line = p->b->text->source[p->from + i];
        inputs[i] = (dgm_input){.size = sizeof *inputs, .text = line.data, .text_size = line.size};
    }
    const double wall = dgm_now(), cpu = dgm_process_time();
    const size_t step = p->b->latency ? 1 : count;
    for (size_t i = 0; st == DGM_OK && i < count; i += step) {
        st = dgm_translate_inputs(t, inputs + i, step, &p->results[p->calls], err);
        if (st == DGM_OK) p->calls++;
    }
    out->wall = dgm_now() - wall;
    out->cpu = dgm_process_time() - cpu;
    dgm_free(inputs);
    return st;
}

static dgm_status keep_careful(const part *p, dgm_error *err)
{
    for (size_t i = p->from; i < p->to; i++) {
        if (p->b->careful[i]) continue;
        p->b->careful[i] = dgm_strdup(text_of(p, i));
        if (!p->b->careful[i]) return dgm_no_memory(err);
    }
    return DGM_OK;
}

static dgm_status keep_sample(const part *p, size_t line, dgm_tune_run *out, dgm_error *err)
{
    const dgm_line source = p->b->text->source[line];
    dgm_tune_difference *s = &out->samples[out->sample_count++];
    *s = (dgm_tune_difference){p->b->text->number[line], dgm_strndup(source.data, source.size),
                               dgm_strdup(p->b->careful[line]), dgm_strdup(text_of(p, line))};
    return s->source && s->careful && s->text ? DGM_OK : dgm_no_memory(err);
}

// References of a line, or the careful translation where there are none.
static size_t references(const part *p, size_t line)
{
    const dgm_tune_text *t = p->b->text;
    if (t->ref_count == 0) {
        p->b->refs[0] = dgm_text_of(p->b->careful[line]);
        return 1;
    }
    for (size_t k = 0; k < t->ref_count; k++) {
        const dgm_line ref = t->refs[k][line];
        p->b->refs[k] = (dgm_text){ref.size || t->ref_count == 1 ? ref.data : NULL, ref.size};
    }
    return t->ref_count;
}

static dgm_status score_part(const part *p, bool rows, dgm_tune_run *out, dgm_error *err)
{
    if (rows && !(out->rows = dgm_calloc((p->to - p->from) * (size_t)p->b->width + 1, sizeof *out->rows)))
        return dgm_no_memory(err);
    out->hash = DGM_HASH_START;
    for (size_t i = p->from; i < p->to; i++) {
        const dgm_text text = dgm_text_of(text_of(p, i));
        out->hash = dgm_hash_number(dgm_hash_bytes(out->hash, text.data, text.size), '\n');
        const bool same = p->b->careful[i] && strcmp(p->b->careful[i], text.data) == 0;
        out->same += same;
        if (!rows) continue;
        const size_t refs = references(p, i);
        DGM_TRY(dgm_metric_segment(p->b->metric, text, p->b->refs, refs,
                                   out->rows + (i - p->from) * (size_t)p->b->width, err));
        if (!same && p->b->careful[i] && out->sample_count < DGM_TUNE_SAMPLES) DGM_TRY(keep_sample(p, i, out, err));
    }
    return DGM_OK;
}

static void count_part(const dgm_translator *t, const dgm_counters *before, dgm_tune_run *out)
{
    dgm_counters now;
    dgm_count(t, &now);
    const dgm_translator_info *i = dgm_describe(t);
    out->counts = (dgm_tune_counts){.lines = now.lines - before->lines,
                                    .steps = now.steps - before->steps,
                                    .rows = now.rows - before->rows,
                                    .rank_rows = now.rank_rows - before->rank_rows,
                                    .dots = now.dots - before->dots,
                                    .live = now.live - before->live,
                                    .leads = now.leads - before->leads,
                                    .target_tokens = now.target_tokens - before->target_tokens,
                                    .vocabulary = (uint64_t)i->vocabulary * (uint64_t)i->models};
    out->bytes = i->packed_bytes + now.arena_peak;
}

bool dgm_tune_bench_knows(const dgm_tune_bench *b, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (!b->careful[i]) return false;
    return true;
}

dgm_status dgm_tune_bench_run(dgm_tune_bench *b, int model, const char *options, size_t from, size_t to, bool careful,
                              bool rows, dgm_tune_run *out, dgm_error *err)
{
    holder *h = NULL;
    dgm_counters before;
    part p = {.b = b, .from = from, .to = to};
    *out = (dgm_tune_run){.lines = to - from};
    DGM_TRY(translator_of(b, model, options, &h, NULL, err));
    DGM_TRY(warm_up(b, h, err));
    dgm_count(h->t, &before);
    dgm_status st = translate_part(&p, h->t, out, err);
    if (st == DGM_OK) count_part(h->t, &before, out);
    if (st == DGM_OK && careful) st = keep_careful(&p, err);
    if (st == DGM_OK) st = score_part(&p, rows, out, err);
    for (size_t i = 0; i < p.calls; i++) dgm_results_free(&p.results[i]);
    dgm_free(p.results);
    if (st != DGM_OK) dgm_tune_run_free(out);
    return st;
}

// ---- where the time goes -----------------------------------------------------------------------

static struct dgm_tune_shares shares_of(const dgm_profile *p)
{
    struct dgm_tune_shares s = {0};
    double adds = 0, bytes = 0;
    for (size_t i = 0; i < p->count; i++) {
        const dgm_profile_row *r = p->rows[i];
        if (strcmp(r->operation, "linear") == 0) {
            s.products += r->seconds;
            adds += (double)r->multiply_adds;
            bytes += (double)r->weight_bytes;
        }
        if (strcmp(r->phase, "rank") == 0) s.output += r->seconds;
    }
    const double all = p->busy > 0 ? p->busy : 1;
    s.products /= all;
    s.output /= all;
    s.search = p->search / all;
    s.adds_per_byte = bytes > 0 ? adds / bytes : 0;
    return s;
}

dgm_status dgm_tune_bench_profile(dgm_tune_bench *b, int model, const char *options, size_t lines,
                                  struct dgm_tune_shares *out, dgm_error *err)
{
    holder *h = NULL;
    dgm_tune_run run = {0};
    dgm_profile *profile = NULL;
    part p = {.b = b, .from = 0, .to = lines};
    DGM_TRY(translator_of(b, model, options, &h, NULL, err));
    DGM_TRY(dgm_profile_start(h->t, err));
    dgm_status st = translate_part(&p, h->t, &run, err);
    for (size_t i = 0; i < p.calls; i++) dgm_results_free(&p.results[i]);
    dgm_free(p.results);
    if (st == DGM_OK) st = dgm_profile_read(h->t, &profile, err);
    if (st == DGM_OK) *out = shares_of(profile);
    dgm_profile_free(&profile);
    dgm_profile_stop(h->t);
    return st;
}

// ---- weights of evidence -------------------------------------------------------------------------

static int go_on(void *cookie, const dgm_lmbr_trial *trial)
{
    const dgm_progress *p = cookie;
    (void)trial;
    return p->tick ? p->tick(p->cookie, NULL, 0) : 0;
}

void dgm_tune_bench_hold(dgm_tune_bench *b, const dgm_lmbr *weights)
{
    b->fixed.lmbr = *weights;
}

dgm_status dgm_tune_bench_weights(dgm_tune_bench *b, int model, size_t lines, double seconds,
                                  const dgm_progress *progress, dgm_lmbr *weights, dgm_error *err)
{
    holder *h = NULL;
    dgm_lmbr_tune_options o;
    dgm_progress own = *progress;
    DGM_TRY(translator_of(b, model, "", &h, NULL, err));
    dgm_input *inputs = dgm_calloc(lines + 1, sizeof *inputs);
    if (!inputs) return dgm_no_memory(err);
    for (size_t i = 0; i < lines; i++) {
        const dgm_line line = b->text->source[i];
        inputs[i] = (dgm_input){.size = sizeof *inputs, .text = line.data, .text_size = line.size};
    }
    dgm_lmbr_tune_default(&o);
    o.start = b->fixed.lmbr;
    o.seconds = seconds;
    o.trial = go_on;
    o.cookie = &own;
    const dgm_status st = dgm_lmbr_tune(h->t, inputs, b->text->refs[0], lines, &o, weights, NULL, err);
    dgm_free(inputs);
    release(h); // its weights are those of the last trial
    return st;
}
