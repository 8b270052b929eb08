// SPDX-License-Identifier: MIT
// Vocabularies of a model file: the format layer's description becomes the text layer's object.
//
// The two layers do not know each other's types; this file is the bridge. It also tells whether
// the members of an ensemble speak of the same tokens.
#include <string.h>

#include "base/mem.h"
#include "engine/engine_private.h"
#include "format/modelfile.h"

// Views of a string array; *out belongs to the caller.
static dgm_status collect(dgm_gguf_strings strings, dgm_text **out, size_t *count, dgm_error *err)
{
    *out = NULL;
    *count = 0;
    if (strings.count == 0) return DGM_OK;
    dgm_text *list = dgm_calloc((size_t)strings.count, sizeof *list);
    if (!list) return dgm_no_memory(err);
    size_t n = 0;
    for (dgm_gguf_text s; dgm_gguf_strings_next(&strings, &s);)
        list[n++] = (dgm_text){s.data, s.size};
    *out = list;
    *count = n;
    return DGM_OK;
}

// The lists of a bpe vocabulary, borrowed from the file.
typedef struct bpe_lists {
    dgm_bpe_options options;
    dgm_text *merges, *protect, *normalizer;
} bpe_lists;

static dgm_status collect_bpe(const dgm_bpe_spec *spec, bpe_lists *l, dgm_error *err)
{
    const unsigned flags = spec->flags;
    static const dgm_bpe_style styles[] = {[DGM_SPEC_BPE_SUBWORD_NMT] = DGM_BPE_SUBWORD_NMT,
                                           [DGM_SPEC_BPE_BYTE_LEVEL] = DGM_BPE_BYTE_LEVEL,
                                           [DGM_SPEC_BPE_METASPACE] = DGM_BPE_METASPACE,
                                           [DGM_SPEC_BPE_JOINER] = DGM_BPE_JOINER,
                                           [DGM_SPEC_BPE_SPACER] = DGM_BPE_SPACER};
    l->options = (dgm_bpe_options){
        .style = styles[spec->style],
        .separator = dgm_text_of(spec->separator),
        .charsmap = spec->charsmap,
        .charsmap_size = spec->charsmap_size,
        .end_apart = flags & DGM_SPEC_BPE_END_APART,
        .restricted = flags & DGM_SPEC_BPE_RESTRICTED,
        .prefix_space = flags & DGM_SPEC_BPE_PREFIX_SPACE,
        .space_always = flags & DGM_SPEC_BPE_SPACE_ALWAYS,
        .whole_text = flags & DGM_SPEC_BPE_WHOLE_TEXT,
        .byte_fallback = flags & DGM_SPEC_BPE_BYTE_FALLBACK,
        .fuse_unknown = flags & DGM_SPEC_BPE_FUSE_UNKNOWN,
        .whole_words = flags & DGM_SPEC_BPE_WHOLE_WORDS,
    };
    DGM_TRY(collect(spec->merges, &l->merges, &l->options.merge_count, err));
    DGM_TRY(collect(spec->protect, &l->protect, &l->options.protect_count, err));
    DGM_TRY(collect(spec->normalizer, &l->normalizer, &l->options.normalize_count, err));
    l->options.merges = l->merges;
    l->options.protect = l->protect;
    l->options.normalize = l->normalizer;
    return DGM_OK;
}

