// SPDX-License-Identifier: MIT
// Tensors of models of BART's kind; see bart.h.
#include "import/bart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { NAME = 160 };

static const char *const sides[2] = {"encoder", "decoder"}, *const ours[2] = {"enc", "dec"};

dgm_bart dgm_bart_of(dgm_checkpoint *w, const dgm_marian_config *c)
{
    const bool plain = dgm_checkpoint_has(w, "encoder.layers.0.self_attn.q_proj.weight");
    return (dgm_bart){.w = w,
                      .c = c,
                      .prefix = plain ? "" : "model.",
                      .shared = plain ? "shared.weight" : "model.shared.weight",
                      .head = "lm_head.weight"};
}

static const dgm_stored *find(const dgm_bart *b, const char *name)
{
    const int at = dgm_store_find(b->w->tensors, name);
    return at < 0 ? NULL : dgm_store_get(b->w->tensors, (size_t)at);
}

// ---- embeddings --------------------------------------------------------------------------------

// Do two matrices of real numbers hold the same ones?
static dgm_status equal(const dgm_bart *b, const dgm_stored *one, const dgm_stored *two, bool *same,
                        dgm_error *err)
{
    const dgm_view v[2] = {dgm_view_whole(b->w->tensors, one), dgm_view_whole(b->w->tensors, two)};
    *same = one->rows == two->rows && one->cols == two->cols && dgm_stored_is_real(one->type) &&
            dgm_stored_is_real(two->type);
    if (!*same || one == two) return DGM_OK;
    const size_t n = (size_t)v[0].cols;
    float *row = dgm_malloc((2 * n + 1) * sizeof *row);
    if (!row) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    for (int i = 0; i < v[0].rows && *same && st == DGM_OK; i++) {
        st = dgm_view_read(&v[0], i, 1, row, err);
        if (st == DGM_OK) st = dgm_view_read(&v[1], i, 1, row + n, err);
        *same = st == DGM_OK && memcmp(row, row + n, n * sizeof *row) == 0;
    }
    dgm_free(row);
    return st;
}

// What "tied" means: all names that are stored hold one matrix.
static dgm_status check_tied(const dgm_bart *b, const char *const *names, int count, dgm_error *err)
{
    const char *first = NULL;
    for (int i = 0; i < count; i++) {
        bool same = true;
        if (!find(b, names[i])) continue;
        if (first) DGM_TRY(equal(b, find(b, first), find(b, names[i]), &same, err));
        if (!first) first = names[i];
        DGM_FAIL_IF(!same, err, DGM_ERR_FORMAT,
                    "'%s': config.json says that '%s' and '%s' are one matrix, but they differ",
                    b->w->job->dir, first, names[i]);
    }
    return DGM_OK;
}

// The first of some names that is stored; the last where none is.
static const char *first_of(const dgm_bart *b, const char *const *names, int count)
{
    int i = 0;
    while (i < count - 1 && !find(b, names[i])) i++;
    return names[i];
}

// Whose tensor serves as source embedding, target embedding and output layer.
typedef struct uses {
    const char *source, *target, *output;
} uses;

static uses find_uses(const dgm_bart *b, const char *encoder, const char *decoder)
{
    const bool shared = b->c->shared_embedding, tied = b->c->tied_output;
    const char *const source[] = {encoder, b->shared, decoder, b->head};
    const char *const target[] = {decoder, b->shared, encoder, b->head};
    const char *const own[] = {decoder, b->head};
    uses u = {.source = first_of(b, source, !shared ? 2 : tied ? 4 : 3)};
    u.target = shared ? first_of(b, target, tied ? 4 : 3) : first_of(b, own, tied ? 2 : 1);
    u.output = tied ? u.target : b->head;
    if (!find(b, u.source)) u.source = b->shared; // for the message
    if (shared && !find(b, u.target)) u.target = u.source;
    return u;
}

