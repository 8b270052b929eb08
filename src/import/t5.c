// SPDX-License-Identifier: MIT
// Imports T5, mT5, umT5 and MADLAD-400 folders of Hugging Face transformers. Called by huggingface.c, which
// looks at "model_type".
//
//     config.json, generation_config.json
//     model.safetensors, or shards with an index
//     spiece.model                                  SentencePiece, ids are its numbers
//     tokenizer.json                                where there is none: its Unigram model
//
// The model: pre-norm Transformer with RMS norms and without any bias, queries that are not scaled, heads of
// any width, relative positions in self-attention (one table a side, umT5 one a layer), embeddings that
// are not scaled, a feed-forward layer that may be gated. A scale of the decoder's output is stored in the last norm.
//
// Ids behind the SentencePiece model's (<extra_id_0> and rows of nobody) and the padding are never chosen.
//
// Directions. MADLAD-400 is told the target by a piece before the source, "<2de>": every piece of that form is a
// target language. Text "<2de> Good morning" becomes "▁", "<2de>", "▁Good", ..., so "▁" stands before the
// token where the SentencePiece model puts a space before text.
#include "import/t5.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/protobuf.h"
#include "import/bart.h"
#include "import/checkpoint.h"
#include "import/spm_list.h"
#include "import/spm_paths.h"
#include "import/tokenizer_json.h"

enum { NAME = 160, SHORTEST_CODE = 2, LONGEST_CODE = 3, LONGEST_PART = 4 };

static const char file_name[] = "spiece.model", other_name[] = "tokenizer.json";

// A vector, each of its numbers times a factor.
typedef struct scaled {
    dgm_view view;
    float factor;
} scaled;

typedef struct reading {
    dgm_import_job *job;
    dgm_t5_config t;
    json_t *config, *generation;
    json_t *tokens; // tokenizer.json, where the folder has no SentencePiece model; else NULL
    dgm_mapfile spm;
    dgm_spm_list pieces; // of either
    dgm_checkpoint weights;
    scaled last_norm;
} reading;

// ---- files --------------------------------------------------------------------------------------

// The pieces of tokenizer.json: model.vocab [[spelling, score], ...], numbered from 0.
static dgm_status list_tokens(reading *in, dgm_error *err)
{
    const json_t *vocab = json_object_get(json_object_get(in->tokens, "model"), "vocab");
    const size_t count = json_array_size(vocab);
    DGM_FAIL_IF(count == 0, err, DGM_ERR_UNSUPPORTED,
                "'%s/%s': a T5 model has a Unigram vocabulary, model.vocab is no list", in->job->dir,
                other_name);
    in->pieces.items = dgm_calloc(count, sizeof *in->pieces.items);
    if (!in->pieces.items) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_array_get(json_array_get(vocab, i), 0);
        DGM_FAIL_IF(!json_is_string(text), err, DGM_ERR_FORMAT,
                    "'%s/%s': entry %zu of model.vocab has no spelling", in->job->dir, other_name, i);
        in->pieces.items[i] = (dgm_spm_item){json_string_value(text), json_string_length(text),
                                             DGM_SPM_NORMAL};
        in->pieces.count = in->pieces.cap = i + 1;
    }
    return DGM_OK;
}

