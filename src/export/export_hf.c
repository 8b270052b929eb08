// SPDX-License-Identifier: MIT
// Exports to Hugging Face transformers, as MarianMT: norms behind the layers, sinusoids 10000^(-2i/D) or
// learned positions, biases everywhere. transformers starts the decoder with the row of <pad>: a model that
// starts from zeros gets one more id whose row is zero, as OPUS-MT's models have it. Weights of 8 and 16
// bits become f32.
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "export/export.h"

enum { NAME = 160 };

typedef struct folder {
    const dgm_export_job *job;
    const dgm_export_model *m;
    bool zero_start; // one id more: <pad>
    bool joint;      // both sides have the same ids
    int size[2];     // with it
    int pad;
} folder;

// ---- what it can hold ----------------------------------------------------------------------------

static dgm_status check(const dgm_export_model *m, dgm_error *err)
{
    DGM_FAIL_IF(m->pre_norm, err, DGM_ERR_UNSUPPORTED,
                "a model with norms before its layers cannot be exported to huggingface (ctranslate2 can hold it)");
    DGM_FAIL_IF((strcmp(m->positions, "sinusoid") != 0 && strcmp(m->positions, "learned") != 0) || m->position_offset,
                err, DGM_ERR_UNSUPPORTED,
                "MarianMT has no positions '%s' with offset %d ('sinusoid' or 'learned' with 0)", m->positions,
                m->position_offset);
    DGM_FAIL_IF(dgm_gguf_find_tensor(m->g, "enc.embed_norm.weight") ||
                    dgm_gguf_find_tensor(m->g, "dec.embed_norm.weight"),
                err, DGM_ERR_UNSUPPORTED, "MarianMT has no norm of embeddings (enc.embed_norm)");
    DGM_FAIL_IF(fabsf(m->eps - 1e-5f) > 1e-8f, err, DGM_ERR_UNSUPPORTED, "MarianMT has norms with 1e-05, not %g",
                (double)m->eps);
    DGM_FAIL_IF(strcmp(m->activation, "relu10") == 0, err, DGM_ERR_UNSUPPORTED, "MarianMT has no activation '%s'",
                m->activation);
    for (int side = 0; side < 2; side++)
        DGM_FAIL_IF(m->vocab[side].kind != DGM_SPEC_SENTENCEPIECE, err, DGM_ERR_UNSUPPORTED,
                    "MarianMT has SentencePiece models, not this kind of vocabulary");
    DGM_FAIL_IF(!m->vocab[0].append_eos, err, DGM_ERR_UNSUPPORTED, "MarianMT ends every source with its end symbol");
    DGM_FAIL_IF(m->vocab[1].prefix_count || m->vocab[0].prefix_count, err, DGM_ERR_UNSUPPORTED,
                "MarianMT has no tokens before every sentence (dragoman.SIDE.prefix)");
    return DGM_OK;
}

// ---- weights -------------------------------------------------------------------------------------

typedef struct naming {
    const char *ours, *theirs;
} naming;

static dgm_status add(dgm_export_list *l, const dgm_gguf *g, const char *ours, const char *theirs, int n_dims,
                      int zero_rows, dgm_error *err)
{
    const dgm_tensor *t = dgm_gguf_find_tensor(g, ours);
    DGM_FAIL_IF(!t, err, DGM_ERR_UNSUPPORTED, "tensor '%s' is missing, which MarianMT has", ours);
    dgm_export_tensor e = {.n_dims = n_dims, .count = 1, .parts = {t}, .zero_rows = zero_rows};
    snprintf(e.name, sizeof e.name, "%s", theirs);
    return dgm_export_add(l, e, false, err);
}

