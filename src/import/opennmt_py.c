// SPDX-License-Identifier: MIT
// Imports checkpoints of OpenNMT-py, versions 1 to 3: Transformers for translation.
//
//     model      weights; generator: the output layer's, "0.weight" or "weight"
//     opt        settings, an argparse.Namespace (opennmt_py_settings.c)
//     vocab      lists of tokens {"src": [...], "tgt": [...]}, or before version 3 objects of torchtext
//
// The model: pre-norm with final norms of eps 1e-6, sinusoids of which sine and cosine take turns. Sources have no end
// symbol, the decoder begins with <s>. What cuts text into tokens lies beside the checkpoint, or nowhere
// (token_vocab.c).
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "import/checkpoint.h"
#include "import/opennmt_py.h"
#include "import/token_vocab.h"
#include "import/torch_file.h"

enum { NAME = 160, POSITIONS = 1024, LONGEST = 100, DEEP = 8 };

typedef struct reading {
    dgm_import_job *job;
    char *folder, *path; // of the checkpoint
    dgm_torch *file;
    dgm_onmt_settings s;
    const char **tokens[2]; // [count] copies that end with NUL
    char *texts[2];
    int count[2];
    dgm_checkpoint weights;
} reading;

// ---- vocabulary --------------------------------------------------------------------------------

// The list of words inside a field of torchtext, however wrapped: Vocab.itos, Field.vocab, TextMultiField.fields,
// pairs of a name and one of these.
static const dgm_py *find_list(const dgm_py *v, int depth)
{
    static const char *const inside[] = {"itos", "vocab", "base_field", "fields"};
    if (!v || depth > DEEP) return NULL;
    const dgm_py *first = dgm_py_item(v, 0);
    if (first && first->kind == DGM_PY_TEXT) {
        const dgm_py *second = dgm_py_item(v, 1);
        return second && second->kind == DGM_PY_OBJECT ? find_list(second, depth + 1) : v;
    }
    if (first) return find_list(first, depth + 1);
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        const dgm_py *list = find_list(dgm_py_get(v, inside[i]), depth + 1);
        if (list) return list;
    }
    return NULL;
}

// vocab["src"], or of version 0 the pair ("src", ...) in a list.
static const dgm_py *find_side(const dgm_py *vocab, const char *name)
{
    for (size_t i = 0; i < dgm_py_count(vocab); i++) {
        const dgm_py *pair = dgm_py_item(vocab, i);
        if (dgm_py_is_text(dgm_py_item(pair, 0), name)) return dgm_py_item(pair, 1);
    }
    return dgm_py_get(vocab, name);
}

static dgm_status read_tokens(reading *in, int side, dgm_error *err)
{
    static const char *const names[2] = {"src", "tgt"};
    const dgm_py *list =
        find_list(find_side(dgm_py_get(dgm_torch_root(in->file), "vocab"), names[side]), 0);
    const size_t n = dgm_py_count(list);
    size_t room = 1;
    DGM_FAIL_IF(n < 4, err, DGM_ERR_FORMAT, "no list of tokens in \"vocab\" for \"%s\"",
                names[side]);
    for (size_t i = 0; i < n; i++) {
        const dgm_py *t = dgm_py_item(list, i);
        DGM_FAIL_IF(t->kind != DGM_PY_TEXT || memchr(t->as.text.data, 0, t->as.text.size), err,
                    DGM_ERR_FORMAT, "token %zu of \"%s\" is no text", i, names[side]);
        room += t->as.text.size + 1;
    }
    in->tokens[side] = dgm_calloc(n, sizeof(char *));
    in->texts[side] = dgm_malloc(room);
    if (!in->tokens[side] || !in->texts[side]) return dgm_no_memory(err);
    char *at = in->texts[side];
    for (size_t i = 0; i < n; i++) {
        const dgm_text t = dgm_py_item(list, i)->as.text;
        memcpy(at, t.data, t.size);
        at[t.size] = 0;
        in->tokens[side][i] = at;
        at += t.size + 1;
    }
    in->count[side] = (int)n;
    return DGM_OK;
}

static int find_token(const reading *in, int side, const char *token)
{
    for (int i = 0; i < in->count[side]; i++)
        if (strcmp(in->tokens[side][i], token) == 0) return i;
    return -1;
}

