// SPDX-License-Identifier: MIT
// `dragoman average` behind its command line: one model file whose weights are the mean of those of
// several checkpoints of the same model.
//
//     matrix NAME         sum over files of weight * NAME, stored in the first file's type (or the
//                         one asked for); integers are converted to real numbers and back
//     f32 vector NAME     the same
//     NAME.scale          belongs to an integer matrix and is made anew
//     NAME.input_scale    left out: it was measured with other weights
//     everything else     the first file's: tables, metadata, vocabulary, shortlist
//
// Checkpoints are of one model if everything that says what the weights mean is the same: the keys
// of the architecture, of vocabularies and of their special tokens, and names and shapes of tensors.
// Sums are in double precision, in the order of the files, one tensor in memory at a time.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/outfile.h"
#include "base/sized.h"
#include "dragoman/tools.h"
#include "format/modelfile.h"
#include "format/rewrite.h"
#include "tools/members.h"

typedef struct average {
    dgm_gguf *files[DGM_AVERAGE_MAX];
    double weights[DGM_AVERAGE_MAX]; // sum 1
    const char *const *names;
    size_t count;
    int type;                // of matrices; -1: each as in the first file
    dgm_rewrite_item *items; // of the output: means
    size_t item_count;
    dgm_average_report report;
} average;

// ---- are they one model? -----------------------------------------------------------------------

static dgm_status compare_keys(const average *a, size_t x, dgm_error *err)
{
    char own[64];
    const char *const prefixes[] = {"dragoman.architecture",
                                    "dragoman.source.",
                                    "dragoman.target.",
                                    "dragoman.languages.",
                                    own,
                                    NULL};
    snprintf(own, sizeof own, "dragoman.%.40s.", dgm_modelfile_architecture(a->files[0]));
    const char *key = dgm_members_differ(a->files[0], a->files[x], prefixes);
    DGM_FAIL_IF(key, err, DGM_ERR_ARGUMENT,
                "'%s' and '%s' are not checkpoints of one model: they differ in '%.100s'",
                a->names[0], a->names[x], key);
    return DGM_OK;
}

static bool is_real(const dgm_tensor *t)
{
    return t->type == DGM_TYPE_F32 || t->type == DGM_TYPE_F16 || t->type == DGM_TYPE_BF16 ||
           (dgm_rewrite_is_integer(t->type) && t->scale);
}

static bool is_averaged(const dgm_gguf *g, const dgm_tensor *t)
{
    return is_real(t) && !dgm_rewrite_is_input_scale(t) && !dgm_rewrite_is_scale(g, t);
}

static dgm_status compare_shape(const average *a, size_t x, const dgm_tensor *t, dgm_error *err)
{
    const dgm_tensor *u = dgm_gguf_find_tensor(a->files[x], t->name);
    DGM_FAIL_IF(!u || !is_real(u), err, DGM_ERR_ARGUMENT, "'%s' has no weights '%.100s', '%s' has",
                a->names[x], t->name, a->names[0]);
    bool same = t->n_dims == u->n_dims;
    for (int d = 0; same && d < t->n_dims; d++) same = t->shape[d] == u->shape[d];
    DGM_FAIL_IF(!same, err, DGM_ERR_ARGUMENT, "'%.100s' is %d x %d in '%s', but %d x %d in '%s'",
                t->name, t->rows, t->cols, a->names[0], u->rows, u->cols, a->names[x]);
    return DGM_OK;
}

static dgm_status compare_tensors(const average *a, size_t x, dgm_error *err)
{
    DGM_TRY(dgm_rewrite_check(a->files[0], err));
    for (int i = 0; i < dgm_gguf_tensor_count(a->files[0]); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(a->files[0], i);
        if (is_averaged(a->files[0], t)) DGM_TRY(compare_shape(a, x, t, err));
    }
    for (int i = 0; i < dgm_gguf_tensor_count(a->files[x]); i++) {
        const dgm_tensor *u = dgm_gguf_tensor(a->files[x], i);
        DGM_FAIL_IF(is_averaged(a->files[x], u) && !dgm_gguf_find_tensor(a->files[0], u->name), err,
                    DGM_ERR_ARGUMENT, "'%s' has no weights '%.100s', '%s' has", a->names[0],
                    u->name, a->names[x]);
    }
    return DGM_OK;
}

// ---- the mean ----------------------------------------------------------------------------------

