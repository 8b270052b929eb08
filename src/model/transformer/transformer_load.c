// SPDX-License-Identifier: MIT
// The Transformer's metadata and tensors (docs/internals/FORMAT.md, 2.4).
//
// Layers that share an input are stacked into one product: q, k and v of self-attention, the two
// SSRU layers, and the keys and values of all decoder layers, which see the same encoder output.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/transformer/transformer_private.h"

// Sinusoids are computed for this many positions, or more if the model's defaults ask for it.
enum { SINUSOID_POSITIONS = 1024, MAX_WIDTH = 1 << 16, MAX_LAYERS = 1024 };

static const char *const norm_names[] = {"post", "pre", NULL};
static const char *const decoder_names[] = {"self_attention", "ssru", "aan", NULL}; // decoder_kind
static const char *const start_names[] = {"zero", "learned", NULL};
static const char *const activation_names[] = {"relu", "relu10",    "swish",
                                               "gelu", "gelu_tanh", NULL};
static const dgm_act activations[] = {DGM_ACT_RELU, DGM_ACT_RELU10, DGM_ACT_SWISH, DGM_ACT_GELU,
                                      DGM_ACT_GELU_TANH};
typedef enum positions { SINUSOID, SINUSOID_MARIAN, LEARNED, NO_POSITIONS } positions;
static const char *const position_names[] = {"sinusoid", "sinusoid_marian", "learned", "none",
                                             NULL};

// Tensor names are short and made from a pattern and a layer number.
typedef struct tensor_name {
    char text[96];
} tensor_name;

static tensor_name name_of(const char *fmt, ...) DGM_PRINTF(1, 2);
static tensor_name name_of(const char *fmt, ...)
{
    tensor_name n;
    va_list args;
    va_start(args, fmt);
    vsnprintf(n.text, sizeof n.text, fmt, args);
    va_end(args);
    return n;
}

// ---- metadata ---------------------------------------------------------------------------------

typedef struct settings {
    positions positions;
    int start;
} settings;

static dgm_status get_size(const dgm_gguf *g, const char *key, dgm_need need, int max, int *out,
                           dgm_error *err)
{
    uint32_t v = (uint32_t)*out;
    DGM_TRY(dgm_gguf_get_u32(g, key, need, 1, (uint32_t)max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

static dgm_status load_settings(dgm_model *m, transformer *t, settings *s, dgm_error *err)
{
    const dgm_gguf *g = m->file;
    int norm_kind = 0, act = 0, pos = 0, decoder = 0, start = 0;
    uint32_t offset = 0;
    t->eps = 1e-5f;
    t->scale_embedding = true;
    DGM_TRY(get_size(g, "dragoman.transformer.d_model", DGM_REQUIRED, MAX_WIDTH, &t->d, err));
    DGM_TRY(get_size(g, "dragoman.transformer.heads", DGM_REQUIRED, MAX_WIDTH, &t->heads, err));
    DGM_TRY(get_size(g, "dragoman.transformer.ffn", DGM_REQUIRED, MAX_WIDTH, &t->ffn, err));
    t->decoder_ffn = t->ffn;
    DGM_TRY(get_size(g, "dragoman.transformer.decoder_ffn", DGM_OPTIONAL, MAX_WIDTH,
                     &t->decoder_ffn, err));
    DGM_TRY(get_size(g, "dragoman.transformer.encoder_layers", DGM_REQUIRED, MAX_LAYERS,
                     &t->encoder_layers, err));
    DGM_TRY(get_size(g, "dragoman.transformer.decoder_layers", DGM_REQUIRED, MAX_LAYERS,
                     &t->decoder_layers, err));
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.transformer.norm", DGM_REQUIRED, norm_names, &norm_kind,
                              err));
    DGM_TRY(dgm_gguf_get_f32(g, "dragoman.transformer.norm_eps", DGM_OPTIONAL, 0, 1, &t->eps, err));
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.transformer.activation", DGM_REQUIRED, activation_names,
                              &act, err));
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.transformer.positions", DGM_REQUIRED, position_names,
                              &pos, err));
    DGM_TRY(dgm_gguf_get_u32(g, "dragoman.transformer.position_offset", DGM_OPTIONAL, 0, 1024,
                             &offset, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.transformer.scale_embedding", DGM_OPTIONAL,
                              &t->scale_embedding, err));
    DGM_TRY(
        dgm_gguf_get_enum(g, "dragoman.transformer.start", DGM_OPTIONAL, start_names, &start, err));
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.transformer.decoder", DGM_OPTIONAL, decoder_names,
                              &decoder, err));
    DGM_FAIL_IF(t->d % t->heads != 0, err, DGM_ERR_FORMAT,
                "dragoman.transformer.heads is %d, which does not divide d_model %d", t->heads,
                t->d);
    DGM_FAIL_IF(t->d % 2 != 0, err, DGM_ERR_FORMAT, "dragoman.transformer.d_model is odd: %d",
                t->d);
    DGM_TRY(dgm_transformer_moe_settings(g, &t->moe, err));
    t->pre_norm = norm_kind == 1;
    t->cell = (decoder_kind)decoder;
    t->act = activations[act];
    t->position_offset = (int)offset;
    s->positions = (positions)pos;
    s->start = start;
    return DGM_OK;
}

