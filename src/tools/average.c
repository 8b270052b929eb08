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
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/textfile.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "format/convert.h"
#include "format/modelfile.h"

#define INPUT_SCALE ".input_scale"

typedef struct average average;

// A tensor of the output that is a mean.
typedef struct item {
    const average *a;
    const dgm_tensor *t; // the first file's
    int type;
} item;

struct average {
    dgm_gguf *files[DGM_AVERAGE_MAX];
    double weights[DGM_AVERAGE_MAX]; // sum 1
    const char *const *names;
    size_t count;
    int type; // of matrices; -1: each as in the first file
    item *items;
    size_t item_count;
    dgm_average_report report;
};

// ---- are they one model? -----------------------------------------------------------------------

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool same_value(const dgm_meta *a, const dgm_meta *b)
{
    return b && a->type == b->type && a->elem_type == b->elem_type && a->count == b->count &&
           a->raw_size == b->raw_size && memcmp(a->raw, b->raw, a->raw_size) == 0;
}

// A key of a with one of the prefixes that b lacks or has with another value.
static const char *differs(const dgm_gguf *a, const dgm_gguf *b, const char *const *prefixes)
{
    for (int i = 0; i < dgm_gguf_meta_count(a); i++) {
        const dgm_meta *m = dgm_gguf_meta(a, i);
        bool matters = false;
        for (int k = 0; prefixes[k]; k++) matters |= begins(m->key, prefixes[k]);
        if (matters && !same_value(m, dgm_gguf_find(b, m->key))) return m->key;
    }
    return NULL;
}

const char *dgm_keys_differ(const dgm_gguf *a, const dgm_gguf *b, const char *const *prefixes)
{
    const char *key = differs(a, b, prefixes);
    return key ? key : differs(b, a, prefixes);
}

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
    const char *key = dgm_keys_differ(a->files[0], a->files[x], prefixes);
    DGM_FAIL_IF(key, err, DGM_ERR_ARGUMENT,
                "'%s' and '%s' are not checkpoints of one model: they differ in '%.100s'",
                a->names[0], a->names[x], key);
    return DGM_OK;
}

static bool is_integer(int type)
{
    return type == DGM_TYPE_I8 || type == DGM_TYPE_I16;
}

static bool is_real(const dgm_tensor *t)
{
    return t->type == DGM_TYPE_F32 || t->type == DGM_TYPE_F16 || t->type == DGM_TYPE_BF16 ||
           (is_integer(t->type) && t->scale);
}

static bool ends(const char *name, const char *with)
{
    const size_t n = strlen(name), m = strlen(with);
    return n > m && strcmp(name + n - m, with) == 0;
}

// The scale of an integer matrix of the same file.
static bool is_companion(const dgm_gguf *g, const dgm_tensor *t)
{
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++)
        if (dgm_gguf_tensor(g, i)->scale == t) return true;
    return false;
}

static bool is_averaged(const dgm_gguf *g, const dgm_tensor *t)
{
    return is_real(t) && !ends(t->name, INPUT_SCALE) && !is_companion(g, t);
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
    for (int i = 0; i < dgm_gguf_tensor_count(a->files[0]); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(a->files[0], i);
        DGM_FAIL_IF(!t->data, err, DGM_ERR_UNSUPPORTED,
                    "tensor '%s' has a type that this program cannot copy", t->name);
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

static dgm_status mean(const item *it, float *out, dgm_error *err)
{
    const size_t n = (size_t)it->t->rows * (size_t)it->t->cols;
    double *sum = dgm_calloc(n, sizeof *sum);
    if (!sum) return dgm_no_memory(err);
    for (size_t f = 0; f < it->a->count; f++) {
        const dgm_tensor *t = dgm_gguf_find_tensor(it->a->files[f], it->t->name);
        dgm_tensor_to_f32(t, out);
        for (size_t i = 0; i < n; i++) sum[i] += it->a->weights[f] * (double)out[i];
        dgm_gguf_forget(it->a->files[f]);
    }
    for (size_t i = 0; i < n; i++) out[i] = (float)sum[i];
    dgm_free(sum);
    return DGM_OK;
}

static dgm_status convert(const item *it, void *data, float *scale, dgm_error *err)
{
    const int rows = it->t->rows, cols = it->t->cols;
    const size_t n = (size_t)rows * (size_t)cols;
    const size_t scales = (size_t)dgm_convert_scales(it->type, rows);
    float *real = dgm_malloc(n * sizeof *real);
    void *spare = data ? NULL : dgm_malloc(n * dgm_tensor_type_size(it->type));
    float *spare_scale = scale || !scales ? NULL : dgm_malloc(scales * sizeof *spare_scale);
    dgm_status st = DGM_OK;
    if (!real || (!data && !spare) || (!scale && scales && !spare_scale)) st = dgm_no_memory(err);
    if (st == DGM_OK) st = mean(it, real, err);
    if (st == DGM_OK)
        st = dgm_convert(it->t->name, real, rows, cols, it->type, data ? data : spare,
                         scale ? scale : spare_scale, NULL, err);
    dgm_free(real);
    dgm_free(spare);
    dgm_free(spare_scale);
    return st;
}

static dgm_status produce_data(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)bytes;
    return convert(arg, out, NULL, err);
}

static dgm_status produce_scale(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)bytes;
    return convert(arg, NULL, out, err);
}

