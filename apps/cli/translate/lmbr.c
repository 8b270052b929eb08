// SPDX-License-Identifier: MIT
// Options of LMBR and its settings files; see lmbr.h.
//
// A settings file has a name and a value on each line, in any order, `name = value`; what follows
// a '#' is for people:
//
//     lambda = 0.4
//     p = 0.8
//     thetas = 0.1,1,1,1,1   in place of p, r and t
//     order = 4              optional, as all of them
//     length_penalty = 1     what the settings were found with
#include "translate/lmbr.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_LONGEST = 1024 }; // what is behind it is a comment, or no setting

static float *field_of(dgm_settings *s, const char *name)
{
    dgm_lmbr *w = &s->lmbr;
    const struct {
        const char *name;
        float *at;
    } fields[] = {{"p", &w->p},           {"r", &w->r},
                  {"t", &w->t},           {"scale", &w->scale},
                  {"lambda", &w->lambda}, {"length_penalty", &s->length_penalty}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(fields[i].name, name) == 0) return fields[i].at;
    return NULL;
}

// One line of a settings file; NULL, or what is wrong with it.
static const char *read_setting(const char *text, dgm_settings *s)
{
    static const char blanks[] = " \t\r";
    char copy[LINE_LONGEST], *line = copy;
    snprintf(copy, sizeof copy, "%s", text);
    line[strcspn(line, "#")] = 0;
    line += strspn(line, blanks);
    if (!*line) return NULL;
    char *value = strchr(line, '=');
    if (!value) return "not 'name = value'";
    *value++ = 0;
    line[strcspn(line, blanks)] = 0;
    value += strspn(value, blanks);
    for (char *end = value + strlen(value); end > value && strchr(blanks, end[-1]);) *--end = 0;
    if (strcmp(line, "thetas") == 0)
        return dgm_settings_set(s, "lmbr-thetas", value, NULL) == DGM_OK ? NULL : "not five numbers";
    if (strcmp(line, "order") == 0)
        return dgm_settings_set(s, "lmbr-order", value, NULL) == DGM_OK ? NULL : "not an order of 1 to 4";
    float *field = field_of(s, line);
    if (!field) return "an unknown setting";
    double v;
    if (dgm_number_real(line, value, -FLT_MAX, FLT_MAX, &v, NULL) != DGM_OK) return "not a number";
    *field = (float)v;
    return NULL;
}

static int read_settings(const char *path, dgm_settings *s)
{
    text_file f = {0};
    int code = -1;
    if (!text_file_read(&f, path)) return EXIT_RUNTIME;
    for (size_t i = 0; i < f.count && code < 0; i++) {
        const char *wrong = read_setting(f.lines[i].data, s);
        if (wrong)
            code = fail(EXIT_RUNTIME, "%s:%zu: %s: '%.47s'", path, i + 1, wrong, f.lines[i].data);
    }
    text_file_free(&f);
    return code;
}

// What the command line gives stays; of the file's settings come the others.
static void keep_given(const setting_values *set, dgm_settings *from_file)
{
    const dgm_settings *s = &set->settings;
    if (settings_given(set, "lmbr-p")) from_file->lmbr.p = s->lmbr.p;
    if (settings_given(set, "lmbr-r")) from_file->lmbr.r = s->lmbr.r;
    if (settings_given(set, "lmbr-t")) from_file->lmbr.t = s->lmbr.t;
    if (settings_given(set, "lmbr-scale")) from_file->lmbr.scale = s->lmbr.scale;
    if (settings_given(set, "lmbr-lambda")) from_file->lmbr.lambda = s->lmbr.lambda;
    if (settings_given(set, "lmbr-thetas")) {
        memcpy(from_file->lmbr.thetas, s->lmbr.thetas, sizeof s->lmbr.thetas);
        from_file->lmbr.use_thetas = s->lmbr.use_thetas;
    }
    if (settings_given(set, "lmbr-order")) from_file->lmbr_order = s->lmbr_order;
    if (settings_given(set, "length-penalty")) from_file->length_penalty = s->length_penalty;
}

static bool any_weight(const setting_values *set)
{
    for (size_t i = 0; i < SETTINGS_MAX && dgm_setting_at(i); i++)
        if (set->given[i] && strncmp(dgm_setting_at(i)->name, "lmbr-", 5) == 0) return true;
    return false;
}

int lmbr_weights(const lmbr_options *o, setting_values *set)
{
    const bool phrases = set->settings.phrase_system != NULL;
    if (!o->file && !phrases && (o->settings || o->tune || o->dump || any_weight(set)))
        return fail(EXIT_USAGE, "the options --lmbr-* require --lmbr FILE or --evidence FILE");
    if (!o->file && o->detokenize)
        return fail(EXIT_USAGE, "--lmbr-detokenize requires --lmbr FILE");
    if (!phrases && (settings_given(set, "evidence-kind") || settings_given(set, "evidence-nbest")))
        return fail(EXIT_USAGE, "the options --evidence-* require --evidence FILE");
    dgm_settings read = set->settings;
    int code = o->settings ? read_settings(o->settings, &read) : -1;
    if (code >= 0) return code;
    keep_given(set, &read);
    set->settings = read;
    set->settings.evidence = o->file != NULL;
    set->settings.lmbr_ngrams = o->dump != NULL;
    return -1;
}

