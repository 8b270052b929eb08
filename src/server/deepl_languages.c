// SPDX-License-Identifier: MIT
// DeepL's API: languages by its codes, and how many characters a key has used.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/deepl_private.h"
#include "server/usage.h"

// Languages that have varieties as targets there. A model of "en" writes them all the same way.
static const struct variety {
    const char *base, *code, *name;
} varieties[] = {
    {"en", "EN-GB", "English (British)"},      {"en", "EN-US", "English (American)"},
    {"es", "ES", "Spanish"},                   {"es", "ES-419", "Spanish (Latin American)"},
    {"pt", "PT-BR", "Portuguese (Brazilian)"}, {"pt", "PT-PT", "Portuguese (European)"},
    {"zh", "ZH-HANS", "Chinese (simplified)"}, {"zh", "ZH-HANT", "Chinese (traditional)"},
};

enum { VARIETIES = sizeof varieties / sizeof varieties[0] };

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c == '_' ? '-' : c;
}

void dgm_deepl_base(const char *code, bool lower, char *out)
{
    size_t n = strcspn(code, "-_");
    if (n >= DGM_DEEPL_CODE) n = DGM_DEEPL_CODE - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = lower && code[i] >= 'A' && code[i] <= 'Z' ? (char)(code[i] - 'A' + 'a')
                 : lower                                   ? code[i]
                                                           : upper(code[i]);
    out[n] = 0;
}

bool dgm_deepl_pair(dgm_request *q, const dgm_pool_listing *listing, const dgm_pool_language **from,
                    const dgm_pool_language **to)
{
    const char *source = dgm_request_text(q, "source_lang", NULL, NULL);
    const char *target = dgm_deepl_needed(q, "target_lang");
    if (!target) return false;
    if (!listing || !listing->count) {
        dgm_answer_error(q, 503, "There is no model.");
        return false;
    }
    const bool given = source && source[0];
    *from = given ? dgm_pool_find(listing, source) : NULL;
    *to = dgm_pool_find(listing, target);
    if (given && (!*from || !(*from)->source))
        dgm_answer_error(q, 400, "Value for 'source_lang' not supported.");
    else if (!*to)
        dgm_answer_error(q, 400, "Value for 'target_lang' not supported.");
    else if (*from && *from != *to && !dgm_pool_offers(*from, (*to)->code))
        dgm_answer_error(q, 400, "Value for 'target_lang' not supported: no model translates from %s to %s.",
                         (*from)->code, (*to)->code);
    else
        return true;
    return false;
}

const dgm_pool_language *dgm_deepl_detect(const dgm_pool_listing *listing, const char *text, size_t size)
{
    dgm_pool_detected found[1];
    dgm_error err;
    size_t count = 0;
    const bool fine = dgm_pool_detect(listing, text, size, found, 1, &count, &err) == DGM_OK && count;
    const dgm_pool_language *l = dgm_pool_find(listing, fine ? found[0].code : listing->source);
    return l ? l : dgm_pool_find(listing, listing->source);
}

// ---- /v2/languages --------------------------------------------------------------------------------

static void put_language(dgm_json_out *j, const char *code, const char *name, bool target)
{
    dgm_out_object(j, NULL);
    dgm_out_string(j, "language", code);
    dgm_out_string(j, "name", name);
    if (target) dgm_out_bool(j, "supports_formality", false);
    dgm_out_end(j);
}

static void put_target(dgm_json_out *j, const dgm_pool_language *l)
{
    char code[DGM_DEEPL_CODE];
    bool any = false;
    for (size_t i = 0; i < VARIETIES; i++) {
        if (strcasecmp(l->code, varieties[i].base) != 0) continue;
        put_language(j, varieties[i].code, varieties[i].name, true);
        any = true;
    }
    if (any) return;
    snprintf(code, sizeof code, "%s", l->code);
    for (char *p = code; *p; p++) *p = upper(*p);
    put_language(j, code, l->name, true);
}

// Is its base that of one before it?
static bool is_repeated(const dgm_pool_listing *l, size_t at)
{
    char base[DGM_DEEPL_CODE], other[DGM_DEEPL_CODE];
    dgm_deepl_base(l->items[at].code, true, base);
    for (size_t i = 0; i < at; i++) {
        dgm_deepl_base(l->items[i].code, true, other);
        if (l->items[i].source && strcmp(base, other) == 0) return true;
    }
    return false;
}

static bool is_target(const dgm_pool_listing *l, const char *code)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].code, code) != 0 && dgm_pool_offers(&l->items[i], code)) return true;
    return false;
}

void dgm_deepl_languages(dgm_request *q)
{
    const char *type = dgm_request_text(q, "type", NULL, NULL);
    const bool target = type && strcmp(type, "target") == 0;
    char code[DGM_DEEPL_CODE];
    dgm_json_out j = {0};
    if (type && !target && strcmp(type, "source") != 0) {
        dgm_answer_error(q, 400, "Parameter 'type' is invalid. 'source' and 'target' are valid values.");
        return;
    }
    if (!dgm_deepl_check(q)) return;
    const dgm_pool_listing *l = dgm_pool_list(q->server);
    dgm_out_array(&j, NULL);
    for (size_t i = 0; l && i < l->count; i++) {
        if (target && is_target(l, l->items[i].code)) put_target(&j, &l->items[i]);
        if (target || !l->items[i].source || is_repeated(l, i)) continue;
        dgm_deepl_base(l->items[i].code, false, code);
        put_language(&j, code, l->items[i].name, false);
    }
    dgm_out_end(&j);
    dgm_pool_release(&l);
    dgm_answer_json(q, 200, &j);
}

void dgm_deepl_glossary_pairs(dgm_request *q)
{
    char source[DGM_DEEPL_CODE], target[DGM_DEEPL_CODE];
    dgm_json_out j = {0};
    const dgm_pool_listing *l = dgm_pool_list(q->server);
    dgm_out_object(&j, NULL);
    dgm_out_array(&j, "supported_languages");
    for (size_t i = 0; l && i < l->count; i++) {
        dgm_deepl_base(l->items[i].code, true, source);
        for (size_t k = 0; k < l->items[i].target_count; k++) {
            dgm_deepl_base(l->items[i].targets[k], true, target);
            if (strcmp(source, target) == 0) continue;
            dgm_out_object(&j, NULL);
            dgm_out_string(&j, "source_lang", source);
            dgm_out_string(&j, "target_lang", target);
            dgm_out_end(&j);
        }
    }
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_pool_release(&l);
    dgm_answer_json(q, 200, &j);
}

// ---- /v2/usage ------------------------------------------------------------------------------------

void dgm_deepl_usage(dgm_request *q)
{
    const int64_t without = 1000000000000; // what DeepL says where there is no limit
    const int64_t quota = q->key ? q->key->char_quota : -1;
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_integer(&j, "character_count", (int64_t)dgm_usage_count(q->server->usage, q->key ? q->key->key : ""));
    dgm_out_integer(&j, "character_limit", quota >= 0 ? quota : without);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}
