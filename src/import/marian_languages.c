// SPDX-License-Identifier: MIT
// Directions of a MarianMT model to many languages (OPUS-MT en-mul, en-roa and the like).
//
// Such a model is told the target's language by a token before the source, ">>deu<<", an entry of
// vocab.json: every entry of that form is a language the model writes, in the order of ids. The
// source's language is the folder's (tokenizer_config.json), maybe a group such as "roa"; the
// model is not told it. Written as docs/internals/FORMAT.md, 2.1, has it: tags of the source = target.
// Called by import_huggingface.c.
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "format/languages.h"
#include "import/marian_config.h"

enum { MOST = 4096, LONGEST = 63 };

// ">>deu<<" -> 3; 0: no language.
static size_t code_size(const char *piece)
{
    size_t n = strlen(piece);
    if (n < 5 || n > LONGEST + 4 || strchr(piece, ' ')) return 0;
    return memcmp(piece, ">>", 2) == 0 && strcmp(piece + n - 2, "<<") == 0 ? n - 4 : 0;
}

// In the order of ids, by insertion: vocab.json has them in that order as a rule.
dgm_status dgm_target_languages_add(dgm_target_languages *t, const char *code, size_t size,
                                    int32_t id, dgm_error *err)
{
    if (!t->code) {
        t->code = dgm_calloc(MOST, sizeof *t->code);
        t->id = dgm_calloc(MOST, sizeof *t->id);
        if (!t->code || !t->id) return dgm_no_memory(err);
    }
    int at = t->count;
    DGM_FAIL_IF(t->count >= MOST, err, DGM_ERR_FORMAT, "more than %d target languages", MOST);
    char *copy = dgm_strndup(code, size);
    if (!copy) return dgm_no_memory(err);
    for (; at > 0 && t->id[at - 1] > id; at--) {
        t->id[at] = t->id[at - 1];
        t->code[at] = t->code[at - 1];
    }
    t->id[at] = id;
    t->code[at] = copy;
    t->count++;
    return DGM_OK;
}

void dgm_target_languages_free(dgm_target_languages *t)
{
    for (int i = 0; i < t->count; i++) dgm_free(t->code[i]);
    dgm_free(t->code);
    dgm_free(t->id);
    *t = (dgm_target_languages){0};
}

static dgm_status collect(dgm_target_languages *t, json_t *vocab, dgm_error *err)
{
    const char *piece;
    json_t *value;
    json_object_foreach(vocab, piece, value)
    {
        const size_t size = code_size(piece);
        const int32_t id = (int32_t)json_integer_value(value);
        if (size) DGM_TRY(dgm_target_languages_add(t, piece + 2, size, id, err));
    }
    return DGM_OK;
}

// --target of the import is the direction when none is asked for.
static dgm_status set_default(dgm_gguf_writer *w, const dgm_target_languages *t, const char *source,
                              const char *asked, dgm_error *err)
{
    int best = 0, found = -1;
    for (int i = 0; asked && i < t->count; i++) {
        int match = dgm_language_matches(asked, t->code[i]);
        if (match > best) best = match, found = i;
    }
    if (!asked) return DGM_OK;
    if (found < 0) {
        dgm_writer list = {0};
        for (int i = 0; i < t->count && i < 40; i++)
            dgm_write_format(&list, "%s%s", i ? ", " : "", t->code[i]);
        if (t->count > 40) dgm_write_format(&list, " and %d more", t->count - 40);
        dgm_status st = dgm_fail(err, DGM_ERR_ARGUMENT,
                                 "the model does not translate to '%.40s': it has %.*s", asked,
                                 (int)list.size, (const char *)list.data);
        dgm_writer_free(&list);
        return st;
    }
    dgm_writer pair = {0};
    dgm_write_format(&pair, "%s %s", source, t->code[found]);
    dgm_write_u8(&pair, 0);
    if (!pair.failed)
        dgm_gguf_set_string(w, "dragoman.languages.default", (const char *)pair.data);
    bool failed = pair.failed;
    dgm_writer_free(&pair);
    return failed ? dgm_no_memory(err) : DGM_OK;
}

// `first`, then those of the list that are another.
static dgm_status set_sources(dgm_import_job *job, const dgm_target_languages *t, const char *first,
                              dgm_error *err)
{
    const char **codes = dgm_malloc(((size_t)t->count + 1) * sizeof *codes);
    size_t n = 0;
    if (!codes) return dgm_no_memory(err);
    codes[n++] = first;
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->code[i], first) != 0) codes[n++] = t->code[i];
    dgm_gguf_set_strings(job->w, "dragoman.languages.source", codes, n);
    dgm_free(codes);
    return DGM_OK;
}

dgm_status dgm_target_languages_set(dgm_import_job *job, const dgm_target_languages *t,
                                    const char *source, bool both_ways, dgm_error *err)
{
    static const char *const tags[] = {"target"};
    const char *asked = job->options.source_language ? job->options.source_language : source;
    const char *code = dgm_import_language(asked && asked[0] ? asked : "mul");
    size_t n = (size_t)t->count;
    dgm_gguf_set_strings(job->w, "dragoman.languages.source", &code, 1);
    if (both_ways) DGM_TRY(set_sources(job, t, code, err));
    dgm_gguf_set_strings(job->w, "dragoman.languages.target", (const char *const *)t->code, n);
    dgm_gguf_set_array(job->w, "dragoman.languages.target_tokens", DGM_META_I32, t->id, n);
    dgm_gguf_set_strings(job->w, "dragoman.source.tags", tags, 1);
    return set_default(job->w, t, code, job->options.target_language, err);
}

dgm_status dgm_marian_languages(dgm_import_job *job, json_t *vocab, const char *source,
                                dgm_error *err)
{
    dgm_target_languages t = {0};
    dgm_status st = collect(&t, vocab, err);
    if (st == DGM_OK && t.count) st = dgm_target_languages_set(job, &t, source, false, err);
    dgm_target_languages_free(&t);
    return st;
}