dgm_status dgm_vocabulary_load(const dgm_gguf *file, dgm_side side, dgm_vocab **vocab, bool *shared,
                               dgm_error *err)
{
    *vocab = NULL;
    dgm_vocab_spec spec = {0};
    DGM_TRY(dgm_modelfile_vocab(file, side, &spec, err));
    if (shared) {
        *shared = spec.shared;
        if (spec.shared) return DGM_OK;
    }
    dgm_text *words = NULL, *extra = NULL;
    static const dgm_vocab_kind kinds[] = {[DGM_SPEC_SENTENCEPIECE] = DGM_VOCAB_SENTENCEPIECE,
                                           [DGM_SPEC_WORDS] = DGM_VOCAB_WORDS,
                                           [DGM_SPEC_BPE] = DGM_VOCAB_BPE};
    static const dgm_vocab_tokenizer tokenizers[] = {
        [DGM_SPEC_TOKENIZER_NONE] = DGM_TOKENIZER_NONE,
        [DGM_SPEC_TOKENIZER_MOSES] = DGM_TOKENIZER_MOSES,
        [DGM_SPEC_TOKENIZER_SACREMOSES] = DGM_TOKENIZER_SACREMOSES,
        [DGM_SPEC_TOKENIZER_CONSERVATIVE] = DGM_TOKENIZER_CONSERVATIVE,
        [DGM_SPEC_TOKENIZER_AGGRESSIVE] = DGM_TOKENIZER_AGGRESSIVE};
    bpe_lists lists = {0};
    dgm_vocab_source v = {
        .kind = kinds[spec.kind],
        .size = spec.size,
        .spm = spec.model,
        .spm_size = spec.model_size,
        .map = spec.map,
        .map_count = spec.map_count,
        .tokenizer = tokenizers[spec.tokenizer],
        .language = dgm_text_of(spec.language),
        .moses_options = spec.moses,
        .bpe = &lists.options,
        .control = spec.bpe.control,
        .control_count = spec.bpe.control_count,
        .eos = spec.eos,
        .unk = spec.unk,
        .pad = spec.pad,
        .bos = spec.bos,
        .drop_unk = spec.drop_unk,
    };
    dgm_status st = collect(spec.words, &words, &v.word_count, err);
    if (st == DGM_OK) st = collect(spec.extra, &extra, &v.extra_count, err);
    if (st == DGM_OK && spec.kind == DGM_SPEC_BPE) st = collect_bpe(&spec.bpe, &lists, err);
    v.words = words;
    v.extra = extra;
    if (st == DGM_OK) st = dgm_vocab_open(vocab, &v, err);
    dgm_free(words);
    dgm_free(extra);
    dgm_free(lists.merges);
    dgm_free(lists.protect);
    dgm_free(lists.normalizer);
    if (st != DGM_OK && st != DGM_ERR_MEMORY)
        dgm_error_prefix(err, "%s vocabulary", side == DGM_SOURCE ? "source" : "target");
    return st;
}

dgm_status dgm_vocabulary_same(const dgm_vocab *a, const dgm_vocab *b, const char *what,
                               dgm_error *err)
{
    int32_t size = dgm_vocab_size(a);
    DGM_FAIL_IF(size != dgm_vocab_size(b), err, DGM_ERR_UNSUPPORTED,
                "its %s vocabulary has %d tokens, the first model's %d: the models of an ensemble "
                "must share their vocabularies",
                what, (int)dgm_vocab_size(b), (int)size);
    DGM_FAIL_IF(dgm_vocab_eos(a) != dgm_vocab_eos(b), err, DGM_ERR_UNSUPPORTED,
                "its %s end symbol is token %d, the first model's %d: the models of an ensemble "
                "must share their vocabularies",
                what, (int)dgm_vocab_eos(b), (int)dgm_vocab_eos(a));
    for (int32_t i = 0; i < size; i++)
        DGM_FAIL_IF(!dgm_text_equal(dgm_vocab_piece(a, i), dgm_vocab_piece(b, i)), err,
                    DGM_ERR_UNSUPPORTED,
                    "token %d of its %s vocabulary differs from the first model's: the models of "
                    "an ensemble must share their vocabularies",
                    (int)i, what);
    return DGM_OK;
}

// ---- lines of tokens --------------------------------------------------------------------------

