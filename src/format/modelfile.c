// SPDX-License-Identifier: MIT
// The shared keys of a model file, typed, range-checked and with their defaults; see modelfile.h
// and docs/internals/FORMAT.md, sections 2.1 to 2.3. A key's range is stated once, here.
#include "format/modelfile.h"

#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/number.h"
#include "format/foreign.h"

const char *const dgm_finish_names[] = {"margin", "shrink", "mask", "refill",
                                        "huggingface", "first", "huggingface-cut",
                                        "huggingface-early", "huggingface-early-cut",
                                        "huggingface-never", "huggingface-never-cut", "marian",
                                        "ctranslate2", NULL};
const char *const dgm_order_names[] = {"l2r", "r2l", "bidirectional", NULL};
const char *const dgm_vocab_kind_names[] = {"sentencepiece", "words", "bpe", NULL};
const char *const dgm_tokenizer_names[] = {"none", "moses", "sacremoses", "conservative", "aggressive", NULL};
const char *const dgm_moses_flag_names[] = {"aggressive", "escape", "punctuation", "unicode", NULL};
const char *const dgm_bpe_style_names[] = {"subword-nmt", "byte-level", "metaspace", "joiner", "spacer", NULL};
const char *const dgm_bpe_flag_names[] = {"end_apart",     "restricted",   "prefix_space", "whole_text",
                                          "byte_fallback", "fuse_unknown", "whole_words",  "space_always", NULL};
static const char *const side_names[] = {"source", "target"};

enum { FINISH_REFILL = 3 }; // in dgm_finish_names
#define LENGTH_MAX 65536 // longest source or output, in tokens
#define LAYERS_MAX 1024

// ---- is it a model? ---------------------------------------------------------------------------

dgm_status dgm_modelfile_check(const dgm_gguf *g, dgm_error *err)
{
    const char *family = NULL, *architecture = NULL;
    DGM_TRY(dgm_gguf_get_string(g, "general.architecture", DGM_REQUIRED, &family, err));
    DGM_FAIL_IF(strcmp(family, "dragoman") != 0, err, DGM_ERR_FORMAT,
                "not a Dragoman model (its architecture is '%.60s')", family);
    uint32_t version = 0;
    DGM_TRY(
        dgm_gguf_get_u32(g, "dragoman.format_version", DGM_REQUIRED, 1, UINT32_MAX, &version, err));
    DGM_FAIL_IF(version > DGM_FORMAT_VERSION, err, DGM_ERR_VERSION,
                "model is newer than this program (format %u, this program reads %d)", version,
                DGM_FORMAT_VERSION);
    return dgm_gguf_get_string(g, "dragoman.architecture", DGM_REQUIRED, &architecture, err);
}

dgm_status dgm_modelfile_open(dgm_gguf **g, const char *path, dgm_error *err)
{
    dgm_status st = dgm_gguf_open(g, path, err);
    if (st != DGM_OK) {
        if (st != DGM_ERR_MEMORY) dgm_foreign_explain(path, err);
        return st;
    }
    st = dgm_modelfile_check(*g, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", path);
        dgm_gguf_close(g);
    }
    return st;
}

const char *dgm_modelfile_architecture(const dgm_gguf *g)
{
    const char *name = "";
    dgm_gguf_get_string(g, "dragoman.architecture", DGM_OPTIONAL, &name, NULL);
    return name;
}

// ---- vocabulary -------------------------------------------------------------------------------

dgm_key_name dgm_side_key(dgm_side side, const char *rest)
{
    dgm_key_name k;
    snprintf(k.text, sizeof k.text, "dragoman.%s.%s", side_names[side], rest);
    return k;
}

// Does the file say anything of its own about this side's vocabulary?
static bool has_vocab(const dgm_gguf *g, dgm_side side)
{
    return dgm_gguf_find(g, dgm_side_key(side, "vocab.kind").text) != NULL ||
           dgm_gguf_find(g, dgm_side_key(side, "vocab.size").text) != NULL;
}

static dgm_status read_id(const dgm_gguf *g, dgm_side side, const char *rest, dgm_need need,
                          int size, int *out, dgm_error *err)
{
    int32_t id = -1;
    DGM_TRY(dgm_gguf_get_i32(g, dgm_side_key(side, rest).text, need, need == DGM_REQUIRED ? 0 : -1,
                             size - 1, &id, err));
    if (dgm_gguf_find(g, dgm_side_key(side, rest).text)) *out = id;
    return DGM_OK;
}

