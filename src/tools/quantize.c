// SPDX-License-Identifier: MIT
// `dragoman quantize` behind its command line: a model file with its matrices in another type.
//
//     input tensor            output
//     matrix to convert       NAME in the new type, NAME.scale for integers
//     matrix kept, same type  copied bit by bit with its NAME.scale
//     NAME.input_scale        copied, or replaced by the calibration's (then for every weight)
//     everything else         copied: vectors, tables, unknown to us or not
//
// Matrices are converted one at a time while the file is written (format/rewrite.h).
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "base/sized.h"
#include "tools/calibrate.h"
#include "tools/packed.h"
#include "engine/engine_private.h"
#include "format/card.h"
#include "format/modelfile.h"
#include "format/rewrite.h"

// A matrix of the input, and where its report goes.
typedef struct item {
    dgm_rewrite_item r;
    dgm_convert_error sum; // filled when it is converted
} item;

typedef struct work {
    const dgm_quantize_options *o;
    dgm_gguf *file;
    int type;
    item *items; // matrices, in file order
    size_t count;
    dgm_calibration calibration;
    char *card;
    uint64_t packed; // bytes of packed layers
} work;

void dgm_quantize_init(dgm_quantize_options *out, size_t size)
{
    dgm_quantize_options own, *const o = &own;
    *o = (dgm_quantize_options){.saturate = 0.001, .threads = 1};
    dgm_sized_give(out, size, &own, sizeof own);
}

// ---- options ------------------------------------------------------------------------------------

static dgm_status check_options(const dgm_quantize_options *o, int *type, dgm_error *err)
{
    DGM_FAIL_IF(!o || !o->type, err, DGM_ERR_ARGUMENT,
                "quantize needs a type: f32, f16, bf16, i16 or i8");
    *type = dgm_convert_type(o->type);
    DGM_FAIL_IF(*type < 0, err, DGM_ERR_ARGUMENT,
                "unknown storage type '%.60s': known are f32, f16, bf16, i16, i8", o->type);
    bool known = !o->precision || strcmp(o->precision, "none") == 0;
    for (int i = 0; !known && dgm_precision_file_names[i]; i++)
        known = strcmp(o->precision, dgm_precision_file_names[i]) == 0;
    DGM_FAIL_IF(!known, err, DGM_ERR_ARGUMENT,
                "unknown precision '%.60s': known are f32, i16, i8, none", o->precision);
    DGM_FAIL_IF(!(o->saturate >= 0 && o->saturate < 1), err, DGM_ERR_ARGUMENT,
                "the share of saturated rows must be at least 0 and below 1, not %g", o->saturate);
    DGM_FAIL_IF(o->threads < 0 || o->threads > 1024, err, DGM_ERR_ARGUMENT,
                "the number of threads must be between 0 and 1024, not %d", o->threads);
    DGM_FAIL_IF(o->packed && *type != DGM_TYPE_I8, err, DGM_ERR_ARGUMENT,
                "only weights of type i8 are packed, not %s", o->type);
    return o->packed ? dgm_packed_check(o->packed, err) : DGM_OK;
}

// ---- which tensors ------------------------------------------------------------------------------

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

// Few numbers that are computed in f32: gates choose experts, and a rounded one sends rows elsewhere;
// biases of relative positions are added to scores.
static bool stays(const char *name)
{
    return ends_with(name, ".moe.gate.weight") || ends_with(name, ".self.rel");
}

static bool is_matrix(const dgm_tensor *t)
{
    return t->n_dims == 2 && t->data && strncmp(t->name, "clusters.", 9) != 0 &&
           (dgm_convert_type(dgm_tensor_type_name(t->type)) >= 0) &&
           (!dgm_rewrite_is_integer(t->type) || t->scale);
}

// Marks the patterns that match; true if any does.
static bool kept(const dgm_quantize_options *o, const char *name, bool *used)
{
    bool any = false;
    for (size_t i = 0; i < o->keep_count; i++) {
        if (fnmatch(o->keep[i], name, 0) != 0) continue;
        used[i] = any = true;
    }
    return any;
}