static dgm_status add_layer(dgm_export_list *l, const dgm_gguf *g, int side, int layer, dgm_error *err)
{
    static const naming parts[] = {
        {"self.q", "self_attn.q_proj"},      {"self.k", "self_attn.k_proj"},
        {"self.v", "self_attn.v_proj"},      {"self.o", "self_attn.out_proj"},
        {"self.norm", "self_attn_layer_norm"}, {"ffn.in", "fc1"},
        {"ffn.out", "fc2"},                  {"ffn.norm", "final_layer_norm"},
        {"cross.q", "encoder_attn.q_proj"},  {"cross.k", "encoder_attn.k_proj"},
        {"cross.v", "encoder_attn.v_proj"},  {"cross.o", "encoder_attn.out_proj"},
        {"cross.norm", "encoder_attn_layer_norm"},
    };
    const size_t count = sizeof parts / sizeof *parts - (side ? 0 : 5);
    for (size_t i = 0; i < count; i++)
        for (int bias = 0; bias < 2; bias++) {
            char ours[NAME], theirs[NAME];
            const char *end = bias ? "bias" : "weight";
            const bool vector = bias || strstr(parts[i].ours, "norm");
            snprintf(ours, sizeof ours, "%s.%d.%s.%s", side ? "dec" : "enc", layer, parts[i].ours, end);
            snprintf(theirs, sizeof theirs, "model.%s.layers.%d.%s.%s", side ? "decoder" : "encoder", layer,
                     parts[i].theirs, end);
            DGM_TRY(add(l, g, ours, theirs, vector ? 1 : 2, 0, err));
        }
    return DGM_OK;
}

static dgm_status list_weights(const folder *x, dgm_export_list *l, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    const int more = x->zero_start;
    if (m->source == m->target) {
        DGM_TRY(add(l, m->g, "src.embed", "model.shared.weight", 2, more, err));
    } else {
        DGM_TRY(add(l, m->g, "src.embed", "model.encoder.embed_tokens.weight", 2, more, err));
        DGM_TRY(add(l, m->g, "tgt.embed", "model.decoder.embed_tokens.weight", 2, more, err));
    }
    if (m->output != m->target) DGM_TRY(add(l, m->g, "out.weight", "lm_head.weight", 2, more, err));
    dgm_export_tensor bias = {.name = "final_logits_bias", .n_dims = 2, .rows = 1, .cols = x->size[1]};
    float *values = dgm_calloc((size_t)x->size[1], sizeof *values);
    if (!values) return dgm_no_memory(err);
    if (m->output_bias) memcpy(values, m->output_bias, (size_t)m->sizes[1] * sizeof *values);
    bias.values = values;
    bias.owned = true;
    DGM_TRY(dgm_export_add(l, bias, false, err));
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < m->layers[side]; i++) DGM_TRY(add_layer(l, m->g, side, i, err));
    if (strcmp(m->positions, "learned") != 0) return DGM_OK;
    const char *decoder = dgm_gguf_find_tensor(m->g, "dec.pos") ? "dec.pos" : "enc.pos";
    DGM_TRY(add(l, m->g, "enc.pos", "model.encoder.embed_positions.weight", 2, 0, err));
    return add(l, m->g, decoder, "model.decoder.embed_positions.weight", 2, 0, err);
}

// As many as a table has rows.
static int positions(const dgm_export_model *m)
{
    const dgm_tensor *t = dgm_gguf_find_tensor(m->g, "enc.pos");
    return strcmp(m->positions, "learned") == 0 && t ? t->rows : m->decode.max_source;
}

