// SPDX-License-Identifier: MIT
// Exports to CTranslate2: model.bin of binary version 6, TransformerSpec of revision 7 (import/ct2_model.h
// has the layout). int8 stays int8, with 1 / scale as CTranslate2 has it; 16 bits become f32, which it
// multiplies in fewer bits. export_ct2_files.c writes what is text.
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "export/export.h"

enum { VERSION = 6, REVISION = 7, NAME = 160 };

static const char *const scopes[2] = {"encoder", "decoder"};

typedef struct name {
    char text[NAME];
} name;

static name join(const char *a, const char *b)
{
    name n;
    snprintf(n.text, sizeof n.text, "%.100s%.50s", a, b);
    return n;
}

// ---- weights -------------------------------------------------------------------------------------

// What CTranslate2 divides by so that 1 / it is our scale again, where there is such a number: between 1.41 and 2, and
// so in every octave, floats are closer to each other than the reciprocals of floats.
static float divisor(float scale)
{
    const float d = 1 / scale;
    if (!(scale > 0) || !isfinite(d)) return 1; // a row of zeros
    const float near[] = {d, nextafterf(d, 0), nextafterf(d, INFINITY)};
    for (int i = 0; i < 3; i++)
        if (1 / near[i] == scale) return near[i];
    return d;
}

static dgm_status add_scales(dgm_export_list *l, const dgm_export_tensor *t, dgm_error *err)
{
    float *d = dgm_malloc((size_t)t->rows * sizeof *d);
    if (!d) return dgm_no_memory(err);
    dgm_export_tensor factors = {.n_dims = 1, .count = t->count};
    bool exact = true;
    int row = 0;
    for (int i = 0; i < t->count; i++) {
        factors.parts[i] = t->parts[i]->scale;
        for (int r = 0; r < t->parts[i]->rows; r++, row++) {
            const float scale = ((const float *)t->parts[i]->scale->data)[r];
            d[row] = divisor(scale);
            exact = exact && 1 / d[row] == scale;
        }
    }
    dgm_export_tensor s = {.values = d, .owned = true, .n_dims = 1, .cols = t->rows};
    snprintf(s.name, sizeof s.name, "%.140s_scale", t->name);
    DGM_TRY(dgm_export_add(l, s, false, err));
    if (exact) return DGM_OK;
    // Which CTranslate2 does not look at, and import reads.
    snprintf(factors.name, sizeof factors.name, "%.140s_multiplier", t->name);
    return dgm_export_add(l, factors, false, err);
}

// A linear layer or embedding; parts behind each other.
static dgm_status add_matrix(dgm_export_list *l, const char *theirs, const dgm_tensor *const *parts, int count,
                             dgm_error *err)
{
    dgm_export_tensor t = {.n_dims = 2, .count = count};
    snprintf(t.name, sizeof t.name, "%s", theirs);
    for (int i = 0; i < count; i++) t.parts[i] = parts[i];
    DGM_TRY(dgm_export_add(l, t, true, err));
    t = l->items[l->count - 1];
    return t.type == DGM_TYPE_I8 ? add_scales(l, &t, err) : DGM_OK;
}

static dgm_status add_vectors(dgm_export_list *l, const char *theirs, const dgm_tensor *const *parts, int count,
                              dgm_error *err)
{
    dgm_export_tensor t = {.n_dims = 1, .count = count};
    snprintf(t.name, sizeof t.name, "%s", theirs);
    for (int i = 0; i < count; i++) t.parts[i] = parts[i];
    return dgm_export_add(l, t, false, err);
}

static dgm_status find(const dgm_gguf *g, const char *ours, bool needed, const dgm_tensor **out, dgm_error *err)
{
    *out = dgm_gguf_find_tensor(g, ours);
    DGM_FAIL_IF(needed && !*out, err, DGM_ERR_FORMAT, "tensor '%s' is missing", ours);
    return DGM_OK;
}

// Layers of ours as one of theirs. Biases: of all parts or of none.
static dgm_status add_linear(dgm_export_list *l, const dgm_gguf *g, const char *theirs, const char *prefix,
                             const char *const *ends, int count, dgm_error *err)
{
    const dgm_tensor *weight[DGM_EXPORT_PARTS], *bias[DGM_EXPORT_PARTS];
    int biases = 0;
    for (int i = 0; i < count; i++) {
        const name layer = join(prefix, ends[i]);
        DGM_TRY(find(g, join(layer.text, ".weight").text, true, &weight[i], err));
        DGM_TRY(find(g, join(layer.text, ".bias").text, false, &bias[i], err));
        biases += bias[i] != NULL;
    }
    DGM_FAIL_IF(biases != 0 && biases != count, err, DGM_ERR_UNSUPPORTED,
                "'%s': some parts of an attention have a bias and some have none", prefix);
    DGM_TRY(add_matrix(l, join(theirs, "/weight").text, weight, count, err));
    return biases ? add_vectors(l, join(theirs, "/bias").text, bias, count, err) : DGM_OK;
}

