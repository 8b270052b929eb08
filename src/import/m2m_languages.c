// SPDX-License-Identifier: MIT
// Languages of an M2M100, NLLB or mBART folder; see m2m.h.
//
// transformers keeps them in one of several places, depending on its version:
//   tokenizer_config.json  "added_tokens_decoder": {"256047": {"content": "eng_Latn"}, ...}   with ids
//   tokenizer_config.json  "extra_special_tokens" or "additional_special_tokens": [...]       in order
//   special_tokens_map.json "additional_special_tokens": [...]                                in order
//   M2M100 and mBART without any: the list that its tokeniser has built in.
// A language of M2M100 is "__de__", one of NLLB "deu_Latn": three letters, "_", a script, one of mBART "de_DE".
// Everything else in these lists ("<mask>") is something else.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "import/language_lists.h"
#include "import/m2m.h"

enum { MOST = 4096, LONGEST = 40 };

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "__de__" -> 2 and *at 2; "deu_Latn" -> 8, "de_DE" -> 5 and *at 0; 0: no language.
static size_t code_in(dgm_m2m_style style, const char *token, size_t *at)
{
    size_t n = strlen(token);
    *at = 0;
    if (n > LONGEST) return 0;
    if (style == DGM_STYLE_M2M100) {
        if (n < 6 || strncmp(token, "__", 2) != 0 || strcmp(token + n - 2, "__") != 0) return 0;
        *at = 2;
        return n - 4;
    }
    const size_t line = style == DGM_STYLE_NLLB ? 3 : 2;
    bool letters = n == (style == DGM_STYLE_NLLB ? 8 : 5) && token[line] == '_';
    for (size_t i = 0; letters && i < n; i++) letters = i == line || is_letter(token[i]);
    return letters ? n : 0;
}

// One token of a list. False: no memory, or too many.
static dgm_status add(dgm_m2m_languages *l, const dgm_m2m_names *names, const char *token,
                      int64_t id, dgm_error *err)
{
    size_t at, size = code_in(names->style, token, &at);
    if (size == 0) return DGM_OK;
    DGM_FAIL_IF(l->count >= MOST, err, DGM_ERR_FORMAT, "more than %d languages", MOST);
    DGM_FAIL_IF(id < 0 || id >= names->vocabulary, err, DGM_ERR_FORMAT,
                "language '%s' has id %lld, the vocabulary has %d", token, (long long)id,
                names->vocabulary);
    l->code[l->count] = dgm_strndup(token + at, size);
    l->owned[l->count] = dgm_strdup(token);
    l->token[l->count] = l->owned[l->count];
    l->id[l->count] = (int32_t)id;
    if (!l->code[l->count] || !l->owned[l->count++]) return dgm_no_memory(err);
    return DGM_OK;
}

// A token is a string or {"content": string}.
static const char *text_of(const json_t *v)
{
    if (json_is_object(v)) v = json_object_get(v, "content");
    return json_is_string(v) ? json_string_value(v) : "";
}

static dgm_status read_decoder(dgm_m2m_languages *l, const dgm_m2m_names *names, dgm_error *err)
{
    json_t *table = json_object_get(names->tokenizer, "added_tokens_decoder"), *value;
    const char *key;
    if (!json_is_object(table)) return DGM_OK;
    json_object_foreach(table, key, value)
    {
        int64_t id;
        if (dgm_number_i64(dgm_text_of(key), INT64_MIN, INT64_MAX, &id))
            DGM_TRY(add(l, names, text_of(value), id, err));
    }
    return DGM_OK;
}

static dgm_status read_list(dgm_m2m_languages *l, const dgm_m2m_names *names, const json_t *in,
                            const char *key, dgm_error *err)
{
    const json_t *list = json_object_get(in, key);
    int64_t id = names->first;
    if (l->count || !json_is_array(list)) return DGM_OK;
    for (size_t i = 0; i < json_array_size(list); i++) {
        size_t at;
        const char *token = text_of(json_array_get(list, i));
        if (code_in(names->style, token, &at)) DGM_TRY(add(l, names, token, id++, err));
    }
    return DGM_OK;
}

static dgm_status read_built_in(dgm_m2m_languages *l, const dgm_m2m_names *names, dgm_error *err)
{
    const char *which = "m2m100";
    const bool is_mbart = names->style == DGM_STYLE_MBART;
    DGM_TRY(dgm_json_string(names->tokenizer, "language_codes", &which, err));
    DGM_FAIL_IF(names->style == DGM_STYLE_NLLB || (!is_mbart && strcmp(which, "m2m100") != 0), err,
                DGM_ERR_UNSUPPORTED,
                "neither tokenizer_config.json nor special_tokens_map.json lists the languages");
    // Behind the languages comes <mask>.
    const bool fits = names->first + DGM_MBART50_LANGUAGES < names->vocabulary;
    const int count = !is_mbart ? DGM_M2M100_LANGUAGES : fits ? DGM_MBART50_LANGUAGES : DGM_MBART_LANGUAGES;
    for (int i = 0; i < count; i++) {
        char token[16];
        if (is_mbart)
            snprintf(token, sizeof token, "%s", dgm_mbart_languages[i]);
        else
            snprintf(token, sizeof token, "__%s__", dgm_m2m100_languages[i]);
        DGM_TRY(add(l, names, token, names->first + i, err));
    }
    return DGM_OK;
}

static dgm_status read_all(dgm_m2m_languages *l, const dgm_m2m_names *names, dgm_error *err)
{
    l->code = dgm_calloc(MOST, sizeof *l->code);
    l->owned = dgm_calloc(MOST, sizeof *l->owned);
    l->token = dgm_calloc(MOST, sizeof *l->token);
    l->id = dgm_calloc(MOST, sizeof *l->id);
    if (!l->code || !l->owned || !l->token || !l->id) return dgm_no_memory(err);
    DGM_TRY(read_decoder(l, names, err));
    DGM_TRY(read_list(l, names, names->tokenizer, "extra_special_tokens", err));
    DGM_TRY(read_list(l, names, names->tokenizer, "additional_special_tokens", err));
    DGM_TRY(read_list(l, names, names->special, "additional_special_tokens", err));
    return l->count ? DGM_OK : read_built_in(l, names, err);
}

dgm_status dgm_m2m_languages_read(dgm_m2m_languages *out, const dgm_m2m_names *names,
                                  dgm_error *err)
{
    memset(out, 0, sizeof *out);
    dgm_status st = read_all(out, names, err);
    if (st != DGM_OK) dgm_m2m_languages_free(out);
    return st;
}

void dgm_m2m_languages_free(dgm_m2m_languages *l)
{
    for (int i = 0; i < MOST && l->code && l->owned; i++) {
        dgm_free(l->code[i]);
        dgm_free(l->owned[i]);
    }
    dgm_free(l->code);
    dgm_free(l->owned);
    dgm_free(l->token);
    dgm_free(l->id);
    memset(l, 0, sizeof *l);
}
