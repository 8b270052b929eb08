// SPDX-License-Identifier: MIT
// Weights of a CTranslate2 model (ct2.h), taken under our names. Q, K and V of an attention lie behind each other
// in one matrix; integers have a divisor for every row (int8) or one for all (int16).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/ct2.h"

enum { NAME = 160 };

typedef struct name {
    char text[NAME];
} name;

static name join(const char *a, const char *b)
{
    name n;
    snprintf(n.text, sizeof n.text, "%s%s", a, b);
    return n;
}

static const dgm_stored *find(const dgm_ct2 *in, const char *text)
{
    const int at = dgm_store_find(in->weights.tensors, text);
    return at < 0 ? NULL : dgm_store_get(in->weights.tensors, (size_t)at);
}

// ---- matrices ------------------------------------------------------------------------------------

// What integers are divided by. Files of the first versions have 16 bits without saying it.
static dgm_status get_divisors(dgm_ct2 *in, const char *weight, dgm_view *v, dgm_error *err)
{
    static const float first_i16 = 1000;
    const name scale = join(weight, "_scale");
    const dgm_stored *s = find(in, scale.text);
    dgm_checkpoint_take(&in->weights, scale.text);
    if (!s) {
        DGM_FAIL_IF(v->t->type != DGM_STORED_I16, err, DGM_ERR_FORMAT, "variable '%s' is missing", scale.text);
        v->divisors = (const uint8_t *)&first_i16;
        v->divisor_step = 0;
        return DGM_OK;
    }
    const bool one = s->rows == 1 && s->cols == 1;
    DGM_FAIL_IF(s->type != DGM_STORED_F32 || s->rows != 1 || (!one && s->cols != v->rows), err, DGM_ERR_FORMAT,
                "variable '%s' is not one real number, or one for each of %d rows", scale.text, v->rows);
    v->divisors = s->data;
    v->divisor_step = one ? 0 : 1;
    for (int i = 0; i < s->cols; i++) {
        const float d = dgm_view_divisor(v, i);
        DGM_FAIL_IF(!isfinite(d) || d <= 0 || !isfinite(1 / d), err, DGM_ERR_FORMAT,
                    "variable '%s' has the scale %g in row %d", scale.text, (double)d, i);
    }
    return DGM_OK;
}

// "multiplier", which our own exporter writes where 1 / scale would be off by a bit: must be what 1 / scale nearly is.
static dgm_status get_factors(dgm_ct2 *in, const char *weight, dgm_view *v, dgm_error *err)
{
    const name factors = join(weight, "_multiplier");
    const dgm_stored *s = find(in, factors.text);
    if (!s || v->t->type != DGM_STORED_I8) return DGM_OK;
    dgm_checkpoint_take(&in->weights, factors.text);
    DGM_FAIL_IF(s->type != DGM_STORED_F32 || s->n_dims != 1 || s->cols != v->rows, err, DGM_ERR_FORMAT,
                "variable '%s' is not one real number for each of %d rows", factors.text, v->rows);
    v->factors = s->data;
    for (int i = 0; i < s->cols; i++)
        DGM_FAIL_IF(!(fabsf(dgm_view_factor(v, i) * dgm_view_divisor(v, i) - 1) < 1e-6f), err, DGM_ERR_FORMAT,
                    "variable '%s' is %g in row %d, and the scale there is %g", factors.text,
                    (double)dgm_view_factor(v, i), i, (double)dgm_view_divisor(v, i));
    return DGM_OK;
}