static json_t *tensor_info(const dgm_export_tensor *t, uint64_t at)
{
    const char *type = t->type == DGM_TYPE_F16 ? "F16" : t->type == DGM_TYPE_BF16 ? "BF16" : "F32";
    json_t *shape = t->n_dims == 1 ? json_pack("[i]", t->cols) : json_pack("[ii]", t->rows, t->cols);
    return json_pack("{s:s,s:o,s:[II]}", "dtype", type, "shape", shape, "data_offsets", (json_int_t)at,
                     (json_int_t)(at + dgm_export_bytes(t)));
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

// ---- settings ------------------------------------------------------------------------------------

static const char *their_activation(const char *ours)
{
    return strcmp(ours, "gelu_tanh") == 0 ? "gelu_new" : ours;
}

static dgm_status write_config(const folder *x, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    const dgm_vocab_spec *t = &m->vocab[1];
    json_t *c = json_pack(
        "{s:s,s:[s],s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:b,s:b,s:b,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:b,s:b,s:i,s:s}",
        "model_type", "marian", "architectures", "MarianMTModel", "d_model", m->d, "encoder_layers", m->layers[0],
        "decoder_layers", m->layers[1], "encoder_attention_heads", m->heads, "decoder_attention_heads", m->heads,
        "encoder_ffn_dim", m->ffn[0], "decoder_ffn_dim", m->ffn[1], "activation_function",
        their_activation(m->activation), "scale_embedding", m->scale_embedding, "share_encoder_decoder_embeddings",
        m->source == m->target, "tie_word_embeddings", m->output == m->target, "vocab_size", x->size[0],
        "decoder_vocab_size", x->size[1], "eos_token_id", t->eos, "pad_token_id", x->pad, "decoder_start_token_id",
        x->zero_start ? x->pad : t->start, "max_position_embeddings", positions(m), "static_position_embeddings", 1,
        "is_encoder_decoder", 1, "normalize_before", 0, "bos_token_id", t->bos >= 0 ? t->bos : t->eos, "torch_dtype",
        "float32");
    return dgm_export_json(x->job, "config.json", c, err);
}

static dgm_status write_generation(const folder *x, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    const dgm_vocab_spec *t = &m->vocab[1];
    json_t *never = json_array();
    bool fine = never != NULL;
    for (size_t i = 0; i < t->never_count && fine; i++)
        fine = json_array_append_new(never, json_pack("[i]", t->never[i])) == 0;
    if (x->zero_start && fine) fine = json_array_append_new(never, json_pack("[i]", x->pad)) == 0;
    if (!fine) {
        json_decref(never);
        return dgm_no_memory(err);
    }
    const char *finish = dgm_finish_names[m->decode.finish];
    const bool late = strcmp(finish, "huggingface") == 0 || strcmp(finish, "huggingface-cut") == 0;
    const bool cut = strcmp(finish, "huggingface-cut") == 0 || strcmp(finish, "huggingface-early-cut") == 0;
    json_t *g = json_pack("{s:i,s:i,s:f,s:b,s:i,s:i,s:i,s:i,s:o}", "num_beams", m->decode.beam, "max_length",
                          m->decode.max_length + (cut ? 1 : 2), "length_penalty", (double)m->decode.length_penalty,
                          "early_stopping", !late, "eos_token_id", t->eos,
                          "pad_token_id", x->pad, "decoder_start_token_id", x->zero_start ? x->pad : t->start,
                          "bos_token_id", t->bos >= 0 ? t->bos : t->eos, "bad_words_ids", never);
    if (g && !cut && json_object_set_new(g, "forced_eos_token_id", json_integer(t->eos)) != 0) {
        json_decref(g);
        return dgm_no_memory(err);
    }
    return dgm_export_json(x->job, "generation_config.json", g, err);
}

// ---- vocabulary ----------------------------------------------------------------------------------

// Spelling -> id. Where both sides share their ids, the target's spellings fill in what the source's model lacks.
static dgm_status write_vocab(const folder *x, const char *file, int side, char **own, char **other, dgm_error *err)
{
    json_t *ids = json_object();
    const int size = x->m->sizes[side];
    bool fine = ids != NULL;
    for (int i = 0; i < size && fine; i++) {
        const char *text = other && strncmp(own[i], "<unused_", 8) == 0 ? other[i] : own[i];
        fine = json_object_get(ids, text) || json_object_set_new(ids, text, json_integer(i)) == 0;
    }
    if (x->zero_start) fine = fine && json_object_set_new(ids, "<pad>", json_integer(size)) == 0;
    if (fine) return dgm_export_json(x->job, file, ids, err);
    json_decref(ids);
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "an id has a spelling that is not UTF-8");
}

