// SPDX-License-Identifier: MIT
// The phrase-based systems of settings.phrase_system: "FILE" for all lines, or "en-de=FILE,fr-de=FILE", one for each
// direction. A file may say its languages itself; lines of others have no evidence then.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "engine/settings_table.h"
#include "format/directed.h"
#include "format/languages.h"
#include "phrase/phrase_evidence.h"

typedef struct dgm_phrase_part {
    char *spec;          // "en-de=FILE"
    char language[2][64]; // that the file says; "": it does not
    dgm_phrases *system;
    dgm_gguf *file;         // whose subwords these phrases are made of; NULL: of words
    dgm_vocab *subwords[2]; // of source and target
} dgm_phrase_part;

void dgm_phrases_drop(dgm_translator *t)
{
    for (int i = 0; i < t->phrase_count; i++) {
        dgm_phrase_part *p = &t->phrases[i];
        dgm_phrases_close(&p->system);
        for (int side = 0; side < 2; side++) dgm_vocab_close(&p->subwords[side]);
        dgm_gguf_close(&p->file);
        dgm_free(p->spec);
    }
    dgm_free(t->phrases);
    t->phrases = NULL;
    t->phrase_count = 0;
}

// Languages that either side does not name fit.
static bool agrees(const dgm_phrase_part *p, int side, const char *code)
{
    return !p->language[side][0] || !code || !code[0] || dgm_language_matches(p->language[side], code);
}

static void take_languages(dgm_phrase_part *p, const dgm_phrasal_options *o)
{
    const char *const said[2] = {o->source, o->target};
    for (int side = 0; side < 2; side++)
        snprintf(p->language[side], sizeof p->language[side], "%s", said[side] ? said[side] : "");
}

static bool is_for(const dgm_phrase_part *p, const char *source, const char *target)
{
    return dgm_directed_fits(p->spec, source, target) && agrees(p, 0, source) && agrees(p, 1, target);
}

// A system that is for all lines, of a translator that has one direction.
static dgm_status check_languages(const dgm_translator *t, const dgm_phrase_part *p, dgm_error *err)
{
    const char *const ours[2] = {t->source_code, t->target_code};
    for (int side = 0; side < 2; side++)
        DGM_FAIL_IF(!t->every_direction && !agrees(p, side, ours[side]), err, DGM_ERR_ARGUMENT,
                    "the phrase-based system translates %s '%s', the model %s '%s'", side ? "into" : "from",
                    p->language[side], side ? "into" : "from", ours[side]);
    return DGM_OK;
}

static dgm_status open_part(const dgm_translator *t, const dgm_settings *s, dgm_phrasal_options *o, dgm_phrase_part *p,
                            dgm_error *err)
{
    o->lattice = s->evidence_kind && strcmp(s->evidence_kind, "lattice") == 0;
    o->nbest = o->lattice ? 1 : s->evidence_nbest;
    o->distinct = 1;
    take_languages(p, o);
    DGM_TRY(check_languages(t, p, err));
    if (o->subwords) {
        DGM_TRY(dgm_modelfile_open(&p->file, o->subwords, err));
        for (int side = 0; side < 2; side++)
            DGM_TRY(dgm_vocabulary_load(p->file, side ? DGM_TARGET : DGM_SOURCE, &p->subwords[side], NULL, err));
    }
    const dgm_vocab *const subwords[2] = {p->subwords[0], p->subwords[1]};
    return dgm_phrases_open(&p->system, o, subwords, err);
}

// Has the translator lines of the direction that the setting says?
static bool is_wanted(const dgm_translator *t, const char *spec)
{
    dgm_direction d;
    if (dgm_directed_fits(spec, t->source_code, t->target_code)) return true;
    for (size_t i = 0, n = t->every_direction ? dgm_directions(t, 0, NULL) : 0; i < n; i++) {
        dgm_directions(t, i, &d);
        if (dgm_directed_fits(spec, d.source, d.target)) return true;
    }
    return false;
}

static dgm_status add_part(dgm_translator *t, const dgm_settings *s, dgm_text item, dgm_error *err)
{
    dgm_phrasal_file *file = NULL;
    dgm_phrasal_options o;
    dgm_phrase_part *p = &t->phrases[t->phrase_count];
    p->spec = dgm_strndup(item.data, item.size);
    if (!p->spec) return dgm_no_memory(err);
    if (!is_wanted(t, p->spec)) {
        dgm_free(p->spec);
        p->spec = NULL;
        return DGM_OK;
    }
    t->phrase_count++;
    const char *path = dgm_directed_read(p->spec).name;
    DGM_TRY(dgm_phrasal_file_open(&file, path, err));
    dgm_phrasal_file_options(file, &o);
    const dgm_status st = open_part(t, s, &o, p, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "%s", path);
    dgm_phrasal_file_close(&file);
    return st;
}

static size_t count_items(const char *list)
{
    size_t count = 0;
    while (dgm_directed_next(&list).size) count++;
    return count;
}

dgm_status dgm_phrases_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    if (!dgm_wants_phrases(s)) return DGM_OK;
    t->phrases = dgm_calloc(count_items(s->phrase_system) + 1, sizeof *t->phrases);
    if (!t->phrases) return dgm_no_memory(err);
    const char *list = s->phrase_system;
    for (dgm_text item; (item = dgm_directed_next(&list)).size;) DGM_TRY(add_part(t, s, item, err));
    return DGM_OK;
}

struct dgm_phrases *dgm_phrases_for(const dgm_translator *t, const int direction[2])
{
    const char *code[2] = {t->source_code, t->target_code};
    if (t->phrase_count == 0) return NULL;
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    for (int side = 0; side < 2; side++)
        if (direction[side] >= 0 && l->count[side]) code[side] = l->code[side][direction[side]];
    for (int i = 0; i < t->phrase_count; i++)
        if (is_for(&t->phrases[i], code[0], code[1])) return t->phrases[i].system;
    return NULL;
}

dgm_status dgm_phrases_fit(const char *systems, const char *source, const char *target, bool *fit, dgm_error *err)
{
    *fit = false;
    for (dgm_text item; !*fit && (item = dgm_directed_next(&systems)).size;) {
        dgm_phrase_part p = {.spec = dgm_strndup(item.data, item.size)};
        dgm_phrasal_file *file = NULL;
        dgm_phrasal_options o;
        if (!p.spec) return dgm_no_memory(err);
        dgm_status st = DGM_OK;
        if (dgm_directed_fits(p.spec, source, target)) {
            st = dgm_phrasal_file_open(&file, dgm_directed_read(p.spec).name, err);
            if (st == DGM_OK) {
                dgm_phrasal_file_options(file, &o);
                take_languages(&p, &o);
                *fit = agrees(&p, 0, source) && agrees(&p, 1, target);
            }
            dgm_phrasal_file_close(&file);
        }
        dgm_free(p.spec);
        DGM_TRY(st);
    }
    return DGM_OK;
}