// Adds a matrix unless it holds what `other` does.
static dgm_status add_unless(const dgm_bart *b, const char *to, const char *from, const char *other,
                             dgm_error *err)
{
    const int rows = b->c->decoder_vocab_size, cols = b->c->d_model;
    const dgm_stored *t;
    bool same = false;
    DGM_TRY(dgm_checkpoint_get(b->w, from, rows, cols, &t, err));
    DGM_TRY(equal(b, t, find(b, other), &same, err));
    return same ? DGM_OK : dgm_checkpoint_add(b->w, to, from, rows, cols, err);
}

dgm_status dgm_bart_embeddings(const dgm_bart *b, dgm_error *err)
{
    const dgm_marian_config *c = b->c;
    char own[2][NAME];
    for (int s = 0; s < 2; s++)
        snprintf(own[s], sizeof own[s], "%s%s.embed_tokens.weight", b->prefix, sides[s]);
    const char *all[4] = {b->shared, own[0], own[1], b->head};
    if (c->tied_output)
        DGM_TRY(
            check_tied(b, c->shared_embedding ? all : all + 2, c->shared_embedding ? 4 : 2, err));
    for (int i = 0; i < 4; i++) dgm_checkpoint_take(b->w, all[i]);
    const uses u = find_uses(b, own[0], own[1]);
    DGM_TRY(dgm_checkpoint_add(b->w, "src.embed", u.source, c->vocab_size, c->d_model, err));
    DGM_TRY(add_unless(b, "tgt.embed", u.target, u.source, err));
    return add_unless(b, "out.weight", u.output, u.target, err);
}

dgm_status dgm_bart_output_bias(const dgm_bart *b, dgm_error *err)
{
    static const char name[] = "final_logits_bias";
    const int size = b->c->decoder_vocab_size;
    const dgm_stored *t;
    if (!dgm_checkpoint_has(b->w, name)) return DGM_OK;
    DGM_TRY(dgm_checkpoint_get(b->w, name, 1, size, &t, err));
    const dgm_view v = dgm_view_whole(b->w->tensors, t);
    float *bias = dgm_malloc((size_t)size * sizeof *bias);
    if (!bias) return dgm_no_memory(err);
    const dgm_status st = dgm_view_read(&v, 0, 1, bias, err);
    bool zero = true;
    for (int i = 0; i < size && st == DGM_OK; i++) zero = zero && bias[i] == 0;
    dgm_free(bias);
    if (st != DGM_OK || zero) return st;
    return dgm_checkpoint_view(b->w, "out.bias", v, true, err);
}

// ---- positions ---------------------------------------------------------------------------------

static void set_positions(dgm_gguf_writer *w, const dgm_marian_config *c, bool learned)
{
    const char *computed = c->sinusoid_marian ? "sinusoid_marian" : "sinusoid";
    dgm_gguf_set_string(w, "dragoman.transformer.positions", learned ? "learned" : computed);
}

// How far a stored sinusoid may be from ours: what its type rounds, and other people's powers.
static double tolerance(dgm_stored_type type)
{
    return type == DGM_STORED_BF16 ? 5e-3 : type == DGM_STORED_F16 ? 1e-3 : 2e-4;
}

// Rows of the sinusoid that the configuration means. source: a dgm_marian_config
static dgm_status compute_rows(const void *source, int first, int rows, float *out, dgm_error *err)
{
    (void)err;
    const dgm_marian_config *c = source;
    const int d = c->d_model, half = d / 2;
    for (int p = first; p < first + rows; p++, out += d) {
        out[d - 1] = 0;
        for (int i = 0; i < half; i++) {
            const double power =
                c->sinusoid_marian ? (double)i / (half > 1 ? half - 1 : 1) : 2.0 * i / d;
            out[i] = (float)sin(p * pow(10000, -power));
            out[half + i] = (float)cos(p * pow(10000, -power));
        }
    }
    return DGM_OK;
}

