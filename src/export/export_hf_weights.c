// SPDX-License-Identifier: MIT
// Weights and settings of a folder of transformers; see export_hf_private.h.
//
// Embeddings. With "tie_word_embeddings" one matrix serves the output layer, and both sides where they share it
// ("model.shared.weight"). Without it transformers ties nothing, not even the two sides: then every name is written.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "export/export_hf_private.h"

enum { NAME = 160 };

static const char *const sides[2] = {"encoder", "decoder"}, *const ours[2] = {"enc", "dec"};

// ---- what it can hold ----------------------------------------------------------------------------

// NULL: transformers has none.
static const char *their_activation(const char *name)
{
    static const char *const names[][2] = {{"relu", "relu"},       {"swish", "swish"},   {"gelu", "gelu"},
                                           {"gelu_tanh", "gelu_new"}, {"tanh", "tanh"}, {"sigmoid", "sigmoid"},
                                           {"gelu_sigmoid", "quick_gelu"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0) return names[i][1];
    return NULL;
}

dgm_status dgm_hf_check(const dgm_hf_folder *x, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    DGM_FAIL_IF(fabsf(m->eps - 1e-5f) > 1e-8f, err, DGM_ERR_UNSUPPORTED, "%s has norms with 1e-05, not %g", x->kind,
                (double)m->eps);
    DGM_FAIL_IF(!their_activation(m->activation), err, DGM_ERR_UNSUPPORTED, "%s has no activation '%s'", x->kind,
                m->activation);
    for (int side = 0; side < 2; side++)
        DGM_FAIL_IF(m->vocab[side].kind != DGM_SPEC_SENTENCEPIECE, err, DGM_ERR_UNSUPPORTED,
                    "%s has SentencePiece models, not this kind of vocabulary", x->kind);
    DGM_FAIL_IF(!m->vocab[0].append_eos, err, DGM_ERR_UNSUPPORTED, "%s ends every source with its end symbol", x->kind);
    DGM_FAIL_IF(m->vocab[1].prefix_count || m->vocab[0].prefix_count, err, DGM_ERR_UNSUPPORTED,
                "%s has no tokens before every sentence (dragoman.SIDE.prefix)", x->kind);
    return DGM_OK;
}

// ---- weights -------------------------------------------------------------------------------------

static dgm_status add(const dgm_hf_folder *x, dgm_export_list *l, const char *own, const char *theirs, int n_dims,
                      int zero_rows, dgm_error *err)
{
    const dgm_tensor *t = dgm_gguf_find_tensor(x->m->g, own);
    DGM_FAIL_IF(!t, err, DGM_ERR_UNSUPPORTED, "tensor '%s' is missing, which %s has", own, x->kind);
    dgm_export_tensor e = {.n_dims = n_dims, .count = 1, .parts = {t}, .zero_rows = zero_rows};
    snprintf(e.name, sizeof e.name, "%s", theirs);
    return dgm_export_add(l, e, false, err);
}

// Weight and bias of a layer or norm.
static dgm_status add_both(const dgm_hf_folder *x, dgm_export_list *l, const char *own, const char *theirs, bool norm,
                           dgm_error *err)
{
    for (int bias = 0; bias < 2; bias++) {
        char a[NAME], b[NAME];
        snprintf(a, sizeof a, "%s.%s", own, bias ? "bias" : "weight");
        snprintf(b, sizeof b, "%s.%s", theirs, bias ? "bias" : "weight");
        DGM_TRY(add(x, l, a, b, bias || norm ? 1 : 2, 0, err));
    }
    return DGM_OK;
}

static dgm_status add_layer(const dgm_hf_folder *x, dgm_export_list *l, int side, int layer, dgm_error *err)
{
    static const char *const parts[][2] = {
        {"self.q", "self_attn.q_proj"},         {"self.k", "self_attn.k_proj"},
        {"self.v", "self_attn.v_proj"},         {"self.o", "self_attn.out_proj"},
        {"self.norm", "self_attn_layer_norm"},  {"ffn.in", "fc1"},
        {"ffn.out", "fc2"},                     {"ffn.norm", "final_layer_norm"},
        {"cross.q", "encoder_attn.q_proj"},     {"cross.k", "encoder_attn.k_proj"},
        {"cross.v", "encoder_attn.v_proj"},     {"cross.o", "encoder_attn.out_proj"},
        {"cross.norm", "encoder_attn_layer_norm"},
    };
    const size_t count = sizeof parts / sizeof *parts - (side ? 0 : 5);
    for (size_t i = 0; i < count; i++) {
        char own[48], theirs[96];
        snprintf(own, sizeof own, "%s.%d.%s", ours[side], layer, parts[i][0]);
        snprintf(theirs, sizeof theirs, "model.%s.layers.%d.%s", sides[side], layer, parts[i][1]);
        DGM_TRY(add_both(x, l, own, theirs, strstr(own, "norm") != NULL, err));
    }
    return DGM_OK;
}

static bool tied(const dgm_hf_folder *x)
{
    const dgm_export_model *m = x->m;
    return m->output == m->target && (!x->one_embedding || m->source == m->target);
}

static dgm_status add_embeddings(const dgm_hf_folder *x, dgm_export_list *l, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    const int more = x->zero_start;
    const char *target = m->source == m->target ? "src.embed" : "tgt.embed";
    const char *output = m->output == m->target ? target : "out.weight";
    if (x->one_embedding) DGM_TRY(add(x, l, "src.embed", "model.shared.weight", 2, more, err));
    if (!x->one_embedding || !tied(x)) {
        DGM_TRY(add(x, l, "src.embed", "model.encoder.embed_tokens.weight", 2, more, err));
        DGM_TRY(add(x, l, target, "model.decoder.embed_tokens.weight", 2, more, err));
    }
    return tied(x) ? DGM_OK : add(x, l, output, "lm_head.weight", 2, more, err);
}

// The row of zeros that <pad> has for a decoder that starts from zeros is no word: without this bias it would have a
// share of every softmax (of our model from English to German up to 2e-3 of a sentence's log-probability).
static const float never_bias = -1e4f;

static dgm_status add_logits_bias(const dgm_hf_folder *x, dgm_export_list *l, dgm_error *err)
{
    dgm_export_tensor bias = {.name = "final_logits_bias", .n_dims = 2, .rows = 1, .cols = x->size[1], .owned = true};
    float *values = dgm_calloc((size_t)x->size[1], sizeof *values);
    if (!values) return dgm_no_memory(err);
    if (x->m->output_bias) memcpy(values, x->m->output_bias, (size_t)x->m->sizes[1] * sizeof *values);
    if (x->zero_start) values[x->pad] = never_bias;
    bias.values = values;
    return dgm_export_add(l, bias, false, err);
}

static dgm_status list_weights(const dgm_hf_folder *x, dgm_export_list *l, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    const bool learned = strcmp(m->positions, "learned") == 0;
    DGM_TRY(add_embeddings(x, l, err));
    if (x->logits_bias) DGM_TRY(add_logits_bias(x, l, err));
    for (int side = 0; side < 2; side++) {
        char own[32], theirs[64];
        for (int i = 0; i < m->layers[side]; i++) DGM_TRY(add_layer(x, l, side, i, err));
        snprintf(own, sizeof own, "%s.norm", ours[side]);
        snprintf(theirs, sizeof theirs, "model.%s.layer_norm", sides[side]);
        if (m->pre_norm) DGM_TRY(add_both(x, l, own, theirs, true, err));
        snprintf(own, sizeof own, "%s.embed_norm", ours[side]);
        snprintf(theirs, sizeof theirs, "model.%s.layernorm_embedding", sides[side]);
        if (m->pre_norm && learned) DGM_TRY(add_both(x, l, own, theirs, true, err));
        snprintf(theirs, sizeof theirs, "model.%s.embed_positions.weight", sides[side]);
        const bool second = side == 1 && dgm_gguf_find_tensor(m->g, "dec.pos");
        if (learned) DGM_TRY(add(x, l, second ? "dec.pos" : "enc.pos", theirs, 2, 0, err));
    }
    return DGM_OK;
}

static json_t *tensor_info(const dgm_export_tensor *t, uint64_t at)
{
    const char *type = t->type == DGM_TYPE_F16 ? "F16" : t->type == DGM_TYPE_BF16 ? "BF16" : "F32";
    json_t *shape = t->n_dims == 1 ? json_pack("[i]", t->cols) : json_pack("[ii]", t->rows, t->cols);
    return json_pack("{s:s,s:o,s:[II]}", "dtype", type, "shape", shape, "data_offsets", (json_int_t)at,
                     (json_int_t)at + (json_int_t)dgm_export_bytes(t));
}

static dgm_status write_safetensors(const dgm_export_job *job, const dgm_export_list *l, FILE *f, dgm_error *err)
{
    json_t *head = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    uint64_t at = 0;
    for (size_t i = 0; head && i < l->count; i++) {
        if (json_object_set_new(head, l->items[i].name, tensor_info(&l->items[i], at)) != 0) {
            json_decref(head);
            return dgm_no_memory(err);
        }
        at += dgm_export_bytes(&l->items[i]);
    }
    char *text = dgm_json_text(head, JSON_COMPACT);
    json_decref(head);
    if (!text) return dgm_no_memory(err);
    const uint64_t size = strlen(text), padded = (size + 7) / 8 * 8;
    bool fine = fwrite(&padded, 1, 8, f) == 8 && fwrite(text, 1, (size_t)size, f) == size;
    for (uint64_t i = size; i < padded && fine; i++) fine = fputc(' ', f) != EOF;
    dgm_free(text);
    dgm_status st = fine ? DGM_OK : dgm_fail(err, DGM_ERR_IO, "cannot write 'model.safetensors'");
    for (size_t i = 0; i < l->count && st == DGM_OK; i++) {
        st = dgm_export_write(&l->items[i], f, err);
        if (st == DGM_OK) st = dgm_export_tick(job, (double)(i + 1) / (double)l->count, err);
    }
    return st;
}

dgm_status dgm_hf_weights(const dgm_hf_folder *x, dgm_error *err)
{
    dgm_export_list l = {0};
    FILE *f = NULL;
    dgm_status st = list_weights(x, &l, err);
    if (st == DGM_OK) st = dgm_export_open(x->job, "model.safetensors", &f, err);
    if (st == DGM_OK)
        st = dgm_export_close(x->job, "model.safetensors", &f, write_safetensors(x->job, &l, f, err), err);
    dgm_export_list_free(&l);
    return st;
}

// ---- settings ------------------------------------------------------------------------------------

dgm_status dgm_hf_config(const dgm_hf_folder *x, json_t *own, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    json_t *c = json_pack(
        "{s:s,s:[s],s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:b,s:b,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:s}",
        "model_type", x->type, "architectures", x->class, "d_model", m->d, "encoder_layers", m->layers[0],
        "decoder_layers", m->layers[1], "encoder_attention_heads", m->heads[0], "decoder_attention_heads", m->heads[1],
        "encoder_ffn_dim", m->ffn[0], "decoder_ffn_dim", m->ffn[1], "activation_function",
        their_activation(m->activation), "scale_embedding", m->scale_embedding, "tie_word_embeddings", (int)tied(x),
        "vocab_size", x->size[0], "eos_token_id", m->vocab[1].eos, "pad_token_id", x->pad, "decoder_start_token_id",
        x->start, "max_position_embeddings", x->positions, "bos_token_id", x->bos, "is_encoder_decoder", 1,
        "torch_dtype", "float32");
    if (!c || !own || json_object_update(c, own) != 0) {
        json_decref(c);
        json_decref(own);
        return dgm_no_memory(err);
    }
    json_decref(own);
    return dgm_export_json(x->job, "config.json", c, err);
}

// Ids that are never chosen, as transformers has them.
static json_t *never_ids(const dgm_hf_folder *x)
{
    const dgm_vocab_spec *t = &x->m->vocab[1];
    json_t *never = json_array();
    bool fine = never != NULL;
    for (size_t i = 0; i < t->never_count && fine; i++)
        fine = json_array_append_new(never, json_pack("[i]", t->never[i])) == 0;
    if (x->zero_start && fine) fine = json_array_append_new(never, json_pack("[i]", x->pad)) == 0;
    if (fine) return never;
    json_decref(never);
    return NULL;
}

// "early_stopping" of a finishing policy; of others than transformers' own the nearest, which is told.
static json_t *early_stopping(const dgm_hf_folder *x, const char *finish)
{
    if (strncmp(finish, "huggingface", 11) != 0)
        dgm_export_note(x->job, "transformers does not end a search as '%s' does; early_stopping, which is near, is "
                                "written", finish);
    else if (strstr(finish, "-never"))
        return json_string("never");
    return json_boolean(strcmp(finish, "huggingface") != 0 && strcmp(finish, "huggingface-cut") != 0);
}

dgm_status dgm_hf_generation(const dgm_hf_folder *x, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    const dgm_vocab_spec *t = &m->vocab[1];
    const char *finish = dgm_finish_names[m->decode.finish];
    const size_t n = strlen(finish);
    const bool cut = n > 4 && strcmp(finish + n - 4, "-cut") == 0;
    json_t *g = json_pack("{s:i,s:i,s:f,s:o,s:i,s:i,s:i,s:i}", "num_beams", m->decode.beam, "max_length",
                          m->decode.max_length + x->lead + (cut ? 0 : 1), "length_penalty",
                          (double)m->decode.length_penalty, "early_stopping", early_stopping(x, finish),
                          "eos_token_id", t->eos, "pad_token_id", x->pad, "decoder_start_token_id", x->start,
                          "bos_token_id", x->bos);
    const bool never = t->never_count || x->zero_start; // an empty list is refused there
    if ((g && never && json_object_set_new(g, "bad_words_ids", never_ids(x)) != 0) ||
        (g && !cut && json_object_set_new(g, "forced_eos_token_id", json_integer(t->eos)) != 0) ||
        (g && x->forced >= 0 && json_object_set_new(g, "forced_bos_token_id", json_integer(x->forced)) != 0)) {
        json_decref(g);
        return dgm_no_memory(err);
    }
    return dgm_export_json(x->job, "generation_config.json", g, err);
}
