// SPDX-License-Identifier: MIT
// Directions of multilingual models: which one a translator and a line have, and the tokens that say
// so.
//
// A translator has one direction, from its settings or the model's default, which the models' own
// prefixes hold (dgm_model_direction): sentences without a direction of their own need nothing else.
// A line may bring another one (dgm_input.direction, or ">>de<<" before its text where the model reads
// such a token): its source gets other tokens, and its search starts with others. So a batch may mix
// directions, and a sentence is translated as it would be in a batch of its own.
//
// Its length penalties are the file's for its direction, unless the caller set them.
//
// Clusters of all directions are there where lines say theirs (restrict.c), glossaries too.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/textfile.h"
#include "constraint/glossary.h"
#include "engine/engine_private.h"
#include "format/directed.h"
#include "text/language_code.h"

static const dgm_languages *languages_of(const dgm_translator *t, int member)
{
    return dgm_model_describe(t->members[member].model)->languages;
}

// Do the languages of one side of two files have one in common? A file that does not say may have any.
static bool share_language(const dgm_gguf *a, const dgm_gguf *b, const char *key)
{
    dgm_gguf_strings first = {0}, second = {0};
    if (dgm_gguf_get_strings(a, key, DGM_OPTIONAL, &first, NULL) != DGM_OK ||
        dgm_gguf_get_strings(b, key, DGM_OPTIONAL, &second, NULL) != DGM_OK || first.count == 0 ||
        second.count == 0)
        return true;
    for (dgm_gguf_text x, y; dgm_gguf_strings_next(&first, &x);)
        for (dgm_gguf_strings rest = second; dgm_gguf_strings_next(&rest, &y);) {
            char one[64], other[64];
            snprintf(one, sizeof one, "%.*s", (int)(x.size < sizeof one ? x.size : 63), x.data);
            snprintf(other, sizeof other, "%.*s", (int)(y.size < sizeof other ? y.size : 63), y.data);
            if (dgm_language_matches(one, other) || dgm_language_matches(other, one)) return true;
        }
    return false;
}

static void first_language(const dgm_gguf *file, const char *key, char out[64])
{
    dgm_gguf_strings it = {0};
    dgm_gguf_text s = {"", 0};
    if (dgm_gguf_get_strings(file, key, DGM_OPTIONAL, &it, NULL) == DGM_OK)
        dgm_gguf_strings_next(&it, &s);
    snprintf(out, 64, "%.*s%s", (int)(s.size < 56 ? s.size : 56), s.data, it.count ? ",..." : ""); // what is left
}

dgm_status dgm_direction_ensemble(const dgm_translator *t, dgm_error *err)
{
    static const char *const keys[] = {"dragoman.languages.source", "dragoman.languages.target"};
    const dgm_gguf *first = t->members[0].file;
    for (int i = 1; i < t->member_count; i++) {
        const dgm_gguf *file = t->members[i].file;
        if (share_language(first, file, keys[0]) && share_language(first, file, keys[1])) continue;
        char a[2][64], b[2][64];
        for (int side = 0; side < 2; side++) {
            first_language(first, keys[side], a[side]);
            first_language(file, keys[side], b[side]);
        }
        return dgm_fail(err, DGM_ERR_ARGUMENT,
                        "%.200s translates from %s to %s, the first model from %s to %s: the models of an "
                        "ensemble must translate in the same direction",
                        dgm_gguf_path(file), b[0], b[1], a[0], a[1]);
    }
    return DGM_OK;
}

// The same direction, by its codes, in every model.
static dgm_status direct_members(dgm_translator *t, dgm_error *err)
{
    for (int i = 0; i < t->member_count; i++) {
        const dgm_languages *l = languages_of(t, i);
        int direction[2];
        if (l->tags[0] + l->tags[1] == 0) continue;
        dgm_status st = dgm_languages_choose(l, t->source_code, t->target_code, direction, err);
        if (st != DGM_OK) {
            dgm_error_prefix(err, "%s", dgm_gguf_path(t->members[i].file));
            return st;
        }
        dgm_model_direction(t->members[i].model, direction);
    }
    return DGM_OK;
}