// A matrix of that many columns and, unless -1, rows.
static dgm_status get_matrix(dgm_ct2 *in, const char *weight, int rows, int cols, dgm_view *out, dgm_error *err)
{
    const dgm_stored *t = find(in, weight);
    DGM_FAIL_IF(!t, err, DGM_ERR_FORMAT, "variable '%s' is missing", weight);
    dgm_checkpoint_take(&in->weights, weight);
    DGM_FAIL_IF(t->n_dims != 2 || t->cols != cols || (rows >= 0 && t->rows != rows), err, DGM_ERR_FORMAT,
                "variable '%s' has %d dimensions, %d rows and %d columns, expected [%d, %d]", weight, t->n_dims,
                t->rows, t->cols, rows >= 0 ? rows : t->rows, cols);
    *out = dgm_view_whole(in->weights.tensors, t);
    if (dgm_stored_is_real(t->type)) return DGM_OK;
    DGM_FAIL_IF(t->type != DGM_STORED_I8 && t->type != DGM_STORED_I16, err, DGM_ERR_UNSUPPORTED,
                "variable '%s' is %s", weight, t->dtype);
    DGM_TRY(get_divisors(in, weight, out, err));
    return get_factors(in, weight, out, err);
}

static dgm_status get_vector(dgm_ct2 *in, const char *text, int size, dgm_view *out, dgm_error *err)
{
    const dgm_stored *t = find(in, text);
    DGM_FAIL_IF(!t, err, DGM_ERR_FORMAT, "variable '%s' is missing", text);
    dgm_checkpoint_take(&in->weights, text);
    DGM_FAIL_IF(t->n_dims != 1 || t->cols != size || !dgm_stored_is_real(t->type), err, DGM_ERR_FORMAT,
                "variable '%s' is not a vector of %d real numbers", text, size);
    *out = dgm_view_whole(in->weights.tensors, t);
    return DGM_OK;
}

// ---- layers --------------------------------------------------------------------------------------

static dgm_status fetch_last_norm(const void *source, int first, int rows, float *out, dgm_error *err)
{
    const dgm_ct2 *in = source;
    DGM_TRY(dgm_view_read(&in->last_norm, first, rows, out, err));
    for (int i = 0; i < in->d; i++) out[i] *= in->output_scale;
    return DGM_OK;
}

// The decoder's last norm without bias, times the scale of what it gives to the projection.
static dgm_status add_last_norm(dgm_ct2 *in, dgm_error *err)
{
    DGM_TRY(get_vector(in, "decoder/layer_norm/gamma", in->d, &in->last_norm, err));
    DGM_FAIL_IF(find(in, "decoder/layer_norm/beta"), err, DGM_ERR_UNSUPPORTED,
                "variable 'decoder/scale_outputs' goes with norms without bias");
    return dgm_import_vector(in->job, "dec.norm.weight", in->d, fetch_last_norm, in, err);
}

static dgm_status add_norm(dgm_ct2 *in, const char *ours, const char *theirs, dgm_error *err)
{
    dgm_view v;
    DGM_TRY(get_vector(in, join(theirs, "/gamma").text, in->d, &v, err));
    DGM_TRY(dgm_checkpoint_view(&in->weights, join(ours, ".weight").text, v, true, err));
    const name beta = join(theirs, "/beta");
    if (in->style == DGM_CT2_RMS_NORM && !find(in, beta.text)) return DGM_OK;
    DGM_TRY(get_vector(in, beta.text, in->d, &v, err));
    return dgm_checkpoint_view(&in->weights, join(ours, ".bias").text, v, true, err);
}

// A linear layer that holds `count` of ours behind each other, each of `rows` rows. The bias may be missing.
static dgm_status add_linears(dgm_ct2 *in, const name *ours, int count, const char *theirs, int rows, int cols,
                              dgm_error *err)
{
    dgm_view weight, bias;
    const name b = join(theirs, "/bias");
    const bool biased = find(in, b.text) != NULL;
    DGM_TRY(get_matrix(in, join(theirs, "/weight").text, count * rows, cols, &weight, err));
    if (biased) DGM_TRY(get_vector(in, b.text, count * rows, &bias, err));
    for (int i = 0; i < count; i++) {
        DGM_TRY(dgm_checkpoint_view(&in->weights, join(ours[i].text, ".weight").text,
                                    dgm_view_rows(weight, i * rows, rows), false, err));
        if (!biased) continue;
        dgm_view part = bias;
        part.first += (size_t)i * (size_t)rows;
        part.cols = rows;
        DGM_TRY(dgm_checkpoint_view(&in->weights, join(ours[i].text, ".bias").text, part, true, err));
    }
    return DGM_OK;
}

