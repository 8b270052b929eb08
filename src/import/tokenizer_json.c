// SPDX-License-Identifier: MIT
// Models of a tokenizer.json and its tokens; see tokenizer_json.h. (tokenizer_steps.c has what stands
// before and behind the model.)
#include "import/tokenizer_json.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "import/bpe_codes.h"
#include "import/spm_list.h"
#include "import/tokenizer_json_private.h"

// ---- tokens ---------------------------------------------------------------------------------

static dgm_status name_token(dgm_tokenizer_reading *r, json_int_t id, const char *token, dgm_error *err)
{
    DGM_FAIL_IF(id < 0 || id >= r->info.size, err, DGM_ERR_FORMAT, "token '%.40s' has no id from 0 to %d", token,
                r->info.size - 1);
    DGM_FAIL_IF(r->tokens[id] && strcmp(r->tokens[id], token) != 0, err, DGM_ERR_FORMAT,
                "tokens '%.40s' and '%.40s' have one id", r->tokens[id], token);
    r->tokens[id] = token;
    return DGM_OK;
}

// How many ids there are: one more than the largest. Those between without a token are kept as unused ones, but a file
// of a few bytes does not get memory for millions of them.
static dgm_status count_ids(const dgm_tokenizer_reading *r, int *count, dgm_error *err)
{
    enum { HOLES = 100000 };
    json_int_t largest = -1;
    const json_t *vocab = json_object_get(r->model, "vocab"), *added = json_object_get(r->json, "added_tokens");
    if (json_is_array(vocab)) largest = (json_int_t)json_array_size(vocab) - 1;
    const char *token;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)vocab, token, value)
        if (json_is_integer(value) && json_integer_value(value) > largest) largest = json_integer_value(value);
    json_array_foreach(added, i, value)
    {
        const json_t *id = json_object_get(value, "id");
        if (json_is_integer(id) && json_integer_value(id) > largest) largest = json_integer_value(id);
    }
    DGM_FAIL_IF(largest < 1 || largest >= DGM_SPEC_VOCAB_MAX, err, DGM_ERR_FORMAT,
                "model.vocab has no tokens, or ids above %d", DGM_SPEC_VOCAB_MAX - 1);
    const size_t tokens = json_array_size(vocab) + json_object_size(vocab) + json_array_size(added);
    DGM_FAIL_IF((size_t)largest > 2 * tokens + HOLES, err, DGM_ERR_FORMAT, "ids up to %d, but only %zu tokens",
                (int)largest, tokens);
    *count = (int)largest + 1;
    return DGM_OK;
}

static dgm_status read_added(dgm_tokenizer_reading *r, dgm_error *err)
{
    size_t i;
    json_t *token;
    json_array_foreach(json_object_get(r->json, "added_tokens"), i, token)
    {
        const char *content = json_string_value(json_object_get(token, "content"));
        const json_t *id = json_object_get(token, "id");
        DGM_FAIL_IF(!content || !content[0] || !json_is_integer(id), err, DGM_ERR_FORMAT,
                    "added_tokens: entry %zu has no content or no id", i);
        DGM_TRY(name_token(r, json_integer_value(id), content, err));
        const bool special = json_is_true(json_object_get(token, "special"));
        r->special[json_integer_value(id)] = special;
        r->added[json_integer_value(id)] = !special;
    }
    return DGM_OK;
}

static int find_special(const dgm_tokenizer_reading *r, const char *const *names)
{
    for (; *names; names++)
        for (int i = 0; i < r->info.size; i++)
            if (r->tokens[i] && strcmp(r->tokens[i], *names) == 0) return i;
    return -1;
}