static dgm_status read_pieces(const dgm_gguf *g, dgm_side side, dgm_vocab_spec *v, dgm_error *err)
{
    DGM_TRY(dgm_gguf_get_bytes(g, dgm_side_key(side, "vocab.sentencepiece").text, DGM_REQUIRED,
                               &v->model, &v->model_size, err));
    DGM_TRY(dgm_gguf_get_i32s(g, dgm_side_key(side, "vocab.map").text, DGM_OPTIONAL, -1,
                              v->size - 1, &v->map, &v->map_count, err));
    dgm_key_name extra = dgm_side_key(side, "vocab.extra");
    DGM_TRY(dgm_gguf_get_strings(g, extra.text, DGM_OPTIONAL, &v->extra, err));
    DGM_FAIL_IF(v->extra.count > (uint64_t)v->size, err, DGM_ERR_FORMAT,
                "key '%s' has %llu elements for %d ids", extra.text,
                (unsigned long long)v->extra.count, v->size);
    return DGM_OK;
}

// A list of names out of a table, as bits.
static dgm_status read_flags(const dgm_gguf *g, dgm_key_name key, const char *const *names, unsigned *flags,
                             dgm_error *err)
{
    dgm_gguf_strings list = {0};
    DGM_TRY(dgm_gguf_get_strings(g, key.text, DGM_OPTIONAL, &list, err));
    for (dgm_gguf_text t; dgm_gguf_strings_next(&list, &t);) {
        unsigned i = 0;
        while (names[i] && (strlen(names[i]) != t.size || memcmp(names[i], t.data, t.size) != 0)) i++;
        DGM_FAIL_IF(!names[i], err, DGM_ERR_FORMAT, "key '%s' has the unknown value '%.*s'", key.text,
                    (int)(t.size < 60 ? t.size : 60), t.data);
        *flags |= 1u << i;
    }
    return DGM_OK;
}

static dgm_status read_words(const dgm_gguf *g, dgm_side side, dgm_vocab_spec *v, dgm_error *err)
{
    dgm_key_name words = dgm_side_key(side, "vocab.words");
    DGM_TRY(dgm_gguf_get_strings(g, words.text, DGM_REQUIRED, &v->words, err));
    DGM_FAIL_IF(v->words.count != (uint64_t)v->size, err, DGM_ERR_FORMAT,
                "key '%s' has %llu elements for %d ids", words.text,
                (unsigned long long)v->words.count, v->size);
    const dgm_key_name key = dgm_side_key(side, "vocab.tokenizer");
    int tokenizer = DGM_SPEC_TOKENIZER_NONE;
    DGM_TRY(dgm_gguf_get_enum(g, key.text, v->kind == DGM_SPEC_WORDS ? DGM_REQUIRED : DGM_OPTIONAL,
                              dgm_tokenizer_names, &tokenizer, err));
    DGM_FAIL_IF(v->kind == DGM_SPEC_BPE && tokenizer == DGM_SPEC_TOKENIZER_MOSES, err, DGM_ERR_FORMAT,
                "key '%s' is 'moses'; of a bpe vocabulary it is another", key.text);
    v->tokenizer = (dgm_spec_tokenizer)tokenizer;
    DGM_TRY(read_flags(g, dgm_side_key(side, "vocab.moses"), dgm_moses_flag_names, &v->moses, err));
    return dgm_gguf_get_string(g, dgm_side_key(side, "vocab.language").text, DGM_OPTIONAL,
                               &v->language, err);
}

static dgm_status read_bpe(const dgm_gguf *g, dgm_side side, dgm_vocab_spec *v, dgm_error *err)
{
    dgm_bpe_spec *b = &v->bpe;
    int style = 0;
    DGM_TRY(read_words(g, side, v, err));
    DGM_TRY(dgm_gguf_get_enum(g, dgm_side_key(side, "vocab.bpe.style").text, DGM_REQUIRED, dgm_bpe_style_names,
                              &style, err));
    b->style = (dgm_spec_bpe_style)style;
    b->separator = "";
    DGM_TRY(read_flags(g, dgm_side_key(side, "vocab.bpe.flags"), dgm_bpe_flag_names, &b->flags, err));
    DGM_TRY(dgm_gguf_get_strings(g, dgm_side_key(side, "vocab.bpe.merges").text, DGM_OPTIONAL, &b->merges, err));
    DGM_TRY(dgm_gguf_get_strings(g, dgm_side_key(side, "vocab.bpe.protect").text, DGM_OPTIONAL, &b->protect, err));
    DGM_TRY(dgm_gguf_get_string(g, dgm_side_key(side, "vocab.bpe.separator").text, DGM_OPTIONAL, &b->separator,
                                err));
    DGM_TRY(dgm_gguf_get_strings(g, dgm_side_key(side, "vocab.normalizer").text, DGM_OPTIONAL, &b->normalizer,
                                 err));
    DGM_TRY(dgm_gguf_get_bytes(g, dgm_side_key(side, "vocab.charsmap").text, DGM_OPTIONAL, &b->charsmap,
                               &b->charsmap_size, err));
    return dgm_gguf_get_i32s(g, dgm_side_key(side, "vocab.control").text, DGM_OPTIONAL, 0, v->size - 1,
                             &b->control, &b->control_count, err);
}

