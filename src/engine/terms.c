// SPDX-License-Identifier: MIT
// Glossaries of settings.terms, by directions: "en-de=FILE" is for lines from English to German, "FILE" for all.
//
//     files --read once--> text --languages of a direction--> glossary of the translator's direction   t->glossary
//                            |                                 (read when it is opened: mistakes are said then)
//                            +--of every other one when its first line comes---> sets
//
// A model of a hundred languages has ten thousand directions: those that no line has are never made. A set is not
// changed or freed before the translator is, so that lines keep pointers.
#include <string.h>

#include "base/mem.h"
#include "base/textfile.h"
#include "constraint/glossary.h"
#include "engine/engine_private.h"
#include "format/directed.h"
#include "format/languages.h"

typedef struct term_set {
    int direction[2];
    dgm_glossary *glossary; // NULL: no file has anything for it
} term_set;

typedef struct term_file {
    char *spec;
    dgm_writer text; // of the file
} term_file;

struct dgm_term_files {
    term_file files[DGM_TERMS_MAX];
    int count;
    term_set *sets; // guarded by the translator's lock, as they come
    size_t set_count, set_cap;
};

void dgm_terms_close(dgm_translator *t)
{
    struct dgm_term_files *f = t->terms;
    dgm_glossary_close(&t->glossary);
    for (int i = 0; f && i < f->count; i++) {
        dgm_free(f->files[i].spec);
        dgm_writer_free(&f->files[i].text);
    }
    for (size_t i = 0; f && i < f->set_count; i++) dgm_glossary_close(&f->sets[i].glossary);
    if (f) dgm_free(f->sets);
    dgm_free(f);
    t->terms = NULL;
}

// All files that are for this direction. lenient: one that has nothing for its languages is passed over.
static dgm_status make(const struct dgm_term_files *f, const char *source, const char *target, bool lenient,
                       dgm_glossary **out, dgm_error *err)
{
    dgm_status st = DGM_OK;
    *out = NULL;
    for (int i = 0; st == DGM_OK && i < f->count; i++) {
        const term_file *x = &f->files[i];
        const dgm_text text = {x->text.size ? (const char *)x->text.data : "", x->text.size};
        dgm_error why;
        if (!dgm_directed_fits(x->spec, source, target)) continue;
        if (!*out) st = dgm_glossary_open(out, &why);
        if (st == DGM_OK) st = dgm_glossary_parse(*out, dgm_directed_read(x->spec).name, text, source, target, &why);
        if (st == DGM_ERR_UNSUPPORTED && lenient) st = DGM_OK;
        if (st != DGM_OK) dgm_fail(err, st, "%s", why.text);
    }
    if (st != DGM_OK) dgm_glossary_close(out);
    return st;
}

dgm_status dgm_terms_open(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    if (!s->terms[0]) return DGM_OK;
    struct dgm_term_files *f = t->terms = dgm_calloc(1, sizeof *f);
    if (!f) return dgm_no_memory(err);
    for (int i = 0; i < DGM_TERMS_MAX && s->terms[i]; i++) {
        term_file *x = &f->files[f->count++];
        x->spec = dgm_strdup(s->terms[i]);
        if (!x->spec) return dgm_no_memory(err);
        DGM_TRY(dgm_lines_collect(dgm_directed_read(x->spec).name, &x->text, err));
    }
    const bool known = t->source_code[0] || t->target_code[0] || !t->every_direction;
    return known ? make(f, t->source_code, t->target_code, t->every_direction, &t->glossary, err) : DGM_OK;
}

static dgm_status find(dgm_translator *t, const int direction[2], const dgm_glossary **out, dgm_error *err)
{
    struct dgm_term_files *f = t->terms;
    const dgm_languages *l = dgm_model_describe(t->members[0].model)->languages;
    for (size_t i = 0; i < f->set_count; i++)
        if (memcmp(f->sets[i].direction, direction, sizeof f->sets[i].direction) == 0) {
            *out = f->sets[i].glossary;
            return DGM_OK;
        }
    term_set made = {.direction = {direction[0], direction[1]}};
    const char *code[2] = {"", ""};
    for (int side = 0; side < 2; side++)
        if (direction[side] >= 0 && l->count[side]) code[side] = l->code[side][direction[side]];
    DGM_TRY(dgm_grow(&f->sets, &f->set_cap, f->set_count + 1, sizeof *f->sets, err));
    DGM_TRY(make(f, code[0], code[1], true, &made.glossary, err));
    f->sets[f->set_count++] = made;
    *out = made.glossary;
    return DGM_OK;
}

dgm_status dgm_terms_of(const dgm_translator *t, const int direction[2], bool other, const dgm_glossary **out,
                        dgm_error *err)
{
    dgm_translator *mine = (dgm_translator *)(uintptr_t)t; // the lock is not part of the value
    *out = t->glossary;
    if (!t->terms || !other) return DGM_OK;
    pthread_mutex_lock(&mine->lock);
    const dgm_status st = find(mine, direction, out, err);
    pthread_mutex_unlock(&mine->lock);
    return st;
}

dgm_status dgm_terms_fit(const char *item, const char *source, const char *target, bool *fit, dgm_error *err)
{
    dgm_glossary *g = NULL;
    *fit = dgm_directed_fits(item, source, target);
    if (!*fit) return DGM_OK;
    DGM_TRY(dgm_glossary_open(&g, err));
    const dgm_status st = dgm_glossary_read(g, dgm_directed_read(item).name, source, target, err);
    dgm_glossary_close(&g);
    *fit = st != DGM_ERR_UNSUPPORTED;
    return *fit ? st : DGM_OK;
}