// Also of as many rows: rows of padding may stand behind one of them.
static bool same_lists(const reading *in)
{
    bool same = in->count[0] == in->count[1] && in->s.source_size == in->s.target_size;
    for (int i = 0; i < in->count[0] && same; i++)
        same = strcmp(in->tokens[0][i], in->tokens[1][i]) == 0;
    return same;
}

static dgm_status set_vocabularies(reading *in, const char *folder, dgm_error *err)
{
    dgm_token_vocab v = {.job = in->job, .folder = folder, .shared = same_lists(in)};
    const int start = find_token(in, 1, in->s.start), end = find_token(in, 1, "</s>");
    DGM_FAIL_IF(start < 0 || end < 0, err, DGM_ERR_FORMAT,
                "the target's vocabulary lacks '%s' or '</s>'", in->s.start);
    for (int side = 0; side < 2; side++) {
        const int size = side ? in->s.target_size : in->s.source_size;
        const int eos = find_token(in, side, "</s>"), pad = find_token(in, side, "<blank>"),
                  unk = find_token(in, side, "<unk>");
        DGM_FAIL_IF(in->count[side] > size, err, DGM_ERR_FORMAT,
                    "%d tokens, but the embedding has %d rows", in->count[side], size);
        DGM_FAIL_IF(unk < 0, err, DGM_ERR_FORMAT, "a vocabulary lacks '<unk>'");
        v.side[side] = (dgm_token_side){.tokens = in->tokens[side],
                                        .count = in->count[side],
                                        .size = size,
                                        // A source ends without: any id will do.
                                        .eos = eos >= 0   ? eos
                                               : pad >= 0 ? pad
                                                          : unk,
                                        .unk = unk,
                                        .pad = pad,
                                        .bos = find_token(in, side, "<s>")};
    }
    DGM_TRY(dgm_token_vocab_set(&v, err));
    dgm_gguf_writer *w = in->job->w;
    dgm_gguf_set_bool(w, "dragoman.source.append_eos", false);
    dgm_gguf_set_i32(w, "dragoman.target.start", start);
    return DGM_OK;
}

// ---- weights -----------------------------------------------------------------------------------

// A layer of which the bias may be missing. rows 0: a norm.
static dgm_status add(reading *in, const char *to, const char *from, int rows, int cols,
                      dgm_error *err)
{
    char ours[NAME], theirs[NAME];
    snprintf(ours, sizeof ours, "%s.weight", to);
    snprintf(theirs, sizeof theirs, "%s.weight", from);
    DGM_TRY(dgm_checkpoint_add(&in->weights, ours, theirs, rows, cols, err));
    snprintf(ours, sizeof ours, "%s.bias", to);
    snprintf(theirs, sizeof theirs, "%s.bias", from);
    if (!dgm_checkpoint_has(&in->weights, theirs)) return DGM_OK;
    return dgm_checkpoint_add(&in->weights, ours, theirs, 0, rows ? rows : cols, err);
}

static dgm_status add_attention(reading *in, const char *to, const char *from, dgm_error *err)
{
    static const char *const parts[4][2] = {
        {"q", "linear_query"}, {"k", "linear_keys"}, {"v", "linear_values"}, {"o", "final_linear"}};
    const int d = in->s.d_model;
    char ours[NAME], theirs[NAME];
    for (int i = 0; i < 4; i++) {
        snprintf(ours, sizeof ours, "%s.%s", to, parts[i][0]);
        snprintf(theirs, sizeof theirs, "%s.%s", from, parts[i][1]);
        DGM_TRY(add(in, ours, theirs, d, d, err));
    }
    return DGM_OK;
}