// What a side may say whether or not it shares the other side's vocabulary.
static dgm_status read_ids(const dgm_gguf *g, dgm_side side, dgm_need need, dgm_vocab_spec *v,
                           dgm_error *err)
{
    DGM_TRY(read_id(g, side, "eos", need, v->size, &v->eos, err));
    DGM_TRY(read_id(g, side, "unk", need, v->size, &v->unk, err));
    DGM_TRY(read_id(g, side, "pad", DGM_OPTIONAL, v->size, &v->pad, err));
    DGM_TRY(read_id(g, side, "bos", DGM_OPTIONAL, v->size, &v->bos, err));
    DGM_TRY(dgm_gguf_get_i32s(g, dgm_side_key(side, "vocab.frequent").text, DGM_OPTIONAL, 0,
                              v->size - 1, &v->frequent, &v->frequent_count, err));
    return dgm_gguf_get_bool(g, "dragoman.decode.drop_unk", DGM_OPTIONAL, &v->drop_unk, err);
}

static dgm_status read_vocab(const dgm_gguf *g, dgm_side side, dgm_vocab_spec *v, dgm_error *err)
{
    int kind = 0;
    DGM_TRY(dgm_gguf_get_enum(g, dgm_side_key(side, "vocab.kind").text, DGM_REQUIRED, dgm_vocab_kind_names,
                              &kind, err));
    v->kind = (dgm_spec_kind)kind;
    uint32_t size = 0;
    DGM_TRY(dgm_gguf_get_u32(g, dgm_side_key(side, "vocab.size").text, DGM_REQUIRED, 2,
                             DGM_SPEC_VOCAB_MAX, &size, err));
    v->size = (int)size;
    DGM_TRY(v->kind == DGM_SPEC_BPE     ? read_bpe(g, side, v, err)
            : v->kind == DGM_SPEC_WORDS ? read_words(g, side, v, err)
                                        : read_pieces(g, side, v, err));
    return read_ids(g, side, DGM_REQUIRED, v, err);
}

dgm_status dgm_modelfile_vocab(const dgm_gguf *g, dgm_side side, dgm_vocab_spec *out,
                               dgm_error *err)
{
    memset(out, 0, sizeof *out);
    out->language = "";
    out->eos = out->unk = out->pad = out->bos = out->start = out->eod = out->mask = -1;
    out->append_eos = true;
    out->shared = side == DGM_TARGET && !has_vocab(g, side);
    DGM_TRY(read_vocab(g, out->shared ? DGM_SOURCE : side, out, err));
    if (out->shared) DGM_TRY(read_ids(g, DGM_TARGET, DGM_OPTIONAL, out, err));
    DGM_FAIL_IF(out->eos < 0 || out->unk < 0, err, DGM_ERR_FORMAT,
                "the %s vocabulary has no eos or no unk", side_names[side]);
    DGM_TRY(dgm_gguf_get_i32s(g, dgm_side_key(side, "prefix").text, DGM_OPTIONAL, 0, out->size - 1,
                              &out->prefix, &out->prefix_count, err));
    if (side == DGM_SOURCE) {
        static const char *const orders[] = {"l2r", "r2l", NULL};
        DGM_TRY(dgm_gguf_get_enum(g, "dragoman.source.order", DGM_OPTIONAL, orders, &out->order, err));
        return dgm_gguf_get_bool(g, "dragoman.source.append_eos", DGM_OPTIONAL, &out->append_eos, err);
    }
    DGM_TRY(read_id(g, side, "start", DGM_OPTIONAL, out->size, &out->start, err));
    DGM_TRY(read_id(g, side, "eod", DGM_OPTIONAL, out->size, &out->eod, err));
    DGM_TRY(read_id(g, side, "mask", DGM_OPTIONAL, out->size, &out->mask, err));
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.target.order", DGM_OPTIONAL, dgm_order_names,
                              &out->order, err));
    return dgm_gguf_get_i32s(g, "dragoman.target.never", DGM_OPTIONAL, 0, out->size - 1,
                             &out->never, &out->never_count, err);
}

int dgm_modelfile_end(const dgm_vocab_spec *target)
{
    if (target->eod >= 0) return target->eod;
    return target->mask >= 0 ? -1 : target->eos;
}

// ---- decoding defaults ------------------------------------------------------------------------