static dgm_status mean(const void *cookie, const dgm_tensor *t, float *out, dgm_error *err)
{
    const average *a = cookie;
    const size_t n = (size_t)t->rows * (size_t)t->cols;
    double *sum = dgm_calloc(n, sizeof *sum);
    if (!sum) return dgm_no_memory(err);
    for (size_t f = 0; f < a->count; f++) {
        dgm_tensor_to_f32(dgm_gguf_find_tensor(a->files[f], t->name), out);
        for (size_t i = 0; i < n; i++) sum[i] += a->weights[f] * (double)out[i];
        dgm_gguf_forget(a->files[f]);
    }
    for (size_t i = 0; i < n; i++) out[i] = (float)sum[i];
    dgm_free(sum);
    return DGM_OK;
}

// ---- writing -----------------------------------------------------------------------------------

static dgm_status add_mean(average *a, dgm_gguf_writer *out, const dgm_tensor *t, dgm_error *err)
{
    dgm_rewrite_item *it = &a->items[a->item_count++];
    const int type = t->n_dims == 2 ? (a->type >= 0 ? a->type : t->type) : DGM_TYPE_F32;
    *it = (dgm_rewrite_item){.t = t, .type = type, .fill = mean, .cookie = a};
    a->report.tensors++;
    a->report.parameters += (uint64_t)t->rows * (uint64_t)t->cols;
    return dgm_rewrite_add(out, it, err);
}

static dgm_status write_model(average *a, const char *output, dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    const dgm_gguf *first = a->files[0];
    a->items = dgm_calloc((size_t)dgm_gguf_tensor_count(first) + 1, sizeof *a->items);
    if (!a->items) return dgm_no_memory(err);
    DGM_TRY(dgm_rewrite_open(&out, first, "dragoman " DGM_VERSION, err));
    dgm_status st = DGM_OK;
    for (int i = 0; st == DGM_OK && i < dgm_gguf_tensor_count(first); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(first, i);
        if (is_averaged(first, t))
            st = add_mean(a, out, t, err);
        else if (dgm_rewrite_is_input_scale(t))
            a->report.dropped_scales++;
        else if (!dgm_rewrite_is_scale(first, t))
            dgm_rewrite_copy(out, t);
    }
    return dgm_rewrite_finish(&out, output, st, err);
}

// ---- the whole ---------------------------------------------------------------------------------

static dgm_status check(average *a, const dgm_average_options *o, dgm_error *err)
{
    DGM_FAIL_IF(a->count < 2 || a->count > DGM_AVERAGE_MAX, err, DGM_ERR_ARGUMENT,
                "an average of %zu models; it must be 2 to %d", a->count, DGM_AVERAGE_MAX);
    a->type = -1;
    if (o && o->type) {
        a->type = dgm_convert_type(o->type);
        DGM_FAIL_IF(a->type < 0, err, DGM_ERR_ARGUMENT,
                    "unknown storage type '%.60s': known are f32, f16, bf16, i16, i8", o->type);
    }
    return dgm_members_weigh(a->names, o ? o->weights : NULL, a->count, a->weights, err);
}

static dgm_status run(average *a, const char *output, dgm_error *err)
{
    for (size_t i = 0; i < a->count; i++) {
        DGM_TRY(dgm_modelfile_open(&a->files[i], a->names[i], err));
        if (i == 0) continue;
        DGM_TRY(compare_keys(a, i, err));
        DGM_TRY(compare_tensors(a, i, err));
    }
    return write_model(a, output, err);
}

void dgm_average_init(dgm_average_options *out, size_t size)
{
    const dgm_average_options own = {0};
    dgm_sized_give(out, size, &own, sizeof own);
}

dgm_status dgm_average(const char *const *models, size_t count, const char *output,
                       const dgm_average_options *options, dgm_average_report *report,
                       dgm_error *err)
{
    dgm_average_options own;
    dgm_average_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_average_options", "dgm_average_default",
                           err));
    DGM_TRY(dgm_sized_room(report, "dgm_average_report", err));
    average *a = dgm_calloc(1, sizeof *a);
    if (!a) return dgm_no_memory(err);
    a->names = models;
    a->count = count;
    dgm_status st = check(a, &own, err);
    if (st == DGM_OK) st = dgm_outfile_probe(output, err);
    if (st == DGM_OK) st = run(a, output, err);
    for (size_t i = 0; i < DGM_AVERAGE_MAX; i++) dgm_gguf_close(&a->files[i]);
    dgm_sized_fill(report, &a->report, sizeof a->report);
    dgm_free(a->items);
    dgm_free(a);
    return st;
}
