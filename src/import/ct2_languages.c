// SPDX-License-Identifier: MIT
// Languages of a CTranslate2 model (ct2.h) of many, by the tokens of its vocabulary:
//
//     __de__      M2M100        source and target are told, at the beginning of each side
//     deu_Latn    NLLB          the same
//     de_DE       mBART         the same; mBART-25, whose decoder has no start of its own, has the source's behind
//                               the end and begins with the target's: it is imported for one target
//     <2de>       T5, MADLAD    the source begins with the target's
//     >>deu<<     OPUS-MT       the same (marian_languages.c)
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/languages.h"
#include "import/ct2.h"
#include "import/marian_config.h"

enum { MOST = 4096, CODE = 40 };

typedef enum family { M2M, NLLB, MBART, T5, MARIAN, FAMILIES } family;

typedef struct code_text {
    char text[CODE];
} code_text;

typedef struct languages {
    family kind;
    code_text *code;   // [MOST]
    const char **list; // [MOST] the same as pointers
    int32_t *id;       // [MOST]
    int count;
} languages;

static bool has_case(const char *text, size_t n, int (*is)(int))
{
    for (size_t i = 0; i < n; i++)
        if (!is((unsigned char)text[i])) return false;
    return true;
}

// The code between two marks; 0: it is none.
static size_t between(const char *token, const char *begin, const char *end, const char **code)
{
    const size_t n = strlen(token), a = strlen(begin), b = strlen(end);
    if (n < a + b + 2 || n >= a + b + CODE || strncmp(token, begin, a) != 0 || strcmp(token + n - b, end) != 0)
        return 0;
    *code = token + a;
    for (size_t i = a; i < n - b; i++)
        if (!isalnum((unsigned char)token[i]) && token[i] != '_' && token[i] != '-') return 0;
    return isalpha((unsigned char)token[a]) ? n - a - b : 0;
}

// Size of the code that a token stands for, *code where it begins; 0: none of that family.
static size_t code_of(family kind, const char *token, const char **code)
{
    const size_t n = strlen(token);
    *code = token;
    switch (kind) {
    case M2M:
        return between(token, "__", "__", code);
    case NLLB:
        return n == 8 && token[3] == '_' && has_case(token, 3, islower) && isupper((unsigned char)token[4]) &&
                       has_case(token + 5, 3, islower)
                   ? n
                   : 0;
    case MBART:
        return n == 5 && token[2] == '_' && has_case(token, 2, islower) && has_case(token + 3, 2, isupper) ? n : 0;
    case T5:
        return between(token, "<2", ">", code);
    case MARIAN:
        return between(token, ">>", "<<", code);
    default:
        return 0;
    }
}

static dgm_status collect(languages *l, const dgm_ct2 *in, family kind, dgm_error *err)
{
    l->kind = kind;
    l->count = 0;
    for (size_t i = 0; i < json_array_size(in->tokens[0]); i++) {
        const char *token = json_string_value(json_array_get(in->tokens[0], i)), *code;
        const size_t n = code_of(kind, token, &code);
        if (n == 0 || n >= CODE) continue;
        DGM_FAIL_IF(l->count >= MOST, err, DGM_ERR_FORMAT, "'%s': more than %d languages", in->files->label, MOST);
        snprintf(l->code[l->count].text, CODE, "%.*s", (int)n, code);
        l->list[l->count] = l->code[l->count].text;
        l->id[l->count++] = (int32_t)i;
    }
    return DGM_OK;
}

// Place of the language that a name means; -1: none, or no name.
static int place_of(const languages *l, const char *name)
{
    int best = 0, found = -1;
    for (int i = 0; name && i < l->count; i++) {
        const int match = dgm_language_matches(name, l->list[i]);
        if (match > best) best = match, found = i;
    }
    return found;
}

// The one target that our own exporter kept; NULL: none.
static const char *kept_target(const dgm_ct2 *in)
{
    return json_string_value(json_object_get(dgm_ct2_kept(in), "target_language"));
}

static dgm_status set_one_target(const dgm_ct2 *in, const languages *l, dgm_error *err)
{
    const char *asked = in->job->options.target_language;
    const int found = place_of(l, asked ? asked : kept_target(in));
    DGM_FAIL_IF(found < 0, err, DGM_ERR_ARGUMENT,
                "'%s': its decoder begins with the target's language: --target must name one of its languages (%s, %s, "
                "...)",
                in->files->label, l->list[0], l->list[1]);
    dgm_gguf_set_strings(in->job->w, "dragoman.languages.target", &l->list[found], 1);
    dgm_gguf_set_i32(in->job->w, "dragoman.target.start", l->id[found]);
    dgm_gguf_set_bool(in->job->w, "dragoman.source.tags_last", true);
    return DGM_OK;
}

static dgm_status set_keys(dgm_ct2 *in, const languages *l, dgm_error *err)
{
    static const char *const source[] = {"source"}, *const target[] = {"target"};
    dgm_gguf_writer *w = in->job->w;
    const size_t n = (size_t)l->count;
    dgm_gguf_set_array(w, "dragoman.languages.target_tokens", DGM_META_I32, l->id, n);
    if (l->kind == T5) {
        const char *any = in->job->options.source_language ? in->job->options.source_language : "mul";
        dgm_gguf_set_strings(w, "dragoman.languages.source", &any, 1);
        dgm_gguf_set_strings(w, "dragoman.languages.target", l->list, n);
        dgm_gguf_set_strings(w, "dragoman.source.tags", target, 1);
        return DGM_OK;
    }
    dgm_gguf_set_strings(w, "dragoman.languages.source", l->list, n);
    dgm_gguf_set_array(w, "dragoman.languages.source_tokens", DGM_META_I32, l->id, n);
    dgm_gguf_set_strings(w, "dragoman.source.tags", source, 1);
    if (!in->start && !in->zero_start) {
        dgm_gguf_unset(w, "dragoman.languages.target_tokens");
        return set_one_target(in, l, err);
    }
    const int only = place_of(l, kept_target(in));
    dgm_gguf_set_strings(w, "dragoman.languages.target", l->list + (only < 0 ? 0 : only), only < 0 ? n : 1);
    if (only >= 0) dgm_gguf_set_array(w, "dragoman.languages.target_tokens", DGM_META_I32, l->id + only, 1);
    dgm_gguf_set_strings(w, "dragoman.target.tags", target, 1);
    in->lead = 1;
    return DGM_OK;
}

dgm_status dgm_ct2_set_languages(dgm_ct2 *in, bool *many, dgm_error *err)
{
    languages l = {.code = dgm_calloc(MOST, sizeof *l.code),
                   .list = dgm_calloc(MOST, sizeof *l.list),
                   .id = dgm_calloc(MOST, sizeof *l.id)};
    dgm_status st = l.code && l.list && l.id ? DGM_OK : dgm_no_memory(err);
    *many = false;
    for (int kind = 0; kind < FAMILIES && st == DGM_OK && !*many; kind++) {
        st = collect(&l, in, (family)kind, err);
        *many = st == DGM_OK && l.count >= 2;
    }
    if (st == DGM_OK && *many)
        st = l.kind == MARIAN ? dgm_marian_languages(in->job, in->ids[0], in->job->options.source_language, err)
                              : set_keys(in, &l, err);
    dgm_free(l.id);
    dgm_free(l.list);
    dgm_free(l.code);
    return st;
}
