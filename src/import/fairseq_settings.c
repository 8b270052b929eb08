// SPDX-License-Identifier: MIT
// Settings of a fairseq checkpoint; see fairseq.h.
//
// They are "args", an argparse.Namespace, or since version 0.10 "cfg", a dictionary or a container of omegaconf whose
// "model" and "task" hold the same names, or nested ones (encoder: embed_dim for encoder_embed_dim).
#include <stdio.h>
#include <string.h>

#include "import/fairseq.h"

enum { PAD = 1, EOS = 2, LAYERS_MAX = 1024, LONGEST = 200, BEAM = 5 };

typedef struct source {
    const dgm_py *model, *task;
} source;

static source find_source(const dgm_py *root)
{
    const dgm_py *args = dgm_py_get(root, "args"), *cfg = dgm_py_get(root, "cfg");
    if (args) return (source){args, args};
    return (source){dgm_py_get(cfg, "model"), dgm_py_get(cfg, "task")};
}

// "encoder_layers", or "layers" of "encoder". Gives where to look and the name there.
static const dgm_py *place_of(const dgm_py *model, const char **key)
{
    static const char *const parts[] = {"encoder", "decoder"};
    if (dgm_py_get(model, *key)) return model;
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(parts[i]);
        const dgm_py *part = dgm_py_get(model, parts[i]);
        if (!part || strncmp(*key, parts[i], n) != 0 || (*key)[n] != '_') continue;
        *key += n + 1;
        return part;
    }
    return model;
}

static dgm_status get_bool(const source *s, const char *key, bool *out, dgm_error *err)
{
    const dgm_py *at = place_of(s->model, &key);
    return dgm_py_bool(at, key, out, err);
}

