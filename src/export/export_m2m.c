// SPDX-License-Identifier: MIT
// Exports to Hugging Face transformers as M2M100, NLLB, mBART or mBART-50: norms before the layers and behind the last,
// one vocabulary, and a language at the beginning of each side (import/m2m.c has the layout of ids).
//
//              positions                      source                  decoder begins with    languages
//     M2M100   sinusoids from <pad> + 1 on    [language] text </s>    </s> [language]        built-in list, __de__
//     NLLB     the same                       the same, or as mBART   the same               any list, deu_Latn
//     mBART    learned, from 2 on             text </s> [language]    [language]             built-in list, de_DE
//     mBART-50 the same                       [language] text </s>    </s> [language]        built-in list, de_DE
//
// Their tokenisers number subwords and built-in languages themselves: a model whose ids are others would be told
// nonsense, and is refused.
#include <string.h>

#include "base/mem.h"
#include "export/export_hf_private.h"
#include "format/languages.h"
#include "import/language_lists.h"
#include "import/spm_list.h"

typedef enum family { M2M100, NLLB, MBART, MBART50 } family;

static const struct {
    const char *kind, *type, *class, *tokenizer;
} families[] = {
    [M2M100] = {"M2M100", "m2m_100", "M2M100ForConditionalGeneration", "M2M100Tokenizer"},
    [NLLB] = {"NLLB", "m2m_100", "M2M100ForConditionalGeneration", "NllbTokenizer"},
    [MBART] = {"mBART", "mbart", "MBartForConditionalGeneration", "MBartTokenizer"},
    [MBART50] = {"mBART-50", "mbart", "MBartForConditionalGeneration", "MBart50Tokenizer"},
};

typedef struct many {
    dgm_hf_folder x;
    family family;
    dgm_languages l;
    char **spelled; // of every id
    int first;      // id of the first language of the list
} many;

// ---- what it can hold ----------------------------------------------------------------------------

// How a language is spelled says whose it is.
static bool find_family(many *e)
{
    const char *token = e->spelled[e->l.token[0][0]];
    const size_t n = strlen(token);
    if (n > 4 && strncmp(token, "__", 2) == 0 && strcmp(token + n - 2, "__") == 0)
        e->family = M2M100;
    else if (n == 8 && token[3] == '_')
        e->family = NLLB;
    else if (n == 5 && token[2] == '_')
        e->family = e->l.last ? MBART : MBART50;
    else
        return false;
    return true;
}

static bool learned(const many *e)
{
    return e->family == MBART || e->family == MBART50;
}

static dgm_status check_network(const many *e, dgm_error *err)
{
    const dgm_export_model *m = e->x.m;
    const int offset = learned(e) ? 2 : m->vocab[0].pad + 1;
    const char *positions = learned(e) ? "learned" : "sinusoid_marian";
    DGM_FAIL_IF(strcmp(m->positions, positions) != 0 || m->position_offset != offset, err, DGM_ERR_UNSUPPORTED,
                "%s has positions '%s' with offset %d, not '%s' with %d", e->x.kind, positions, offset, m->positions,
                m->position_offset);
    DGM_FAIL_IF(!learned(e) && (dgm_gguf_find_tensor(m->g, "enc.embed_norm.weight") ||
                                dgm_gguf_find_tensor(m->g, "dec.embed_norm.weight")),
                err, DGM_ERR_UNSUPPORTED, "%s has no norm of embeddings (enc.embed_norm)", e->x.kind);
    DGM_FAIL_IF(!learned(e) && m->output_bias, err, DGM_ERR_UNSUPPORTED,
                "%s has no bias of its output layer (out.bias)", e->x.kind);
    DGM_FAIL_IF(!m->vocab[1].shared, err, DGM_ERR_UNSUPPORTED, "%s has one vocabulary for both sides", e->x.kind);
    DGM_FAIL_IF(m->vocab[0].pad < 0, err, DGM_ERR_UNSUPPORTED, "%s has an id for padding (dragoman.source.pad)",
                e->x.kind);
    const dgm_tensor *enc = dgm_gguf_find_tensor(m->g, "enc.pos"), *dec = dgm_gguf_find_tensor(m->g, "dec.pos");
    DGM_FAIL_IF(learned(e) && enc && dec && enc->rows != dec->rows, err, DGM_ERR_UNSUPPORTED,
                "%s has as many positions on both sides, not %d and %d", e->x.kind, enc->rows, dec->rows);
    return dgm_hf_check(&e->x, err);
}

