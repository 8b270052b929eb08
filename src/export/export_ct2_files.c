// SPDX-License-Identifier: MIT
// Files of a CTranslate2 folder beside model.bin: config.json, vocabularies, SentencePiece models; see export.h.
//
// CTranslate2 leaves to its caller how to decode and which tokens stand before a sentence: a folder holds neither
// languages of one direction, nor beam and penalties, nor prefixes. They are kept in config.json under "dragoman",
// which CTranslate2 does not look at and import reads (import/ct2_kept.c), and the user is told what to pass.
#include <string.h>

#include "base/mem.h"
#include "export/export.h"
#include "format/languages.h"

typedef struct texts {
    const dgm_export_job *job;
    const dgm_export_model *m;
    char **spelled[2];
    dgm_languages l;
} texts;

static const char *spelling(const texts *x, int side, int id)
{
    return x->spelled[side][id];
}

static dgm_status write_vocabulary(const texts *x, const char *file, int side, dgm_error *err)
{
    json_t *list = json_array();
    for (int i = 0; list && i < x->m->sizes[side]; i++)
        if (json_array_append_new(list, json_string(spelling(x, side, i))) != 0) {
            json_decref(list);
            return dgm_export_spelling(spelling(x, side, i), i, err);
        }
    return dgm_export_json(x->job, file, list, err);
}

// ---- what is kept --------------------------------------------------------------------------------

static bool put(json_t *o, const char *key, json_t *value)
{
    return json_object_set_new(o, key, value) == 0; // value NULL: fails
}

