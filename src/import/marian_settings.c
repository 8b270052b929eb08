// SPDX-License-Identifier: MIT
// The settings of Marian's Transformers, with Marian's own defaults; see marian_model.h.
//
// Letters of --transformer-preprocess and its sisters, in the order they are applied: d dropout (nothing here),
// a add the input, h mix it in by a gate (highway), n layer normalisation, r the same by root mean square.
#include <string.h>

#include "import/marian_model.h"

enum { WIDTH_MAX = 65536 };

static dgm_status get_size(const json_t *c, const char *key, int64_t least, int64_t usual, int *out,
                           dgm_error *err)
{
    int64_t v = usual;
    DGM_TRY(dgm_json_int(c, key, least, WIDTH_MAX, &v, err));
    *out = (int)v;
    return DGM_OK;
}

static dgm_status get_flag(const json_t *c, const char *key, bool *out, dgm_error *err)
{
    *out = false;
    return dgm_json_bool(c, key, out, err);
}

// ---- what is refused -----------------------------------------------------------------------------

static dgm_status refuse_variants(const json_t *c, dgm_error *err)
{
    const char *mask = "default", *lemma = "";
    int64_t factors = 0;
    bool pool = false;
    DGM_TRY(dgm_json_string(c, "transformer-attention-mask", &mask, err));
    DGM_FAIL_IF(strcmp(mask, "default") != 0, err, DGM_ERR_UNSUPPORTED,
                "\"transformer-attention-mask\" is '%.40s'; positions by ALiBi are not supported",
                mask);
    DGM_TRY(dgm_json_int(c, "factors-dim-emb", 0, WIDTH_MAX, &factors, err));
    DGM_TRY(dgm_json_string(c, "lemma-dependency", &lemma, err));
    DGM_FAIL_IF(factors > 0 || lemma[0], err, DGM_ERR_UNSUPPORTED,
                "the model has a factored vocabulary, which is not supported");
    DGM_FAIL_IF(
        json_array_size(json_object_get(c, "input-types")) > 0, err, DGM_ERR_UNSUPPORTED,
        "\"input-types\" are set: models with other inputs than one text are not supported");
    DGM_TRY(dgm_json_bool(c, "transformer-pool", &pool, err));
    DGM_FAIL_IF(pool, err, DGM_ERR_UNSUPPORTED, "\"transformer-pool\" is not supported");
    return DGM_OK;
}

// Layers of the networks. That of average attention has two: with others Marian leaves parts out.
static dgm_status read_depths(dgm_marian_transformer *t, const json_t *c, dgm_error *err)
{
    enum { DEEPEST = 64 };
    int64_t own = 2, decoder = 0, average = 2;
    DGM_TRY(dgm_json_int(c, "transformer-ffn-depth", 1, DEEPEST, &own, err));
    DGM_TRY(dgm_json_int(c, "transformer-decoder-ffn-depth", 0, DEEPEST, &decoder, err));
    t->ffn_depth[0] = (int)own;
    t->ffn_depth[1] = (int)(decoder ? decoder : own);
    if (t->decoder != DGM_MARIAN_AAN) return DGM_OK;
    DGM_TRY(dgm_json_int(c, "transformer-aan-depth", 1, DEEPEST, &average, err));
    DGM_FAIL_IF(average != 2, err, DGM_ERR_UNSUPPORTED,
                "\"transformer-aan-depth\" is %d; average attention with networks of 2 layers is supported",
                (int)average);
    return DGM_OK;
}

// ---- letters -------------------------------------------------------------------------------------

// Letters of one setting: `norm` and, if allowed, `add` (a or h) are where they stand, -1: not at all.
static dgm_status read_letters(const json_t *c, const char *key, const char *usual, bool may_add,
                               dgm_marian_transformer *t, int *norm, int *add, dgm_error *err)
{
    const char *letters = usual;
    *norm = *add = -1;
    DGM_TRY(dgm_json_string(c, key, &letters, err));
    for (int i = 0; letters[i]; i++) {
        const char letter = letters[i];
        if (letter == 'd') continue;
        const bool adds = letter == 'a' || letter == 'h';
        int *at = adds && may_add ? add : letter == 'n' || letter == 'r' ? norm : NULL;
        DGM_FAIL_IF(!at || *at >= 0, err, DGM_ERR_UNSUPPORTED,
                    "\"%s\" is '%.20s'; %s in any order are supported, each once", key, letters,
                    may_add ? "d, one of a and h, and one of n and r" : "d and one of n and r");
        *at = i;
        if (letter == 'r') t->rms = true;
        if (letter == 'h') t->highway = true;
    }
    return DGM_OK;
}