static dgm_status add_norm(dgm_export_list *l, const dgm_gguf *g, const char *theirs, const char *ours, dgm_error *err)
{
    const dgm_tensor *t;
    DGM_TRY(find(g, join(ours, ".weight").text, true, &t, err));
    DGM_TRY(add_vectors(l, join(theirs, "/gamma").text, &t, 1, err));
    DGM_TRY(find(g, join(ours, ".bias").text, true, &t, err));
    return add_vectors(l, join(theirs, "/beta").text, &t, 1, err);
}

static dgm_status add_layer(dgm_export_list *l, const dgm_gguf *g, int side, int layer, dgm_error *err)
{
    static const char *const qkv[] = {".self.q", ".self.k", ".self.v"}, *const self_o[] = {".self.o"};
    static const char *const q[] = {".cross.q"}, *const kv[] = {".cross.k", ".cross.v"}, *const o[] = {".cross.o"};
    static const char *const in[] = {".ffn.in"}, *const out[] = {".ffn.out"};
    char ours[32], theirs[64];
    snprintf(ours, sizeof ours, "%s.%d", side ? "dec" : "enc", layer);
    snprintf(theirs, sizeof theirs, "%s/layer_%d", scopes[side], layer);
    DGM_TRY(add_linear(l, g, join(theirs, "/self_attention/linear_0").text, ours, qkv, 3, err));
    DGM_TRY(add_linear(l, g, join(theirs, "/self_attention/linear_1").text, ours, self_o, 1, err));
    DGM_TRY(add_norm(l, g, join(theirs, "/self_attention/layer_norm").text, join(ours, ".self.norm").text, err));
    if (side) {
        DGM_TRY(add_linear(l, g, join(theirs, "/attention/linear_0").text, ours, q, 1, err));
        DGM_TRY(add_linear(l, g, join(theirs, "/attention/linear_1").text, ours, kv, 2, err));
        DGM_TRY(add_linear(l, g, join(theirs, "/attention/linear_2").text, ours, o, 1, err));
        DGM_TRY(add_norm(l, g, join(theirs, "/attention/layer_norm").text, join(ours, ".cross.norm").text, err));
    }
    DGM_TRY(add_linear(l, g, join(theirs, "/ffn/linear_0").text, ours, in, 1, err));
    DGM_TRY(add_linear(l, g, join(theirs, "/ffn/linear_1").text, ours, out, 1, err));
    return add_norm(l, g, join(theirs, "/ffn/layer_norm").text, join(ours, ".ffn.norm").text, err);
}

static dgm_status add_alias(dgm_export_list *l, const char *alias, const char *of, dgm_error *err)
{
    dgm_export_tensor t = {.alias = of, .n_dims = 2};
    snprintf(t.name, sizeof t.name, "%s", alias);
    return dgm_export_add(l, t, false, err);
}

static dgm_status add_embeddings(dgm_export_list *l, const dgm_export_model *m, dgm_error *err)
{
    static const char source[] = "encoder/embeddings_0/weight", target[] = "decoder/embeddings/weight",
                      output[] = "decoder/projection/weight";
    const dgm_tensor *bias = dgm_gguf_find_tensor(m->g, "out.bias");
    DGM_TRY(add_matrix(l, target, &m->target, 1, err));
    if (m->source != m->target) DGM_TRY(add_matrix(l, source, &m->source, 1, err));
    if (m->output != m->target) DGM_TRY(add_matrix(l, output, &m->output, 1, err));
    if (m->source == m->target) DGM_TRY(add_alias(l, source, target, err));
    if (m->output == m->target) DGM_TRY(add_alias(l, output, target, err));
    return bias ? add_vectors(l, "decoder/projection/bias", &bias, 1, err) : DGM_OK;
}

// ---- positions -----------------------------------------------------------------------------------

