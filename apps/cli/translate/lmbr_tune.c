// SPDX-License-Identifier: MIT
// `translate --lmbr-tune`: reads text, references and evidence, and writes the weights that dgm_lmbr_tune finds as a
// settings file.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "translate/lmbr.h"

typedef struct tuning {
    dgm_translator *t;
    const lmbr_options *o;
    const setting_values *set;
    text_file source, reference;
    dgm_input *inputs;        // [lines]
    evidence_window evidence; // of all lines, where a file has it
    dgm_evidence_file *lists; // its lattices once more, as lists
    int trials;
    bool quiet;
} tuning;

static int show(void *cookie, const dgm_lmbr_trial *x)
{
    tuning *u = cookie;
    u->trials = x->number;
    if (u->quiet) return 0;
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
        .size = sizeof options, .detokenize = u->o->detokenize, .nbest = DGM_LMBR_PATHS};
    if (!u->lists) {
        const dgm_status st = dgm_evidence_open(&u->lists, u->o->file, &options, error);
        if (st != DGM_OK) return st;
    }
    return dgm_evidence_next(u->lists, line, list, error);
}

static bool read_all(tuning *u)
{
    const size_t lines = u->source.count;
    uint32_t sum = 0;
    u->inputs = need(calloc(lines + 1, sizeof *u->inputs));
    for (size_t i = 0; i < lines; i++) {
        dgm_input_default(&u->inputs[i]);
        u->inputs[i].text = u->source.lines[i].data;
        u->inputs[i].text_size = u->source.lines[i].size;
        if (!evidence_add(&u->evidence, i, &sum)) return false;
    }
    evidence_attach(&u->evidence, u->inputs, lines);
    return evidence_complete(&u->evidence, lines);
}

static int write_settings(const tuning *u, const dgm_lmbr *w, double bleu, const char *output)
{
    line_writer *out = writer_open(output);
    if (!out) return EXIT_RUNTIME;
    writer_format(out, "# LMBR settings: BLEU %.2f on %zu lines, %d trials\n", bleu, u->source.count, u->trials);
    writer_format(out, "lambda = %.6g\nscale = %.6g\np = %.6g\nr = %.6g\nt = %.6g\n", (double)w->lambda,
                  (double)w->scale, (double)w->p, (double)w->r, (double)w->t);
    writer_format(out, "order = %d\n", (int)u->set->settings.lmbr_order);
    writer_format(out, "length_penalty = %.6g\n", (double)dgm_describe(u->t)->length_penalty);
    return writer_close(out) ? EXIT_FINE : EXIT_RUNTIME;
}

static int tune(tuning *u, const char *output)
{
    dgm_lmbr_tune_options o;
    dgm_lmbr weights;
    dgm_error error;
    double bleu = 0;
    const bool given = u->o->settings != NULL;
    dgm_lmbr_tune_default(&o);
    o.start = u->set->settings.lmbr;
    o.keep_scale = given || settings_given(u->set, "lmbr-scale");
    o.keep_p = given || settings_given(u->set, "lmbr-p");
    o.keep_r = given || settings_given(u->set, "lmbr-r");
    o.cookie = u;
    o.trial = show;
    o.list = u->o->file ? next_list : NULL;
    if (dgm_lmbr_tune(u->t, u->inputs, u->reference.lines, u->source.count, &o, &weights, &bleu, &error) != DGM_OK)
        return fail(EXIT_RUNTIME, "%s", error.text);
    if (!u->quiet) lmbr_warn(u->t, u->set);
    return write_settings(u, &weights, bleu, output);
}

int lmbr_tune(const lmbr_options *o, const engine_options *engine, const char *input, const char *output, bool quiet)
{
    tuning u = {.o = o, .set = &engine->set, .quiet = quiet};
    int code = EXIT_RUNTIME;
    if (!text_file_read(&u.source, input) || !text_file_read(&u.reference, o->tune)) goto end;
    if (u.source.count != u.reference.count || u.source.count == 0) {
        fail(EXIT_RUNTIME, "'%s' has %zu lines, the input %zu", o->tune, u.reference.count, u.source.count);
        goto end;
    }
    if (o->file && !(u.evidence.file = lmbr_open(o))) goto end;
    code = engine_open(engine, &u.t);
    if (code >= 0) goto end;
    code = read_all(&u) ? tune(&u, output) : EXIT_RUNTIME;
end:
    dgm_close(&u.t);
    free(u.inputs);
    dgm_evidence_close(&u.lists);
    evidence_free(&u.evidence);
    text_file_free(&u.source);
    text_file_free(&u.reference);
    return code;
}