// ---- parts ------------------------------------------------------------------------------------

// Stacks `count` linear layers PREFIX.NAME of [rows, cols] each. Only weights are required.
static dgm_status load_stack(dgm_model *m, const char *prefix, const char *const *names, int count,
                             int rows, int cols, dgm_linear **out, dgm_error *err)
{
    dgm_linear_part parts[3] = {{0}};
    for (int i = 0; i < count; i++) {
        tensor_name weight = name_of("%s.%s.weight", prefix, names[i]);
        tensor_name bias = name_of("%s.%s.bias", prefix, names[i]);
        DGM_TRY(
            dgm_gguf_matrix(m->file, weight.text, rows, cols, DGM_REQUIRED, &parts[i].weight, err));
        DGM_TRY(dgm_gguf_vector(m->file, bias.text, rows, DGM_OPTIONAL, &parts[i].bias, err));
    }
    return dgm_model_linear(m, parts, count, out, err);
}

static dgm_status load_linear(dgm_model *m, const char *prefix, const char *name, int rows,
                              int cols, dgm_linear **out, dgm_error *err)
{
    return load_stack(m, prefix, &name, 1, rows, cols, out, err);
}

static dgm_status load_norm(dgm_model *m, const char *prefix, int d, dgm_need need, norm *out,
                            dgm_error *err)
{
    const float *gamma = NULL, *beta = NULL;
    DGM_TRY(dgm_gguf_vector(m->file, name_of("%s.weight", prefix).text, d, need, &gamma, err));
    DGM_TRY(dgm_gguf_vector(m->file, name_of("%s.bias", prefix).text, d, DGM_OPTIONAL, &beta, err));
    if (gamma) DGM_TRY(dgm_vector_from(m->backend, gamma, 1, d, &out->gamma, err));
    if (gamma && beta) DGM_TRY(dgm_vector_from(m->backend, beta, 1, d, &out->beta, err));
    return DGM_OK;
}

// `every`: of this side, for layer number i.
static dgm_status load_ffn(dgm_model *m, const char *prefix, int every, int i, int f,
                           feed_forward *out, dgm_error *err)
{
    const transformer *t = m->weights;
    int d = t->d;
    if (dgm_transformer_moe_at(every, i)) {
        DGM_TRY(dgm_transformer_moe_load(m, &t->moe, prefix, d, f, out, err));
    } else {
        DGM_TRY(load_linear(m, prefix, "ffn.in", f, d, &out->in, err));
        DGM_TRY(load_linear(m, prefix, "ffn.out", d, f, &out->out, err));
    }
    return load_norm(m, name_of("%s.ffn.norm", prefix).text, d, DGM_REQUIRED, &out->norm, err);
}

static const char *const qkv_names[] = {"self.q", "self.k", "self.v"};
static const char *const ssru_names[] = {"rnn.w", "rnn.f"};