static dgm_status open_vocabulary(reading *in, dgm_error *err)
{
    const char *dir = in->job->dir;
    dgm_status st = DGM_OK;
    if (!dgm_file_exists_in(dir, file_name))
        st = dgm_checkpoint_json(dir, other_name, DGM_OPTIONAL, &in->tokens, err);
    if (st == DGM_OK && in->tokens) return list_tokens(in, err);
    if (st == DGM_OK) st = dgm_checkpoint_spm(in->job, file_name, &in->spm, err);
    if (st != DGM_OK) return st;
    st = dgm_spm_list_read(&in->pieces, in->spm.data, in->spm.size, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/%s'", dir, file_name);
    return st;
}

static dgm_status open_files(reading *in, dgm_error *err)
{
    const char *dir = in->job->dir;
    DGM_TRY(dgm_checkpoint_json(dir, "config.json", DGM_REQUIRED, &in->config, err));
    DGM_TRY(dgm_checkpoint_json(dir, "generation_config.json", DGM_OPTIONAL, &in->generation, err));
    dgm_status st = dgm_t5_config_read(&in->t, in->config, in->generation, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", dir);
        return st;
    }
    DGM_TRY(open_vocabulary(in, err));
    DGM_FAIL_IF(in->pieces.count > (size_t)in->t.c.vocab_size, err, DGM_ERR_FORMAT,
                "'%s': %s has %zu pieces, \"vocab_size\" is %d", dir,
                in->tokens ? other_name : file_name, in->pieces.count, in->t.c.vocab_size);
    return dgm_checkpoint_open_folder(&in->weights, in->job, err);
}

static void close_files(reading *in)
{
    json_decref(in->config);
    json_decref(in->generation);
    json_decref(in->tokens);
    dgm_spm_list_free(&in->pieces);
    dgm_mapfile_close(&in->spm);
    dgm_checkpoint_close(&in->weights);
}

// ---- vocabulary ---------------------------------------------------------------------------------

static int32_t find_piece(const reading *in, const char *text, size_t size)
{
    for (size_t i = 0; i < in->pieces.count; i++)
        if (in->pieces.items[i].size == size &&
            memcmp(in->pieces.items[i].piece, text, size) == 0)
            return (int32_t)i;
    return -1;
}

// Rows that no piece spells: never chosen, as the padding.
static dgm_status set_never(reading *in, dgm_error *err)
{
    const dgm_marian_config *c = &in->t.c;
    const size_t size = (size_t)c->vocab_size, rest = size - in->pieces.count;
    const char **spelling = dgm_calloc(rest + 1, sizeof *spelling);
    int32_t *never = dgm_malloc((rest + (size_t)c->never_count + 1) * sizeof *never);
    bool *seen = dgm_calloc(size, sizeof *seen);
    const bool room = spelling && never && seen;
    size_t count = 0;
    for (size_t i = 0; room && i < rest + (size_t)c->never_count + 1; i++) {
        const size_t id = i < rest ? in->pieces.count + i
                          : i == rest ? (size_t)c->pad
                                      : (size_t)c->never[i - rest - 1];
        if (i < rest) spelling[i] = "";
        if (!seen[id] && id != (size_t)c->eos) never[count++] = (int32_t)id;
        seen[id] = true;
    }
    if (room && rest && !in->tokens)
        dgm_gguf_set_strings(in->job->w, "dragoman.source.vocab.extra", spelling, rest);
    if (room && count)
        dgm_gguf_set_array(in->job->w, "dragoman.target.never", DGM_META_I32, never, count);
    dgm_free(spelling);
    dgm_free(never);
    dgm_free(seen);
    return room ? DGM_OK : dgm_no_memory(err);
}

// The keys of the SentencePiece model, or of what tokenizer.json has in its place.
static dgm_status set_pieces(reading *in, int *unk, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    const int size = in->t.c.vocab_size;
    if (in->tokens) {
        dgm_tokenizer_info info = {0};
        const dgm_status st =
            dgm_vocab_from_tokenizer_json(w, DGM_SOURCE, in->tokens, size, &info, err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s/%s'", in->job->dir, other_name);
        *unk = info.unk;
        return st;
    }
    for (size_t i = 0; i < in->pieces.count && *unk < 0; i++)
        if (in->pieces.items[i].kind == DGM_SPM_UNKNOWN) *unk = (int)i;
    dgm_gguf_set_string(w, "dragoman.source.vocab.kind", "sentencepiece");
    dgm_gguf_set_u32(w, "dragoman.source.vocab.size", (uint32_t)size);
    return dgm_spm_set(w, DGM_SOURCE, in->spm.data, in->spm.size, err);
}

static dgm_status set_vocabulary(reading *in, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    const dgm_marian_config *c = &in->t.c;
    int unk = -1;
    DGM_TRY(set_pieces(in, &unk, err));
    DGM_FAIL_IF(unk < 0, err, DGM_ERR_FORMAT, "'%s': the vocabulary has no unknown piece",
                in->job->dir);
    dgm_gguf_set_i32(w, "dragoman.source.eos", c->eos);
    dgm_gguf_set_i32(w, "dragoman.source.unk", unk);
    dgm_gguf_set_i32(w, "dragoman.source.pad", c->pad);
    dgm_gguf_set_i32(w, "dragoman.target.start", c->start);
    if (c->forced >= 0) {
        const int32_t forced = c->forced;
        dgm_gguf_set_array(w, "dragoman.target.prefix", DGM_META_I32, &forced, 1);
    }
    return set_never(in, err);
}

// ---- directions ---------------------------------------------------------------------------------

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "<2de>", "<2zh_Hant>" -> size of the code; 0: no language ("<2translate>").
static size_t code_size(const dgm_spm_item *p)
{
    if (p->size < 5 || memcmp(p->piece, "<2", 2) != 0 || p->piece[p->size - 1] != '>') return 0;
    const char *code = p->piece + 2;
    const size_t n = p->size - 3;
    size_t part = 0;
    bool first = true;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && is_letter(code[i])) {
            part++;
            continue;
        }
        if (i < n && code[i] != '_' && code[i] != '-') return 0;
        if (part < SHORTEST_CODE || part > (first ? LONGEST_CODE : LONGEST_PART)) return 0;
        first = false;
        part = 0;
    }
    return n;
}