void lmbr_describe(const dgm_lmbr *w, char *text, size_t size)
{
    if (w->use_thetas)
        snprintf(text, size, "thetas %.6g %.6g %.6g %.6g %.6g scale %.6g lambda %.6g",
                 (double)w->thetas[0], (double)w->thetas[1], (double)w->thetas[2],
                 (double)w->thetas[3], (double)w->thetas[4], (double)w->scale, (double)w->lambda);
    else
        snprintf(text, size, "p %.6g r %.6g t %.6g scale %.6g lambda %.6g", (double)w->p,
                 (double)w->r, (double)w->t, (double)w->scale, (double)w->lambda);
}

dgm_evidence_file *lmbr_open(const lmbr_options *o)
{
    dgm_evidence_file *file = NULL;
    dgm_evidence_options options = {.size = sizeof options, .detokenize = o->detokenize};
    dgm_error error;
    if (dgm_evidence_open(&file, o->file, &options, &error) != DGM_OK)
        fail(EXIT_RUNTIME, "%s", error.text);
    return file;
}

void lmbr_warn(const dgm_translator *t, const setting_values *set)
{
    dgm_counters c;
    dgm_count(t, &c);
    if (c.evidence_pruned)
        warn("lattices of the evidence were too large and were pruned: %llu of %llu (--lmbr-limit %d)",
             (unsigned long long)c.evidence_pruned, (unsigned long long)c.evidence_lines,
             (int)set->settings.lmbr_limit);
}

void lmbr_write(line_writer *out, uint64_t line, const dgm_result *r)
{
    for (size_t i = 0; i < r->ngram_count; i++) {
        const dgm_evidence_ngram *n = &r->ngrams[i];
        writer_format(out, "%llu ||| ", (unsigned long long)line);
        writer_text(out, n->tokens);
        writer_format(out, " ||| %.6g ||| %.6g\n", n->posterior, n->gain);
    }
}

// ---- windows -----------------------------------------------------------------------------------

static void add_text(evidence_window *w, const char *text, size_t size)
{
    if (w->text_used + size > w->text_cap) {
        w->text_cap = (w->text_used + size) * 2;
        w->text = need(realloc(w->text, w->text_cap));
    }
    if (size) memcpy(w->text + w->text_used, text, size);
    w->text_used += size;
}

static void add_candidate(evidence_window *w, const dgm_evidence_candidate *g)
{
    if (w->candidate_count == w->candidate_cap) {
        w->candidate_cap = w->candidate_cap ? w->candidate_cap * 2 : 1024;
        w->candidates = need(realloc(w->candidates, w->candidate_cap * sizeof *w->candidates));
    }
    add_text(w, g->text, g->size);
    w->candidates[w->candidate_count++] = *g;
}

void evidence_put(evidence_window *w, const dgm_evidence *e, uint32_t *sum)
{
    if (w->count == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 256;
        w->lines = need(realloc(w->lines, w->cap * sizeof *w->lines));
    }
    w->lines[w->count++] = *e; // where its texts will lie is not known yet
    if (e->lattice) {
        add_text(w, e->lattice, e->lattice_size);
        *sum = checksum(*sum, e->lattice, e->lattice_size);
    }
    for (size_t i = 0; i < e->count; i++) {
        const dgm_evidence_candidate *g = &e->candidates[i];
        add_candidate(w, g);
        *sum = checksum(checksum(*sum, g->text, g->size), &g->score, sizeof g->score);
    }
}

bool evidence_add(evidence_window *w, uint64_t number, uint32_t *sum)
{
    dgm_evidence e;
    dgm_error error;
    if (!w->file) return true;
    if (dgm_evidence_next(w->file, number, &e, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        return false;
    }
    evidence_put(w, &e, sum);
    return true;
}

void evidence_skip(evidence_window *w)
{
    w->text_used = w->candidate_count = w->count = 0;
}

void evidence_attach(evidence_window *w, dgm_input *inputs, size_t count)
{
    const char *at = w->text;
    dgm_evidence_candidate *g = w->candidates;
    for (size_t i = 0; i < w->count && i < count; i++) {
        inputs[i].evidence = &w->lines[i];
        w->lines[i].candidates = g;
        if (w->lines[i].lattice) w->lines[i].lattice = at;
        at += w->lines[i].lattice_size;
        for (const dgm_evidence_candidate *end = g + w->lines[i].count; g < end; g++) {
            g->text = at;
            at += g->size;
        }
    }
}

bool evidence_complete(evidence_window *w, uint64_t lines)
{
    dgm_error error;
    if (!w->file || dgm_evidence_finish(w->file, lines, &error) == DGM_OK) return true;
    fail(EXIT_RUNTIME, "%s", error.text);
    return false;
}

void evidence_free(evidence_window *w)
{
    dgm_evidence_close(&w->file);
    free(w->text);
    free(w->candidates);
    free(w->lines);
}