static dgm_status add_layer(reading *in, int side, int layer, dgm_error *err)
{
    const int d = in->s.d_model, f = in->s.ffn;
    char to[32], from[48], a[80], b[112];
    snprintf(to, sizeof to, "%s.%d", side ? "dec" : "enc", layer);
    snprintf(from, sizeof from, side ? "decoder.transformer_layers.%d" : "encoder.transformer.%d",
             layer);
    const struct {
        const char *to, *from;
        int rows, cols;
    } rows[] = {
        {"self.norm", side ? "layer_norm_1" : "layer_norm", 0, d},
        {"ffn.norm", "feed_forward.layer_norm", 0, d},
        {"ffn.in", "feed_forward.w_1", f, d},
        {"ffn.out", "feed_forward.w_2", d, f},
        {"cross.norm", "layer_norm_2", 0, d},
        {"ffn.factor", "feed_forward.w_3", f, d},
    };
    for (int i = 0; i < 6; i++) {
        if ((i == 4 && !side) || (i == 5 && !in->s.gated)) continue;
        snprintf(a, sizeof a, "%s.%s", to, rows[i].to);
        snprintf(b, sizeof b, "%s.%s", from, rows[i].from);
        DGM_TRY(add(in, a, b, rows[i].rows, rows[i].cols, err));
    }
    for (int i = 0; i < 1 + side; i++) {
        snprintf(a, sizeof a, "%s.%s", to, i ? "cross" : "self");
        snprintf(b, sizeof b, "%s.%s", from, i ? "context_attn" : "self_attn");
        DGM_TRY(add_attention(in, a, b, err));
    }
    snprintf(b, sizeof b, "%s.mask", from); // of version 0
    dgm_checkpoint_take(&in->weights, b);
    return DGM_OK;
}

// The stored table of one side, whatever made it; both sides have the same.
static dgm_status add_positions(reading *in, dgm_error *err)
{
    static const char *const names[] = {
        "encoder.embeddings.make_embedding.pe.pe", "encoder.embeddings.pe.pe",
        "decoder.embeddings.make_embedding.pe.pe", "decoder.embeddings.pe.pe"};
    dgm_checkpoint *w = &in->weights;
    dgm_gguf_set_string(in->job->w, "dragoman.transformer.positions",
                        in->s.positions ? "learned" : "none");
    const dgm_stored *table = NULL;
    for (int i = 3; i >= 0; i--)
        if (dgm_checkpoint_take(w, names[i]))
            table = dgm_store_get(w->tensors, (size_t)dgm_store_find(w->tensors, names[i]));
    if (!in->s.positions) return DGM_OK;
    DGM_FAIL_IF(!table, err, DGM_ERR_FORMAT, "tensor '%s' is missing", names[0]);
    DGM_FAIL_IF(!dgm_stored_is_real(table->type) || table->cols != in->s.d_model || table->rows < 4,
                err, DGM_ERR_FORMAT, "tensor '%s' is no table of positions", table->name);
    dgm_view v = dgm_view_whole(w->tensors, table);
    if (v.rows > POSITIONS) v = dgm_view_rows(v, 0, POSITIONS);
    const int storage = in->job->storage;
    in->job->storage = DGM_TYPE_F32;
    const dgm_status st = dgm_checkpoint_view(w, "enc.pos", v, false, err);
    in->job->storage = storage;
    return st;
}

static dgm_status add_weights(reading *in, dgm_error *err)
{
    const dgm_onmt_settings *s = &in->s;
    const bool numbered = dgm_checkpoint_has(&in->weights, "generator.0.weight");
    DGM_TRY(dgm_checkpoint_add(&in->weights, "src.embed", DGM_ONMT_EMBEDDING("encoder"),
                               s->source_size, s->d_model, err));
    DGM_TRY(dgm_checkpoint_add(&in->weights, "tgt.embed", DGM_ONMT_EMBEDDING("decoder"),
                               s->target_size, s->d_model, err));
    DGM_TRY(
        add(in, "out", numbered ? "generator.0" : "generator", s->target_size, s->d_model, err));
    DGM_TRY(add_positions(in, err));
    for (int i = 0; i < s->encoder_layers; i++) DGM_TRY(add_layer(in, 0, i, err));
    for (int i = 0; i < s->decoder_layers; i++) DGM_TRY(add_layer(in, 1, i, err));
    DGM_TRY(add(in, "enc.norm", "encoder.layer_norm", 0, s->d_model, err));
    DGM_TRY(add(in, "dec.norm", "decoder.layer_norm", 0, s->d_model, err));
    return dgm_checkpoint_end(&in->weights, "a Transformer of OpenNMT-py", err);
}

// ---- keys --------------------------------------------------------------------------------------