// ---- writing -----------------------------------------------------------------------------------

static dgm_status add_mean(average *a, dgm_gguf_writer *out, const dgm_tensor *t, dgm_error *err)
{
    item *it = &a->items[a->item_count++];
    const int type = t->n_dims == 2 ? (a->type >= 0 ? a->type : t->type) : DGM_TYPE_F32;
    *it = (item){.a = a, .t = t, .type = type};
    dgm_gguf_add_produced(out, t->name, (dgm_tensor_type)type, t->n_dims, t->shape, produce_data,
                          it);
    a->report.tensors++;
    a->report.parameters += (uint64_t)t->rows * (uint64_t)t->cols;
    const int scales = dgm_convert_scales(type, t->rows);
    if (!scales) return DGM_OK;
    char name[DGM_GGUF_MAX_NAME + 8];
    const int n = snprintf(name, sizeof name, "%s.scale", t->name);
    DGM_FAIL_IF(n > DGM_GGUF_MAX_NAME, err, DGM_ERR_UNSUPPORTED,
                "the name of tensor '%.60s...' is too long for a scale beside it", t->name);
    dgm_gguf_add_produced(out, name, DGM_TYPE_F32, 1, &scales, produce_scale, it);
    return DGM_OK;
}

static dgm_status write_model(average *a, const char *output, dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    const dgm_gguf *first = a->files[0];
    a->items = dgm_calloc((size_t)dgm_gguf_tensor_count(first) + 1, sizeof *a->items);
    if (!a->items) return dgm_no_memory(err);
    DGM_TRY(dgm_gguf_writer_open(&out, err));
    dgm_gguf_set_copies(out, first);
    dgm_gguf_set_string(out, "dragoman.producer", "dragoman " DGM_VERSION);
    dgm_status st = DGM_OK;
    for (int i = 0; st == DGM_OK && i < dgm_gguf_tensor_count(first); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(first, i);
        if (is_averaged(first, t))
            st = add_mean(a, out, t, err);
        else if (ends(t->name, INPUT_SCALE))
            a->report.dropped_scales++;
        else if (!is_companion(first, t))
            dgm_gguf_add_tensor(out, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape,
                                t->data);
    }
    if (st == DGM_OK) st = dgm_gguf_write(out, output, err);
    dgm_gguf_writer_close(&out);
    return st;
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
    double sum = 0;
    for (size_t i = 0; i < a->count; i++) {
        a->weights[i] = o && o->weights ? o->weights[i] : 1.0;
        DGM_FAIL_IF(!(a->weights[i] > 0) || isinf(a->weights[i]), err, DGM_ERR_ARGUMENT,
                    "the weight of '%s' must be a positive number", a->names[i]);
        sum += a->weights[i];
    }
    for (size_t i = 0; i < a->count; i++) a->weights[i] /= sum;
    return DGM_OK;
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

dgm_status dgm_average(const char *const *models, size_t count, const char *output,
                       const dgm_average_options *options, dgm_average_report *report,
                       dgm_error *err)
{
    average *a = dgm_calloc(1, sizeof *a);
    if (!a) return dgm_no_memory(err);
    a->names = models;
    a->count = count;
    dgm_status st = check(a, options, err);
    if (st == DGM_OK) st = dgm_textout_probe(output, err);
    if (st == DGM_OK) st = run(a, output, err);
    for (size_t i = 0; i < DGM_AVERAGE_MAX; i++) dgm_gguf_close(&a->files[i]);
    if (report) *report = a->report;
    dgm_free(a->items);
    dgm_free(a);
    return st;
}