static dgm_status add_linear(dgm_ct2 *in, const char *ours, const char *theirs, int rows, int cols, dgm_error *err)
{
    const name one = join(ours, "");
    return add_linears(in, &one, 1, theirs, rows, cols, err);
}

static dgm_status add_attention(dgm_ct2 *in, const char *ours, const char *theirs, int n, bool self, dgm_error *err)
{
    const name parts[3] = {join(ours, ".q"), join(ours, ".k"), join(ours, ".v")};
    const int d = in->d;
    if (self) {
        DGM_TRY(add_linears(in, parts, 3, join(theirs, "/linear_0").text, n, d, err));
    } else {
        DGM_TRY(add_linears(in, parts, 1, join(theirs, "/linear_0").text, n, d, err));
        DGM_TRY(add_linears(in, parts + 1, 2, join(theirs, "/linear_1").text, n, d, err));
    }
    DGM_TRY(add_linear(in, join(ours, ".o").text, join(theirs, self ? "/linear_1" : "/linear_2").text, d, n, err));
    return add_norm(in, join(ours, ".norm").text, join(theirs, "/layer_norm").text, err);
}

// A table of f32 whatever the storage: it is added to f32 numbers, and small.
static dgm_status add_f32(dgm_ct2 *in, const char *ours, dgm_view v, dgm_error *err)
{
    const int storage = in->job->storage;
    in->job->storage = DGM_TYPE_F32;
    const dgm_status st = dgm_checkpoint_view(&in->weights, ours, v, false, err);
    in->job->storage = storage;
    return st;
}

static bool same_tensor(const dgm_stored *a, const dgm_stored *b)
{
    return a->type == b->type && a->rows == b->rows && a->cols == b->cols &&
           (a->data == b->data || memcmp(a->data, b->data, a->bytes) == 0);
}

// Biases of relative positions; a layer that has those of the one before needs none.
static dgm_status add_relative(dgm_ct2 *in, const char *ours, int side, int layer, dgm_error *err)
{
    const dgm_ct2_side *s = &in->side[side];
    const dgm_stored *t[2] = {NULL, NULL}; // this layer, the one before
    for (int i = 0; i < 2 && i <= layer; i++) {
        char text[NAME];
        snprintf(text, sizeof text, "%s/layer_%d/self_attention/relative_attention_bias", s->scope, layer - i);
        t[i] = find(in, text);
        DGM_FAIL_IF(!t[i], err, DGM_ERR_FORMAT, "variable '%s' is missing", text);
        dgm_checkpoint_take(&in->weights, text);
        DGM_FAIL_IF(t[i]->n_dims != 2 || t[i]->rows != s->buckets || t[i]->cols != s->heads ||
                        !dgm_stored_is_real(t[i]->type),
                    err, DGM_ERR_FORMAT, "variable '%s' has %d rows and %d columns, expected [%d, %d]", text,
                    t[i]->rows, t[i]->cols, s->buckets, s->heads);
    }
    if (t[1] && same_tensor(t[0], t[1])) return DGM_OK;
    return add_f32(in, ours, dgm_view_whole(in->weights.tensors, t[0]), err);
}

