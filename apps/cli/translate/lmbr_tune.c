// SPDX-License-Identifier: MIT
// `translate --lmbr-tune`: reads text, references, evidence and all that goes with lines, and writes the weights that
// dgm_lmbr_tune_route finds as a settings file. What was tried is kept in OUTPUT.trials until then (lmbr_trials.h).
#define _GNU_SOURCE
#include "translate/lmbr_tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "translate/documents.h"
#include "translate/job.h"
#include "translate/lmbr_trials.h"

typedef struct tuning {
    const command *self;
    const translate_options *o;
    const char *output;
    dgm_route *route;
    dgm_translator *t;
    bool owned;
    reranker *rerank;
    dgm_document *document;
    text_file source, reference;
    dgm_line *lines; // of the source, or of the document
    size_t count;
    text_file with[COMPANIONS]; // prefixes, constraints, directions
    dgm_input *inputs;          // [count]
    direction_window directions;
    evidence_window evidence; // of all lines, where a file has it
    lattice_window lattices;
    dgm_evidence_file *lists; // lattices of the evidence once more, as lists
    uint32_t sum;             // CRC-32 of all that the trials depend on
    trial_file trials;
    int count_trials;
} tuning;

// ---- trials -----------------------------------------------------------------------------------------

static int show(void *cookie, const dgm_lmbr_trial *x)
{
    tuning *u = cookie;
    u->count_trials = x->number;
    if (x->number > 0 && x->seconds > 0 && !trials_add(&u->trials, x)) return 1;
    if (u->o->quiet) return 0;
    if (x->number == 0)
        fprintf(stderr, "     BLEU %.3f  best of the evidence\n", x->bleu);
    else
        fprintf(stderr, "%3d  BLEU %.3f  lambda %.4f  scale %.4f  p %.4f  r %.4f  (%.1f s)\n", (int)x->number, x->bleu,
                (double)x->weights.lambda, (double)x->weights.scale, (double)x->weights.p, (double)x->weights.r,
                x->seconds);
    return 0;
}

static dgm_status next_list(void *cookie, size_t line, dgm_evidence *list, dgm_error *error)
{
    tuning *u = cookie;
    const dgm_evidence_options options = {
        .size = sizeof options, .detokenize = u->o->lmbr.detokenize, .nbest = DGM_LMBR_PATHS};
    if (!u->lists) {
        const dgm_status st = dgm_evidence_open(&u->lists, u->o->lmbr.file, &options, error);
        if (st != DGM_OK) return st;
    }
    return dgm_evidence_next(u->lists, line, list, error);
}

// ---- lines ------------------------------------------------------------------------------------------

static bool read_source(tuning *u)
{
    const translate_options *o = u->o;
    if (o->format && !(u->document = document_load(o))) return false;
    if (!o->format && !text_file_read(&u->source, o->input)) return false;
    if (!text_file_read(&u->reference, o->lmbr.tune)) return false;
    u->count = u->document ? dgm_document_describe(u->document)->lines : u->source.count;
    u->lines = need(calloc(u->count + 1, sizeof *u->lines));
    for (size_t i = 0; i < u->count; i++) {
        u->lines[i] = u->document ? (dgm_line){0} : u->source.lines[i];
        if (u->document) u->lines[i].data = dgm_document_line(u->document, i, &u->lines[i].size);
    }
    if (u->count == u->reference.count && u->count > 0) return true;
    fail(EXIT_RUNTIME, "'%s' has %zu lines, the %s %zu", o->lmbr.tune, u->reference.count,
         u->document ? "document" : "input", u->count);
    return false;
}

static bool read_companions(tuning *u)
{
    const char *const names[COMPANIONS] = {u->o->prefix, u->o->constraints, u->o->directions};
    for (int i = 0; i < COMPANIONS; i++) {
        if (!names[i]) continue;
        if (!text_file_read(&u->with[i], names[i])) return false;
        if (u->with[i].count == u->count) continue;
        fail(EXIT_RUNTIME, "'%s' has %zu lines, the input %zu", names[i], u->with[i].count, u->count);
        return false;
    }
    return true;
}

static dgm_line companion_line(tuning *u, int which, size_t i)
{
    const dgm_line line = u->with[which].count ? u->with[which].lines[i] : (dgm_line){"", 0};
    u->sum = checksum(checksum(u->sum, line.data, line.size), "\n", 1);
    return line;
}