// Is a stored table that sinusoid? What stands before the first position is the padding's row, which
// nobody looks at.
static dgm_status is_sinusoid(const dgm_bart *b, const dgm_stored *t, bool *yes, dgm_error *err)
{
    const dgm_view v = dgm_view_whole(b->w->tensors, t);
    const size_t d = (size_t)t->cols;
    const double bound = tolerance(t->type);
    float *row = dgm_malloc((2 * d + 1) * sizeof *row);
    if (!row) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    *yes = true;
    for (int p = b->c->position_offset; p < t->rows && *yes && st == DGM_OK; p++) {
        st = dgm_view_read(&v, p, 1, row, err);
        (void)compute_rows(b->c, p, 1, row + d, err);
        for (size_t i = 0; i < d && st == DGM_OK; i++)
            *yes = *yes && fabs(row[i] - row[d + i]) <= bound * (1 + p * 1e-3);
    }
    dgm_free(row);
    return st;
}

// Like dgm_checkpoint_add, but never in integers: a table of positions is small, and added to every token.
static dgm_status add_table(dgm_checkpoint *w, const char *to, const char *from, int rows, int cols,
                            dgm_error *err)
{
    const int storage = w->job->storage;
    if (storage == DGM_TYPE_I8 || storage == DGM_TYPE_I16) w->job->storage = DGM_TYPE_F32;
    const dgm_status st = dgm_checkpoint_add(w, to, from, rows, cols, err);
    w->job->storage = storage;
    return st;
}

static dgm_status add_learned(const dgm_bart *b, char names[2][NAME], dgm_error *err)
{
    const dgm_marian_config *c = b->c;
    for (int s = 0; s < 2; s++) {
        char to[16];
        const dgm_stored *t = find(b, names[s]);
        const int positions = s && c->decoder_positions ? c->decoder_positions : c->max_positions;
        const int rows = t ? t->rows : positions + c->position_offset;
        DGM_FAIL_IF(rows < positions + c->position_offset, err, DGM_ERR_FORMAT,
                    "'%s': tensor '%s' has %d rows, expected %d for %d positions", b->w->job->dir,
                    names[s], rows, positions + c->position_offset, positions);
        snprintf(to, sizeof to, "%s.pos", ours[s]);
        if (!t && !c->learned) // computed, beside a table of the other side
            DGM_TRY(dgm_import_matrix(b->w->job, to, rows, c->d_model, DGM_TYPE_F32, compute_rows,
                                      c, err));
        else
            DGM_TRY(add_table(b->w, to, names[s], rows, c->d_model, err));
    }
    return DGM_OK;
}

dgm_status dgm_bart_positions(const dgm_bart *b, dgm_error *err)
{
    const dgm_marian_config *c = b->c;
    dgm_gguf_writer *w = b->w->job->w;
    char names[2][NAME];
    bool learned = c->learned;
    for (int s = 0; s < 2; s++) {
        snprintf(names[s], NAME, "%s%s.embed_positions.weight", b->prefix, sides[s]);
        const dgm_stored *t = find(b, names[s]);
        if (!t || c->learned) continue;
        bool computed = false;
        DGM_TRY(dgm_checkpoint_get(b->w, names[s], t->rows, c->d_model, &t, err));
        DGM_TRY(is_sinusoid(b, t, &computed, err));
        learned = learned || !computed;
    }
    if (c->position_offset)
        dgm_gguf_set_u32(w, "dragoman.transformer.position_offset", (uint32_t)c->position_offset);
    set_positions(w, c, learned);
    return learned ? add_learned(b, names, err) : DGM_OK;
}

// ---- layers ------------------------------------------------------------------------------------

dgm_status dgm_bart_norms(const dgm_bart *b, dgm_error *err)
{
    char from[NAME], to[32];
    for (int s = 0; s < 2; s++) {
        snprintf(to, sizeof to, "%s.embed_norm", ours[s]);
        snprintf(from, sizeof from, "%s%s.layernorm_embedding", b->prefix, sides[s]);
        if (b->c->embed_norm) DGM_TRY(dgm_checkpoint_layer(b->w, to, from, 0, b->c->d_model, err));
        snprintf(to, sizeof to, "%s.norm", ours[s]);
        snprintf(from, sizeof from, "%s%s.layer_norm", b->prefix, sides[s]);
        if (b->c->final_norm) DGM_TRY(dgm_checkpoint_layer(b->w, to, from, 0, b->c->d_model, err));
    }
    return DGM_OK;
}