static dgm_status add_layer(dgm_ct2 *in, int side, int layer, dgm_error *err)
{
    const dgm_ct2_side *s = &in->side[side];
    char ours[32], theirs[64];
    snprintf(ours, sizeof ours, "%s.%d", side ? "dec" : "enc", layer);
    snprintf(theirs, sizeof theirs, "%s/layer_%d", s->scope, layer);
    const name self = join(theirs, "/self_attention"), cross = join(theirs, "/attention");
    DGM_TRY(add_attention(in, join(ours, ".self").text, self.text, s->inner, true, err));
    if (side) DGM_TRY(add_attention(in, join(ours, ".cross").text, cross.text, s->inner, false, err));
    if (s->relative) DGM_TRY(add_relative(in, join(ours, ".self.rel").text, side, layer, err));
    DGM_TRY(add_linear(in, join(ours, ".ffn.in").text, join(theirs, "/ffn/linear_0").text, s->ffn, in->d, err));
    const name factor = join(theirs, "/ffn/linear_0_noact");
    if (s->gated) DGM_TRY(add_linear(in, join(ours, ".ffn.factor").text, factor.text, s->ffn, in->d, err));
    DGM_TRY(add_linear(in, join(ours, ".ffn.out").text, join(theirs, "/ffn/linear_1").text, in->d, s->ffn, err));
    return add_norm(in, join(ours, ".ffn.norm").text, join(theirs, "/ffn/layer_norm").text, err);
}

// ---- embeddings ----------------------------------------------------------------------------------

static bool same_matrix(const dgm_view *a, const dgm_view *b)
{
    if (!same_tensor(a->t, b->t)) return false;
    for (int i = 0; a->divisors && i < a->rows; i++)
        if (dgm_view_divisor(a, i) != dgm_view_divisor(b, i)) return false;
    return true;
}

static dgm_status add_embeddings(dgm_ct2 *in, dgm_error *err)
{
    static const char several[] = "encoder/embeddings_0/weight", one[] = "encoder/embeddings/weight";
    dgm_checkpoint *c = &in->weights;
    dgm_view source, target, output, bias;
    DGM_TRY(get_matrix(in, find(in, several) ? several : one, in->size[0], in->d, &source, err));
    DGM_TRY(get_matrix(in, "decoder/embeddings/weight", in->size[1], in->d, &target, err));
    DGM_TRY(get_matrix(in, "decoder/projection/weight", in->size[1], in->d, &output, err));
    DGM_TRY(dgm_checkpoint_view(c, "src.embed", source, false, err));
    if (!same_matrix(&source, &target)) DGM_TRY(dgm_checkpoint_view(c, "tgt.embed", target, false, err));
    if (!same_matrix(&target, &output)) DGM_TRY(dgm_checkpoint_view(c, "out.weight", output, false, err));
    if (!find(in, "decoder/projection/bias")) return DGM_OK;
    DGM_TRY(get_vector(in, "decoder/projection/bias", in->size[1], &bias, err));
    return dgm_checkpoint_view(c, "out.bias", bias, true, err);
}

// ---- positions -----------------------------------------------------------------------------------

// Position p, number i of a sinusoid of width d: half of them sines, half cosines.
static double sinusoid(bool marian, int d, int p, int i)
{
    const int half = d / 2, k = i % half;
    const double rate = marian ? exp(-(double)k * log(10000.0) / (half - 1)) : pow(10000.0, -2.0 * k / d);
    return i < half ? sin(p * rate) : cos(p * rate);
}

// Is a table the sinusoid from `offset` on? Those that were computed in f32 are off by 1e-4 at the end.
static dgm_status is_sinusoid(const dgm_view *v, bool marian, int offset, bool *yes, dgm_error *err)
{
    float row[2048];
    *yes = v->t->type == DGM_STORED_F32 && v->cols % 2 == 0 && v->cols >= 4 && v->cols <= 2048;
    for (int p = 0; p < v->rows && *yes; p++) {
        DGM_TRY(dgm_view_read(v, p, 1, row, err));
        for (int i = 0; i < v->cols && *yes; i++)
            *yes = fabs((double)row[i] - sinusoid(marian, v->cols, p + offset, i)) < 2e-4;
    }
    return DGM_OK;
}

// Which formula a table follows: an offset, or -1 for none.
static dgm_status find_formula(const dgm_view *v, bool *marian, int *offset, dgm_error *err)
{
    static const struct {
        bool marian;
        int offset;
    } tries[] = {{false, 0}, {true, 2}, {true, 0}, {true, 1}};
    *offset = -1;
    for (size_t i = 0; i < sizeof tries / sizeof *tries && *offset < 0; i++) {
        bool yes = false;
        DGM_TRY(is_sinusoid(v, tries[i].marian, tries[i].offset, &yes, err));
        if (!yes) continue;
        *marian = tries[i].marian;
        *offset = tries[i].offset;
    }
    return DGM_OK;
}