static dgm_status load_encoder_layer(dgm_model *m, transformer *t, int i, dgm_error *err)
{
    encoder_layer *l = &t->encoder[i];
    tensor_name p = name_of("enc.%d", i);
    DGM_TRY(load_stack(m, p.text, qkv_names, 3, t->d, t->d, &l->qkv, err));
    DGM_TRY(load_linear(m, p.text, "self.o", t->d, t->d, &l->o, err));
    DGM_TRY(load_norm(m, name_of("enc.%d.self.norm", i).text, t->d, DGM_REQUIRED, &l->norm, err));
    return load_ffn(m, p.text, t->moe.encoder_every, i, t->ffn, &l->ffn, err);
}

static dgm_status load_decoder_layer(dgm_model *m, transformer *t, int i, dgm_error *err)
{
    decoder_layer *l = &t->decoder[i];
    tensor_name p = name_of("dec.%d", i);
    if (t->cell == DECODER_SSRU) {
        DGM_TRY(load_stack(m, p.text, ssru_names, 2, t->d, t->d, &l->qkv, err));
    } else if (t->cell == DECODER_AAN) {
        DGM_TRY(load_linear(m, p.text, "aan.in", t->decoder_ffn, t->d, &l->aan_in, err));
        DGM_TRY(load_linear(m, p.text, "aan.out", t->d, t->decoder_ffn, &l->aan_out, err));
        DGM_TRY(load_linear(m, p.text, "aan.gate", 2 * t->d, 2 * t->d, &l->gate, err));
    } else {
        DGM_TRY(load_stack(m, p.text, qkv_names, 3, t->d, t->d, &l->qkv, err));
        DGM_TRY(load_linear(m, p.text, "self.o", t->d, t->d, &l->o, err));
    }
    static const char *const cells[] = {"self", "rnn", "aan"};
    tensor_name first_norm = name_of("dec.%d.%s.norm", i, cells[t->cell]);
    DGM_TRY(load_norm(m, first_norm.text, t->d, DGM_REQUIRED, &l->norm, err));
    DGM_TRY(load_linear(m, p.text, "cross.q", t->d, t->d, &l->cross_q, err));
    DGM_TRY(load_linear(m, p.text, "cross.o", t->d, t->d, &l->cross_o, err));
    DGM_TRY(load_norm(m, name_of("dec.%d.cross.norm", i).text, t->d, DGM_REQUIRED, &l->cross_norm,
                      err));
    return load_ffn(m, p.text, t->moe.decoder_every, i, t->decoder_ffn, &l->ffn, err);
}

static dgm_status load_cross_kv(dgm_model *m, transformer *t, dgm_error *err)
{
    dgm_linear_part *parts = dgm_calloc((size_t)t->decoder_layers * 2, sizeof *parts);
    if (!parts) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    for (int i = 0; i < 2 * t->decoder_layers && st == DGM_OK; i++) {
        char which = i % 2 ? 'v' : 'k';
        tensor_name weight = name_of("dec.%d.cross.%c.weight", i / 2, which);
        tensor_name bias = name_of("dec.%d.cross.%c.bias", i / 2, which);
        st = dgm_gguf_matrix(m->file, weight.text, t->d, t->d, DGM_REQUIRED, &parts[i].weight, err);
        if (st != DGM_OK) break;
        st = dgm_gguf_vector(m->file, bias.text, t->d, DGM_OPTIONAL, &parts[i].bias, err);
    }
    if (st == DGM_OK) st = dgm_model_linear(m, parts, 2 * t->decoder_layers, &t->cross_kv, err);
    dgm_free(parts);
    return st;
}

// ---- embeddings and positions -------------------------------------------------------------------