static bool read_all(tuning *u)
{
    size_t bytes = 0;
    u->inputs = need(calloc(u->count + 1, sizeof *u->inputs));
    for (size_t i = 0; i < u->with[2].count; i++) bytes += u->with[2].lines[i].size;
    directions_begin(&u->directions, u->count, bytes);
    for (size_t i = 0; i < u->count; i++) {
        dgm_input *in = &u->inputs[i];
        dgm_input_default(in);
        in->text = u->lines[i].data;
        in->text_size = u->lines[i].size;
        const dgm_line prefix = companion_line(u, 0, i), demands = companion_line(u, 1, i);
        const dgm_line direction = companion_line(u, 2, i);
        if (prefix.size) in->prefix = prefix.data, in->prefix_size = prefix.size;
        if (demands.size) in->constraints = demands.data, in->constraints_size = demands.size;
        directions_add(&u->directions, i, direction.data, direction.size, in);
        u->sum = checksum(checksum(u->sum, in->text, in->text_size), "\n", 1);
        u->sum = checksum(checksum(u->sum, u->reference.lines[i].data, u->reference.lines[i].size), "\n", 1);
        if (!evidence_add(&u->evidence, i, &u->sum) || !lattices_add(&u->lattices, &u->sum)) return false;
    }
    evidence_attach(&u->evidence, u->inputs, u->count);
    lattices_attach(&u->lattices, u->inputs, u->count);
    return evidence_complete(&u->evidence, u->count) && lattices_complete(&u->lattices, u->o->quiet);
}

// ---- what trials depend on --------------------------------------------------------------------------

static void add_text(tuning *u, const char *text)
{
    u->sum = checksum(u->sum, text, strlen(text) + 1);
}

// Models, files and options; lines are in it.
static bool add_identity(tuning *u)
{
    const translate_options *o = u->o;
    const dgm_settings *set = &o->engine.set.settings;
    char text[64 * LIST_MAX] = "", names[512];
    int code = engine_identity(&o->engine, text, sizeof text, names, sizeof names);
    add_text(u, dgm_version());
    add_text(u, text);
    if (code < 0) code = rerank_files(&o->rerank, NULL, text, sizeof text);
    for (int i = 0; code < 0 && i < DGM_TERMS_MAX && set->terms[i]; i++)
        if (is_file_name(dgm_directed_path(set->terms[i])))
            code = file_identity(dgm_directed_path(set->terms[i]), 1, text, sizeof text);
    add_text(u, text);
    text[0] = 0;
    if (code < 0) code = system_identity(set->phrase_system, text, sizeof text);
    add_text(u, text);
    lmbr_describe(&set->lmbr, text, sizeof text);
    add_text(u, text);
    option x;
    for (size_t at = 0; option_next(u->self, &at, &x);) {
        if (!(x.kind & OPTION_OUTPUT)) continue;
        char *value = option_value(u->self, &x, o);
        add_text(u, value);
        free(value);
    }
    return code < 0;
}

// ---- settings ---------------------------------------------------------------------------------------

static bool write_settings(const tuning *u, const dgm_lmbr *w, double bleu)
{
    line_writer *out = writer_open(u->output);
    if (!out) return false;
    writer_format(out, "# LMBR settings: BLEU %.2f on %zu lines, %d trials\n", bleu, u->count, u->count_trials);
    writer_format(out, "lambda = %.6g\nscale = %.6g\n", (double)w->lambda, (double)w->scale);
    if (w->use_thetas)
        writer_format(out, "thetas = %.9g,%.9g,%.9g,%.9g,%.9g\n", (double)w->thetas[0], (double)w->thetas[1],
                      (double)w->thetas[2], (double)w->thetas[3], (double)w->thetas[4]);
    else
        writer_format(out, "p = %.6g\nr = %.6g\nt = %.6g\n", (double)w->p, (double)w->r, (double)w->t);
    writer_format(out, "order = %d\n", (int)u->o->engine.set.settings.lmbr_order);
    writer_format(out, "length_penalty = %.6g\n", (double)dgm_describe(u->t)->length_penalty);
    return writer_close(out);
}

// As the settings file has it: what is read from there gives the same.
static void as_written(float *x)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", (double)*x);
    *x = strtof(text, NULL);
}

// --lmbr-dump: the evidence of all lines as the search has it with the weights that were found.
static bool write_dump(const tuning *u, const dgm_lmbr *w)
{
    enum { WINDOW = 256 };
    dgm_error error;
    line_writer *out = writer_open(u->o->lmbr.dump);
    if (!out) return false;
    dgm_status st = dgm_route_lmbr_set(u->route, w, &error);
    for (size_t at = 0; st == DGM_OK && at < u->count; at += WINDOW) {
        const size_t n = u->count - at < WINDOW ? u->count - at : WINDOW;
        dgm_results *results = NULL;
        st = dgm_route_translate(u->route, u->inputs + at, n, &results, &error);
        for (size_t i = 0; st == DGM_OK && i < n; i++) lmbr_write(out, at + i, results->items[i]);
        dgm_results_free(&results);
    }
    if (st != DGM_OK) fail(EXIT_RUNTIME, "%s", error.text);
    return writer_close(out) && st == DGM_OK;
}