// Does the SentencePiece model put a space before text? {3: {3: add_dummy_prefix}}, true unless it says.
static bool has_dummy_prefix(const dgm_mapfile *spm)
{
    bool yes = true;
    dgm_reader model = dgm_reader_over(spm->data, spm->size);
    for (dgm_proto_field f; dgm_proto_next(&model, &f);) {
        if (f.number != 3 || f.wire != DGM_WIRE_BYTES) continue;
        dgm_reader normaliser = dgm_reader_over(f.payload.data, f.payload.size);
        for (dgm_proto_field g; dgm_proto_next(&normaliser, &g);)
            if (g.number == 3 && g.wire == DGM_WIRE_VARINT) yes = g.value != 0;
    }
    return yes;
}

static dgm_status set_languages(reading *in, dgm_error *err)
{
    static const char space[] = "\xe2\x96\x81";
    dgm_target_languages l = {0};
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < in->pieces.count && st == DGM_OK; i++) {
        const size_t n = code_size(&in->pieces.items[i]);
        if (n) st = dgm_target_languages_add(&l, in->pieces.items[i].piece + 2, n, (int32_t)i, err);
    }
    if (st == DGM_OK && l.count) {
        const int32_t id = find_piece(in, space, strlen(space));
        if (id >= 0 && (in->tokens || has_dummy_prefix(&in->spm)))
            dgm_gguf_set_array(in->job->w, "dragoman.source.prefix", DGM_META_I32, &id, 1);
        st = dgm_target_languages_set(in->job, &l, NULL, true, err);
    }
    dgm_target_languages_free(&l);
    return st;
}

// A word of a task, of `size` bytes, as pieces: one, or one and its last letter. Returns how many; 0: there are none.
static size_t spell(const reading *in, const char *word, size_t size, int32_t ids[2])
{
    ids[0] = find_piece(in, word, size);
    if (ids[0] >= 0) return 1;
    ids[0] = find_piece(in, word, size - 1);
    ids[1] = find_piece(in, word + size - 1, 1);
    return ids[0] >= 0 && ids[1] >= 0 ? 2 : 0;
}