static dgm_status load_embeddings(dgm_model *m, transformer *t, const settings *s, dgm_error *err)
{
    const dgm_tensor *source = NULL, *target = NULL;
    DGM_TRY(dgm_gguf_matrix(m->file, "src.embed", m->info.source_vocab, t->d, DGM_REQUIRED, &source,
                            err));
    DGM_TRY(dgm_gguf_matrix(m->file, "tgt.embed", m->info.target_vocab, t->d, DGM_OPTIONAL, &target,
                            err));
    DGM_FAIL_IF(!target && m->info.target_vocab != m->info.source_vocab, err, DGM_ERR_FORMAT,
                "tensor 'tgt.embed' is missing, and the vocabularies differ in size");
    DGM_TRY(dgm_embedding_load(m->backend, source, &t->source, err));
    DGM_TRY(dgm_embedding_load(m->backend, target ? target : source, &t->target, err));
    if (s->start != 1) return DGM_OK;
    const float *start = NULL;
    DGM_TRY(dgm_gguf_vector(m->file, "dec.start", t->d, DGM_REQUIRED, &start, err));
    return dgm_vector_from(m->backend, start, 1, t->d, &t->start, err);
}

static dgm_status make_sinusoids(dgm_model *m, transformer *t, bool marian, dgm_error *err)
{
    int rows = SINUSOID_POSITIONS, half = t->d / 2;
    if (m->info.defaults.max_source > rows) rows = m->info.defaults.max_source;
    if (m->info.defaults.max_length + 2 > rows) rows = m->info.defaults.max_length + 2;
    rows += t->position_offset;
    float *table = dgm_malloc((size_t)rows * (size_t)t->d * sizeof(float));
    if (!table) return dgm_no_memory(err);
    for (int i = 0; i < half; i++) {
        double rate = marian ? exp(-log(10000.0) * i / (half > 1 ? half - 1 : 1))
                             : pow(10000.0, -2.0 * i / t->d);
        for (int p = 0; p < rows; p++) {
            table[(size_t)p * (size_t)t->d + (size_t)i] = (float)sin(p * rate);
            table[(size_t)p * (size_t)t->d + (size_t)(half + i)] = (float)cos(p * rate);
        }
    }
    dgm_status st = dgm_vector_from(m->backend, table, rows, t->d, &t->encoder_positions, err);
    dgm_free(table);
    m->info.max_source = m->info.max_target = rows - t->position_offset;
    return st;
}

static dgm_status load_table(dgm_model *m, const char *name, int d, dgm_need need, dgm_vector **out,
                             int *rows, dgm_error *err)
{
    const dgm_tensor *tensor = NULL;
    DGM_TRY(dgm_gguf_matrix(m->file, name, -1, d, need, &tensor, err));
    if (!tensor) return DGM_OK;
    float *table = dgm_malloc((size_t)tensor->rows * (size_t)d * sizeof(float));
    if (!table) return dgm_no_memory(err);
    dgm_tensor_to_f32(tensor, table);
    dgm_status st = dgm_vector_from(m->backend, table, tensor->rows, d, out, err);
    *rows = tensor->rows;
    dgm_free(table);
    return st;
}

static dgm_status load_positions(dgm_model *m, transformer *t, const settings *s, dgm_error *err)
{
    if (s->positions == NO_POSITIONS) return DGM_OK;
    if (s->positions != LEARNED) return make_sinusoids(m, t, s->positions == SINUSOID_MARIAN, err);
    int rows = 0;
    DGM_TRY(load_table(m, "enc.pos", t->d, DGM_REQUIRED, &t->encoder_positions, &rows, err));
    m->info.max_source = m->info.max_target = rows - t->position_offset;
    DGM_TRY(load_table(m, "dec.pos", t->d, DGM_OPTIONAL, &t->decoder_positions, &rows, err));
    m->info.max_target = rows - t->position_offset;
    DGM_FAIL_IF(m->info.max_source < 1 || m->info.max_target < 2, err, DGM_ERR_FORMAT,
                "the tables of positions are too short");
    return DGM_OK;
}

// ---- what the architectures have of their own ---------------------------------------------------

// What is only ever an input must not come out.
static dgm_status check_never(const dgm_vocab_spec *target, int id, const char *what,
                              dgm_error *err)
{
    for (size_t i = 0; i < target->never_count; i++)
        if (target->never[i] == id) return DGM_OK;
    return dgm_fail(err, DGM_ERR_FORMAT, "key 'dragoman.target.never' does not hold %s, %d", what,
                    id);
}