static dgm_status list_matrices(work *w, dgm_error *err)
{
    int n = dgm_gguf_tensor_count(w->file);
    bool *used = dgm_calloc(w->o->keep_count + 1, sizeof *used);
    w->items = dgm_calloc((size_t)n + 1, sizeof *w->items);
    dgm_status st = used && w->items ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = dgm_rewrite_check(w->file, err);
    for (int i = 0; st == DGM_OK && i < n; i++) {
        const dgm_tensor *t = dgm_gguf_tensor(w->file, i);
        if (!is_matrix(t)) continue;
        int type = kept(w->o, t->name, used) || stays(t->name) ? t->type : w->type;
        item *it = &w->items[w->count++];
        it->r = (dgm_rewrite_item){.t = t, .type = type, .errors = &it->sum};
    }
    for (size_t i = 0; st == DGM_OK && i < w->o->keep_count; i++)
        if (!used[i])
            st = dgm_fail(err, DGM_ERR_ARGUMENT, "no matrix of the model matches '%.100s'",
                          w->o->keep[i]);
    dgm_free(used);
    return st;
}

static item *find_item(const work *w, const dgm_tensor *t)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].r.t == t) return &w->items[i];
    return NULL;
}

// Is t the scale of a matrix? Then it is written with it, or not at all.
static bool is_companion(const work *w, const dgm_tensor *t)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].r.t->scale == t) return true;
    return false;
}

static bool is_replaced(const work *w, const dgm_tensor *t)
{
    return w->calibration.count && dgm_rewrite_is_input_scale(t);
}

// ---- converting ---------------------------------------------------------------------------------

static dgm_status add_matrix(dgm_gguf_writer *out, item *it, dgm_error *err)
{
    const dgm_tensor *t = it->r.t;
    if (it->r.type != t->type) return dgm_rewrite_add(out, &it->r, err);
    dgm_rewrite_copy(out, t);
    if (t->scale) dgm_rewrite_copy(out, t->scale);
    return DGM_OK;
}

