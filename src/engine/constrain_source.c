// SPDX-License-Identifier: MIT
// What is known of terms and the source words that they stand for: what the model says for them by itself, what it
// reads in their place, how often it may say a term.
//
//     The storm destroyed many roofs.    storm => Orkan
//     The Orkan destroyed many roofs.    is read, where the model does not say "Orkan" by itself
//
// Such a term is said as often as its source words stand there, unless something else may become it, too: a model that
// had to say it early, where nothing called for it, says it again in its own place ("Der Orkan hat viele Orkan").
#include <string.h>

#include "base/lower_bound.h"
#include "base/mem.h"
#include "engine/constrain.h"
#include "format/shortlist.h"

// ---- what source tokens usually become ----------------------------------------------------------

// What source tokens usually become: the model's shortlist, and room for one of its lists.
struct dgm_usual {
    dgm_shortlist_view list; // all zero: the model has none
    int32_t *row;            // [longest] guarded by the lock
};

void dgm_usual_close(struct dgm_usual **u)
{
    if (!*u) return;
    dgm_shortlist_view_close(&(*u)->list);
    dgm_free((*u)->row);
    dgm_free(*u);
    *u = NULL;
}

dgm_status dgm_usual_open(struct dgm_usual **out, const dgm_gguf *file, dgm_error *err)
{
    struct dgm_usual *u = *out = dgm_calloc(1, sizeof *u);
    if (!u) return dgm_no_memory(err);
    dgm_status st = dgm_shortlist_present(file) ? dgm_shortlist_view_open(&u->list, file, err) : DGM_OK;
    if (st == DGM_OK && !(u->row = dgm_malloc((size_t)(u->list.longest + 1) * sizeof *u->row))) st = dgm_no_memory(err);
    if (st != DGM_OK) dgm_usual_close(out);
    return st;
}

bool dgm_usual_known(const struct dgm_usual *u)
{
    return u->list.sources > 0;
}

bool dgm_usual_becomes(const struct dgm_usual *u, const dgm_tokens *source, const dgm_tokens *target)
{
    for (size_t i = 0; u->list.sources && i < target->count; i++) {
        bool found = dgm_holds_id(u->list.frequent, u->list.frequent_count, target->ids[i]);
        for (size_t k = 0; k < source->count && !found; k++) {
            const int n = dgm_shortlist_view_row(&u->list, source->ids[k], u->row);
            found = dgm_holds_id(u->row, n, target->ids[i]) || (u->list.copy && source->ids[k] == target->ids[i]);
        }
        if (!found) return false;
    }
    return true;
}

// Has the model a shortlist, which knows what it says by itself?
static dgm_status is_known(dgm_demander *d, bool *known, dgm_error *err)
{
    dgm_translator *mine = (dgm_translator *)(uintptr_t)d->t; // the lock is not part of the value
    dgm_status st = DGM_OK;
    pthread_mutex_lock(&mine->lock);
    if (!mine->usual) st = dgm_usual_open(&mine->usual, d->t->members[0].file, err);
    *known = st == DGM_OK && dgm_usual_known(mine->usual);
    pthread_mutex_unlock(&mine->lock);
    return st;
}

// Does the model say one of a term's variants for some source tokens, as far as its shortlist knows?
static dgm_status may_become(dgm_demander *d, const dgm_tokens *source, const dgm_want *w, bool *becomes,
                             dgm_error *err)
{
    dgm_translator *mine = (dgm_translator *)(uintptr_t)d->t; // the lock is not part of the value
    *becomes = false;
    for (size_t i = 0; i < dgm_want_variants(d, w) && !*becomes; i++) {
        bool fits;
        DGM_TRY(dgm_demander_spell(d, dgm_want_variant(d, w, i), &fits, err));
        if (!fits) continue;
        pthread_mutex_lock(&mine->lock);
        *becomes = dgm_usual_becomes(mine->usual, source, &d->tokens);
        pthread_mutex_unlock(&mine->lock);
    }
    return DGM_OK;
}

// So, of the words that a term stands for. Where nobody knows, d->unlisted.
static dgm_status is_usual(dgm_demander *d, dgm_text words, const dgm_want *w, bool *usual, dgm_error *err)
{
    bool known;
    DGM_TRY(is_known(d, &known, err));
    d->unlisted = *usual = !known;
    if (!known) return DGM_OK;
    DGM_TRY(dgm_vocab_encode(d->t->source, words, &d->words, err));
    return may_become(d, &d->words, w, usual, err);
}

// ---- terms in the source -----------------------------------------------------------------------