// Pairs begin with (BOS, EOS) and end with EOD; BOS and EOS are never chosen, and the file says so.
static dgm_status load_double(dgm_model *m, transformer *t, const dgm_vocab_spec *target,
                              dgm_error *err)
{
    dgm_model_info *info = &m->info;
    DGM_FAIL_IF(target->eod < 0 || target->bos < 0, err, DGM_ERR_FORMAT,
                "a decoder of pairs needs the keys dragoman.target.eod and dragoman.target.bos");
    DGM_FAIL_IF(target->eod == target->eos || target->eod == target->bos ||
                    target->prefix_count > 0 || target->start >= 0,
                err, DGM_ERR_FORMAT,
                "a decoder of pairs has an end symbol of its own, and no prefix or start");
    DGM_TRY(check_never(target, target->bos, "bos", err));
    DGM_TRY(check_never(target, target->eos, "eos", err));
    t->tokens = info->tokens_per_step = DGM_STEP_TOKENS;
    info->start = target->bos;
    info->start_second = target->eos;
    info->eos = target->eod;
    if (info->max_target < INT32_MAX) info->max_target /= DGM_STEP_TOKENS;
    DGM_FAIL_IF(info->max_target < 2, err, DGM_ERR_FORMAT,
                "the tables of positions are too short for pairs");
    return DGM_OK;
}

static dgm_status load_cmlm(dgm_model *m, transformer *t, const dgm_vocab_spec *target,
                            dgm_error *err)
{
    dgm_model_info *info = &m->info;
    DGM_FAIL_IF(target->mask < 0, err, DGM_ERR_FORMAT,
                "a masked language model needs the key dragoman.target.mask");
    DGM_FAIL_IF(t->cell != DECODER_ATTENTION || info->order != DGM_ORDER_L2R ||
                    target->prefix_count > 0 || target->start >= 0,
                err, DGM_ERR_FORMAT,
                "a masked language model has self-attention, and no order, prefix or start");
    DGM_TRY(check_never(target, target->mask, "mask", err));
    DGM_TRY(check_never(target, target->eos, "eos", err));
    const float *input = NULL;
    DGM_TRY(dgm_gguf_vector(m->file, "enc.length.input", t->d, DGM_REQUIRED, &input, err));
    DGM_TRY(dgm_vector_from(m->backend, input, 1, t->d, &t->length_input, err));
    const dgm_tensor *classes = NULL;
    DGM_TRY(dgm_gguf_matrix(m->file, "enc.length.weight", -1, t->d, DGM_REQUIRED, &classes, err));
    t->lengths = classes->rows;
    DGM_TRY(load_linear(m, "enc", "length", t->lengths, t->d, &t->length, err));
    info->mask = target->mask;
    if (info->max_source < INT32_MAX) info->max_source--; // LENGTH takes a position
    // No start symbol takes one; of the target's positions those with a length are of use.
    if (info->max_target > t->lengths) info->max_target = t->lengths;
    info->max_target++;
    return DGM_OK;
}

static dgm_status load_single(dgm_model *m, transformer *t, const dgm_vocab_spec *target,
                              dgm_error *err)
{
    (void)t, (void)target;
    DGM_FAIL_IF(m->info.order == DGM_ORDER_BIDIRECTIONAL, err, DGM_ERR_FORMAT,
                "one token a step cannot come from both ends");
    return DGM_OK;
}

// ---- the whole --------------------------------------------------------------------------------

typedef dgm_status (*load_own)(dgm_model *m, transformer *t, const dgm_vocab_spec *target,
                               dgm_error *err);