// A task, "translate English to German:", of words that the vocabulary has as a whole.
static dgm_status set_task(reading *in, const char *task, dgm_error *err)
{
    enum { MOST = 64, LONGEST = 100 };
    int32_t ids[MOST];
    size_t count = 0;
    for (const char *at = task + strspn(task, " "); *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        char word[LONGEST + 4];
        const int size = snprintf(word, sizeof word, "\xe2\x96\x81%.*s", (int)(n < LONGEST ? n : LONGEST), at);
        DGM_FAIL_IF(count + 2 > MOST, err, DGM_ERR_ARGUMENT,
                    "source prefix '%.60s' has more than %d words", task, MOST / 2);
        const size_t pieces = spell(in, word, (size_t)size, ids + count);
        DGM_FAIL_IF(pieces == 0, err, DGM_ERR_ARGUMENT,
                    "source prefix: '%.*s' is not in the vocabulary", (int)(n < LONGEST ? n : LONGEST), at);
        count += pieces;
        at += n;
    }
    if (count)
        dgm_gguf_set_array(in->job->w, "dragoman.source.prefix", DGM_META_I32, ids, count);
    return DGM_OK;
}

// ---- weights ------------------------------------------------------------------------------------

static void set_model(reading *in)
{
    const dgm_t5_config *t = &in->t;
    dgm_gguf_writer *w = in->job->w;
    dgm_bart_keys(w, &t->c);
    dgm_gguf_set_u32(w, "dragoman.transformer.head_width", (uint32_t)t->head_width);
    dgm_gguf_set_f32(w, "dragoman.transformer.query_scale", 1);
    dgm_gguf_set_string(w, "dragoman.transformer.norm_kind", "rms");
    dgm_gguf_set_f32(w, "dragoman.transformer.norm_eps", (float)t->eps);
    dgm_gguf_set_bool(w, "dragoman.transformer.gated", t->gated);
    dgm_gguf_set_string(w, "dragoman.transformer.positions", "relative");
    dgm_gguf_set_u32(w, "dragoman.transformer.relative_buckets", (uint32_t)t->buckets);
    dgm_gguf_set_u32(w, "dragoman.transformer.relative_distance", (uint32_t)t->distance);
}

// The places of a tensor: "enc.3" and "encoder.block.3.layer.".
typedef struct block {
    char ours[32], theirs[64];
} block;

static dgm_status add(reading *in, const block *b, const char *ours, const char *theirs, int rows,
                      int cols, dgm_error *err)
{
    char a[NAME], t[2 * NAME];
    snprintf(a, sizeof a, "%s.%s", b->ours, ours);
    snprintf(t, sizeof t, "%s%s", b->theirs, theirs);
    return dgm_checkpoint_add(&in->weights, a, t, rows, cols, err);
}

static dgm_status add_attention(reading *in, const block *b, bool cross, dgm_error *err)
{
    const int d = in->t.c.d_model, n = in->t.c.heads * in->t.head_width;
    const char *ours = cross ? "cross" : "self";
    const char *theirs = cross ? "1.EncDecAttention" : "0.SelfAttention";
    for (const char *p = "qkvo"; *p; p++) {
        char a[32], t[64];
        snprintf(a, sizeof a, "%s.%c.weight", ours, *p);
        snprintf(t, sizeof t, "%s.%c.weight", theirs, *p);
        DGM_TRY(add(in, b, a, t, *p == 'o' ? d : n, *p == 'o' ? n : d, err));
    }
    return cross ? add(in, b, "cross.norm.weight", "1.layer_norm.weight", 0, d, err)
                 : add(in, b, "self.norm.weight", "0.layer_norm.weight", 0, d, err);
}

// The bias of relative positions: every first layer has one, each of umT5 its own.
static dgm_status add_relative(reading *in, const block *b, bool first, dgm_error *err)
{
    static const char end[] = "0.SelfAttention.relative_attention_bias.weight";
    char name[NAME];
    snprintf(name, sizeof name, "%s%s", b->theirs, end);
    if (!first && !dgm_checkpoint_has(&in->weights, name)) return DGM_OK;
    const int storage = in->job->storage;
    in->job->storage = DGM_TYPE_F32; // few numbers, which are added to scores
    const dgm_status st = add(in, b, "self.rel", end, in->t.buckets, in->t.c.heads, err);
    in->job->storage = storage;
    return st;
}