static json_t *token_list(const texts *x, int side, const int32_t *ids, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++)
        if (json_array_append_new(list, json_string(spelling(x, side, ids[i]))) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

// The first source token may be <s>, for which CTranslate2 has a setting.
static bool begins_with_bos(const dgm_vocab_spec *s)
{
    return s->bos >= 0 && s->prefix_count && s->prefix[0] == s->bos;
}

// The decoder begins with the one language that it writes, where sources are told theirs (mBART).
static bool starts_with_language(const texts *x)
{
    const dgm_languages *l = &x->l;
    for (int i = 0; l->tags[0] && !l->tags[1] && l->count[1] == 1 && i < l->count[0]; i++)
        if (l->token[0] && l->token[0][i] == x->m->vocab[1].start) return true;
    return false;
}

static bool keep_languages(const texts *x, json_t *o)
{
    static const char *const keys[2] = {"source_language", "target_language"};
    bool fine = true;
    for (int side = 0; side < 2; side++)
        if (x->l.count[side] == 1) fine = fine && put(o, keys[side], json_string(x->l.code[side][0]));
    return fine && (!x->l.last || put(o, "tags_last", json_true()));
}

static bool keep_prefixes(const texts *x, json_t *o)
{
    const dgm_vocab_spec *s = &x->m->vocab[0], *t = &x->m->vocab[1];
    const size_t first = begins_with_bos(s);
    if (s->prefix_count > first &&
        !put(o, "source_prefix", token_list(x, 0, s->prefix + first, s->prefix_count - first)))
        return false;
    if (t->prefix_count && !put(o, "target_prefix", token_list(x, 1, t->prefix, t->prefix_count))) return false;
    return !t->never_count || put(o, "never", token_list(x, 1, t->never, t->never_count));
}

static json_t *kept_settings(const texts *x)
{
    const dgm_decode_spec *d = &x->m->decode;
    json_t *o = json_pack("{s:i,s:s,s:f,s:f,s:i,s:f,s:i,s:b,s:b}", "beam", d->beam, "finish",
                          dgm_finish_write(d->finish, d->finish_first).text, "length_penalty",
                          (double)d->length_penalty, "word_penalty", (double)d->word_penalty, "max_length",
                          d->max_length, "max_length_factor", (double)d->max_length_factor, "max_source",
                          d->max_source, "allow_unk", (int)d->allow_unk, "drop_unk", (int)x->m->vocab[1].drop_unk);
    if (o && keep_languages(x, o) && keep_prefixes(x, o)) return o;
    json_decref(o);
    return NULL;
}

// ---- what is told --------------------------------------------------------------------------------

static void tell_decoding(const texts *x)
{
    const dgm_decode_spec *d = &x->m->decode;
    const dgm_finish_text finish = dgm_finish_write(d->finish, d->finish_first);
    dgm_export_note(x->job, "CTranslate2 keeps no settings of decoding: pass beam_size=%d, length_penalty=%g, "
                    "max_decoding_length=%d (config.json keeps them for an import)", d->beam, (double)d->length_penalty,
                    d->max_length);
    if (strcmp(finish.text, "ctranslate2") != 0)
        dgm_export_note(x->job, "CTranslate2 ends a search in its own way, not as '%s'", finish.text);
    if (d->word_penalty != 0)
        dgm_export_note(x->job, "CTranslate2 has no word penalty; this model has %g", (double)d->word_penalty);
}

static void tell_tokens(const texts *x)
{
    const dgm_languages *l = &x->l;
    const dgm_vocab_spec *s = &x->m->vocab[0], *t = &x->m->vocab[1];
    for (size_t i = begins_with_bos(s); i < s->prefix_count; i++)
        dgm_export_note(x->job, "CTranslate2 puts no token before a source: give '%s' with every one",
                        spelling(x, 0, s->prefix[i]));
    for (size_t i = 0; i < t->prefix_count; i++)
        dgm_export_note(x->job, "CTranslate2 has no token before every target: pass '%s' in target_prefix",
                        spelling(x, 1, t->prefix[i]));
    if (l->tags[0] && l->token[l->tag[0][0]])
        dgm_export_note(x->job, "CTranslate2 is told languages by its caller: a token such as '%s' %s every source",
                        spelling(x, 0, l->token[l->tag[0][0]][0]), l->last ? "behind the end symbol of" : "before");
    if (l->tags[1] && l->token[l->tag[1][0]])
        dgm_export_note(x->job, "and one such as '%s' in target_prefix", spelling(x, 1, l->token[l->tag[1][0]][0]));
    else if (starts_with_language(x))
        dgm_export_note(x->job, "and '%s' in target_prefix", spelling(x, 1, t->start));
    if (t->never_count)
        dgm_export_note(x->job, "CTranslate2 keeps no tokens that are never chosen: pass those of this model (%zu, "
                        "such as '%s') in suppress_sequences", t->never_count, spelling(x, 1, t->never[0]));
}

// ---- files ---------------------------------------------------------------------------------------

static dgm_status write_config(const texts *x, dgm_error *err)
{
    const dgm_export_model *m = x->m;
    const dgm_vocab_spec *s = &m->vocab[0], *t = &m->vocab[1];
    DGM_FAIL_IF(strcmp(spelling(x, 0, s->eos), spelling(x, 1, t->eos)) != 0 ||
                    strcmp(spelling(x, 0, s->unk), spelling(x, 1, t->unk)) != 0,
                err, DGM_ERR_UNSUPPORTED, "source and target spell the end or the unknown word in two ways");
    json_t *c = json_pack("{s:b,s:b,s:s,s:s,s:f,s:b,s:s,s:o}", "add_source_bos", (int)begins_with_bos(s),
                          "add_source_eos", (int)s->append_eos, "bos_token",
                          spelling(x, 1, t->bos >= 0 ? t->bos : t->eos), "eos_token", spelling(x, 1, t->eos),
                          "layer_norm_epsilon", (double)m->eps, "multi_query_attention", 0, "unk_token",
                          spelling(x, 1, t->unk), "dragoman", kept_settings(x));
    const char *start = spelling(x, 1, t->start >= 0 ? t->start : t->eos);
    if (c && !put(c, "decoder_start_token", starts_with_language(x) ? json_null() : json_string(start))) {
        json_decref(c);
        return dgm_no_memory(err);
    }
    return dgm_export_json(x->job, "config.json", c, err);
}

static dgm_status write_files(const texts *x, dgm_error *err)
{
    static const char *const spm[2] = {"source.spm", "target.spm"};
    const dgm_export_model *m = x->m;
    DGM_TRY(write_config(x, err));
    if (m->vocab[1].shared) {
        DGM_TRY(write_vocabulary(x, "shared_vocabulary.json", 0, err));
    } else {
        DGM_TRY(write_vocabulary(x, "source_vocabulary.json", 0, err));
        DGM_TRY(write_vocabulary(x, "target_vocabulary.json", 1, err));
    }
    for (int side = 0; side < 2; side++) {
        if (dgm_export_spm_size(m, side)) DGM_TRY(dgm_export_spm(x->job, side, spm[side], err));
    }
    tell_decoding(x);
    tell_tokens(x);
    return DGM_OK;
}

dgm_status dgm_ct2_write_texts(const dgm_export_job *job, char **source, char **target, dgm_error *err)
{
    texts x = {.job = job, .m = job->model, .spelled = {source, target}};
    DGM_TRY(dgm_languages_read(x.m->g, x.m->sizes, &x.l, err));
    const dgm_status st = write_files(&x, err);
    dgm_languages_free(&x.l);
    return st;
}