dgm_status dgm_vocabulary_ids(const dgm_vocab *v, const char *const *tokens, size_t count, int32_t **array,
                              size_t *used, size_t *cap, dgm_error *err)
{
    DGM_TRY(dgm_grow(array, cap, *used + count, sizeof **array, err));
    for (size_t i = 0; i < count; i++) {
        DGM_FAIL_IF(!tokens[i], err, DGM_ERR_ARGUMENT, "token %zu is NULL", i + 1);
        const int32_t id = dgm_vocab_id(v, dgm_text_of(tokens[i]));
        (*array)[(*used)++] = id < 0 ? dgm_vocab_unk(v) : id;
    }
    return DGM_OK;
}

static dgm_status add_prefix_tokens(const dgm_translator *t, dgm_encoded *out, dgm_piece_state *piece,
                                    const dgm_input *input, dgm_error *err)
{
    const size_t lead = (size_t)dgm_model_describe(t->members[0].model)->target_prefix_count;
    const size_t count = input->prefix_tokens ? input->prefix_token_count : 0;
    piece->lead = lead > 0 && count >= lead;
    piece->lead_at = out->token_count;
    DGM_FAIL_IF(lead > 0 && !piece->lead && t->direction[1] < 0, err, DGM_ERR_ARGUMENT,
                "the prefix tokens must begin with the language to translate into: the translator has none");
    if (count)
        DGM_TRY(dgm_vocabulary_ids(t->target, input->prefix_tokens, count, &out->tokens, &out->token_count,
                                   &out->token_cap, err));
    piece->prefix_at = piece->lead_at + (piece->lead ? lead : 0);
    piece->prefix_count = (int)(out->token_count - piece->prefix_at);
    DGM_FAIL_IF(piece->prefix_count > t->config.max_length, err, DGM_ERR_TEXT,
                "the forced prefix has %d tokens, the maximum length is %d", piece->prefix_count, t->config.max_length);
    return DGM_OK;
}

dgm_status dgm_tokens_line(const dgm_translator *t, dgm_encoded *out, dgm_line_state *line, const dgm_input *input,
                           dgm_error *err)
{
    const size_t count = input->token_count;
    DGM_FAIL_IF(input->evidence || input->lattice || input->prefix, err, DGM_ERR_ARGUMENT,
                "a line that comes as tokens has no evidence, lattice or prefix in text");
    DGM_FAIL_IF(count > (size_t)t->config.max_source, err, DGM_ERR_TEXT,
                "the line has %zu tokens, the limit is %d", count, t->config.max_source);
    memcpy(line->direction, t->direction, sizeof line->direction);
    DGM_TRY(dgm_restrict_line(t, line->direction, false, &line->clusters, err));
    if (count == 0) return DGM_OK;
    DGM_TRY(dgm_grow(&line->pieces.items, &line->pieces.cap, 1, sizeof *line->pieces.items, err));
    DGM_TRY(dgm_grow(&out->pieces, &out->piece_cap, out->piece_count + 1, sizeof *out->pieces, err));
    dgm_piece_state *piece = &out->pieces[out->piece_count];
    *piece = (dgm_piece_state){.line = line, .ids_at = out->token_count, .spans_at = out->span_count,
                               .count = (int)count, .text_count = (int)count};
    DGM_TRY(dgm_vocabulary_ids(t->source, input->tokens, count, &out->tokens, &out->token_count, &out->token_cap, err));
    DGM_TRY(add_prefix_tokens(t, out, piece, input, err));
    // Spans that links of words and replaced words would look at: such a line has no text.
    DGM_TRY(dgm_grow(&out->spans, &out->span_cap, out->span_count + count, sizeof *out->spans, err));
    memset(out->spans + out->span_count, 0, count * sizeof *out->spans);
    out->span_count += count;
    line->pieces.items[0] = (dgm_piece){0, 0, DGM_CUT_END};
    line->pieces.count = 1;
    line->source_tokens = count;
    line->left = 1;
    out->piece_count++;
    return DGM_OK;
}