dgm_status dgm_direction_resolve(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    const dgm_languages *l = languages_of(t, 0);
    const char *source = s->source, *target = s->target;
    bool named = (source && source[0]) || (target && target[0]);
    t->direction[0] = t->direction[1] = -1;
    t->every_direction = s->direction_later != 0;
    if (l->count[0] == 0 && l->count[1] == 0) {
        DGM_FAIL_IF(named, err, DGM_ERR_UNSUPPORTED,
                    "%s: the model does not say its languages: leave out source and target",
                    dgm_gguf_path(t->members[0].file));
        return DGM_OK;
    }
    // A model without language tokens translates one way, whatever lists of languages it has.
    bool tagged = l->tags[0] + l->tags[1] > 0;
    const bool later = t->every_direction;
    int direction[2] = {0, 0};
    dgm_status st = DGM_OK;
    if (named || (tagged && !later)) st = dgm_languages_choose(l, source, target, direction, err);
    else if (tagged) st = dgm_languages_choose(l, NULL, NULL, direction, NULL);
    if (st != DGM_OK && !named && later) return DGM_OK; // every line will say
    if (st != DGM_OK) {
        dgm_error_prefix(err, "%s", dgm_gguf_path(t->members[0].file));
        return st;
    }
    memcpy(t->direction, direction, sizeof direction);
    for (int side = 0; side < 2; side++)
        if (l->count[side])
            snprintf(side ? t->target_code : t->source_code, sizeof t->source_code, "%s",
                     l->code[side][direction[side]]);
    return tagged ? direct_members(t, err) : DGM_OK;
}

dgm_status dgm_direction_line(const dgm_translator *t, const dgm_direction *asked, int direction[2],
                              bool *other, dgm_error *err)
{
    const dgm_languages *l = languages_of(t, 0);
    *other = false;
    memcpy(direction, t->direction, sizeof t->direction);
    bool named = asked && ((asked->source && asked->source[0]) || (asked->target && asked->target[0]));
    if (!named) {
        if (l->tags[0] + l->tags[1] == 0 || t->direction[0] >= 0) return DGM_OK;
        return dgm_languages_choose(l, NULL, NULL, direction, err); // says what there is
    }
    DGM_FAIL_IF(l->count[0] == 0 && l->count[1] == 0, err, DGM_ERR_UNSUPPORTED,
                "the model does not say its languages");
    const char *source = asked->source, *target = asked->target;
    // What the line does not say is the translator's, where that goes with it.
    if ((!source || !source[0]) && t->direction[0] >= 0) source = l->code[0][t->direction[0]];
    if ((!target || !target[0]) && t->direction[1] >= 0) target = l->code[1][t->direction[1]];
    DGM_TRY(dgm_languages_choose(l, source, target, direction, err));
    *other = direction[0] != t->direction[0] || direction[1] != t->direction[1];
    return DGM_OK;
}

dgm_status dgm_direction_defaults(const dgm_translator *t, const int direction[2],
                                  dgm_direction_spec *out, dgm_error *err)
{
    const dgm_decode_spec *d = &dgm_model_describe(t->members[0].model)->defaults;
    *out = (dgm_direction_spec){.length_penalty = d->length_penalty,
                                .word_penalty = d->word_penalty,
                                .max_length_factor = d->max_length_factor};
    if (direction[0] < 0) return DGM_OK;
    dgm_status st = dgm_languages_defaults(t->members[0].file, languages_of(t, 0), direction, out,
                                           err);
    if (st != DGM_OK) dgm_error_prefix(err, "%s", dgm_gguf_path(t->members[0].file));
    return st;
}

static float either(float asked, float of_file)
{
    return asked == DGM_FROM_MODEL ? of_file : asked;
}

dgm_status dgm_direction_lengths(const dgm_translator *t, const int direction[2], dgm_length_rule *out,
                                 dgm_error *err)
{
    dgm_direction_spec d;
    DGM_TRY(dgm_direction_defaults(t, direction, &d, err));
    *out = (dgm_length_rule){either(t->asked.length_penalty, d.length_penalty),
                         either(t->asked.word_penalty, d.word_penalty),
                         either(t->asked.max_length_factor, d.max_length_factor)};
    return DGM_OK;
}

bool dgm_direction_of_token(const dgm_translator *t, int32_t token, int direction[2])
{
    const dgm_languages *l = languages_of(t, 0);
    bool read = false;
    for (int i = 0; i < l->tags[0]; i++) read |= l->tag[0][i] == DGM_TARGET;
    for (int i = 0; read && i < l->count[1]; i++) {
        if (l->token[1][i] != token) continue;
        if (direction[0] < 0 || !dgm_languages_offers(l, direction[0], i))
            for (direction[0] = 0; direction[0] < l->count[0] - 1; direction[0]++)
                if (dgm_languages_offers(l, direction[0], i)) break;
        direction[1] = i;
        return true;
    }
    return false;
}