static dgm_status add_table(dgm_export_list *l, const dgm_export_model *m, int side, int rows, dgm_error *err)
{
    const bool marian = strcmp(m->positions, "sinusoid_marian") == 0;
    const int half = m->d / 2;
    DGM_FAIL_IF(m->d % 2 || m->d < 4, err, DGM_ERR_UNSUPPORTED, "sinusoids of the odd width %d", m->d);
    float *v = dgm_malloc((size_t)rows * (size_t)m->d * sizeof *v);
    if (!v) return dgm_no_memory(err);
    for (int p = 0; p < rows; p++)
        for (int i = 0; i < half; i++) {
            const double rate = marian ? exp(-i * log(10000.0) / (half - 1)) : pow(10000.0, -2.0 * i / m->d);
            v[(size_t)p * (size_t)m->d + (size_t)i] = (float)sin((p + m->position_offset) * rate);
            v[(size_t)p * (size_t)m->d + (size_t)(half + i)] = (float)cos((p + m->position_offset) * rate);
        }
    dgm_export_tensor t = {.values = v, .owned = true, .n_dims = 2, .rows = rows, .cols = m->d};
    snprintf(t.name, sizeof t.name, "%s/position_encodings/encodings", scopes[side]);
    return dgm_export_add(l, t, false, err);
}

// CTranslate2 computes one kind of sinusoid, from position 1 on; others it gets as tables.
static dgm_status add_positions(dgm_export_list *l, const dgm_export_model *m, dgm_error *err)
{
    const dgm_tensor *table[2] = {dgm_gguf_find_tensor(m->g, "enc.pos"), dgm_gguf_find_tensor(m->g, "dec.pos")};
    if (strcmp(m->positions, "sinusoid_marian") == 0 && m->position_offset == 1) return DGM_OK;
    int rows = m->decode.max_source > m->decode.max_length ? m->decode.max_source : m->decode.max_length + 1;
    for (int side = 0; side < 2; side++) {
        if (strncmp(m->positions, "sinusoid", 8) == 0) {
            DGM_TRY(add_table(l, m, side, rows, err));
            continue;
        }
        const dgm_tensor *t = side && table[1] ? table[1] : table[0];
        DGM_FAIL_IF(strcmp(m->positions, "learned") != 0 || !t || t->rows <= m->position_offset, err,
                    DGM_ERR_UNSUPPORTED, "CTranslate2 has no positions '%s' with offset %d", m->positions,
                    m->position_offset);
        char theirs[64];
        snprintf(theirs, sizeof theirs, "%s/position_encodings/encodings", scopes[side]);
        // Rows before the first position, which nobody looks at, have no place there.
        dgm_export_tensor e = {.n_dims = 2, .count = 1, .parts = {t}, .skip = m->position_offset};
        snprintf(e.name, sizeof e.name, "%s", theirs);
        DGM_TRY(dgm_export_add(l, e, false, err));
    }
    return DGM_OK;
}

static dgm_status list_weights(dgm_export_list *l, const dgm_export_model *m, dgm_error *err)
{
    static const char *const ours[2] = {"enc", "dec"};
    DGM_TRY(add_embeddings(l, m, err));
    DGM_TRY(add_positions(l, m, err));
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < m->layers[side]; i++) DGM_TRY(add_layer(l, m->g, side, i, err));
        if (m->pre_norm)
            DGM_TRY(add_norm(l, m->g, join(scopes[side], "/layer_norm").text, join(ours[side], ".norm").text, err));
        if (dgm_gguf_find_tensor(m->g, join(ours[side], ".embed_norm.weight").text))
            DGM_TRY(add_norm(l, m->g, join(scopes[side], "/layernorm_embedding").text,
                             join(ours[side], ".embed_norm").text, err));
    }
    return DGM_OK;
}

// ---- model.bin -----------------------------------------------------------------------------------

static void put_string(dgm_writer *w, const char *text)
{
    dgm_write_u16(w, (uint16_t)(strlen(text) + 1));
    dgm_write_bytes(w, text, strlen(text) + 1);
}

static void put_scalar(dgm_writer *w, uint32_t *count, const char *scope, const char *rest, int bytes, int value)
{
    char text[NAME];
    snprintf(text, sizeof text, "%s/%s", scope, rest);
    put_string(w, text);
    dgm_write_u8(w, 0);
    dgm_write_u8(w, bytes == 1 ? 1 : 2);
    dgm_write_u32(w, (uint32_t)bytes);
    if (bytes == 1)
        dgm_write_u8(w, (uint8_t)value);
    else
        dgm_write_u16(w, (uint16_t)(int16_t)value);
    (*count)++;
}

static dgm_status activation_number(const char *activation, int *out, dgm_error *err)
{
    static const char *const names[] = {"relu", "gelu_tanh", "swish", "gelu", "gelu_sigmoid"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(activation, names[i]) == 0) {
            *out = i;
            return DGM_OK;
        }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "CTranslate2 has no activation '%s'", activation);
}