static dgm_status get_count(const dgm_gguf *g, const char *key, uint32_t max, int *out,
                            dgm_error *err)
{
    uint32_t v = (uint32_t)*out;
    DGM_TRY(dgm_gguf_get_u32(g, key, DGM_OPTIONAL, 1, max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

// How the policies are called that may carry a number.
static const char *const numbered[] = {"first", "ctranslate2", NULL};

// The text without its number; *k is that, 0: it has none.
static dgm_text finish_name(const char *text, int64_t *k)
{
    *k = 0;
    for (int i = 0; numbered[i]; i++) {
        dgm_text number = dgm_text_of(text);
        if (dgm_field_skip(&number, numbered[i]) && dgm_field_skip(&number, ":") &&
            dgm_number_i64(number, 1, DGM_FIRST_MAX, k))
            return dgm_text_of(numbered[i]);
    }
    return dgm_text_of(text);
}

bool dgm_finish_parse(const char *text, int *finish, int *first)
{
    int64_t k = 0;
    int found = 0;
    const dgm_text name = finish_name(text, &k);
    while (dgm_finish_names[found] && !dgm_text_equal(dgm_text_of(dgm_finish_names[found]), name)) found++;
    if (!dgm_finish_names[found]) return false;
    *finish = found;
    *first = (int)k;
    return true;
}

dgm_finish_text dgm_finish_write(int finish, int first)
{
    dgm_finish_text t;
    bool carries = false;
    for (int i = 0; numbered[i]; i++) carries |= first > 0 && strcmp(numbered[i], dgm_finish_names[finish]) == 0;
    if (carries)
        snprintf(t.text, sizeof t.text, "%s:%d", dgm_finish_names[finish], first);
    else
        snprintf(t.text, sizeof t.text, "%s", dgm_finish_names[finish]);
    return t;
}

static dgm_status read_finish(const dgm_gguf *g, dgm_decode_spec *d, dgm_error *err)
{
    static const char key[] = "dragoman.decode.finish";
    const char *text = NULL;
    DGM_TRY(dgm_gguf_get_string(g, key, DGM_OPTIONAL, &text, err));
    if (!text || dgm_finish_parse(text, &d->finish, &d->finish_first)) return DGM_OK;
    for (int i = 0; numbered[i]; i++) {
        dgm_text number = dgm_text_of(text);
        DGM_FAIL_IF(dgm_field_skip(&number, numbered[i]) && dgm_field_skip(&number, ":"), err, DGM_ERR_FORMAT,
                    "key '%s' is '%.60s', expected %s:1 to %s:%d", key, text, numbered[i], numbered[i], DGM_FIRST_MAX);
    }
    return dgm_gguf_get_enum(g, key, DGM_OPTIONAL, dgm_finish_names, &d->finish, err); // says which
}

dgm_status dgm_modelfile_decode(const dgm_gguf *g, dgm_decode_spec *out, dgm_error *err)
{
    const dgm_need opt = DGM_OPTIONAL;
    dgm_decode_spec d = {.beam = 4,
                         .finish = FINISH_REFILL,
                         .precision = -1,
                         .length_penalty = 1,
                         .max_length = 256,
                         .max_source = 256,
                         .align_layer = -1,
                         .align_head = -1};
    int32_t layer = -1, head = -1;
    DGM_TRY(get_count(g, "dragoman.decode.beam", 4096, &d.beam, err));
    DGM_TRY(get_count(g, "dragoman.decode.max_length", LENGTH_MAX, &d.max_length, err));
    DGM_TRY(get_count(g, "dragoman.decode.max_source", LENGTH_MAX, &d.max_source, err));
    DGM_TRY(read_finish(g, &d, err));
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.decode.precision", opt, dgm_precision_file_names,
                              &d.precision, err));
    DGM_TRY(dgm_gguf_get_f32(g, "dragoman.decode.length_penalty", opt, -10, 10, &d.length_penalty,
                             err));
    DGM_TRY(
        dgm_gguf_get_f32(g, "dragoman.decode.word_penalty", opt, -100, 100, &d.word_penalty, err));
    DGM_TRY(dgm_gguf_get_f32(g, "dragoman.decode.max_length_factor", opt, 0, 1000,
                             &d.max_length_factor, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.decode.allow_unk", opt, &d.allow_unk, err));
    DGM_TRY(dgm_gguf_get_i32(g, "dragoman.align.layer", opt, -LAYERS_MAX, LAYERS_MAX, &layer, err));
    DGM_TRY(dgm_gguf_get_i32(g, "dragoman.align.head", opt, -1, LAYERS_MAX, &head, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.softmax.self_normalised", opt, &d.self_normalised, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.decode.paragraphs", opt, &d.paragraphs, err));
    d.align_layer = layer;
    d.align_head = head;
    *out = d;
    return DGM_OK;
}