// Both sides are told their own language, and the target's are the source's: all of them, or one.
static dgm_status check_tags(const many *e, dgm_error *err)
{
    const dgm_languages *l = &e->l;
    const bool source = l->tags[0] == 1 && l->tag[0][0] == DGM_SOURCE;
    const bool target = l->tags[1] == 1 && l->tag[1][0] == DGM_TARGET;
    bool starts = false; // mBART's decoder begins with its one language
    for (int i = 0; e->family == MBART && l->tags[1] == 0 && l->count[1] == 1 && i < l->count[0]; i++)
        starts |= strcmp(l->code[0][i], l->code[1][0]) == 0 && l->token[0][i] == e->x.start;
    DGM_FAIL_IF(!source || !(target || starts), err, DGM_ERR_UNSUPPORTED,
                "%s is told the source's language before or behind the source, and the target's before the target",
                e->x.kind);
    DGM_FAIL_IF(l->last && e->family != NLLB && e->family != MBART, err, DGM_ERR_UNSUPPORTED,
                "%s has the source's language before the source (dragoman.source.tags_last)", e->x.kind);
    DGM_FAIL_IF(!starts && e->x.start != e->x.m->vocab[1].eos, err, DGM_ERR_UNSUPPORTED,
                "the decoder of %s begins with the end symbol (dragoman.target.start)", e->x.kind);
    for (int i = 0; target && l->count[1] > 1 && i < l->count[1]; i++)
        DGM_FAIL_IF(l->count[1] != l->count[0] || l->token[1][i] != l->token[0][i], err, DGM_ERR_UNSUPPORTED,
                    "%s reads and writes the same languages", e->x.kind);
    return DGM_OK;
}

// ---- ids -----------------------------------------------------------------------------------------

// Place of a language in the list that the tokeniser has built in; -1: not there.
static int place_in_list(const many *e, int language)
{
    const bool m2m = e->family == M2M100;
    const int count = m2m ? DGM_M2M100_LANGUAGES : e->family == MBART ? DGM_MBART_LANGUAGES : DGM_MBART50_LANGUAGES;
    for (int i = 0; e->family != NLLB && i < count; i++)
        if (strcmp(e->l.code[0][language], m2m ? dgm_m2m100_languages[i] : dgm_mbart_languages[i]) == 0) return i;
    return e->family == NLLB ? language : -1;
}

static dgm_status check_languages(many *e, int subwords, dgm_error *err)
{
    for (int i = 0; i < e->l.count[0]; i++) {
        const int place = place_in_list(e, i), id = e->l.token[0][i];
        if (i == 0) e->first = e->family == M2M100 ? id - place : subwords + 1;
        DGM_FAIL_IF(place < 0 || e->first < 0 || id != e->first + place, err, DGM_ERR_UNSUPPORTED,
                    "the tokeniser of %s has a list of languages with ids of its own, and this model has '%s' at %d",
                    e->x.kind, e->l.code[0][i], id);
    }
    return DGM_OK;
}

// NLLB and mBART: <s> 0, <pad> 1, </s> 2, <unk> 3, then subwords by their number. M2M100 has a list: vocab.json.
static dgm_status check_subwords(many *e, dgm_error *err)
{
    static const int32_t begin[] = {3, 0, 2};
    const dgm_vocab_spec *v = &e->x.m->vocab[0];
    dgm_spm_list list;
    DGM_TRY(dgm_spm_list_read(&list, v->model, dgm_export_spm_size(e->x.m, 0), err));
    const int count = (int)list.count;
    dgm_spm_list_free(&list);
    for (int i = 0; e->family != M2M100 && i < count; i++) {
        const int32_t expected = i < 3 ? begin[i] : i + 1;
        const int32_t id = !v->map ? i : (size_t)i < v->map_count ? v->map[i] : -1;
        DGM_FAIL_IF(id != expected, err, DGM_ERR_UNSUPPORTED, "subword %d has id %d, and in %s it has %d", i, (int)id,
                    e->x.kind, (int)expected);
    }
    return check_languages(e, count, err);
}

// ---- files ---------------------------------------------------------------------------------------