static dgm_status put_settings(const dgm_export_model *m, dgm_writer *w, uint32_t *count, dgm_error *err)
{
    int activation = 0;
    DGM_TRY(activation_number(m->activation, &activation, err));
    for (int side = 0; side < 2; side++) {
        put_scalar(w, count, scopes[side], "num_heads", 2, m->heads[side]);
        put_scalar(w, count, scopes[side], "pre_norm", 1, m->pre_norm);
        put_scalar(w, count, scopes[side], "activation", 1, activation);
        put_scalar(w, count, scopes[side], "scale_embeddings", 1, m->scale_embedding);
    }
    put_scalar(w, count, "encoder", "embeddings_merge", 1, 0);
    put_scalar(w, count, "encoder", "multi_query_attention", 1, 0);
    put_scalar(w, count, "decoder", "alignment_layer", 2, m->decode.align_layer);
    put_scalar(w, count, "decoder", "alignment_heads", 2, m->decode.align_head == 0 ? 1 : 0);
    put_scalar(w, count, "decoder", "start_from_zero_embedding", 1, m->vocab[1].start < 0);
    put_scalar(w, count, "decoder", "alibi", 1, 0);
    return DGM_OK;
}

static void put_head(dgm_writer *w, const dgm_export_tensor *t)
{
    static const struct {
        int ours, theirs;
    } types[] = {{DGM_TYPE_F32, 0}, {DGM_TYPE_I8, 1}, {DGM_TYPE_F16, 4}, {DGM_TYPE_BF16, 5}};
    put_string(w, t->name);
    dgm_write_u8(w, (uint8_t)t->n_dims);
    if (t->n_dims == 2) dgm_write_u32(w, (uint32_t)t->rows);
    dgm_write_u32(w, (uint32_t)t->cols);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].ours == t->type) dgm_write_u8(w, (uint8_t)types[i].theirs);
    dgm_write_u32(w, (uint32_t)dgm_export_bytes(t));
}

static dgm_status put(dgm_writer *w, FILE *f, dgm_error *err)
{
    const bool failed = w->failed, written = !failed && fwrite(w->data, 1, w->size, f) == w->size;
    dgm_writer_free(w);
    *w = (dgm_writer){0};
    if (failed) return dgm_no_memory(err);
    DGM_FAIL_IF(!written, err, DGM_ERR_IO, "cannot write 'model.bin'");
    return DGM_OK;
}

static dgm_status write_model(const dgm_export_job *job, const dgm_export_list *l, FILE *f, dgm_error *err)
{
    dgm_writer head = {0}, settings = {0};
    uint32_t count = 0, aliases = 0;
    dgm_status st = put_settings(job->model, &settings, &count, err);
    for (size_t i = 0; i < l->count; i++) *(l->items[i].alias ? &aliases : &count) += 1;
    dgm_write_u32(&head, VERSION);
    put_string(&head, "TransformerSpec");
    dgm_write_u32(&head, REVISION);
    dgm_write_u32(&head, count);
    if (st == DGM_OK) st = put(&head, f, err);
    if (st == DGM_OK) st = put(&settings, f, err);
    for (size_t i = 0; i < l->count && st == DGM_OK; i++) {
        if (l->items[i].alias) continue;
        if (dgm_export_bytes(&l->items[i]) > UINT32_MAX)
            st = dgm_fail(err, DGM_ERR_UNSUPPORTED, "CTranslate2 has no tensor of more than 4 GiB: '%s'",
                          l->items[i].name);
        put_head(&head, &l->items[i]);
        if (st == DGM_OK) st = put(&head, f, err);
        if (st == DGM_OK) st = dgm_export_write(&l->items[i], f, err);
        if (st == DGM_OK) st = dgm_export_tick(job, (double)(i + 1) / (double)l->count, err);
    }
    dgm_write_u32(&head, aliases);
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].alias) put_string(&head, l->items[i].name), put_string(&head, l->items[i].alias);
    if (st == DGM_OK) st = put(&head, f, err);
    dgm_writer_free(&head);
    dgm_writer_free(&settings);
    return st;
}

dgm_status dgm_export_ctranslate2(const dgm_export_job *job, dgm_error *err)
{
    char **source = NULL, **target = NULL;
    dgm_export_list l = {0};
    FILE *f = NULL;
    dgm_status st;
    DGM_TRY_GOTO(st, list_weights(&l, job->model, err), done);
    DGM_TRY_GOTO(st, dgm_export_spellings(job->model, 0, &source, err), done);
    DGM_TRY_GOTO(st, dgm_export_spellings(job->model, 1, &target, err), done);
    DGM_TRY_GOTO(st, dgm_ct2_write_texts(job, source, target, err), done);
    DGM_TRY_GOTO(st, dgm_export_open(job, "model.bin", &f, err), done);
    st = dgm_export_close(job, "model.bin", &f, write_model(job, &l, f, err), err);
done:
    dgm_export_spellings_free(job->model, 0, &source);
    dgm_export_spellings_free(job->model, 1, &target);
    dgm_export_list_free(&l);
    return st;
}