static void set_keys(const reading *in)
{
    const dgm_onmt_settings *s = &in->s;
    dgm_gguf_writer *w = in->job->w;
    dgm_gguf_set_u32(w, "dragoman.transformer.d_model", (uint32_t)s->d_model);
    dgm_gguf_set_u32(w, "dragoman.transformer.heads", (uint32_t)s->heads);
    dgm_gguf_set_u32(w, "dragoman.transformer.ffn", (uint32_t)s->ffn);
    dgm_gguf_set_u32(w, "dragoman.transformer.encoder_layers", (uint32_t)s->encoder_layers);
    dgm_gguf_set_u32(w, "dragoman.transformer.decoder_layers", (uint32_t)s->decoder_layers);
    dgm_gguf_set_string(w, "dragoman.transformer.norm", "pre");
    dgm_gguf_set_f32(w, "dragoman.transformer.norm_eps", (float)s->eps);
    if (s->rms) dgm_gguf_set_string(w, "dragoman.transformer.norm_kind", "rms");
    if (s->gated) dgm_gguf_set_bool(w, "dragoman.transformer.gated", true);
    dgm_gguf_set_string(w, "dragoman.transformer.activation", s->activation);
    dgm_gguf_set_bool(w, "dragoman.transformer.scale_embedding", s->positions);
    // What onmt_translate does by itself: the best sum wins, found when no live hypothesis can still pass it.
    dgm_gguf_set_u32(w, "dragoman.decode.beam", 5);
    dgm_gguf_set_string(w, "dragoman.decode.finish", "margin");
    dgm_gguf_set_f32(w, "dragoman.decode.length_penalty", 0);
    dgm_gguf_set_u32(w, "dragoman.decode.max_length", LONGEST);
    dgm_gguf_set_u32(w, "dragoman.decode.max_source", POSITIONS);
    dgm_gguf_set_bool(w, "dragoman.decode.allow_unk", true);
}

// ---- the checkpoint ----------------------------------------------------------------------------

static dgm_status open_weights(reading *in, dgm_error *err)
{
    dgm_store *tensors = NULL;
    const dgm_py *root = dgm_torch_root(in->file), *model = dgm_py_get(root, "model"),
                 *generator = dgm_py_get(root, "generator");
    DGM_FAIL_IF(
        !model || !dgm_py_get(root, "opt") || !dgm_py_get(root, "vocab"), err, DGM_ERR_FORMAT,
        "'%s': no \"model\", \"opt\" and \"vocab\": not a checkpoint of OpenNMT-py", in->path);
    DGM_TRY(dgm_store_open(&tensors, (dgm_store_container){0}, err));
    dgm_status st = dgm_torch_tensors(in->file, model, "", tensors, err);
    if (st == DGM_OK && generator)
        st = dgm_torch_tensors(in->file, generator, "generator.", tensors, err);
    if (st == DGM_OK) {
        st = dgm_onmt_settings_read(&in->s, root, tensors, err);
        if (st == DGM_OK) st = read_tokens(in, 0, err);
        if (st == DGM_OK) st = read_tokens(in, 1, err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s'", in->path);
    }
    if (st == DGM_OK) return dgm_checkpoint_open(&in->weights, in->job, tensors, err);
    dgm_store_close(&tensors);
    return st;
}

static dgm_status read_all(reading *in, dgm_error *err)
{
    dgm_import_job *job = in->job;
    DGM_TRY(dgm_torch_find(job->dir, &in->folder, &in->path, err));
    DGM_TRY(dgm_torch_open(&in->file, in->path, err));
    DGM_TRY(open_weights(in, err));
    dgm_import_general(job, "transformer", NULL, NULL);
    dgm_status st = set_vocabularies(in, in->folder, err);
    if (st == DGM_ERR_FORMAT) dgm_error_prefix(err, "'%s'", in->path);
    if (st != DGM_OK) return st;
    set_keys(in);
    DGM_TRY(add_weights(in, err));
    return dgm_import_write(job, err);
}

dgm_status dgm_import_opennmt_py(dgm_import_job *job, dgm_error *err)
{
    reading in = {.job = job};
    const dgm_status st = read_all(&in, err);
    dgm_checkpoint_close(&in.weights);
    dgm_torch_close(&in.file);
    for (int side = 0; side < 2; side++) {
        dgm_free(in.tokens[side]);
        dgm_free(in.texts[side]);
    }
    dgm_free(in.folder);
    dgm_free(in.path);
    return st;
}