static int tune(tuning *u)
{
    const setting_values *set = &u->o->engine.set;
    dgm_lmbr_tune_options o;
    dgm_lmbr weights;
    dgm_error error;
    double bleu = 0;
    const bool given = u->o->lmbr.settings != NULL;
    dgm_lmbr_tune_default(&o);
    o.start = set->settings.lmbr;
    o.keep_scale = given || settings_given(set, "lmbr-scale");
    o.keep_p = given || settings_given(set, "lmbr-p");
    o.keep_r = given || settings_given(set, "lmbr-r");
    o.cookie = u;
    o.trial = show;
    o.list = u->o->lmbr.file ? next_list : NULL;
    o.rerankers = rerank_list(u->rerank, &o.reranker_count);
    o.known = u->trials.known;
    o.known_count = u->trials.count;
    if (dgm_lmbr_tune_route(u->route, u->inputs, u->reference.lines, u->count, &o, &weights, &bleu, &error) != DGM_OK)
        return fail(EXIT_RUNTIME, "%s", error.text);
    if (!u->o->quiet) lmbr_warn(u->t, set);
    float *const found[] = {&weights.lambda, &weights.scale, &weights.p, &weights.r, &weights.t};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) as_written(found[i]);
    if (u->o->lmbr.dump && !write_dump(u, &weights)) return EXIT_RUNTIME;
    return write_settings(u, &weights, bleu) ? EXIT_FINE : EXIT_RUNTIME;
}

// ---- the whole --------------------------------------------------------------------------------------

// Settings that are there already are those of a run that was not interrupted.
static int check_left(const tuning *u)
{
    const translate_options *o = u->o;
    if (!is_file_name(u->output)) return -1;
    const bool left = trials_left(u->output);
    if (left && !o->resume && !o->overwrite)
        return fail(EXIT_RUNTIME, "'%s': an interrupted job is here: add --resume, or --overwrite", u->output);
    if (left || !o->resume || !is_regular(u->output)) return -1;
    if (!o->quiet) fprintf(stderr, "dragoman: '%s' is already complete\n", u->output);
    return EXIT_FINE;
}

static bool open_all(tuning *u, int *code)
{
    const translate_options *o = u->o;
    dgm_error error;
    if (o->lmbr.dump && !writer_possible(o->lmbr.dump)) return false;
    if (!read_source(u) || !read_companions(u)) return false;
    if (o->lmbr.file && !(u->evidence.file = lmbr_open(&o->lmbr))) return false;
    if (o->lattice && !(u->lattices.file = lattices_open(o->lattice))) return false;
    int failed = engine_open_route(&o->engine, &u->route, &u->t, &u->owned);
    if (failed < 0 && o->prefix && dgm_translator_check(u->t, "prefix", &error) != DGM_OK)
        failed = fail(EXIT_USAGE, "%s", error.text);
    const bool many = o->directions || is_auto(&o->engine);
    if (failed < 0) failed = rerank_open(&o->rerank, &o->engine, u->t, many, &u->rerank);
    if (failed >= 0) *code = failed;
    if (failed >= 0 || !read_all(u)) return false;
    return !is_file_name(u->output) || (add_identity(u) && trials_open(&u->trials, u->output, u->sum, o->resume));
}

int lmbr_tune(const command *self, const translate_options *o)
{
    tuning u = {.self = self, .o = o, .output = o->document_output ? o->document_output : o->output};
    int code = check_left(&u);
    if (code >= 0) return code;
    code = EXIT_RUNTIME;
    if (open_all(&u, &code)) code = tune(&u);
    trials_close(&u.trials, code == EXIT_FINE);
    rerank_close(&u.rerank);
    dgm_route_close(&u.route);
    if (u.owned) dgm_close(&u.t);
    free(u.inputs);
    free(u.lines);
    dgm_evidence_close(&u.lists);
    evidence_free(&u.evidence);
    lattices_free(&u.lattices);
    directions_free(&u.directions);
    dgm_document_close(&u.document);
    text_file_free(&u.source);
    text_file_free(&u.reference);
    for (int i = 0; i < COMPANIONS; i++) text_file_free(&u.with[i]);
    return code;
}