static bool has_letter(const json_t *c, const char *key, char letter)
{
    const char *s = json_string_value(json_object_get(c, key));
    return s && strchr(s, letter);
}

static dgm_status read_norms(dgm_marian_transformer *t, const json_t *c, dgm_error *err)
{
    static const char *const keys[] = {"transformer-preprocess", "transformer-postprocess",
                                       "transformer-postprocess-emb",
                                       "transformer-postprocess-top"};
    int norm, add;
    DGM_TRY(read_letters(c, keys[0], "", false, t, &norm, &add, err));
    t->norm_before = norm >= 0;
    DGM_TRY(read_letters(c, keys[1], "dan", true, t, &norm, &add, err));
    t->norm_behind = norm >= 0;
    const bool apart = norm >= 0 && norm < add;
    t->residual = t->highway ? (apart ? "gated_apart" : "gated") : add < 0 ? "none" : apart ? "apart" : "sum";
    DGM_TRY(read_letters(c, keys[2], "d", false, t, &norm, &add, err));
    t->embed_norm = norm >= 0;
    DGM_TRY(read_letters(c, keys[3], "", false, t, &norm, &add, err));
    t->top_norm = norm >= 0;
    // The version that brought the fourth key also normalises keys and values before self-attention.
    DGM_FAIL_IF(
        t->norm_before && !dgm_json_has(c, keys[3]), err, DGM_ERR_UNSUPPORTED,
        "the model normalises before its layers and was made by a Marian older than 1.10, which "
        "left keys and values of attention out; that is not supported");
    bool layer = !dgm_json_has(c, keys[1]);
    for (int i = 0; i < 4; i++) layer = layer || has_letter(c, keys[i], 'n');
    DGM_FAIL_IF(t->rms && layer, err, DGM_ERR_UNSUPPORTED,
                "normalisations n and r in one model are not supported");
    return DGM_OK;
}

// ---- parts -----------------------------------------------------------------------------------

static dgm_status read_activation(const json_t *c, const char *key, const char **out,
                                  dgm_error *err)
{
    static const char *const names[][2] = {{"swish", "swish"}, {"relu", "relu"}, {"gelu", "gelu"}};
    const char *name = "swish";
    DGM_TRY(dgm_json_string(c, key, &name, err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], name) == 0) {
            *out = names[i][1];
            return DGM_OK;
        }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                    "\"%s\" is '%.40s'; swish, relu and gelu are supported", key, name);
}

static dgm_status read_decoder(dgm_marian_transformer *t, const json_t *c, dgm_error *err)
{
    const char *kind = "self-attention", *cell = "gru";
    DGM_TRY(dgm_json_string(c, "transformer-decoder-autoreg", &kind, err));
    DGM_TRY(dgm_json_string(c, "dec-cell", &cell, err));
    if (strcmp(kind, "self-attention") == 0) return DGM_OK;
    if (strcmp(kind, "average-attention") == 0) {
        t->decoder = DGM_MARIAN_AAN;
        return DGM_OK;
    }
    DGM_FAIL_IF(strcmp(kind, "rnn") != 0, err, DGM_ERR_UNSUPPORTED,
                "\"transformer-decoder-autoreg\" is '%.40s'; self-attention, average-attention and "
                "rnn are supported",
                kind);
    DGM_FAIL_IF(strcmp(cell, "ssru") != 0, err, DGM_ERR_UNSUPPORTED,
                "\"dec-cell\" of the Transformer's decoder is '%.40s'; ssru is supported", cell);
    t->decoder = DGM_MARIAN_SSRU;
    return DGM_OK;
}