static void find_ids(dgm_tokenizer_reading *r)
{
    static const char *const eos[] = {"</s>", "<|endoftext|>", "<eos>", "[SEP]", NULL};
    static const char *const unk[] = {"<unk>", "[UNK]", "<|endoftext|>", NULL};
    static const char *const pad[] = {"<pad>", "[PAD]", NULL};
    static const char *const bos[] = {"<s>", "<bos>", "[CLS]", NULL};
    r->info.eos = find_special(r, eos);
    r->info.pad = find_special(r, pad);
    r->info.bos = find_special(r, bos);
    r->info.unk = find_special(r, unk);
    const json_t *number = json_object_get(r->model, "unk_id");
    const char *name = json_string_value(json_object_get(r->model, "unk_token"));
    if (json_is_integer(number) && json_integer_value(number) >= 0 && json_integer_value(number) < r->info.size)
        r->info.unk = (int)json_integer_value(number);
    const char *const names[] = {name, NULL};
    if (name && find_special(r, names) >= 0) r->info.unk = find_special(r, names);
}

// ---- Unigram --------------------------------------------------------------------------------

static void write_varint(dgm_writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) dgm_write_u8(w, (uint8_t)((v & 0x7f) | 0x80));
    dgm_write_u8(w, (uint8_t)v);
}

static void write_number(dgm_writer *w, unsigned field, uint64_t v)
{
    write_varint(w, field << 3);
    write_varint(w, v);
}

static void write_field(dgm_writer *w, unsigned field, const void *data, size_t size)
{
    write_varint(w, field << 3 | 2);
    write_varint(w, size);
    dgm_write_bytes(w, data, size);
}

static int kind_of(const dgm_tokenizer_reading *r, int id, bool bytes)
{
    const char *t = r->tokens[id];
    if (id == r->info.unk) return DGM_SPM_UNKNOWN;
    if (!t) return DGM_SPM_UNUSED;
    if (r->special[id] || id == r->info.eos || id == r->info.pad || id == r->info.bos) return DGM_SPM_CONTROL;
    if (r->added[id]) return DGM_SPM_USER_DEFINED;
    const bool byte = strlen(t) == 6 && memcmp(t, "<0x", 3) == 0 && t[5] == '>';
    return bytes && byte ? DGM_SPM_BYTE : DGM_SPM_NORMAL;
}

static void write_piece(dgm_writer *model, const char *text, float score, int kind)
{
    dgm_writer piece = {0};
    write_field(&piece, 1, text, strlen(text));
    dgm_write_u8(&piece, 2 << 3 | 5);
    dgm_write_f32(&piece, score);
    if (kind != DGM_SPM_NORMAL) write_number(&piece, 3, (uint64_t)kind);
    write_field(model, 1, piece.data, piece.size);
    if (piece.failed) model->failed = true;
    dgm_writer_free(&piece);
}

static dgm_status write_model(dgm_tokenizer_reading *r, dgm_writer *model, dgm_error *err)
{
    const json_t *vocab = json_object_get(r->model, "vocab");
    const bool bytes = json_is_true(json_object_get(r->model, "byte_fallback"));
    bool spaces = false, charsmap = false;
    for (size_t i = 0; i < r->step_count; i++) {
        const bool known = strcmp(r->steps[i], "strip") == 0 || strcmp(r->steps[i], "charsmap") == 0;
        charsmap |= strcmp(r->steps[i], "charsmap") == 0;
        spaces |= strcmp(r->steps[i], "spaces") == 0 || strcmp(r->steps[i], "collapse") == 0;
        DGM_FAIL_IF(!known && !spaces, err, DGM_ERR_UNSUPPORTED,
                    "normalizer '%s' before a Unigram model is not supported", r->steps[i]);
    }
    for (int i = 0; i < r->info.size; i++) {
        char hole[32];
        snprintf(hole, sizeof hole, "<unused id %d>", i);
        const json_t *score = json_array_get(json_array_get(vocab, (size_t)i), 1);
        write_piece(model, r->tokens[i] ? r->tokens[i] : hole,
                    json_is_number(score) ? (float)json_number_value(score) : 0, kind_of(r, i, bytes));
    }
    dgm_writer trainer = {0}, normalizer = {0};
    write_number(&trainer, 3, 1); // unigram
    if (bytes) write_number(&trainer, 35, 1);
    write_number(&trainer, 40, (uint64_t)r->info.unk);
    const int ids[] = {r->info.bos, r->info.eos, r->info.pad};
    for (unsigned i = 0; i < 3; i++) write_number(&trainer, 41 + i, (uint64_t)(int64_t)ids[i]);
    const char *names[] = {r->tokens[r->info.unk], ids[0] < 0 ? NULL : r->tokens[ids[0]],
                           ids[1] < 0 ? NULL : r->tokens[ids[1]], ids[2] < 0 ? NULL : r->tokens[ids[2]]};
    for (unsigned i = 0; i < 4; i++)
        if (names[i]) write_field(&trainer, 45 + i, names[i], strlen(names[i]));
    if (charsmap) write_field(&normalizer, 2, r->charsmap.data, r->charsmap.size);
    write_number(&normalizer, 3, r->prefix_space);
    write_number(&normalizer, 4, spaces);
    write_number(&normalizer, 5, 1);
    write_field(model, 2, trainer.data, trainer.size);
    write_field(model, 3, normalizer.data, normalizer.size);
    const bool failed = trainer.failed || normalizer.failed || model->failed;
    dgm_writer_free(&trainer);
    dgm_writer_free(&normalizer);
    return failed ? dgm_no_memory(err) : DGM_OK;
}