// Queries, keys and values in one matrix [3D, D], as fairseq had them once.
static dgm_status add_stacked(const dgm_bart *b, const char *to, const char *from, dgm_error *err)
{
    static const char *const parts[] = {"q", "k", "v"}, *const kinds[] = {"weight", "bias"};
    const int d = b->c->d_model;
    char name[NAME], ours_name[NAME];
    for (int kind = 0; kind < 2; kind++) {
        const dgm_stored *t;
        snprintf(name, sizeof name, "%s.in_proj_%s", from, kinds[kind]);
        DGM_TRY(dgm_checkpoint_get(b->w, name, kind ? 0 : 3 * d, kind ? 3 * d : d, &t, err));
        for (int i = 0; i < 3; i++) {
            dgm_view v = dgm_view_whole(b->w->tensors, t);
            v = kind ? dgm_view_transposed(dgm_view_rows(dgm_view_transposed(v), i * d, d))
                     : dgm_view_rows(v, i * d, d);
            snprintf(ours_name, sizeof ours_name, "%s.%s.%s", to, parts[i], kinds[kind]);
            DGM_TRY(dgm_checkpoint_view(b->w, ours_name, v, kind == 1, err));
        }
    }
    snprintf(name, sizeof name, "%s.out_proj", from);
    snprintf(ours_name, sizeof ours_name, "%s.o", to);
    return dgm_checkpoint_layer(b->w, ours_name, name, d, d, err);
}

// A norm by its name, or by its number in old fairseq.
static dgm_status add_norm(const dgm_bart *b, const char *to, const char *layer, const char *name,
                           int number, dgm_error *err)
{
    char from[NAME], weight[NAME];
    snprintf(from, sizeof from, "%s.%s", layer, name);
    snprintf(weight, sizeof weight, "%s.layer_norms.%d.weight", layer, number);
    if (dgm_checkpoint_has(b->w, weight))
        snprintf(from, sizeof from, "%s.layer_norms.%d", layer, number);
    return dgm_checkpoint_layer(b->w, to, from, 0, b->c->d_model, err);
}

static dgm_status add_attention(const dgm_bart *b, const char *to, const char *from, dgm_error *err)
{
    static const char *const names[4][2] = {
        {"q", "q_proj"}, {"k", "k_proj"}, {"v", "v_proj"}, {"o", "out_proj"}};
    const int d = b->c->d_model;
    char ours_name[NAME], name[NAME];
    snprintf(name, sizeof name, "%s.in_proj_weight", from);
    if (dgm_checkpoint_has(b->w, name)) return add_stacked(b, to, from, err);
    for (int i = 0; i < 4; i++) {
        snprintf(ours_name, sizeof ours_name, "%s.%s", to, names[i][0]);
        snprintf(name, sizeof name, "%s.%s", from, names[i][1]);
        DGM_TRY(dgm_checkpoint_layer(b->w, ours_name, name, d, d, err));
    }
    return DGM_OK;
}