static dgm_status read_tied(dgm_marian_transformer *t, const json_t *c, dgm_error *err)
{
    const json_t *list = json_object_get(c, "transformer-tied-layers");
    const size_t n = json_array_size(list);
    if (n == 0) return DGM_OK;
    DGM_FAIL_IF((int)n != t->layers[0] || (int)n != t->layers[1], err, DGM_ERR_FORMAT,
                "\"transformer-tied-layers\" has %zu numbers for %d and %d layers", n, t->layers[0],
                t->layers[1]);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        const int64_t number = json_is_integer(v) ? json_integer_value(v) : 0;
        DGM_FAIL_IF(number < 1 || number > (int64_t)n, err, DGM_ERR_FORMAT,
                    "\"transformer-tied-layers\" holds a number that is not from 1 to %zu", n);
        t->tied[i] = (int)number - 1;
    }
    t->tied_count = (int)n;
    return DGM_OK;
}

// A number, or "last".
static dgm_status read_align(dgm_marian_transformer *t, const json_t *c, dgm_error *err)
{
    static const char key[] = "transformer-guided-alignment-layer";
    const json_t *v = json_object_get(c, key);
    t->align_layer = -1;
    if (!v || json_is_string(v)) return DGM_OK;
    int64_t layer = 0;
    DGM_TRY(dgm_json_int(c, key, 1, t->layers[1], &layer, err));
    t->align_layer = (int)layer - 1;
    return DGM_OK;
}

static dgm_status read_shape(dgm_marian_transformer *t, const json_t *c, dgm_error *err)
{
    DGM_TRY(get_size(c, "dim-emb", 1, 512, &t->d, err));
    DGM_TRY(get_size(c, "transformer-heads", 1, 8, &t->heads, err));
    DGM_TRY(get_size(c, "transformer-dim-ffn", 1, 2048, &t->ffn, err));
    DGM_TRY(get_size(c, "transformer-decoder-dim-ffn", 0, 0, &t->decoder_ffn, err));
    if (t->decoder_ffn == 0) t->decoder_ffn = t->ffn;
    DGM_TRY(get_size(c, "transformer-dim-aan", 1, 2048, &t->aan_ffn, err));
    static const char *const depths[] = {"enc-depth", "dec-depth"};
    for (int side = 0; side < 2; side++) {
        DGM_TRY(get_size(c, depths[side], 1, 1, &t->layers[side], err));
        DGM_FAIL_IF(t->layers[side] > DGM_MARIAN_LAYERS_MAX, err, DGM_ERR_UNSUPPORTED,
                    "\"%s\" is %d, more than %d", depths[side], t->layers[side],
                    DGM_MARIAN_LAYERS_MAX);
    }
    DGM_FAIL_IF(t->d % t->heads != 0 || t->d % 2 != 0, err, DGM_ERR_FORMAT,
                "\"dim-emb\" %d is not an even multiple of %d heads", t->d, t->heads);
    return DGM_OK;
}

dgm_status dgm_marian_transformer_read(dgm_marian_transformer *t, const json_t *config,
                                       dgm_error *err)
{
    bool no_projection, no_gate, no_affine, no_positions;
    *t = (dgm_marian_transformer){0};
    DGM_TRY(refuse_variants(config, err));
    DGM_TRY(read_shape(t, config, err));
    DGM_TRY(read_decoder(t, config, err));
    DGM_TRY(read_depths(t, config, err));
    DGM_TRY(read_norms(t, config, err));
    DGM_TRY(read_activation(config, "transformer-ffn-activation", &t->activation, err));
    DGM_TRY(read_activation(config, "transformer-aan-activation", &t->aan_activation, err));
    DGM_TRY(get_flag(config, "transformer-no-projection", &no_projection, err));
    DGM_TRY(get_flag(config, "transformer-rnn-projection", &t->rnn_projection, err));
    DGM_TRY(get_flag(config, "transformer-aan-nogate", &no_gate, err));
    DGM_TRY(get_flag(config, "transformer-no-affine", &no_affine, err));
    DGM_TRY(get_flag(config, "transformer-disable-position-embeddings", &no_positions, err));
    t->projection = !no_projection;
    t->aan_gate = !no_gate;
    t->affine = !no_affine;
    t->positions = !no_positions;
    DGM_TRY(read_tied(t, config, err));
    return read_align(t, config, err);
}