static dgm_status set_unigram(dgm_tokenizer_reading *r, dgm_gguf_writer *w, dgm_side side, dgm_error *err)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(r->model, "vocab"), i, entry)
    {
        const char *piece = json_string_value(json_array_get(entry, 0));
        DGM_FAIL_IF(!piece || !piece[0] || !json_is_number(json_array_get(entry, 1)), err, DGM_ERR_FORMAT,
                    "model.vocab: entry %zu is no piece with its score", i);
        DGM_TRY(name_token(r, (json_int_t)i, piece, err));
    }
    DGM_TRY(read_added(r, err));
    find_ids(r);
    DGM_FAIL_IF(r->info.unk < 0 || !r->tokens[r->info.unk], err, DGM_ERR_UNSUPPORTED,
                "a Unigram model without unk_id is not supported");
    DGM_FAIL_IF(r->byte_level, err, DGM_ERR_UNSUPPORTED, "ByteLevel before a Unigram model is not supported");
    dgm_writer model = {0};
    const dgm_status st = write_model(r, &model, err);
    if (st == DGM_OK) {
        dgm_gguf_set_string(w, dgm_side_key(side, "vocab.kind").text, dgm_vocab_kind_names[DGM_SPEC_SENTENCEPIECE]);
        dgm_gguf_set_u32(w, dgm_side_key(side, "vocab.size").text, (uint32_t)r->info.size);
        dgm_gguf_set_array(w, dgm_side_key(side, "vocab.sentencepiece").text, DGM_META_U8, model.data, model.size);
        const struct {
            const char *key;
            int id;
        } ids[] = {{"eos", r->info.eos}, {"unk", r->info.unk}, {"pad", r->info.pad}, {"bos", r->info.bos}};
        for (size_t k = 0; k < sizeof ids / sizeof *ids; k++)
            if (ids[k].id >= 0) dgm_gguf_set_i32(w, dgm_side_key(side, ids[k].key).text, ids[k].id);
    }
    dgm_writer_free(&model);
    return st;
}

// ---- BPE ------------------------------------------------------------------------------------

// merges: "left right" or ["left", "right"].
static dgm_status read_merges(const dgm_tokenizer_reading *r, const char ***list, size_t *count, dgm_writer *text,
                              dgm_error *err)
{
    const json_t *merges = json_object_get(r->model, "merges");
    const size_t n = json_array_size(merges);
    size_t *at = dgm_calloc(n + 1, sizeof *at);
    *list = dgm_calloc(n + 1, sizeof **list);
    dgm_status st = at && *list ? DGM_OK : dgm_no_memory(err);
    for (size_t i = 0; st == DGM_OK && i < n; i++) {
        const json_t *m = json_array_get(merges, i);
        const char *left = json_string_value(json_array_get(m, 0)), *right = json_string_value(json_array_get(m, 1));
        const char *whole = json_string_value(m);
        const char *blank = whole ? strchr(whole, ' ') : NULL;
        const bool good = whole ? blank && blank > whole && blank[1] && !strchr(blank + 1, ' ')
                                : left && right && left[0] && right[0] && !strchr(left, ' ') && !strchr(right, ' ');
        if (!good) {
            st = dgm_fail(err, DGM_ERR_FORMAT, "model.merges: entry %zu is no pair of symbols without spaces", i);
            break;
        }
        at[i] = text->size;
        dgm_write_text(text, whole ? whole : left);
        if (!whole) {
            dgm_write_u8(text, ' ');
            dgm_write_text(text, right);
        }
        dgm_write_u8(text, 0);
        if (text->failed) st = dgm_no_memory(err);
    }
    for (size_t i = 0; st == DGM_OK && i < n; i++) (*list)[i] = (const char *)text->data + at[i];
    *count = n;
    dgm_free(at);
    return st;
}