static dgm_status get_int(const source *s, const char *key, int64_t min, int64_t max, int *out,
                          dgm_error *err)
{
    int64_t v = *out;
    const dgm_py *at = place_of(s->model, &key);
    DGM_TRY(dgm_py_int(at, key, min, max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

// ---- what is refused ---------------------------------------------------------------------------

static bool begins(dgm_text text, const char *begin)
{
    return text.size >= strlen(begin) && memcmp(text.data, begin, strlen(begin)) == 0;
}

static dgm_status check_architecture(const source *s, dgm_error *err)
{
    static const char *const known[] = {"transformer", "bart", "mbart"};
    static const char *const others[] = {"transformer_lm", "transformer_from_pretrained",
                                         "transformer_pointer", "transformer_monotonic"};
    dgm_text arch = {0};
    DGM_TRY(dgm_py_string(s->model, "arch", &arch, err));
    if (!arch.size) DGM_TRY(dgm_py_string(s->model, "_name", &arch, err));
    bool fits = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) fits = fits || begins(arch, known[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        fits = fits && !begins(arch, others[i]);
    DGM_FAIL_IF(!arch.size, err, DGM_ERR_FORMAT,
                "neither \"args\" nor \"cfg\" says the architecture: not a checkpoint of fairseq");
    DGM_FAIL_IF(!fits, err, DGM_ERR_UNSUPPORTED,
                "architecture '%.*s' is not supported (Transformers for translation are)",
                (int)(arch.size < 60 ? arch.size : 60), arch.data);
    return DGM_OK;
}

static dgm_status refuse_variants(const source *s, dgm_error *err)
{
    static const char *const flags[] = {"adaptive_input",       "no_cross_attention",
                                        "cross_self_attention", "no_decoder_final_norm",
                                        "tie_adaptive_weights", "scale_heads"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bool on = false;
        DGM_TRY(get_bool(s, flags[i], &on, err));
        DGM_FAIL_IF(on, err, DGM_ERR_UNSUPPORTED, "\"%s\" is not supported", flags[i]);
    }
    const dgm_py *cutoff = dgm_py_get(s->model, "adaptive_softmax_cutoff");
    DGM_FAIL_IF(cutoff && (cutoff->kind != DGM_PY_TEXT || cutoff->as.text.size), err,
                DGM_ERR_UNSUPPORTED, "\"adaptive_softmax_cutoff\" is not supported");
    return DGM_OK;
}

// ---- what is read ------------------------------------------------------------------------------

static dgm_status read_activation(dgm_marian_config *c, const source *s, dgm_error *err)
{
    static const char *const names[][2] = {
        {"relu", "relu"},           {"gelu", "gelu"}, {"gelu_accurate", "gelu_tanh"},
        {"gelu_fast", "gelu_tanh"}, {"tanh", "tanh"}, {"swish", "swish"}};
    dgm_text name = {"relu", 4};
    DGM_TRY(dgm_py_string(s->model, "activation_fn", &name, err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dgm_text_equal(name, dgm_text_of(names[i][0]))) c->activation = names[i][1];
    DGM_FAIL_IF(!c->activation, err, DGM_ERR_UNSUPPORTED,
                "\"activation_fn\" '%.*s' is not supported", (int)(name.size < 60 ? name.size : 60),
                name.data);
    return DGM_OK;
}

static const dgm_stored *tensor(const dgm_store *tensors, const char *name)
{
    const int at = dgm_store_find(tensors, name);
    return at < 0 ? NULL : dgm_store_get(tensors, (size_t)at);
}

static int count_layers(const dgm_store *tensors, const char *side)
{
    int n = 0;
    char name[64];
    do {
        snprintf(name, sizeof name, "%s.layers.%d.fc1.weight", side, n);
    } while (tensor(tensors, name) && ++n < LAYERS_MAX);
    return n;
}

static dgm_status read_sizes(dgm_marian_config *c, const dgm_store *tensors, dgm_error *err)
{
    static const char *const needed[] = {
        "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "encoder.layers.0.fc1.weight",
        "decoder.layers.0.fc1.weight"};
    const dgm_stored *t[4];
    for (int i = 0; i < 4; i++) {
        t[i] = tensor(tensors, needed[i]);
        DGM_FAIL_IF(!t[i] || t[i]->n_dims != 2, err, DGM_ERR_FORMAT, "tensor '%s' is missing",
                    needed[i]);
    }
    DGM_FAIL_IF(t[0]->cols != t[1]->cols || t[2]->cols != t[0]->cols || t[3]->cols != t[0]->cols,
                err, DGM_ERR_UNSUPPORTED,
                "widths of embeddings and layers differ (%d, %d, %d, %d): they must be equal",
                t[0]->cols, t[1]->cols, t[2]->cols, t[3]->cols);
    c->d_model = t[0]->cols;
    c->vocab_size = t[0]->rows;
    c->decoder_vocab_size = t[1]->rows;
    c->encoder_ffn = t[2]->rows;
    c->decoder_ffn = t[3]->rows;
    c->encoder_layers = count_layers(tensors, "encoder");
    c->decoder_layers = count_layers(tensors, "decoder");
    return DGM_OK;
}

static dgm_status read_norms(dgm_marian_config *c, const source *s, const dgm_store *tensors,
                             dgm_error *err)
{
    bool decoder = false;
    DGM_TRY(get_bool(s, "encoder_normalize_before", &c->pre_norm, err));
    DGM_TRY(get_bool(s, "decoder_normalize_before", &decoder, err));
    DGM_TRY(get_bool(s, "layernorm_embedding", &c->embed_norm, err));
    DGM_FAIL_IF(decoder != c->pre_norm, err, DGM_ERR_UNSUPPORTED,
                "\"encoder_normalize_before\" and \"decoder_normalize_before\" differ");
    c->final_norm = tensor(tensors, "encoder.layer_norm.weight") != NULL;
    return DGM_OK;
}

static dgm_status read_model(dgm_marian_config *c, const source *s, const dgm_store *tensors,
                             dgm_error *err)
{
    bool plain = false, all = false, output = false, decoder = false, none = false;
    c->decoder_positions = 1024;
    c->heads = 8;
    DGM_TRY(get_int(s, "encoder_attention_heads", 1, 65536, &c->heads, err));
    c->decoder_heads = c->heads;
    DGM_TRY(get_int(s, "decoder_attention_heads", 1, 65536, &c->decoder_heads, err));
    DGM_FAIL_IF(c->d_model % c->heads || c->d_model % c->decoder_heads, err, DGM_ERR_FORMAT,
                "width %d is not a multiple of %d and %d heads", c->d_model, c->heads,
                c->decoder_heads);
    DGM_TRY(get_bool(s, "no_scale_embedding", &plain, err));
    c->scale_embedding = !plain;
    DGM_TRY(get_bool(s, "share_all_embeddings", &all, err));
    DGM_TRY(get_bool(s, "share_decoder_input_output_embed", &output, err));
    c->shared_embedding = all;
    c->tied_output = all || output;
    DGM_TRY(get_bool(s, "no_token_positional_embeddings", &none, err));
    DGM_FAIL_IF(none, err, DGM_ERR_UNSUPPORTED,
                "\"no_token_positional_embeddings\" is not supported");
    DGM_TRY(get_bool(s, "encoder_learned_pos", &c->learned, err));
    DGM_TRY(get_bool(s, "decoder_learned_pos", &decoder, err));
    c->learned = c->learned && decoder; // one alone is found by its table
    c->sinusoid_marian = true;
    c->position_offset = PAD + 1;
    DGM_TRY(get_int(s, "max_target_positions", 4, 65536, &c->decoder_positions, err));
    DGM_TRY(get_int(s, "max_source_positions", 4, 65536, &c->max_positions, err));
    return read_norms(c, s, tensors, err);
}

// A short text, as languages are.
static dgm_status get_text(const dgm_py *task, const char *key, char out[40], dgm_error *err)
{
    dgm_text t = {0};
    DGM_TRY(dgm_py_string(task, key, &t, err));
    for (size_t i = 0; i < t.size; i++)
        DGM_FAIL_IF(t.size >= 40 || t.data[i] == '/' || (unsigned char)t.data[i] <= ' ', err,
                    DGM_ERR_FORMAT, "\"%s\" is not a language", key);
    memcpy(out, t.size ? t.data : "", t.size);
    out[t.size] = 0;
    return DGM_OK;
}

dgm_status dgm_fairseq_settings_read(dgm_fairseq_settings *s, const dgm_py *root,
                                     const dgm_store *tensors, dgm_error *err)
{
    const source from = find_source(root);
    dgm_marian_config *c = &s->c;
    dgm_text tokenizer = {0};
    *s = (dgm_fairseq_settings){.c = {.max_positions = 1024, .forced = -1}};
    DGM_TRY(check_architecture(&from, err));
    DGM_TRY(refuse_variants(&from, err));
    DGM_TRY(read_sizes(c, tensors, err));
    DGM_TRY(read_model(c, &from, tensors, err));
    DGM_TRY(read_activation(c, &from, err));
    DGM_TRY(get_text(from.task, "source_lang", s->source, err));
    DGM_TRY(get_text(from.task, "target_lang", s->target, err));
    DGM_TRY(dgm_py_string(from.task, "tokenizer", &tokenizer, err));
    s->moses = dgm_text_equal(tokenizer, dgm_text_of("moses"));
    c->pad = PAD;
    c->eos = c->start = EOS;
    c->beam = BEAM;
    c->length_penalty = 1;
    c->finish = "refill";
    c->max_length = c->decoder_positions - 2 < LONGEST ? c->decoder_positions - 2 : LONGEST;
    c->never[c->never_count++] = PAD;
    return DGM_OK;
}