static dgm_status write_vocabularies(const folder *x, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    char **spelled[2] = {NULL, NULL};
    dgm_status st = dgm_export_spellings(m, 0, &spelled[0], err);
    if (st == DGM_OK) st = dgm_export_spellings(m, 1, &spelled[1], err);
    if (st == DGM_OK) st = write_vocab(x, "vocab.json", 0, spelled[0], x->joint ? spelled[1] : NULL, err);
    if (st == DGM_OK && !x->joint) st = write_vocab(x, "target_vocab.json", 1, spelled[1], NULL, err);
    for (int side = 0; side < 2; side++) dgm_export_spellings_free(m, side, &spelled[side]);
    for (int side = 0; side < 2 && st == DGM_OK; side++)
        st = dgm_export_file(x->job, side ? "target.spm" : "source.spm", m->vocab[side].model,
                             dgm_export_spm_size(m, side), err);
    return st;
}

static dgm_status write_tokenizer(const folder *x, dgm_error *err)
{
    static const char *const keys[2][2] = {{"dragoman.languages.source", "source_lang"},
                                           {"dragoman.languages.target", "target_lang"}};
    json_t *t = json_pack("{s:s,s:b,s:i}", "tokenizer_class", "MarianTokenizer", "separate_vocabs", !x->joint,
                          "model_max_length", x->m->decode.max_source);
    for (int side = 0; t && side < 2; side++) {
        dgm_gguf_strings it = {0};
        dgm_gguf_text text;
        if (dgm_gguf_get_strings(x->m->g, keys[side][0], DGM_OPTIONAL, &it, NULL) != DGM_OK || it.count != 1) continue;
        if (!dgm_gguf_strings_next(&it, &text) ||
            json_object_set_new(t, keys[side][1], json_stringn(text.data, text.size)) == 0)
            continue;
        json_decref(t);
        return dgm_no_memory(err);
    }
    return dgm_export_json(x->job, "tokenizer_config.json", t, err);
}

dgm_status dgm_export_huggingface(const dgm_export_job *job, dgm_error *err)
{
    const dgm_export_model *m = job->model;
    folder x = {.job = job, .m = m, .zero_start = m->vocab[1].start < 0};
    dgm_export_list l = {0};
    FILE *f = NULL;
    dgm_status st;
    DGM_TRY(check(m, err));
    x.joint = m->source == m->target && m->sizes[0] == m->sizes[1];
    for (int side = 0; side < 2; side++) x.size[side] = m->sizes[side] + x.zero_start;
    x.pad = x.zero_start ? m->sizes[1] : m->vocab[1].pad >= 0 ? m->vocab[1].pad : m->vocab[1].start;
    DGM_FAIL_IF(!x.joint && x.zero_start && m->sizes[0] != m->sizes[1], err, DGM_ERR_UNSUPPORTED,
                "MarianMT has one <pad> for both sides, and vocabularies of %d and %d ids have no place for it",
                m->sizes[0], m->sizes[1]);
    DGM_TRY_GOTO(st, list_weights(&x, &l, err), done);
    DGM_TRY_GOTO(st, write_config(&x, err), done);
    DGM_TRY_GOTO(st, write_generation(&x, err), done);
    DGM_TRY_GOTO(st, write_vocabularies(&x, err), done);
    DGM_TRY_GOTO(st, write_tokenizer(&x, err), done);
    DGM_TRY_GOTO(st, dgm_export_open(job, "model.safetensors", &f, err), done);
    st = dgm_export_close(job, "model.safetensors", &f, write_safetensors(job, &l, f, err), err);
done:
    dgm_export_list_free(&l);
    return st;
}