static unsigned flags_of(const dgm_tokenizer_reading *r)
{
    unsigned flags = 0;
    if (r->prefix_space) flags |= DGM_SPEC_BPE_PREFIX_SPACE;
    if (r->space_always) flags |= DGM_SPEC_BPE_SPACE_ALWAYS;
    if (!r->byte_level && !(r->metaspace && r->split)) flags |= DGM_SPEC_BPE_WHOLE_TEXT;
    if (json_is_true(json_object_get(r->model, "byte_fallback"))) flags |= DGM_SPEC_BPE_BYTE_FALLBACK;
    if (json_is_true(json_object_get(r->model, "fuse_unk"))) flags |= DGM_SPEC_BPE_FUSE_UNKNOWN;
    if (json_is_true(json_object_get(r->model, "ignore_merges"))) flags |= DGM_SPEC_BPE_WHOLE_WORDS;
    return flags;
}

// The style, from what surrounds the model.
static dgm_status choose_style(const dgm_tokenizer_reading *r, dgm_bpe_keys *k, dgm_error *err)
{
    const char *prefix = NULL, *suffix = NULL;
    DGM_TRY(dgm_json_string(r->model, "continuing_subword_prefix", &prefix, err));
    DGM_TRY(dgm_json_string(r->model, "end_of_word_suffix", &suffix, err));
    DGM_FAIL_IF(prefix && prefix[0], err, DGM_ERR_UNSUPPORTED,
                "model: continuing_subword_prefix '%.20s' is not supported", prefix);
    if (suffix && suffix[0]) {
        DGM_FAIL_IF(strcmp(suffix, "</w>") != 0 || r->byte_level || r->metaspace || !r->collapse, err,
                    DGM_ERR_UNSUPPORTED,
                    "model: end_of_word_suffix '%.20s' is supported as </w> with WhitespaceSplit alone", suffix);
        k->style = DGM_SPEC_BPE_SUBWORD_NMT;
        k->flags = 0;
        return DGM_OK;
    }
    DGM_FAIL_IF(!r->byte_level && !r->metaspace && !r->marks_spaces, err, DGM_ERR_UNSUPPORTED,
                "pre_tokenizer: BPE needs ByteLevel or Metaspace, not '%.40s'",
                dgm_tokenizer_type(json_object_get(r->json, "pre_tokenizer")));
    k->style = r->byte_level ? DGM_SPEC_BPE_BYTE_LEVEL : DGM_SPEC_BPE_METASPACE;
    k->flags = flags_of(r);
    return DGM_OK;
}

static dgm_status read_bpe_tokens(dgm_tokenizer_reading *r, dgm_error *err)
{
    const char *token;
    json_t *id;
    json_object_foreach((json_t *)json_object_get(r->model, "vocab"), token, id)
    {
        DGM_FAIL_IF(!json_is_integer(id), err, DGM_ERR_FORMAT, "model.vocab: token '%.40s' has no number", token);
        DGM_TRY(name_token(r, json_integer_value(id), token, err));
    }
    DGM_TRY(read_added(r, err));
    find_ids(r);
    if (r->info.unk < 0) r->info.unk = r->info.eos >= 0 ? r->info.eos : 0; // byte-level: never used
    for (int i = 0; i < r->info.size; i++)
        if (!r->tokens[i]) r->tokens[i] = "";
    return DGM_OK;
}