static dgm_status add_tensors(work *w, dgm_gguf_writer *out, dgm_error *err)
{
    for (int i = 0; i < dgm_gguf_tensor_count(w->file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(w->file, i);
        item *it = find_item(w, t);
        if (it)
            DGM_TRY(add_matrix(out, it, err));
        else if (!is_companion(w, t) && !is_replaced(w, t))
            dgm_rewrite_copy(out, t);
    }
    const int size = DGM_INPUT_SCALE_SIZE;
    for (size_t i = 0; i < w->calibration.count; i++) {
        char name[DGM_GGUF_MAX_NAME + 1];
        DGM_TRY(dgm_rewrite_name(name, w->calibration.inputs[i].name, DGM_INPUT_SCALE, err));
        dgm_gguf_add_tensor(out, name, DGM_TYPE_F32, 1, &size, w->calibration.values[i]);
    }
    return DGM_OK;
}

static void set_keys(const work *w, dgm_gguf_writer *out)
{
    const dgm_quantize_options *o = w->o;
    const dgm_card card = {.name = o->name,
                           .description = o->description,
                           .license = o->license,
                           .author = o->author,
                           .url = o->url,
                           .text = w->card};
    dgm_card_set(out, &card, true);
    const char *precision = o->precision;
    if (!precision)
        precision = dgm_rewrite_is_integer(w->type) ? dgm_tensor_type_name(w->type) : "f32";
    if (strcmp(precision, "none") == 0)
        dgm_gguf_unset(out, "dragoman.decode.precision");
    else
        dgm_gguf_set_string(out, "dragoman.decode.precision", precision);
}

static dgm_status write_model(work *w, const char *path, dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    DGM_TRY(dgm_rewrite_open(&out, w->file, "dragoman " DGM_VERSION, err));
    set_keys(w, out);
    return dgm_rewrite_finish(&out, path, add_tensors(w, out, err), err);
}

// ---- report -------------------------------------------------------------------------------------

typedef struct report_box {
    dgm_quantize_report pub; // first: what the caller sees
    dgm_quantize_tensor *tensors;
    const dgm_quantize_tensor **tensor_list; // they, and the calibration's inputs
    const dgm_quantize_input **input_list;
    char *names;
    dgm_calibration calibration;
} report_box;

static uint64_t stored_bytes(const dgm_tensor *t, int type)
{
    uint64_t n = (uint64_t)t->rows * (uint64_t)t->cols * dgm_tensor_type_size(type);
    return n + (uint64_t)dgm_convert_scales(type, t->rows) * sizeof(float);
}

static dgm_quantize_tensor describe(const item *it)
{
    const dgm_tensor *t = it->r.t;
    dgm_quantize_tensor d = {
        .size = sizeof d,
        .from = dgm_tensor_type_name(t->type),
        .to = dgm_tensor_type_name(it->r.type),
        .rows = t->rows,
        .cols = t->cols,
        .bytes_before = stored_bytes(t, t->type),
        .bytes_after = stored_bytes(t, it->r.type),
        .largest = it->sum.largest,
        .max_error = it->sum.max_error,
        .relative_error = it->sum.squares > 0 ? sqrt(it->sum.of_errors / it->sum.squares) : 0,
        .saturated = it->sum.saturated,
        .vanished = it->sum.vanished,
        .through_f32 = it->r.type != t->type && dgm_rewrite_is_integer(it->r.type) &&
                       dgm_rewrite_is_integer(t->type),
    };
    return d;
}

// The largest value of a matrix that is copied.
static dgm_status measure_copy(item *it, dgm_error *err)
{
    float *row = dgm_malloc((size_t)it->r.t->cols * sizeof *row);
    if (!row) return dgm_no_memory(err);
    for (int r = 0; r < it->r.t->rows; r++) {
        dgm_tensor_row_f32(it->r.t, r, row);
        for (int c = 0; c < it->r.t->cols; c++)
            it->sum.largest = fmax(it->sum.largest, fabs((double)row[c]));
    }
    dgm_free(row);
    return DGM_OK;
}

// The report's lists of tensors and, handed over, of the calibration's inputs.
static dgm_status fill_lists(work *w, report_box *b, dgm_error *err)
{
    dgm_quantize_report *r = &b->pub;
    b->tensor_list = dgm_calloc(w->count + 1, sizeof *b->tensor_list);
    b->input_list = dgm_calloc(w->calibration.count + 1, sizeof *b->input_list);
    if (!b->tensor_list || !b->input_list) return dgm_no_memory(err);
    b->calibration = w->calibration;
    w->calibration = (dgm_calibration){0};
    for (size_t i = 0; i < w->count; i++) b->tensor_list[i] = &b->tensors[i];
    for (size_t i = 0; i < b->calibration.count; i++)
        b->input_list[i] = &b->calibration.inputs[i];
    r->tensors = b->tensor_list;
    r->tensor_count = w->count;
    r->inputs = b->input_list;
    r->input_count = b->calibration.count;
    r->lines = b->calibration.lines;
    r->source_tokens = b->calibration.source_tokens;
    r->target_tokens = b->calibration.target_tokens;
    return DGM_OK;
}

static dgm_status fill_report(work *w, report_box *b, dgm_error *err)
{
    dgm_quantize_report *r = &b->pub;
    size_t names = 1;
    for (size_t i = 0; i < w->count; i++) names += strlen(w->items[i].r.t->name) + 1;
    b->tensors = dgm_calloc(w->count + 1, sizeof *b->tensors);
    b->names = dgm_malloc(names);
    if (!b->tensors || !b->names) return dgm_no_memory(err);
    double squares = 0, of_errors = 0;
    char *name = b->names;
    for (size_t i = 0; i < w->count; i++) {
        item *it = &w->items[i];
        if (it->r.type == it->r.t->type) DGM_TRY(measure_copy(it, err));
        b->tensors[i] = describe(it);
        b->tensors[i].name = name;
        name += strlen(strcpy(name, it->r.t->name)) + 1;
        r->bytes_after += b->tensors[i].bytes_after;
        r->bytes_before += b->tensors[i].bytes_before;
        r->through_f32 += b->tensors[i].through_f32 != 0;
        if (it->r.type == it->r.t->type) {
            r->kept++;
            continue;
        }
        r->converted++;
        squares += it->sum.squares;
        of_errors += it->sum.of_errors;
    }
    for (int i = 0; i < dgm_gguf_tensor_count(w->file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(w->file, i);
        if (find_item(w, t) || is_companion(w, t)) continue;
        r->bytes_before += t->bytes;
        if (!is_replaced(w, t) && !dgm_rewrite_is_packed(t)) r->bytes_after += t->bytes;
    }
    r->bytes_after += w->calibration.count * sizeof *w->calibration.values + w->packed;
    r->relative_error = squares > 0 ? sqrt(of_errors / squares) : 0;
    return fill_lists(w, b, err);
}

static dgm_status make_report(work *w, dgm_quantize_report **out, dgm_error *err)
{
    report_box *b = dgm_calloc(1, sizeof *b);
    if (!b) return dgm_no_memory(err);
    dgm_quantize_report *r = &b->pub;
    r->size = sizeof *r;
    dgm_status st = fill_report(w, b, err);
    if (st == DGM_OK)
        *out = r;
    else
        dgm_quantize_report_free(&r);
    return st;
}

void dgm_quantize_report_free(dgm_quantize_report **report)
{
    if (!report || !*report) return;
    report_box *b = (report_box *)(void *)*report;
    dgm_calibration_free(&b->calibration);
    dgm_free(b->tensors);
    dgm_free(b->tensor_list);
    dgm_free(b->input_list);
    dgm_free(b->names);
    dgm_free(b);
    *report = NULL;
}

// ---- the whole ----------------------------------------------------------------------------------

static dgm_status run(work *w, const char *model, const char *output, dgm_quantize_report **report,
                      dgm_error *err)
{
    DGM_TRY(dgm_card_read(w->o->card_file, &w->card, err));
    DGM_TRY(dgm_modelfile_open(&w->file, model, err));
    DGM_TRY(list_matrices(w, err));
    if (w->o->calibrate) DGM_TRY(dgm_calibrate(&w->calibration, model, w->o, err));
    if (output) DGM_TRY(write_model(w, output, err));
    if (output && w->o->packed) DGM_TRY(dgm_packed_write(output, w->o->packed, &w->packed, err));
    if (!report) return DGM_OK;
    for (size_t i = 0; i < w->count && !output; i++)
        if (w->items[i].r.type != w->items[i].r.t->type)
            DGM_TRY(dgm_rewrite_measure(&w->items[i].r, err));
    return make_report(w, report, err);
}

dgm_status dgm_quantize(const char *model, const char *output, const dgm_quantize_options *given,
                        dgm_quantize_report **report, dgm_error *err)
{
    if (report) *report = NULL;
    dgm_quantize_options own;
    dgm_quantize_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, given, "dgm_quantize_options", "dgm_quantize_default",
                           err));
    const dgm_quantize_options *options = given ? &own : NULL;
    work w = {.o = options};
    DGM_FAIL_IF(!model, err, DGM_ERR_ARGUMENT, "quantize needs a model file");
    DGM_TRY(check_options(options, &w.type, err));
    if (output) DGM_TRY(dgm_outfile_probe(output, err));
    dgm_status st = run(&w, model, output, report, err);
    dgm_calibration_free(&w.calibration);
    dgm_free(w.items);
    dgm_free(w.card);
    dgm_gguf_close(&w.file);
    return st;
}
