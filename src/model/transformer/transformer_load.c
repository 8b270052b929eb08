// SPDX-License-Identifier: MIT
// The Transformer's tensors (docs/internals/FORMAT.md, 2.4).
//
// Layers that share an input are stacked into one product: q, k and v of self-attention, the two
// SSRU layers, and the keys and values of all decoder layers, which see the same encoder output.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/transformer/transformer_private.h"

tensor_name dgm_transformer_name(const char *fmt, ...)
{
    tensor_name n;
    va_list args;
    va_start(args, fmt);
    vsnprintf(n.text, sizeof n.text, fmt, args);
    va_end(args);
    return n;
}

// ---- parts ------------------------------------------------------------------------------------

// Stacks `count` linear layers PREFIX.NAME of [rows, cols] each. Only weights are required.
static dgm_status load_stack(dgm_model *m, const char *prefix, const char *const *names, int count,
                             int rows, int cols, dgm_linear **out, dgm_error *err)
{
    dgm_linear_part parts[3] = {{0}};
    for (int i = 0; i < count; i++) {
        tensor_name weight = dgm_transformer_name("%s.%s.weight", prefix, names[i]);
        tensor_name bias = dgm_transformer_name("%s.%s.bias", prefix, names[i]);
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
    DGM_TRY(dgm_gguf_vector(m->file, dgm_transformer_name("%s.weight", prefix).text, d, need, &gamma, err));
    DGM_TRY(dgm_gguf_vector(m->file, dgm_transformer_name("%s.bias", prefix).text, d, DGM_OPTIONAL, &beta, err));
    if (gamma) DGM_TRY(dgm_vector_from(m->backend, gamma, 1, d, &out->gamma, err));
    if (gamma && beta) DGM_TRY(dgm_vector_from(m->backend, beta, 1, d, &out->beta, err));
    return DGM_OK;
}

// PREFIX.norm before the sub-layer or behind it; with both, PREFIX.post_norm is the second. And PREFIX.residual.
static dgm_status load_norms(dgm_model *m, const char *prefix, const stack *side, norms *out,
                             dgm_error *err)
{
    const int d = ((const transformer *)m->weights)->d;
    const norm_place place = side->place;
    const tensor_name one = dgm_transformer_name("%s.norm", prefix);
    const tensor_name other = dgm_transformer_name("%s.post_norm", prefix);
    if (place == NORM_PRE || place == NORM_BOTH)
        DGM_TRY(load_norm(m, one.text, d, DGM_REQUIRED, &out->before, err));
    if (place == NORM_POST || place == NORM_BOTH)
        DGM_TRY(load_norm(m, place == NORM_POST ? one.text : other.text, d, DGM_REQUIRED,
                          &out->behind, err));
    if (!dgm_transformer_is_gated(side)) return DGM_OK;
    return load_linear(m, prefix, "residual", 2 * d, d, &out->gates, err);
}

static const char *const gated_names[] = {"ffn.in", "ffn.factor"};

// The layers of one network: PREFIX.ffn.in, .more.0, .more.1, ... and .out.
static dgm_status load_network(dgm_model *m, const char *prefix, const stack *side, feed_forward *out,
                               dgm_error *err)
{
    const transformer *t = m->weights;
    const int d = t->d, f = side->ffn, more = side->depth - 2;
    if (more >= 0) DGM_TRY(load_stack(m, prefix, gated_names, t->gated ? 2 : 1, f, d, &out->in, err));
    if (more > 0 && !(out->more = dgm_calloc((size_t)more, sizeof *out->more))) return dgm_no_memory(err);
    for (int i = 0; i < more; i++)
        DGM_TRY(load_linear(m, prefix, dgm_transformer_name("ffn.more.%d", i).text, f, f, &out->more[i], err));
    return load_linear(m, prefix, "ffn.out", d, more < 0 ? d : f, &out->out, err);
}

// `every`: of this side, for layer number i.
static dgm_status load_ffn(dgm_model *m, const char *prefix, const stack *side, int every, int i,
                           feed_forward *out, dgm_error *err)
{
    const transformer *t = m->weights;
    if (dgm_transformer_moe_at(every, i))
        DGM_TRY(dgm_transformer_moe_load(m, &t->moe, prefix, t->d, side->ffn, out, err));
    else
        DGM_TRY(load_network(m, prefix, side, out, err));
    const tensor_name name = dgm_transformer_name("%s.ffn", prefix);
    return load_norms(m, name.text, side, &out->norms, err);
}

// The number in the names of a layer's tensors.
static int number_of(const stack *side, int layer)
{
    return side->tensors_of ? (int)side->tensors_of[layer] : layer;
}

static const char *const qkv_names[] = {"self.q", "self.k", "self.v"};
static const char *const ssru_names[] = {"rnn.w", "rnn.f"};

static dgm_status load_self_attention(dgm_model *m, const char *prefix, const stack *side,
                                      dgm_linear **qkv, dgm_linear **o, dgm_error *err)
{
    const transformer *t = m->weights;
    DGM_TRY(load_stack(m, prefix, qkv_names, 3, side->inner, t->d, qkv, err));
    return t->no_output ? DGM_OK : load_linear(m, prefix, "self.o", t->d, side->inner, o, err);
}

static dgm_status load_encoder_layer(dgm_model *m, transformer *t, int i, dgm_error *err)
{
    encoder_layer *l = &t->encoder[i];
    const tensor_name p = dgm_transformer_name("enc.%d", number_of(&t->enc, i));
    DGM_TRY(load_self_attention(m, p.text, &t->enc, &l->qkv, &l->o, err));
    if (i > 0) l->bias = t->encoder[i - 1].bias;
    if (t->buckets)
        DGM_TRY(dgm_transformer_relative(m, p.text, true, i ? DGM_OPTIONAL : DGM_REQUIRED, &l->bias,
                                         err));
    const tensor_name self = dgm_transformer_name("%s.self", p.text);
    DGM_TRY(load_norms(m, self.text, &t->enc, &l->norms, err));
    return load_ffn(m, p.text, &t->enc, t->moe.encoder_every, i, &l->ffn, err);
}

// What stands in the place of self-attention, or it.
static dgm_status load_first(dgm_model *m, transformer *t, const char *prefix, decoder_layer *l,
                             dgm_error *err)
{
    if (t->cell == DECODER_SSRU) {
        DGM_TRY(load_stack(m, prefix, ssru_names, 2, t->d, t->d, &l->qkv, err));
        return t->rnn_output ? load_linear(m, prefix, "rnn.o", t->d, t->d, &l->o, err) : DGM_OK;
    }
    if (t->cell == DECODER_ATTENTION)
        return load_self_attention(m, prefix, &t->dec, &l->qkv, &l->o, err);
    DGM_TRY(load_linear(m, prefix, "aan.in", t->aan_ffn, t->d, &l->aan_in, err));
    DGM_TRY(load_linear(m, prefix, "aan.out", t->d, t->aan_ffn, &l->aan_out, err));
    if (!t->aan_gate) return DGM_OK;
    return load_linear(m, prefix, "aan.gate", 2 * t->d, 2 * t->d, &l->gate, err);
}

static dgm_status load_decoder_layer(dgm_model *m, transformer *t, int i, dgm_error *err)
{
    static const char *const cells[] = {"self", "rnn", "aan"};
    decoder_layer *l = &t->decoder[i];
    const tensor_name p = dgm_transformer_name("dec.%d", number_of(&t->dec, i));
    DGM_TRY(load_first(m, t, p.text, l, err));
    if (i > 0) l->bias = t->decoder[i - 1].bias;
    if (t->buckets)
        DGM_TRY(dgm_transformer_relative(m, p.text, false, i ? DGM_OPTIONAL : DGM_REQUIRED, &l->bias,
                                         err));
    const tensor_name self = dgm_transformer_name("%s.%s", p.text, cells[t->cell]);
    DGM_TRY(load_norms(m, self.text, &t->dec, &l->norms, err));
    DGM_TRY(load_linear(m, p.text, "cross.q", t->dec.inner, t->d, &l->cross_q, err));
    if (!t->no_output)
        DGM_TRY(load_linear(m, p.text, "cross.o", t->d, t->dec.inner, &l->cross_o, err));
    const tensor_name cross = dgm_transformer_name("%s.cross", p.text);
    DGM_TRY(load_norms(m, cross.text, &t->dec, &l->cross_norms, err));
    return load_ffn(m, p.text, &t->dec, t->moe.decoder_every, i, &l->ffn, err);
}

static dgm_status load_cross_kv(dgm_model *m, transformer *t, dgm_error *err)
{
    const int parts_count = 2 * t->dec.layers, rows = t->dec.inner;
    dgm_linear_part *parts = dgm_calloc((size_t)parts_count, sizeof *parts);
    if (!parts) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    for (int i = 0; i < parts_count && st == DGM_OK; i++) {
        const int layer = number_of(&t->dec, i / 2), which = i % 2 ? 'v' : 'k';
        tensor_name weight = dgm_transformer_name("dec.%d.cross.%c.weight", layer, which);
        tensor_name bias = dgm_transformer_name("dec.%d.cross.%c.bias", layer, which);
        st = dgm_gguf_matrix(m->file, weight.text, rows, t->d, DGM_REQUIRED, &parts[i].weight, err);
        if (st != DGM_OK) break;
        st = dgm_gguf_vector(m->file, bias.text, rows, DGM_OPTIONAL, &parts[i].bias, err);
    }
    if (st == DGM_OK) st = dgm_model_linear(m, parts, parts_count, &t->cross_kv, err);
    dgm_free(parts);
    return st;
}

// ---- embeddings ---------------------------------------------------------------------------------

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
    DGM_FAIL_IF(t->buckets, err, DGM_ERR_FORMAT, "a decoder of pairs has no relative positions");
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
    DGM_FAIL_IF(t->buckets, err, DGM_ERR_FORMAT,
                "a masked language model has no relative positions");
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

// ---- who reads norms ----------------------------------------------------------------------------

// A layer's first product: what multiplies x, or a norm of it, before anything else looks at either. NULL: another
// operation comes first.
static const dgm_linear *first_of_ffn(const feed_forward *f)
{
    return f->experts ? NULL : f->in;
}

static const dgm_linear *first_of_decoder(const transformer *t, const decoder_layer *l)
{
    return t->cell == DECODER_AAN ? NULL : l->qkv;
}

// A sub-layer's norms: `first` is its first product, `next` and `after` are those of the sub-layer behind it. Where x
// is a sum, or goes through the next norm before, its norm has no reader.
static void name_readers(const stack *side, norms *n, const dgm_linear *first, const norms *next,
                         const dgm_linear *after)
{
    const bool last = side->residual != RESIDUAL_APART && side->residual != RESIDUAL_GATED_APART;
    n->before.reader = first;
    n->behind.reader = last && next && !next->before.gamma ? after : NULL;
}

static void name_all_readers(transformer *t)
{
    for (int i = 0; i < t->enc.layers; i++) {
        encoder_layer *l = &t->encoder[i], *next = i + 1 < t->enc.layers ? l + 1 : NULL;
        name_readers(&t->enc, &l->norms, l->qkv, &l->ffn.norms, first_of_ffn(&l->ffn));
        name_readers(&t->enc, &l->ffn.norms, first_of_ffn(&l->ffn), next ? &next->norms : NULL,
                     next ? next->qkv : NULL);
    }
    for (int i = 0; i < t->dec.layers; i++) {
        decoder_layer *l = &t->decoder[i], *next = i + 1 < t->dec.layers ? l + 1 : NULL;
        name_readers(&t->dec, &l->norms, first_of_decoder(t, l), &l->cross_norms, l->cross_q);
        name_readers(&t->dec, &l->cross_norms, l->cross_q, &l->ffn.norms, first_of_ffn(&l->ffn));
        name_readers(&t->dec, &l->ffn.norms, first_of_ffn(&l->ffn), next ? &next->norms : NULL,
                     next ? first_of_decoder(t, next) : NULL);
    }
    if (!t->encoder[0].norms.before.gamma) t->enc.embed_norm.reader = t->encoder[0].qkv;
    if (!t->decoder[0].norms.before.gamma) t->dec.embed_norm.reader = first_of_decoder(t, &t->decoder[0]);
}

// ---- the whole --------------------------------------------------------------------------------

typedef dgm_status (*load_own)(dgm_model *m, transformer *t, const dgm_vocab_spec *target,
                               dgm_error *err);

static dgm_status load_all(dgm_model *m, load_own own, dgm_error *err)
{
    transformer *t = dgm_calloc(1, sizeof *t);
    if (!t) return dgm_no_memory(err);
    m->weights = t;
    t->precision = m->precision;
    t->tokens = 1;
    dgm_vocab_spec target;
    DGM_TRY(dgm_modelfile_vocab(m->file, DGM_TARGET, &target, err));
    settings s = {0};
    DGM_TRY(dgm_transformer_settings(m, t, &s, err));
    t->encoder = dgm_calloc((size_t)t->enc.layers, sizeof *t->encoder);
    t->decoder = dgm_calloc((size_t)t->dec.layers, sizeof *t->decoder);
    if (!t->encoder || !t->decoder) return dgm_no_memory(err);
    DGM_TRY(load_embeddings(m, t, &s, err));
    DGM_TRY(dgm_transformer_positions(m, t, &s, err));
    DGM_TRY(load_norm(m, "enc.embed_norm", t->d, DGM_OPTIONAL, &t->enc.embed_norm, err));
    DGM_TRY(load_norm(m, "dec.embed_norm", t->d, DGM_OPTIONAL, &t->dec.embed_norm, err));
    for (int i = 0; i < t->enc.layers; i++) DGM_TRY(load_encoder_layer(m, t, i, err));
    for (int i = 0; i < t->dec.layers; i++) DGM_TRY(load_decoder_layer(m, t, i, err));
    DGM_TRY(load_cross_kv(m, t, err));
    if (t->enc.final)
        DGM_TRY(load_norm(m, "enc.norm", t->d, DGM_REQUIRED, &t->enc.final_norm, err));
    if (t->dec.final)
        DGM_TRY(load_norm(m, "dec.norm", t->d, DGM_REQUIRED, &t->dec.final_norm, err));
    name_all_readers(t);
    DGM_TRY(own(m, t, &target, err));
    m->info.hidden = t->d;
    m->info.layers = t->dec.layers;
    m->info.heads = t->dec.heads;
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

static void free_norms(dgm_backend *b, norms *n)
{
    free_norm(b, &n->before);
    free_norm(b, &n->behind);
    dgm_linear_free(b, &n->gates);
}

// Layers that share a table lie one behind the other.
static void free_bias(dgm_backend *b, dgm_vector **bias, const dgm_vector *next)
{
    if (*bias != next) dgm_vector_free(b, bias);
}

static void free_ffn(dgm_backend *b, feed_forward *f, const stack *side)
{
    dgm_linear_free(b, &f->in);
    for (int i = 0; f->more && i < side->depth - 2; i++) dgm_linear_free(b, &f->more[i]);
    dgm_free(f->more);
    dgm_linear_free(b, &f->out);
    dgm_transformer_moe_free(b, f);
    free_norms(b, &f->norms);
}

static void free_layers(dgm_backend *b, transformer *t)
{
    for (int i = 0; t->encoder && i < t->enc.layers; i++) {
        encoder_layer *l = &t->encoder[i];
        free_bias(b, &l->bias, i + 1 < t->enc.layers ? l[1].bias : NULL);
        dgm_linear_free(b, &l->qkv);
        dgm_linear_free(b, &l->o);
        free_norms(b, &l->norms);
        free_ffn(b, &l->ffn, &t->enc);
    }
    for (int i = 0; t->decoder && i < t->dec.layers; i++) {
        decoder_layer *l = &t->decoder[i];
        free_bias(b, &l->bias, i + 1 < t->dec.layers ? l[1].bias : NULL);
        dgm_linear_free(b, &l->qkv);
        dgm_linear_free(b, &l->o);
        dgm_linear_free(b, &l->aan_in);
        dgm_linear_free(b, &l->aan_out);
        dgm_linear_free(b, &l->gate);
        dgm_linear_free(b, &l->cross_q);
        dgm_linear_free(b, &l->cross_o);
        free_norms(b, &l->norms);
        free_norms(b, &l->cross_norms);
        free_ffn(b, &l->ffn, &t->dec);
    }
}

static void free_side(dgm_backend *b, stack *side)
{
    dgm_vector_free(b, &side->positions);
    free_norm(b, &side->embed_norm);
    free_norm(b, &side->final_norm);
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
    dgm_vector_free(b, &t->start);
    free_side(b, &t->enc);
    free_side(b, &t->dec);
    dgm_free(t->encoder);
    dgm_free(t->decoder);
    dgm_free(t);
    m->weights = NULL;
}
