// SPDX-License-Identifier: MIT
// Settings of an OpenNMT-py checkpoint; see opennmt_py.h.
#include "import/opennmt_py.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "format/modelfile.h"

enum { LAYERS_MAX = 1024 };

// ---- what is refused ---------------------------------------------------------------------------

// Settings with a text that must be one of some, and whole numbers and switches that must be off.
static dgm_status refuse_texts(const dgm_py *opt, dgm_error *err)
{
    static const struct {
        const char *key, *allowed[4];
    } rows[] = {
        {"encoder_type", {"transformer"}},
        {"decoder_type", {"transformer"}},
        {"model_task", {"seq2seq"}},
        {"model_type", {"text"}},
        {"self_attn_type", {"scaled-dot", "scaled-dot-flash"}},
        {"generator_function", {"softmax"}},
        {"layer_norm", {"standard", "rms"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_text v = dgm_text_of(rows[i].allowed[0]);
        bool fits = false;
        DGM_TRY(dgm_py_string(opt, rows[i].key, &v, err));
        for (int k = 0; k < 4 && rows[i].allowed[k]; k++)
            fits = fits || dgm_text_equal(v, dgm_text_of(rows[i].allowed[k]));
        DGM_FAIL_IF(!fits, err, DGM_ERR_UNSUPPORTED, "\"%s\" '%.*s' is not supported (%s is)",
                    rows[i].key, (int)(v.size < 60 ? v.size : 60), v.data, rows[i].allowed[0]);
    }
    return DGM_OK;
}

static dgm_status refuse_numbers(const dgm_py *opt, dgm_error *err)
{
    static const char *const switches[] = {"copy_attn", "parallel_residual", "multiquery",
                                           "aan_useffn"};
    static const char *const numbers[] = {"num_kv", "sliding_window", "num_experts",
                                          "relative_positions_buckets"};
    int64_t relative = 0;
    DGM_TRY(dgm_py_int(opt, "max_relative_positions", INT64_MIN, INT64_MAX, &relative, err));
    DGM_FAIL_IF(relative != 0, err, DGM_ERR_UNSUPPORTED,
                "\"max_relative_positions\" %lld (%s) is not supported", (long long)relative,
                relative == -1   ? "rotary positions"
                : relative == -2 ? "ALiBi"
                                 : "positions relative to each other");
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        bool on = false;
        DGM_TRY(dgm_py_bool(opt, switches[i], &on, err));
        DGM_FAIL_IF(on, err, DGM_ERR_UNSUPPORTED, "\"%s\" is not supported", switches[i]);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int64_t n = 0;
        DGM_TRY(dgm_py_int(opt, numbers[i], INT64_MIN, INT64_MAX, &n, err));
        DGM_FAIL_IF(n != 0, err, DGM_ERR_UNSUPPORTED, "\"%s\" %lld is not supported", numbers[i],
                    (long long)n);
    }
    return DGM_OK;
}

// ---- what is read ------------------------------------------------------------------------------

static dgm_status read_activation(dgm_onmt_settings *s, const dgm_py *opt, dgm_error *err)
{
    static const struct {
        const char *theirs, *ours;
        bool gated;
    } names[] = {{"relu", "relu", false},
                 {"gelu", "gelu", false},
                 {"silu", "swish", true},
                 {"gated-gelu", "gelu", true}};
    dgm_text name = {"relu", 4};
    DGM_TRY(dgm_py_string(opt, "pos_ffn_activation_fn", &name, err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dgm_text_equal(name, dgm_text_of(names[i].theirs))) {
            s->activation = names[i].ours;
            s->gated = names[i].gated;
        }
    DGM_FAIL_IF(!s->activation, err, DGM_ERR_UNSUPPORTED,
                "\"pos_ffn_activation_fn\" '%.*s' is not supported",
                (int)(name.size < 60 ? name.size : 60), name.data);
    return DGM_OK;
}

static const dgm_stored *tensor(const dgm_store *tensors, const char *name)
{
    const int at = dgm_store_find(tensors, name);
    return at < 0 ? NULL : dgm_store_get(tensors, (size_t)at);
}

static int count_layers(const dgm_store *tensors, const char *layers)
{
    int n = 0;
    char name[64];
    do {
        snprintf(name, sizeof name, "%s.%d.feed_forward.w_1.weight", layers, n);
    } while (tensor(tensors, name) && ++n < LAYERS_MAX);
    return n;
}

static dgm_status read_sizes(dgm_onmt_settings *s, const dgm_store *tensors, dgm_error *err)
{
    static const char *const needed[] = {DGM_ONMT_EMBEDDING("encoder"),
                                         DGM_ONMT_EMBEDDING("decoder"),
                                         "encoder.transformer.0.feed_forward.w_1.weight"};
    const dgm_stored *t[3];
    for (int i = 0; i < 3; i++) {
        t[i] = tensor(tensors, needed[i]);
        DGM_FAIL_IF(!t[i] || t[i]->n_dims != 2, err, DGM_ERR_FORMAT, "tensor '%s' is missing",
                    needed[i]);
    }
    s->source_size = t[0]->rows;
    s->target_size = t[1]->rows;
    s->d_model = t[0]->cols;
    // Of a tensor that repeats one row, or whose rows are empty, the file's size does not bound them.
    for (int i = 0; i < 2; i++)
        DGM_FAIL_IF(t[i]->cols < 1 || t[i]->rows > DGM_SPEC_VOCAB_MAX, err, DGM_ERR_FORMAT,
                    "tensor '%s' is %d x %d, at most %d rows are read", needed[i], t[i]->rows, t[i]->cols,
                    DGM_SPEC_VOCAB_MAX);
    s->ffn = t[2]->rows;
    s->encoder_layers = count_layers(tensors, "encoder.transformer");
    s->decoder_layers = count_layers(tensors, "decoder.transformer_layers");
    DGM_FAIL_IF(s->decoder_layers == 0, err, DGM_ERR_FORMAT, "the decoder has no layers");
    return DGM_OK;
}

dgm_status dgm_onmt_settings_read(dgm_onmt_settings *s, const dgm_py *root,
                                  const dgm_store *tensors, dgm_error *err)
{
    const dgm_py *opt = dgm_py_get(root, "opt"), *eps = dgm_py_get(opt, "norm_eps");
    dgm_text norm = {0}, start = {"<s>", 3};
    int64_t heads = 8;
    *s = (dgm_onmt_settings){.eps = 1e-6};
    DGM_TRY(refuse_texts(opt, err));
    DGM_TRY(refuse_numbers(opt, err));
    DGM_TRY(read_sizes(s, tensors, err));
    DGM_TRY(read_activation(s, opt, err));
    DGM_TRY(dgm_py_int(opt, "heads", 1, 65536, &heads, err));
    DGM_FAIL_IF(s->d_model % heads, err, DGM_ERR_FORMAT, "width %d is not a multiple of %d heads",
                s->d_model, (int)heads);
    s->heads = (int)heads;
    DGM_TRY(dgm_py_bool(opt, "position_encoding", &s->positions, err));
    DGM_TRY(dgm_py_string(opt, "layer_norm", &norm, err));
    s->rms = dgm_text_equal(norm, dgm_text_of("rms"));
    if (eps && eps->kind == DGM_PY_REAL && eps->as.real > 0 && eps->as.real < 1)
        s->eps = eps->as.real;
    DGM_TRY(dgm_py_string(dgm_py_get(root, "vocab"), "decoder_start_token", &start, err));
    DGM_FAIL_IF(start.size >= sizeof s->start || memchr(start.data, 0, start.size), err,
                DGM_ERR_FORMAT, "\"decoder_start_token\" is no token");
    memcpy(s->start, start.data, start.size);
    return DGM_OK;
}
