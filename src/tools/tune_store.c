// SPDX-License-Identifier: MIT
// The chosen settings as defaults of a model file (docs/internals/FORMAT.md, 2.3), with what they were tuned on in its
// card.
//
// What has a key of its own gets it; the other settings go into the list of dragoman.decode.settings, or all of them
// into that of the direction where a model has several. Batches and threads belong to a machine, not to a model: they
// are left out.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "engine/engine_private.h"
#include "format/card.h"
#include "format/languages.h"
#include "format/modelfile.h"
#include "format/rewrite.h"
#include "tools/tune_private.h"

enum { MOST = 32 };

typedef struct stored {
    char *text; // the options, cut up
    const char *names[MOST], *values[MOST];
    const char *lines[MOST]; // "name=value" for the list
    char *list;
    size_t count, line_count;
} stored;

static dgm_status cut(stored *s, const char *options, dgm_error *err)
{
    s->text = dgm_strdup(options);
    if (!s->text) return dgm_no_memory(err);
    for (char *p = strtok(s->text, " "); p && s->count < MOST; p = strtok(NULL, " ")) {
        if (strncmp(p, "--", 2) == 0) {
            s->names[s->count] = p + 2;
            s->values[s->count++] = "1";
        } else if (s->count) {
            s->values[s->count - 1] = p;
        }
    }
    return DGM_OK;
}

// Sets a key of its own; false: it has none.
static bool set_key(dgm_gguf_writer *out, const char *name, const char *value)
{
    float real = 0;
    int whole = 0;
    if (strcmp(name, "beam") == 0 && sscanf(value, "%d", &whole) == 1)
        dgm_gguf_set_u32(out, "dragoman.decode.beam", (uint32_t)whole);
    else if (strcmp(name, "finish") == 0)
        dgm_gguf_set_string(out, "dragoman.decode.finish", value);
    else if (strcmp(name, "precision") == 0 && value[0] != 'b' && strcmp(value, "f16") != 0)
        dgm_gguf_set_string(out, "dragoman.decode.precision", value);
    else if (strcmp(name, "length-penalty") == 0 && sscanf(value, "%f", &real) == 1)
        dgm_gguf_set_f32(out, "dragoman.decode.length_penalty", real);
    else
        return false;
    return true;
}

static dgm_status list_rest(stored *s, dgm_gguf_writer *out, bool all, dgm_error *err)
{
    dgm_writer w = {0};
    size_t at[MOST];
    for (size_t i = 0; i < s->count; i++) {
        const bool precision = strcmp(s->names[i], "precision") == 0; // known before there is a direction
        if ((!all || precision) && set_key(out, s->names[i], s->values[i])) continue;
        if (!dgm_stored_allowed(s->names[i])) continue;
        at[s->line_count++] = w.size;
        dgm_write_format(&w, "%s=%s", s->names[i], s->values[i]);
        dgm_write_u8(&w, 0);
    }
    dgm_write_u8(&w, 0);
    s->list = dgm_writer_take(&w, NULL);
    if (!s->list) return dgm_no_memory(err);
    for (size_t i = 0; i < s->line_count; i++) s->lines[i] = s->list + at[i];
    return DGM_OK;
}

// What the card says already, and a paragraph.
static dgm_status extend_card(const dgm_tune_report *r, const dgm_gguf *file, dgm_gguf_writer *out, dgm_error *err)
{
    const char *card = "", *slash = strrchr(r->input, '/');
    dgm_writer w = {0};
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm day;
    if (gmtime_r(&now, &day)) strftime(date, sizeof date, "%Y-%m-%d", &day);
    DGM_TRY(dgm_gguf_get_string(file, "dragoman.card", DGM_OPTIONAL, &card, err));
    dgm_write_format(
        &w,
        "%s%s## Decoding defaults\n\nChosen by `dragoman tune` (%s, %s) on %llu lines of `%s`, for %s with a budget "
        "of %g %s%s: %.2f times as fast as `%s`, loss %.2f (95 %%: %.2f to %.2f).\n\n    %s\n",
        card, card[0] ? "\n\n" : "", dgm_version(), date, (unsigned long long)r->lines, slash ? slash + 1 : r->input,
        r->latency ? "latency" : "throughput", r->budget, r->metric,
        r->agreement ? " of agreement (no references)" : "", r->chosen->gain, r->careful->options, r->chosen->loss,
        r->chosen->loss_low, r->chosen->loss_high, r->chosen->options);
    char *text = dgm_writer_take(&w, NULL);
    if (!text) return dgm_no_memory(err);
    const dgm_card own = {.text = text};
    dgm_card_set(out, &own, false);
    dgm_free(text);
    return DGM_OK;
}

static dgm_status copy_tensors(const dgm_gguf *file, dgm_gguf_writer *out)
{
    for (int i = 0; i < dgm_gguf_tensor_count(file); i++) dgm_rewrite_copy(out, dgm_gguf_tensor(file, i));
    return DGM_OK;
}

static dgm_status has_directions(const dgm_gguf *file, bool *several, dgm_error *err)
{
    dgm_vocab_spec source, target;
    dgm_languages l;
    DGM_TRY(dgm_modelfile_vocab(file, DGM_SOURCE, &source, err));
    DGM_TRY(dgm_modelfile_vocab(file, DGM_TARGET, &target, err));
    const int sizes[2] = {source.size, target.size};
    DGM_TRY(dgm_languages_read(file, sizes, &l, err));
    *several = dgm_languages_directions(&l) > 1;
    dgm_languages_free(&l);
    return DGM_OK;
}

static dgm_status write_model(const dgm_tune_report *r, const dgm_gguf *file, stored *s, const char *output,
                              dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    char key[DGM_GGUF_MAX_NAME + 1] = "dragoman.decode.settings";
    bool several = false;
    DGM_TRY(dgm_rewrite_check(file, err));
    DGM_TRY(has_directions(file, &several, err));
    if (several) snprintf(key, sizeof key, "dragoman.directions.%.60s.%.60s.settings", r->source, r->target);
    DGM_TRY(dgm_rewrite_open(&out, file, "dragoman " DGM_VERSION, err));
    dgm_status st = list_rest(s, out, several, err);
    if (st == DGM_OK) {
        dgm_gguf_unset(out, key);
        if (s->line_count) dgm_gguf_set_strings(out, key, s->lines, s->line_count);
        st = extend_card(r, file, out, err);
    }
    if (st == DGM_OK) st = copy_tensors(file, out);
    return dgm_rewrite_finish(&out, output, st, err);
}

dgm_status dgm_tune_store(const dgm_tune_report *report, const char *output, dgm_error *err)
{
    stored s = {0};
    dgm_gguf *file = NULL;
    char *path = NULL;
    DGM_FAIL_IF(!report || !output, err, DGM_ERR_ARGUMENT, "a report and a model file to write are needed");
    const char *given = report->models[report->chosen->model];
    DGM_FAIL_IF(strchr(given, '+') && !dgm_file_exists(given), err, DGM_ERR_UNSUPPORTED,
                "the choice is an ensemble, %.200s: no single model file can hold its settings", given);
    dgm_status st = dgm_model_file(strcmp(given, "default") == 0 ? NULL : given, &path, err);
    if (st == DGM_OK) st = dgm_modelfile_open(&file, path, err);
    if (st == DGM_OK) st = cut(&s, report->chosen->options, err);
    if (st == DGM_OK) st = write_model(report, file, &s, output, err);
    dgm_gguf_close(&file);
    dgm_free(path);
    dgm_free(s.text);
    dgm_free(s.list);
    return st;
}
