// SPDX-License-Identifier: MIT
// What `dragoman tune` may learn besides settings: models with shorter or longer shortlists, with clusters, with scales
// of their activations, and weights of evidence. The functions of these commands make them; each model becomes one more
// in the race, weights are held in all of it, and the making counts as time.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/cluster.h"
#include "dragoman/quantize.h"
#include "dragoman/shortlist.h"
#include "engine/engine_private.h"
#include "format/modelfile.h"
#include "tools/tune_private.h"

#define LEARN_SHARE 0.4 // of the time, after which nothing more is begun

typedef struct lesson {
    const char *allow, *name; // name: of the file, behind the model's
    int number;               // candidates of a line, or tokens of a vector
    const char *only;         // options that a model with it is worth trying for
} lesson;

static const char with_list[] = "--shortlist lexical|--shortlist union|--shortlist intersect";
static const char with_clusters[] = "--shortlist cluster|--shortlist union|--shortlist intersect";

static const lesson lessons[] = {
    {"shortlist", "candidates-100", 100, with_list}, {"shortlist", "candidates-200", 200, with_list},
    {"shortlist", "candidates-400", 400, with_list}, {"cluster", "clusters-16", 16, with_clusters},
    {"cluster", "clusters-4", 4, with_clusters},     {"calibrate", "scales", 0, "--static-scales"},
};

// FOLDER/MODEL.NAME.gguf
static char *output_name(const dgm_tune_work *t, const char *name, const char *model)
{
    char file[256];
    const char *slash = strrchr(model, '/'), *base = slash ? slash + 1 : model;
    size_t n = strlen(base);
    if (n > 5 && strcmp(base + n - 5, ".gguf") == 0) n -= 5;
    snprintf(file, sizeof file, "%.*s.%s.gguf", (int)(n > 150 ? 150 : n), base, name);
    return dgm_path_in(t->o->learned ? t->o->learned : ".", file);
}

static dgm_status learn_shortlist(const dgm_tune_work *t, const char *model, const char *output, int number,
                                  dgm_error *err)
{
    dgm_shortlist_options o;
    dgm_shortlist_default(&o);
    if (t->o->corpus && t->o->corpus_target) {
        o.source = t->o->corpus;
        o.target = t->o->corpus_target;
    }
    o.candidates = number;
    o.tune = t->o->input;
    o.progress = t->o->progress;
    return dgm_shortlist_make(model, output, &o, NULL, err);
}

static dgm_status learn_clusters(const dgm_tune_work *t, const char *model, const char *output, int number,
                                 dgm_error *err)
{
    dgm_cluster_options o;
    char *vectors = output_name(t, "vectors", model); // written by the first, read by the others
    if (!vectors) return dgm_no_memory(err);
    dgm_cluster_default(&o);
    o.text = t->o->corpus;
    o.best = number;
    o.vectors = vectors;
    o.source = t->fixed.source;
    o.target = t->fixed.target;
    o.threads = t->threads;
    o.device = t->fixed.device;
    o.progress = t->o->progress;
    const dgm_status st = dgm_cluster_make(model, output, &o, NULL, err);
    dgm_free(vectors);
    return st;
}

// The type that most numbers of a model have: scales are added, weights stay.
static const char *storage_of(const char *model)
{
    dgm_gguf *file = NULL;
    size_t bytes[64] = {0};
    int most = DGM_TYPE_F32;
    if (dgm_modelfile_open(&file, model, NULL) != DGM_OK) return "f32";
    for (int i = 0; i < dgm_gguf_tensor_count(file); i++) {
        const dgm_tensor *w = dgm_gguf_tensor(file, i);
        if (w->n_dims != 2 || w->type < 0 || w->type >= 64) continue;
        bytes[w->type] += w->bytes;
        if (bytes[w->type] > bytes[most]) most = w->type;
    }
    dgm_gguf_close(&file);
    return dgm_tensor_type_name(most);
}

static dgm_status learn_scales(const dgm_tune_work *t, const char *model, const char *output, dgm_error *err)
{
    dgm_quantize_options o;
    dgm_quantize_default(&o);
    o.type = storage_of(model);
    o.calibrate = t->o->corpus ? t->o->corpus : t->o->input;
    o.threads = t->threads;
    o.progress = t->o->progress;
    return dgm_quantize(model, output, &o, NULL, err);
}

static dgm_status make(const dgm_tune_work *t, const lesson *l, const char *model, const char *output, dgm_error *err)
{
    char *path = NULL;
    DGM_TRY(dgm_model_file(strcmp(model, "default") == 0 ? NULL : model, &path, err));
    const dgm_status st = l->allow[0] == 's'   ? learn_shortlist(t, path, output, l->number, err)
                          : l->allow[1] == 'l' ? learn_clusters(t, path, output, l->number, err)
                                               : learn_scales(t, path, output, err);
    dgm_free(path);
    return st;
}