static dgm_status load_all(dgm_model *m, load_own own, dgm_error *err)
{
    transformer *t = dgm_calloc(1, sizeof *t);
    if (!t) return dgm_no_memory(err);
    m->weights = t;
    t->tokens = 1;
    dgm_vocab_spec target;
    DGM_TRY(dgm_modelfile_vocab(m->file, DGM_TARGET, &target, err));
    settings s = {0};
    DGM_TRY(load_settings(m, t, &s, err));
    t->encoder = dgm_calloc((size_t)t->encoder_layers, sizeof *t->encoder);
    t->decoder = dgm_calloc((size_t)t->decoder_layers, sizeof *t->decoder);
    if (!t->encoder || !t->decoder) return dgm_no_memory(err);
    DGM_TRY(load_embeddings(m, t, &s, err));
    DGM_TRY(load_positions(m, t, &s, err));
    DGM_TRY(load_norm(m, "enc.embed_norm", t->d, DGM_OPTIONAL, &t->encoder_embed_norm, err));
    DGM_TRY(load_norm(m, "dec.embed_norm", t->d, DGM_OPTIONAL, &t->decoder_embed_norm, err));
    for (int i = 0; i < t->encoder_layers; i++) DGM_TRY(load_encoder_layer(m, t, i, err));
    for (int i = 0; i < t->decoder_layers; i++) DGM_TRY(load_decoder_layer(m, t, i, err));
    DGM_TRY(load_cross_kv(m, t, err));
    if (t->pre_norm) {
        DGM_TRY(load_norm(m, "enc.norm", t->d, DGM_REQUIRED, &t->encoder_norm, err));
        DGM_TRY(load_norm(m, "dec.norm", t->d, DGM_REQUIRED, &t->decoder_norm, err));
    }
    DGM_TRY(own(m, t, &target, err));
    m->info.hidden = t->d;
    m->info.layers = t->decoder_layers;
    m->info.heads = t->heads;
    m->keep_ancestors = t->cell == DECODER_ATTENTION && !t->lengths;
    return DGM_OK;
}

dgm_status dgm_transformer_load(dgm_model *m, dgm_error *err)
{
    return load_all(m, load_single, err);
}

dgm_status dgm_double_load(dgm_model *m, dgm_error *err)
{
    return load_all(m, load_double, err);
}

dgm_status dgm_cmlm_load(dgm_model *m, dgm_error *err)
{
    return load_all(m, load_cmlm, err);
}

static void free_norm(dgm_backend *b, norm *n)
{
    dgm_vector_free(b, &n->gamma);
    dgm_vector_free(b, &n->beta);
}

static void free_ffn(dgm_backend *b, feed_forward *f)
{
    dgm_linear_free(b, &f->in);
    dgm_linear_free(b, &f->out);
    dgm_transformer_moe_free(b, f);
    free_norm(b, &f->norm);
}

static void free_layers(dgm_backend *b, transformer *t)
{
    for (int i = 0; t->encoder && i < t->encoder_layers; i++) {
        encoder_layer *l = &t->encoder[i];
        dgm_linear_free(b, &l->qkv);
        dgm_linear_free(b, &l->o);
        free_norm(b, &l->norm);
        free_ffn(b, &l->ffn);
    }
    for (int i = 0; t->decoder && i < t->decoder_layers; i++) {
        decoder_layer *l = &t->decoder[i];
        dgm_linear_free(b, &l->qkv);
        dgm_linear_free(b, &l->o);
        dgm_linear_free(b, &l->aan_in);
        dgm_linear_free(b, &l->aan_out);
        dgm_linear_free(b, &l->gate);
        dgm_linear_free(b, &l->cross_q);
        dgm_linear_free(b, &l->cross_o);
        free_norm(b, &l->norm);
        free_norm(b, &l->cross_norm);
        free_ffn(b, &l->ffn);
    }
}

void dgm_transformer_unload(dgm_model *m)
{
    transformer *t = m->weights;
    if (!t) return;
    dgm_backend *b = m->backend;
    free_layers(b, t);
    dgm_linear_free(b, &t->cross_kv);
    dgm_linear_free(b, &t->length);
    dgm_vector_free(b, &t->length_input);
    dgm_embedding_free(b, &t->source);
    dgm_embedding_free(b, &t->target);
    dgm_vector_free(b, &t->encoder_positions);
    dgm_vector_free(b, &t->decoder_positions);
    dgm_vector_free(b, &t->start);
    free_norm(b, &t->encoder_embed_norm);
    free_norm(b, &t->decoder_embed_norm);
    free_norm(b, &t->encoder_norm);
    free_norm(b, &t->decoder_norm);
    dgm_free(t->encoder);
    dgm_free(t->decoder);
    dgm_free(t);
    m->weights = NULL;
}
