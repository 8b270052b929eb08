// SPDX-License-Identifier: MIT
// What `generate` of Hugging Face transformers reads; see marian_config.h.
//
// Where a folder has generation_config.json, that file alone says how to search, and its ids of start, end and
// padding come before those of config.json. Ids that a model cannot have are refused in either file. An end
// symbol that differs between the two is refused, too: it would be put behind a source and never end a target.
//
// max_length. Theirs counts the start token and the forced end symbol, ours neither, so ours is 2
// less (1 less where no end is forced).
#include "import/marian_config.h"

#include <string.h>

static dgm_status get_id(const json_t *o, const char *key, int size, int *out, dgm_error *err)
{
    int64_t v = *out;
    DGM_TRY(dgm_json_int(o, key, 0, size - 1, &v, err));
    *out = (int)v;
    return DGM_OK;
}

// An id, or a list that holds one and the same id. -1 stays where there is none.
static dgm_status get_end(const json_t *o, const char *key, int size, int *out, dgm_error *err)
{
    const json_t *list = json_object_get(o, key);
    if (!json_is_array(list)) return get_id(o, key, size, out, err);
    DGM_FAIL_IF(json_array_size(list) == 0, err, DGM_ERR_FORMAT, "\"%s\" is a list without ids", key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        const int64_t v = json_is_integer(id) ? json_integer_value(id) : -1;
        DGM_FAIL_IF(v < 0 || v >= size, err, DGM_ERR_FORMAT,
                    "\"%s\" holds something else than ids from 0 to %d", key, size - 1);
        DGM_FAIL_IF(i && v != *out, err, DGM_ERR_UNSUPPORTED,
                    "\"%s\" holds %d and %d: one end symbol is supported", key, *out, (int)v);
        *out = (int)v;
    }
    return DGM_OK;
}

static dgm_status add_never(dgm_marian_config *c, const char *key, const json_t *id, dgm_error *err)
{
    DGM_FAIL_IF(!json_is_integer(id), err, DGM_ERR_FORMAT, "\"%s\" holds something else than ids", key);
    const int64_t v = json_integer_value(id);
    DGM_FAIL_IF(v < 0 || v >= c->decoder_vocab_size, err, DGM_ERR_FORMAT,
                "\"%s\" holds %lld, expected 0 to %d", key, (long long)v,
                c->decoder_vocab_size - 1);
    DGM_FAIL_IF(v == c->eos, err, DGM_ERR_FORMAT, "\"%s\" holds %d, the end symbol: no translation would end", key,
                (int)v);
    for (int i = 0; i < c->never_count; i++)
        if (c->never[i] == v) return DGM_OK;
    DGM_FAIL_IF(c->never_count == DGM_MARIAN_NEVER_MAX, err, DGM_ERR_FORMAT,
                "\"%s\": more than %d ids that are never chosen", key, DGM_MARIAN_NEVER_MAX);
    c->never[c->never_count++] = (int32_t)v;
    return DGM_OK;
}

// "bad_words_ids": [[id], [id], ...], where longer lists would be phrases; "suppress_tokens": [id, ...].
static dgm_status read_never(dgm_marian_config *c, const json_t *o, dgm_error *err)
{
    static const char *const keys[] = {"bad_words_ids", "suppress_tokens"};
    for (int k = 0; k < 2; k++) {
        if (!dgm_json_has(o, keys[k])) continue;
        const json_t *list = json_object_get(o, keys[k]);
        DGM_FAIL_IF(!json_is_array(list) || json_array_size(list) > DGM_MARIAN_NEVER_MAX, err,
                    DGM_ERR_FORMAT, "\"%s\" is not a list of at most %d %s", keys[k],
                    DGM_MARIAN_NEVER_MAX, k ? "ids" : "lists");
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *id = json_array_get(list, i);
            if (k == 0) {
                DGM_FAIL_IF(json_array_size(id) != 1 || !json_is_integer(json_array_get(id, 0)),
                            err, DGM_ERR_UNSUPPORTED,
                            "\"bad_words_ids\" holds something else than lists of one id");
                id = json_array_get(id, 0);
            }
            DGM_TRY(add_never(c, keys[k], id, err));
        }
    }
    return DGM_OK;
}