static dgm_status set_bpe(dgm_tokenizer_reading *r, dgm_gguf_writer *w, dgm_side side, dgm_error *err)
{
    DGM_TRY(read_bpe_tokens(r, err));
    dgm_bpe_keys k = {.tokens = r->tokens, .size = r->info.size, .eos = r->info.eos, .unk = r->info.unk,
                      .pad = r->info.pad,  .bos = r->info.bos};
    DGM_TRY(choose_style(r, &k, err));
    const char **merges = NULL;
    dgm_writer text = {0};
    dgm_string_list respelled = {0};
    int32_t *control = dgm_calloc((size_t)r->info.size, sizeof *control);
    dgm_status st = control ? read_merges(r, &merges, &k.merge_count, &text, err) : dgm_no_memory(err);
    for (int i = 0; st == DGM_OK && i < r->info.size; i++)
        if (r->special[i] && i != r->info.unk) control[k.control_count++] = i;
    if (st == DGM_OK && k.style == DGM_SPEC_BPE_SUBWORD_NMT) {
        st = dgm_bpe_respell(&respelled, r->tokens, r->special, r->info.size, err);
        k.tokens = respelled.items;
    }
    k.merges = merges;
    k.control = control;
    k.normalizer = r->steps;
    k.normalizer_count = r->step_count;
    k.charsmap = r->charsmap.data;
    k.charsmap_size = r->charsmap.size;
    if (st == DGM_OK) dgm_bpe_keys_set(w, side, &k);
    dgm_free(merges);
    dgm_free(control);
    dgm_writer_free(&text);
    dgm_string_list_free(&respelled);
    return st;
}

// ---- the whole ------------------------------------------------------------------------------

static dgm_status read_all(dgm_tokenizer_reading *r, int size, dgm_gguf_writer *w, dgm_side side, dgm_error *err)
{
    r->model = json_object_get(r->json, "model");
    DGM_FAIL_IF(!json_is_object(r->model), err, DGM_ERR_FORMAT, "no object 'model'");
    const bool unigram = json_is_array(json_object_get(r->model, "vocab"));
    const char *type = dgm_tokenizer_type(r->model); // files of old versions have none
    const bool named = json_is_string(json_object_get(r->model, "type"));
    const bool bpe = named ? strcmp(type, "BPE") == 0 : json_is_array(json_object_get(r->model, "merges"));
    DGM_FAIL_IF(!bpe && !(named ? strcmp(type, "Unigram") == 0 : unigram), err, DGM_ERR_UNSUPPORTED,
                "model: type '%.40s' is not supported; Unigram and BPE are", type);
    DGM_FAIL_IF(bpe == unigram, err, DGM_ERR_FORMAT, "model.vocab is no list of a %s model", type);
    int count = 0;
    DGM_TRY(count_ids(r, &count, err));
    DGM_FAIL_IF(size && size < count, err, DGM_ERR_FORMAT, "%d tokens for a model of %d", count, size);
    r->info.size = size ? size : count;
    r->tokens = dgm_calloc((size_t)r->info.size, sizeof *r->tokens);
    r->special = dgm_calloc((size_t)r->info.size, sizeof *r->special);
    r->added = dgm_calloc((size_t)r->info.size, sizeof *r->added);
    if (!r->tokens || !r->special || !r->added) return dgm_no_memory(err);
    DGM_TRY(dgm_tokenizer_read_steps(r, err));
    DGM_TRY(dgm_tokenizer_read_around(r, err));
    return bpe ? set_bpe(r, w, side, err) : set_unigram(r, w, side, err);
}

dgm_status dgm_vocab_from_tokenizer_json(dgm_gguf_writer *w, dgm_side side, const json_t *json, int size,
                                         dgm_tokenizer_info *info, dgm_error *err)
{
    dgm_tokenizer_reading r = {.json = json};
    const dgm_status st = read_all(&r, size, w, side, err);
    if (st == DGM_OK && info) *info = r.info;
    dgm_free(r.tokens);
    dgm_free(r.special);
    dgm_free(r.added);
    dgm_writer_free(&r.charsmap);
    return st;
}