static dgm_status add_layer(reading *in, bool decoder, int layer, dgm_error *err)
{
    const int d = in->t.c.d_model, f = in->t.c.encoder_ffn;
    const char place = decoder ? '2' : '1';
    block b;
    char name[NAME];
    snprintf(b.ours, sizeof b.ours, "%s.%d", decoder ? "dec" : "enc", layer);
    snprintf(b.theirs, sizeof b.theirs, "%s.block.%d.layer.", decoder ? "decoder" : "encoder", layer);
    DGM_TRY(add_attention(in, &b, false, err));
    DGM_TRY(add_relative(in, &b, layer == 0, err));
    if (decoder) {
        DGM_TRY(add_attention(in, &b, true, err));
        // Older checkpoints store a table here that no version ever used.
        snprintf(name, sizeof name, "%s1.EncDecAttention.relative_attention_bias.weight", b.theirs);
        dgm_checkpoint_take(&in->weights, name);
    }
    snprintf(name, sizeof name, "%c.DenseReluDense.wi%s.weight", place, in->t.gated ? "_0" : "");
    DGM_TRY(add(in, &b, "ffn.in.weight", name, f, d, err));
    snprintf(name, sizeof name, "%c.DenseReluDense.wi_1.weight", place);
    if (in->t.gated) DGM_TRY(add(in, &b, "ffn.factor.weight", name, f, d, err));
    snprintf(name, sizeof name, "%c.DenseReluDense.wo.weight", place);
    DGM_TRY(add(in, &b, "ffn.out.weight", name, d, f, err));
    snprintf(name, sizeof name, "%c.layer_norm.weight", place);
    return add(in, &b, "ffn.norm.weight", name, 0, d, err);
}

static dgm_status fetch_scaled(const void *source, int first, int rows, float *out, dgm_error *err)
{
    const scaled *s = source;
    DGM_TRY(dgm_view_read(&s->view, first, rows, out, err));
    for (int i = 0; i < rows * s->view.cols; i++) out[i] *= s->factor;
    return DGM_OK;
}

static dgm_status add_norms(reading *in, dgm_error *err)
{
    const int d = in->t.c.d_model;
    const dgm_stored *last;
    DGM_TRY(dgm_checkpoint_add(&in->weights, "enc.norm.weight", "encoder.final_layer_norm.weight", 0,
                               d, err));
    DGM_TRY(dgm_checkpoint_get(&in->weights, "decoder.final_layer_norm.weight", 0, d, &last, err));
    in->last_norm = (scaled){dgm_view_whole(in->weights.tensors, last),
                             in->t.scaled ? 1 / sqrtf((float)d) : 1};
    return dgm_import_vector(in->job, "dec.norm.weight", d, fetch_scaled, &in->last_norm, err);
}

static dgm_status add_weights(reading *in, dgm_error *err)
{
    const dgm_bart b = {.w = &in->weights,
                        .c = &in->t.c,
                        .prefix = "",
                        .shared = "shared.weight",
                        .head = "lm_head.weight"};
    in->t.c.tied_output = !dgm_checkpoint_has(&in->weights, b.head);
    DGM_TRY(dgm_bart_embeddings(&b, err));
    for (int i = 0; i < in->t.c.encoder_layers; i++) DGM_TRY(add_layer(in, false, i, err));
    for (int i = 0; i < in->t.c.decoder_layers; i++) DGM_TRY(add_layer(in, true, i, err));
    DGM_TRY(add_norms(in, err));
    return dgm_checkpoint_end(&in->weights, "a T5 model", err);
}

dgm_status dgm_import_t5(dgm_import_job *job, dgm_error *err)
{
    reading in = {.job = job};
    dgm_status st;
    DGM_TRY_GOTO(st, open_files(&in, err), done);
    dgm_import_general(job, "transformer", NULL, NULL);
    DGM_TRY_GOTO(st, set_vocabulary(&in, err), done);
    st = job->options.source_prefix ? set_task(&in, job->options.source_prefix, err)
                                    : set_languages(&in, err);
    if (st != DGM_OK) goto done;
    dgm_bart_decoding(job->w, &in.t.c);
    set_model(&in);
    DGM_TRY_GOTO(st, add_weights(&in, err), done);
    st = dgm_import_write(job, err);
done:
    close_files(&in);
    return st;
}