static json_t *language_tokens(const many *e)
{
    json_t *list = json_array();
    for (int i = 0; list && i < e->l.count[0]; i++)
        if (json_array_append_new(list, json_string(e->spelled[e->l.token[0][i]])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

// NLLB: languages and <mask> with their ids. By their order alone transformers 5 would put <mask> first.
static json_t *added_tokens(const many *e)
{
    json_t *list = json_object();
    for (int i = 0; list && i <= e->l.count[0]; i++) {
        const bool mask = i == e->l.count[0];
        char id[16];
        snprintf(id, sizeof id, "%d", e->first + i);
        json_t *token = json_pack("{s:s,s:b,s:b,s:b,s:b,s:b}", "content",
                                  mask ? "<mask>" : e->spelled[e->l.token[0][i]], "lstrip", (int)mask, "normalized", 0,
                                  "rstrip", 0, "single_word", 0, "special", 1);
        if (json_object_set_new(list, id, token) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static dgm_status write_tokenizer(const many *e, dgm_error *err)
{
    static const char *const keys[2] = {"src_lang", "tgt_lang"};
    json_t *special = json_pack("{s:s,s:s,s:s,s:s,s:o}", "bos_token", "<s>", "eos_token", "</s>", "unk_token", "<unk>",
                                "pad_token", "<pad>", "additional_special_tokens", language_tokens(e));
    json_t *t = json_pack("{s:s,s:i,s:o}", "tokenizer_class", families[e->family].tokenizer, "model_max_length",
                          e->x.positions, "additional_special_tokens", language_tokens(e));
    bool fine = special && t;
    if (fine && e->family == NLLB) fine = json_object_set_new(t, "added_tokens_decoder", added_tokens(e)) == 0;
    if (fine && e->family == NLLB && e->l.last) fine = json_object_set_new(t, "legacy_behaviour", json_true()) == 0;
    for (int side = 0; fine && side < 2; side++) {
        const int first = e->l.count[side] == 1 ? 0 : e->l.first[side];
        if (first >= 0) fine = json_object_set_new(t, keys[side], json_string(e->l.code[side][first])) == 0;
    }
    if (!fine) {
        json_decref(special);
        json_decref(t);
        return dgm_no_memory(err);
    }
    const dgm_status st = dgm_export_json(e->x.job, "special_tokens_map.json", special, err);
    if (st == DGM_OK) return dgm_export_json(e->x.job, "tokenizer_config.json", t, err);
    json_decref(t);
    return st;
}

// Spelling -> id of all before the languages, whose ids follow from how many these are.
static dgm_status write_vocab(const many *e, dgm_error *err)
{
    json_t *ids = json_object();
    bool fine = ids != NULL;
    int id = 0;
    for (int i = 0; i < e->first && fine; i++) {
        const bool pad = i == e->x.pad && strncmp(e->spelled[i], "<unused_", 8) == 0;
        id = i;
        fine = json_object_set_new(ids, pad ? "<pad>" : e->spelled[i], json_integer(i)) == 0;
    }
    const bool alike = fine && json_object_size(ids) != (size_t)e->first;
    if (fine && !alike) return dgm_export_json(e->x.job, "vocab.json", ids, err);
    json_decref(ids);
    if (!alike) return dgm_export_spelling(e->spelled[id], id, err);
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "two ids have one spelling");
}

static dgm_status write_all(const many *e, dgm_error *err)
{
    DGM_TRY(dgm_hf_config(&e->x, json_object(), err));
    DGM_TRY(dgm_hf_generation(&e->x, err));
    DGM_TRY(write_tokenizer(e, err));
    if (e->family == M2M100) DGM_TRY(write_vocab(e, err));
    DGM_TRY(dgm_export_spm(e->x.job, 0, "sentencepiece.bpe.model", err));
    return dgm_hf_weights(&e->x, err);
}

static int id_of(const many *e, const char *spelling, int otherwise)
{
    for (int i = 0; i < e->x.m->sizes[0]; i++)
        if (strcmp(e->spelled[i], spelling) == 0) return i;
    return otherwise;
}

static void describe(many *e)
{
    const dgm_export_model *m = e->x.m;
    const dgm_tensor *table = dgm_gguf_find_tensor(m->g, "enc.pos");
    dgm_hf_folder *x = &e->x;
    x->kind = families[e->family].kind;
    x->type = families[e->family].type;
    x->class = families[e->family].class;
    x->joint = x->one_embedding = true;
    x->logits_bias = learned(e);
    for (int side = 0; side < 2; side++) x->size[side] = m->sizes[side];
    x->pad = m->vocab[0].pad;
    x->start = m->vocab[1].start;
    x->bos = id_of(e, "<s>", m->vocab[1].eos);
    x->lead = e->l.tags[1] ? 2 : 1; // start, and language
    x->forced = e->l.tags[1] && e->l.count[1] == 1 ? e->l.token[1][0] : -1;
    x->positions = learned(e) && table ? table->rows - 2 : m->decode.max_source;
}

dgm_status dgm_export_many(const dgm_export_job *job, dgm_error *err)
{
    const dgm_export_model *m = job->model;
    many e = {.x = {.job = job, .m = m}};
    dgm_status st;
    DGM_TRY_GOTO(st, dgm_languages_read(m->g, m->sizes, &e.l, err), done);
    DGM_TRY_GOTO(st, dgm_export_spellings(m, 0, &e.spelled, err), done);
    if (!e.l.token[0] || !find_family(&e)) {
        st = dgm_fail(err, DGM_ERR_UNSUPPORTED,
                      "a model with norms before its layers cannot be exported to huggingface unless languages are "
                      "told by tokens as in M2M100, NLLB or mBART, the only ones of the kind in transformers "
                      "(ctranslate2 can hold it)");
        goto done;
    }
    describe(&e);
    DGM_TRY_GOTO(st, check_network(&e, err), done);
    DGM_TRY_GOTO(st, check_tags(&e, err), done);
    DGM_TRY_GOTO(st, check_subwords(&e, err), done);
    st = write_all(&e, err);
done:
    dgm_export_spellings_free(m, 0, &e.spelled);
    dgm_languages_free(&e.l);
    return st;
}