// A term's first variant that both vocabularies spell, in the place of its source words. Overlapping ones give way
// to those before them.
static dgm_status add_place(dgm_demander *d, dgm_text text, size_t begin, size_t end, const dgm_want *w, dgm_error *err)
{
    size_t at = d->place_count, i = 0;
    bool fits = false, usual;
    for (; i < dgm_want_variants(d, w) && !fits; i++) {
        DGM_TRY(dgm_demander_spell(d, dgm_want_variant(d, w, i), &fits, err));
        if (fits) DGM_TRY(dgm_demander_spell_by(d, d->t->source, dgm_want_variant(d, w, i), &fits, err));
    }
    if (!fits) return DGM_OK;
    for (size_t k = 0; k < d->place_count; k++)
        if (begin < d->places[k].end && end > d->places[k].begin) return DGM_OK;
    DGM_TRY(dgm_grow(&d->places, &d->place_cap, d->place_count + 1, sizeof *d->places, err));
    for (; at > 0 && d->places[at - 1].begin > begin; at--) d->places[at] = d->places[at - 1];
    d->places[at] = (dgm_term_place){begin, end, dgm_want_variant(d, w, i - 1)};
    d->place_count++;
    DGM_TRY(is_usual(d, (dgm_text){text.data + begin, end - begin}, w, &usual, err));
    d->unusual = d->unusual || !usual;
    return DGM_OK;
}

static dgm_status find_places(dgm_demander *d, dgm_text text, dgm_error *err)
{
    d->place_count = 0;
    d->unusual = false;
    for (size_t i = 0; i < d->demands.count; i++) {
        const dgm_demand *x = &d->demands.items[i];
        const dgm_want w = {.entry = -1, .first = x->first, .count = x->count};
        const dgm_text source = dgm_demands_text(&d->demands, x->source);
        if (x->kind != DGM_DEMAND_TERM || source.size == 0) continue;
        for (size_t at = 0, size; dgm_term_find(text, source, &at); at += size) {
            size = dgm_term_at(text, at, source);
            DGM_TRY(add_place(d, text, at, at + size, &w, err));
        }
    }
    dgm_glossary_hit hit = {0};
    while (d->glossary && dgm_glossary_find(d->glossary, text, &hit)) {
        const dgm_want w = {.entry = hit.entry};
        if (!dgm_demander_names(d, dgm_glossary_source(d->glossary, hit.entry)))
            DGM_TRY(add_place(d, text, hit.begin, hit.end, &w, err));
    }
    return DGM_OK;
}

dgm_status dgm_demander_switch(dgm_demander *d, dgm_text written, dgm_text part, dgm_spliced *out, bool *switched,
                               dgm_error *err)
{
    *switched = false;
    if (!d->active || (!d->glossary && d->demands.count == 0)) return DGM_OK;
    DGM_TRY(find_places(d, written, err));
    dgm_spliced_clear(out);
    for (size_t i = 0; i < d->place_count; i++) {
        const dgm_term_place *x = &d->places[i];
        DGM_TRY(dgm_splice_add(out, part, x->begin, x->end, x->with, err));
    }
    *switched = d->place_count > 0;
    return *switched ? dgm_splice_end(out, part, err) : DGM_OK;
}

// ---- limits --------------------------------------------------------------------------------------

static int times_of(dgm_text text, dgm_text words)
{
    int times = 0;
    for (size_t at = 0; dgm_term_find(text, words, &at); at += dgm_term_at(text, at, words)) times++;
    return times;
}

// The tokens of a text without those of some words, into d->around.
static dgm_status look_around(dgm_demander *d, dgm_text text, dgm_text words, dgm_error *err)
{
    dgm_tokens *a = &d->around;
    DGM_TRY(dgm_vocab_encode(d->t->source, text, a, err));
    for (size_t at = 0, size; dgm_term_find(text, words, &at); at += size) {
        size_t kept = 0;
        size = dgm_term_at(text, at, words);
        for (size_t i = 0; i < a->count; i++) {
            if (a->spans[i].begin < at + size && a->spans[i].end > at) continue;
            a->ids[kept] = a->ids[i];
            a->spans[kept++] = a->spans[i];
        }
        a->count = kept;
    }
    return DGM_OK;
}

dgm_status dgm_want_limit(dgm_demander *d, dgm_text text, dgm_text source, dgm_want *w, dgm_error *err)
{
    bool known, elsewhere = false;
    w->most = 0;
    if (d->inside_lattice || d->token_prefix) return DGM_OK;
    for (size_t i = 0, at = 0; i < dgm_want_variants(d, w); i++, at = 0)
        if (dgm_term_find(d->prefix, dgm_want_variant(d, w, i), &at)) return DGM_OK;
    DGM_TRY(is_known(d, &known, err));
    if (known) DGM_TRY(look_around(d, text, source, err));
    if (known) DGM_TRY(may_become(d, &d->around, w, &elsewhere, err));
    if (!elsewhere) w->most = times_of(text, source);
    return DGM_OK;
}