static dgm_status add_layer(const dgm_bart *b, int side, int layer, dgm_error *err)
{
    static const char *const attentions[2][3] = {
        {"self", "self_attn", "self_attn_layer_norm"},
        {"cross", "encoder_attn", "encoder_attn_layer_norm"}};
    const int d = b->c->d_model, f = side ? b->c->decoder_ffn : b->c->encoder_ffn;
    char to[48], from[112], theirs[64];
    snprintf(theirs, sizeof theirs, "%s%s.layers.%d", b->prefix, sides[side], layer);
    for (int i = 0; i < 1 + side; i++) {
        snprintf(to, sizeof to, "%s.%d.%s", ours[side], layer, attentions[i][0]);
        snprintf(from, sizeof from, "%s.%s", theirs, attentions[i][1]);
        DGM_TRY(add_attention(b, to, from, err));
        snprintf(to, sizeof to, "%s.%d.%s.norm", ours[side], layer, attentions[i][0]);
        DGM_TRY(add_norm(b, to, theirs, attentions[i][2], i, err));
    }
    snprintf(to, sizeof to, "%s.%d.ffn", ours[side], layer);
    DGM_TRY(dgm_checkpoint_ffn(b->w, to, theirs, d, f, err));
    snprintf(to, sizeof to, "%s.%d.ffn.norm", ours[side], layer);
    return add_norm(b, to, theirs, "final_layer_norm", 1 + side, err);
}

dgm_status dgm_bart_layers(const dgm_bart *b, dgm_error *err)
{
    for (int i = 0; i < b->c->encoder_layers; i++) DGM_TRY(add_layer(b, 0, i, err));
    for (int i = 0; i < b->c->decoder_layers; i++) DGM_TRY(add_layer(b, 1, i, err));
    return DGM_OK;
}

// ---- keys --------------------------------------------------------------------------------------

void dgm_bart_decoding(dgm_gguf_writer *w, const dgm_marian_config *c)
{
    dgm_gguf_set_u32(w, "dragoman.decode.beam", (uint32_t)c->beam);
    dgm_gguf_set_string(w, "dragoman.decode.finish", c->finish);
    dgm_gguf_set_f32(w, "dragoman.decode.length_penalty", (float)c->length_penalty);
    dgm_gguf_set_u32(w, "dragoman.decode.max_length", (uint32_t)c->max_length);
    dgm_gguf_set_u32(w, "dragoman.decode.max_source", (uint32_t)c->max_positions);
    dgm_gguf_set_bool(w, "dragoman.decode.allow_unk", true);
    dgm_gguf_set_bool(w, "dragoman.decode.drop_unk", true); // as skip_special_tokens does
}

void dgm_bart_keys(dgm_gguf_writer *w, const dgm_marian_config *c)
{
    dgm_gguf_set_u32(w, "dragoman.transformer.d_model", (uint32_t)c->d_model);
    dgm_gguf_set_u32(w, "dragoman.transformer.heads", (uint32_t)c->heads);
    if (c->decoder_heads != c->heads)
        dgm_gguf_set_u32(w, "dragoman.transformer.decoder_heads", (uint32_t)c->decoder_heads);
    dgm_gguf_set_u32(w, "dragoman.transformer.ffn", (uint32_t)c->encoder_ffn);
    if (c->decoder_ffn != c->encoder_ffn)
        dgm_gguf_set_u32(w, "dragoman.transformer.decoder_ffn", (uint32_t)c->decoder_ffn);
    dgm_gguf_set_u32(w, "dragoman.transformer.encoder_layers", (uint32_t)c->encoder_layers);
    dgm_gguf_set_u32(w, "dragoman.transformer.decoder_layers", (uint32_t)c->decoder_layers);
    dgm_gguf_set_string(w, "dragoman.transformer.norm", c->pre_norm ? "pre" : "post");
    if (c->final_norm != c->pre_norm) {
        dgm_gguf_set_bool(w, "dragoman.transformer.encoder_final_norm", c->final_norm);
        dgm_gguf_set_bool(w, "dragoman.transformer.decoder_final_norm", c->final_norm);
    }
    dgm_gguf_set_f32(w, "dragoman.transformer.norm_eps", 1e-5f);
    dgm_gguf_set_string(w, "dragoman.transformer.activation", c->activation);
    set_positions(w, c, c->learned);
    dgm_gguf_set_bool(w, "dragoman.transformer.scale_embedding", c->scale_embedding);
    if (c->position_offset)
        dgm_gguf_set_u32(w, "dragoman.transformer.position_offset", (uint32_t)c->position_offset);
}