// One lesson of one model: made, or read from the record. A model that cannot learn it is said and left alone.
static dgm_status learn(dgm_tune_work *t, const lesson *l, int model, dgm_error *err)
{
    const json_t *event = NULL;
    const char *refused = NULL, *given = "";
    double spent = 0;
    dgm_error own = {0};
    DGM_TRY(dgm_tune_record_next(t->record, "learn", &event, err));
    if (event) {
        DGM_TRY(dgm_json_string(event, "refused", &refused, err));
        DGM_TRY(dgm_json_string(event, "given", &given, err));
        DGM_TRY(dgm_json_real(event, "spent", 0, 1e9, &spent, err));
        t->clock += spent;
        t->last = dgm_now();
        if (refused) return dgm_tune_note(t, err, "%s: %s", l->name, refused);
        DGM_TRY(dgm_tune_step_model(t, given, err));
        t->models[t->model_count - 1].only = l->only;
        return DGM_OK;
    }
    DGM_TRY(dgm_tune_tick(t, l->name, err));
    char *output = output_name(t, l->name, t->models[model].given);
    if (!output) return dgm_no_memory(err);
    dgm_status st = make(t, l, t->models[model].given, output, &own);
    const bool hard = st == DGM_ERR_MEMORY || st == DGM_ERR_CANCELLED || st == DGM_ERR_IO;
    if (st != DGM_OK && hard && err) *err = own;
    if (st == DGM_OK || !hard) {
        const double now = dgm_now();
        json_t *j = json_pack("{s:s,s:f}", "given", output, "spent", now - t->last);
        if (j && st != DGM_OK) json_object_set_new(j, "refused", json_string(own.text));
        t->clock += now - t->last;
        t->last = now;
        const dgm_status kept = dgm_tune_record_add(t->record, "learn", j, err);
        if (kept == DGM_OK && st != DGM_OK)
            st = dgm_tune_note(t, err, "%s: %s", l->name, own.text);
        else
            st = kept == DGM_OK ? dgm_tune_step_model(t, output, err) : kept;
        if (st == DGM_OK && own.text[0] == 0) t->models[t->model_count - 1].only = l->only;
    }
    dgm_free(output);
    return st;
}

// ---- weights of evidence -------------------------------------------------------------------------

// The weights become settings that are held.
static dgm_status hold_weights(dgm_tune_work *t, const char *options, dgm_error *err)
{
    dgm_writer w = {0};
    dgm_write_format(&w, "%s%s%s", t->fixed_text, t->fixed_text[0] ? " " : "", options);
    char *text = dgm_writer_take(&w, NULL), *own = dgm_strdup(options);
    dgm_status st = text && own ? dgm_tune_options_apply(own, &t->fixed, err) : dgm_no_memory(err);
    if (st == DGM_OK && t->bench) dgm_tune_bench_hold(t->bench, &t->fixed.lmbr);
    dgm_free(own);
    if (!text) return st;
    dgm_free(t->fixed_text);
    t->fixed_text = text;
    return st;
}

static void put_weight(dgm_writer *w, const char *name, float value)
{
    dgm_write_format(w, "%s--lmbr-%s %.4g", w->size ? " " : "", name, (double)value);
}

// The tuner of LMBR on the first lines, with the first model.
static dgm_status learn_weights(dgm_tune_work *t, dgm_error *err)
{
    enum { LINES = 1000 };
    const json_t *event = NULL;
    const char *options = "";
    const size_t lines = t->lines < LINES ? t->lines : LINES;
    DGM_TRY(dgm_tune_record_next(t->record, "weights", &event, err));
    if (event) {
        double spent = 0;
        DGM_TRY(dgm_json_string(event, "options", &options, err));
        DGM_TRY(dgm_json_real(event, "spent", 0, 1e9, &spent, err));
        t->clock += spent;
        t->last = dgm_now();
        return hold_weights(t, options, err);
    }
    dgm_lmbr found;
    DGM_TRY(dgm_tune_tick(t, "weights of the evidence", err));
    DGM_TRY(dgm_tune_bench_weights(t->bench, 0, lines, LEARN_SHARE * t->o->seconds, &t->o->progress, &found, err));
    dgm_writer w = {0};
    put_weight(&w, "lambda", found.lambda);
    put_weight(&w, "scale", found.scale);
    put_weight(&w, "p", found.p);
    put_weight(&w, "r", found.r);
    char *text = dgm_writer_take(&w, NULL);
    if (!text) return dgm_no_memory(err);
    const double now = dgm_now();
    json_t *j = json_pack("{s:s,s:f}", "options", text, "spent", now - t->last);
    t->clock += now - t->last;
    t->last = now;
    dgm_status st = dgm_tune_record_add(t->record, "weights", j, err);
    if (st == DGM_OK) st = hold_weights(t, text, err);
    dgm_free(text);
    return st;
}

dgm_status dgm_tune_learn(dgm_tune_work *t, dgm_error *err)
{
    const int given = t->given_count = t->model_count;
    bool any = false;
    if (dgm_tune_allows(t->o->allow, "lmbr")) DGM_TRY(learn_weights(t, err));
    for (size_t i = 0; i < sizeof lessons / sizeof lessons[0]; i++)
        any |= dgm_tune_allows(t->o->allow, lessons[i].allow);
    if (!any) return DGM_OK;
    DGM_FAIL_IF(t->bench && mkdir(t->o->learned, 0777) != 0 && errno != EEXIST, err, DGM_ERR_IO, "cannot make '%s': %s",
                t->o->learned, strerror(errno));
    for (int m = 0; m < given; m++) {
        if (strchr(t->models[m].given, '+')) continue; // an ensemble is no file
        for (size_t i = 0; i < sizeof lessons / sizeof lessons[0]; i++) {
            if (!dgm_tune_allows(t->o->allow, lessons[i].allow)) continue;
            if (t->clock > LEARN_SHARE * t->o->seconds && !t->o->complete) {
                DGM_TRY(
                    dgm_tune_note(t, err, "there was no time to learn %s of %s", lessons[i].name, t->models[m].given));
                continue;
            }
            if (t->model_count == DGM_TUNE_MODELS) break;
            DGM_TRY(learn(t, &lessons[i], m, err));
        }
    }
    return DGM_OK;
}