static dgm_status add_tables(dgm_ct2 *in, const dgm_view v[2], dgm_error *err)
{
    DGM_TRY(add_f32(in, "enc.pos", v[0], err));
    return same_tensor(v[0].t, v[1].t) ? DGM_OK : add_f32(in, "dec.pos", v[1], err);
}

// Without tables CTranslate2 computes the sinusoid from position 1 on.
static dgm_status add_positions(dgm_ct2 *in, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    if (in->side[0].relative) {
        dgm_gguf_set_u32(w, "dragoman.decode.max_source", 1024);
        return DGM_OK;
    }
    dgm_view v[2];
    bool marian[2] = {true, true};
    int offset[2] = {1, 1}, rows = 1024;
    for (int side = 0; side < 2; side++) {
        const dgm_stored *t = in->side[side].positions;
        if (!t) continue;
        DGM_FAIL_IF(t->n_dims != 2 || t->cols != in->d || t->rows < 4 || !dgm_stored_is_real(t->type), err,
                    DGM_ERR_FORMAT, "variable '%s' is no table of positions of width %d", t->name, in->d);
        v[side] = dgm_view_whole(in->weights.tensors, t);
        DGM_TRY(find_formula(&v[side], &marian[side], &offset[side], err));
        if (t->rows < rows) rows = t->rows;
    }
    const bool computed = offset[0] >= 0 && offset[0] == offset[1] && marian[0] == marian[1];
    DGM_FAIL_IF(!computed && (!in->side[0].positions || !in->side[1].positions), err, DGM_ERR_UNSUPPORTED,
                "positions of encoder and decoder are of two kinds");
    dgm_gguf_set_string(w, "dragoman.transformer.positions",
                        !computed ? "learned" : marian[0] ? "sinusoid_marian" : "sinusoid");
    if (computed && offset[0])
        dgm_gguf_set_u32(w, "dragoman.transformer.position_offset", (uint32_t)offset[0]);
    dgm_gguf_set_u32(w, "dragoman.decode.max_source", (uint32_t)rows);
    // CTranslate2's own 256 count the first tokens, too; the last one is never read.
    enum { LONGEST = 256 };
    const int longest = (rows < LONGEST ? rows : LONGEST) - in->lead;
    dgm_gguf_set_u32(w, "dragoman.decode.max_length", (uint32_t)(longest > 1 ? longest : 1));
    return computed ? DGM_OK : add_tables(in, v, err);
}

// ---- all of them ---------------------------------------------------------------------------------

static dgm_status add_all(dgm_ct2 *in, dgm_error *err)
{
    static const char *const ours[2] = {"enc", "dec"};
    DGM_TRY(add_embeddings(in, err));
    DGM_TRY(add_positions(in, err));
    for (int side = 0; side < 2; side++) {
        const dgm_ct2_side *s = &in->side[side];
        if (s->embedding_norm)
            DGM_TRY(add_norm(in, join(ours[side], ".embed_norm").text, join(s->scope, "/layernorm_embedding").text,
                             err));
        for (int i = 0; i < s->layers; i++) DGM_TRY(add_layer(in, side, i, err));
        if (s->final_norm && side && in->output_scale != 1)
            DGM_TRY(add_last_norm(in, err));
        else if (s->final_norm)
            DGM_TRY(add_norm(in, join(ours[side], ".norm").text, join(s->scope, "/layer_norm").text, err));
    }
    return DGM_OK;
}

dgm_status dgm_ct2_add_weights(dgm_ct2 *in, dgm_error *err)
{
    const dgm_status st = add_all(in, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s/model.bin'", in->files->label);
        return st;
    }
    return dgm_checkpoint_end(&in->weights, "a Transformer of CTranslate2", err);
}