// ---- glossaries ---------------------------------------------------------------------------------
//
// Those of settings.terms: "en-de=FILE" is for lines from English to German, "FILE" for all.
//
//     files --read once--> text --languages of a direction--> glossary of the translator's direction   t->glossary
//                            |                                 (read when it is opened: mistakes are said then)
//                            +--of every other one when its first line comes---> sets
//
// A model of a hundred languages has ten thousand directions: those that no line has are never made. A set is not
// changed or freed before the translator is, so that lines keep pointers.

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

static bool is_language(const dgm_codes *known, dgm_text cell)
{
    for (size_t i = 0; i < known->count; i++)
        if (cell.size >= 2 && dgm_language_agrees(cell, dgm_text_of(known->items[i]))) return true;
    return false;
}

// The next cell of the first row, from *at on; false: there is none.
static bool next_cell(dgm_text text, size_t *at, dgm_text *cell)
{
    size_t end = *at;
    if (end > text.size) return false;
    while (end < text.size && !strchr("\t,\r\n", text.data[end])) end++;
    *cell = dgm_text_trim((dgm_text){text.data + *at, end - *at});
    *at = end < text.size && strchr("\t,", text.data[end]) ? end + 1 : text.size + 1;
    return true;
}

// Does the first row name languages, and not both of the direction's? Then its columns are for other directions, and
// the row is no term.
static bool names_others(const dgm_codes *known, dgm_text text, const char *source, const char *target)
{
    bool found[2] = {false, false};
    dgm_text cell;
    size_t count = 0, at = 0;
    if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0) text.data += 3, text.size -= 3;
    for (; next_cell(text, &at, &cell); count++) {
        if (!is_language(known, cell)) return false;
        found[0] = found[0] || dgm_language_agrees(cell, dgm_text_of(source));
        found[1] = found[1] || dgm_language_agrees(cell, dgm_text_of(target));
    }
    return count >= 2 && (!found[0] || !found[1]);
}

dgm_status dgm_terms_read(dgm_glossary **g, const char *item, dgm_text text, const dgm_codes *known, const char *source,
                          const char *target, dgm_error *err)
{
    dgm_error why;
    if (!dgm_directed_fits(item, source, target) || (known && names_others(known, text, source, target))) return DGM_OK;
    if (!*g) DGM_TRY(dgm_glossary_open(g, err));
    const dgm_status st = dgm_glossary_parse(*g, dgm_directed_read(item).name, text, source, target, &why);
    return st == DGM_OK || (known && st == DGM_ERR_UNSUPPORTED) ? DGM_OK : dgm_fail(err, st, "%s", why.text);
}

// All files that are for this direction. several: there are others, for which they may be.
static dgm_status make(const dgm_translator *t, const char *source, const char *target, bool several,
                       dgm_glossary **out, dgm_error *err)
{
    const struct dgm_term_files *f = t->terms;
    const dgm_languages *l = languages_of(t, 0);
    dgm_codes known = {0};
    dgm_status st = DGM_OK;
    const char **codes = dgm_calloc((size_t)(l->count[0] + l->count[1]) + 1, sizeof *codes);
    *out = NULL;
    if (!codes) return dgm_no_memory(err);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < l->count[side]; i++) codes[known.count++] = l->code[side][i];
    known.items = codes;
    for (int i = 0; st == DGM_OK && i < f->count; i++) {
        const term_file *x = &f->files[i];
        const dgm_text text = {x->text.size ? (const char *)x->text.data : "", x->text.size};
        st = dgm_terms_read(out, x->spec, text, several ? &known : NULL, source, target, err);
    }
    if (st != DGM_OK) dgm_glossary_close(out);
    dgm_free(codes);
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
    return known ? make(t, t->source_code, t->target_code, t->every_direction, &t->glossary, err) : DGM_OK;
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
    DGM_TRY(make(t, code[0], code[1], true, &made.glossary, err));
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

// ---- public -----------------------------------------------------------------------------------

size_t dgm_directions(const dgm_translator *t, size_t index, dgm_direction *out)
{
    if (out) memset(out, 0, sizeof *out);
    if (!t) return 0;
    const dgm_languages *l = languages_of(t, 0);
    size_t n = 0;
    for (int s = 0; s < l->count[0]; s++)
        for (int d = 0; d < l->count[1]; d++) {
            if (!dgm_languages_offers(l, s, d)) continue;
            if (out && n == index) {
                out->source = l->code[0][s];
                out->target = l->code[1][d];
            }
            n++;
        }
    return n;
}