// What would change translations and has no counterpart here.
// "renormalize_logits" (OPUS-MT has it) is not among them: it only takes the ids that are never
// chosen out of the sum of the softmax, where a trained model gives them next to nothing.
static dgm_status refuse_generation(const json_t *o, dgm_error *err)
{
    static const struct {
        const char *key;
        double expected;
    } fixed[] = {
        {"repetition_penalty", 1},   {"encoder_repetition_penalty", 1},
        {"no_repeat_ngram_size", 0}, {"encoder_no_repeat_ngram_size", 0},
        {"min_length", 0},           {"num_beam_groups", 1},
        {"diversity_penalty", 0},    {"min_new_tokens", 0},
        {"guidance_scale", 1},
    };
    static const char *const lists[] = {"begin_suppress_tokens", "forced_decoder_ids", "sequence_bias",
                                        "force_words_ids", "constraints", "exponential_decay_length_penalty"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        double v = fixed[i].expected;
        DGM_TRY(dgm_json_real(o, fixed[i].key, -1e9, 1e9, &v, err));
        DGM_FAIL_IF(v < fixed[i].expected || v > fixed[i].expected, err, DGM_ERR_UNSUPPORTED,
                    "\"%s\": %g is not supported; remove it to import the model without",
                    fixed[i].key, v);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const json_t *v = json_object_get(o, lists[i]);
        const bool list = json_is_array(v) || json_is_object(v);
        DGM_FAIL_IF(v && !json_is_null(v) && (!list || json_array_size(v) + json_object_size(v) != 0), err,
                    DGM_ERR_UNSUPPORTED,
                    "\"%s\" is not supported; remove it to import the model without", lists[i]);
    }
    return DGM_OK;
}

// Ids: generation_config.json's, which config.json's must not contradict where that would break a model.
static dgm_status read_ids(dgm_marian_config *c, const json_t *o, dgm_error *err)
{
    const int size = c->decoder_vocab_size;
    int eos = -1, pad = c->pad, end = -1, bos = -1; // bos is of no use here, but may be nonsense as the others
    c->forced = -1;
    DGM_TRY(get_id(o, "bos_token_id", size, &bos, err));
    DGM_TRY(get_end(o, "eos_token_id", size, &eos, err));
    DGM_TRY(get_id(o, "pad_token_id", size, &pad, err));
    DGM_TRY(get_id(o, "decoder_start_token_id", size, &c->start, err));
    DGM_TRY(get_id(o, "forced_bos_token_id", size, &c->forced, err));
    DGM_TRY(get_end(o, "forced_eos_token_id", size, &end, err));
    DGM_FAIL_IF(eos >= 0 && eos != c->eos, err, DGM_ERR_FORMAT,
                "\"eos_token_id\" is %d in generation_config.json and %d in config.json", eos,
                c->eos);
    DGM_FAIL_IF(pad != c->pad, err, DGM_ERR_FORMAT,
                "\"pad_token_id\" is %d in generation_config.json and %d in config.json", pad,
                c->pad);
    DGM_FAIL_IF(end >= 0 && end != c->eos, err, DGM_ERR_UNSUPPORTED,
                "\"forced_eos_token_id\" %d is not \"eos_token_id\" %d", end, c->eos);
    return DGM_OK;
}

// The finishing policy that searches as `generate` does.
static dgm_status read_policy(dgm_marian_config *c, const json_t *o, bool forced_end, dgm_error *err)
{
    static const char *const names[3][2] = {{"huggingface-cut", "huggingface"},
                                            {"huggingface-early-cut", "huggingface-early"},
                                            {"huggingface-never-cut", "huggingface-never"}};
    const json_t *v = json_object_get(o, "early_stopping");
    const bool never = json_is_string(v) && strcmp(json_string_value(v), "never") == 0;
    bool early = false;
    DGM_FAIL_IF(v && !json_is_null(v) && !json_is_boolean(v) && !never, err, DGM_ERR_FORMAT,
                "\"early_stopping\" is none of true, false and \"never\"");
    DGM_TRY(dgm_json_bool(never ? NULL : o, "early_stopping", &early, err));
    c->finish = names[never ? 2 : early][forced_end];
    return DGM_OK;
}

dgm_status dgm_generation_read(dgm_marian_config *c, const json_t *config, const json_t *generation,
                               int lead, dgm_error *err)
{
    const json_t *o = generation ? generation : config;
    const bool forced_end = dgm_json_has(o, "forced_eos_token_id");
    int64_t length = c->max_positions, beam = 1, added = 0;
    c->length_penalty = 1;
    DGM_TRY(refuse_generation(o, err));
    DGM_TRY(read_ids(c, o, err));
    DGM_TRY(dgm_json_int(o, "num_beams", 1, 256, &beam, err));
    DGM_TRY(dgm_json_int(o, "max_length", 3, 1 << 30, &length, err));
    DGM_TRY(dgm_json_int(o, "max_new_tokens", 1, 1 << 30, &added, err));
    if (added > 0) length = added + 1; // behind the start token, and whatever max_length says
    DGM_TRY(dgm_json_real(o, "length_penalty", -10, 10, &c->length_penalty, err));
    DGM_TRY(read_policy(c, o, forced_end, err));
    if (length > c->max_positions) length = c->max_positions;
    c->beam = (int)beam;
    c->max_length = (int)length - lead - (forced_end ? 1 : 0);
    if (c->max_length < 1) c->max_length = 1;
    return read_never(c, o, err);
}
