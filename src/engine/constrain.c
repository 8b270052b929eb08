// SPDX-License-Identifier: MIT
// What a line's translation must and must not say: from texts to the automata that searches follow.
//
//     dgm_input.constraints   demands of this line (constraint/demands.h)        |
//     settings.terms          glossary entries found in the line           | -> per piece: patterns
//     settings.keep           what a regular expression finds in the line  |    -> automaton
//
// Runs while a job is submitted, after the line was cut into pieces: a term belongs to the piece
// that holds its source. A demand that cannot be met (its source is not in the line, the
// vocabulary cannot spell it, a sentence has too many) is left out and named in the line's notice;
// the rest counts. Lines without demands leave here at once and are decoded as ever.
//
// A term that the model does not say by itself also stands in what it reads, in place of its source words
// (constrain_source.c): a model that never sees them cannot translate them otherwise.
#include <regex.h>
#include <string.h>

#include "base/lower_bound.h"
#include "base/mem.h"
#include "engine/constrain.h"

// ---- settings ----------------------------------------------------------------------------------

struct dgm_keeper {
    regex_t regex;
};

static dgm_status open_keeper(dgm_keeper **out, const char *pattern, dgm_error *err)
{
    dgm_keeper *k = dgm_calloc(1, sizeof *k);
    if (!k) return dgm_no_memory(err);
    const int code = regcomp(&k->regex, pattern, REG_EXTENDED);
    if (code != 0) {
        char why[128];
        regerror(code, &k->regex, why, sizeof why);
        dgm_free(k);
        return dgm_fail(err, DGM_ERR_ARGUMENT, "'%s' is not a valid regular expression: %s", pattern, why);
    }
    *out = k;
    return DGM_OK;
}

dgm_status dgm_constrain_open(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    if (s->keep && s->keep[0]) DGM_TRY(open_keeper(&t->keep, s->keep, err));
    return dgm_terms_open(t, s, err);
}

void dgm_constrain_close(dgm_translator *t)
{
    if (t->keep) regfree(&t->keep->regex);
    dgm_free(t->keep);
    t->keep = NULL;
    dgm_terms_close(t);
    dgm_surfaces_close(&t->surfaces);
    dgm_usual_close(&t->usual);
}

// Made when the first line needs them.
static dgm_status need_surfaces(const dgm_translator *t, const dgm_surfaces **out, dgm_error *err)
{
    dgm_translator *mine = (dgm_translator *)(uintptr_t)t; // the lock is not part of the value
    dgm_status st = DGM_OK;
    pthread_mutex_lock(&mine->lock);
    if (!mine->surfaces) st = dgm_surfaces_open(&mine->surfaces, t->target, err);
    *out = mine->surfaces;
    pthread_mutex_unlock(&mine->lock);
    return st;
}

// ---- demands of a line -------------------------------------------------------------------------

void dgm_demander_free(dgm_demander *d)
{
    dgm_demands_free(&d->demands);
    dgm_writer_free(&d->clean);
    dgm_writer_free(&d->decoded);
    dgm_writer_free(&d->notice);
    dgm_tokens_free(&d->tokens);
    dgm_free(d->ids);
    dgm_free(d->patterns);
    dgm_free(d->wants);
    dgm_free(d->starts);
    dgm_free(d->places);
    dgm_tokens_free(&d->words);
    dgm_tokens_free(&d->around);
    dgm_writer_free(&d->spelled);
    dgm_free(d->spelling);
}

// One more sentence for the line's notice. What is too long of a text is left out.
#define NOTICE(d, ...)                                                                             \
    do {                                                                                           \
        if ((d)->notice.size) dgm_write_text(&(d)->notice, "; ");                                  \
        dgm_write_format(&(d)->notice, __VA_ARGS__);                                               \
    } while (0)

static int shown(dgm_text t)
{
    size_t n = t.size < 60 ? t.size : 60;
    while (n > 0 && n < t.size && ((unsigned char)t.data[n] & 0xC0) == 0x80) n--;
    return (int)n;
}

dgm_status dgm_demander_begin(dgm_demander *d, const dgm_translator *t, dgm_input *input,
                              uint32_t *flags, dgm_error *err)
{
    d->t = t;
    d->notice.size = 0;
    d->demands.count = 0;
    // A lattice is read from the left before it is turned.
    const dgm_order order = dgm_model_describe(t->members[0].model)->order;
    d->from_right = !input->lattice && order == DGM_ORDER_R2L;
    d->from_both = !input->lattice && order == DGM_ORDER_BIDIRECTIONAL;
    d->inside_lattice = input->lattice != NULL;
    d->glossary = t->glossary;
    d->active = t->terms || t->keep || input->constraints_size ||
                (d->from_right && (input->prefix_size || input->prefix_token_count));
    d->prefix = (dgm_text){input->prefix, input->prefix ? input->prefix_size : 0};
    d->token_prefix = input->prefix_token_count > 0;
    if (!input->constraints || !input->constraints_size) return DGM_OK;
    dgm_error why;
    d->clean.size = 0;
    DGM_TRY(dgm_utf8_repair((dgm_text){input->constraints, input->constraints_size}, &d->clean, NULL, err));
    const dgm_status st = dgm_demands_parse(
        &d->demands, (dgm_text){(const char *)d->clean.data, d->clean.size}, &why);
    if (st == DGM_ERR_MEMORY) return dgm_no_memory(err);
    if (st != DGM_OK) {
        NOTICE(d, "%s", why.text);
        *flags |= DGM_LINE_MALFORMED;
    }
    for (size_t i = 0; i < d->demands.count; i++) {
        const dgm_demand *x = &d->demands.items[i];
        if (x->kind != DGM_DEMAND_BEGIN) continue;
        const dgm_text text = dgm_demands_text(&d->demands, d->demands.variants[x->first]);
        if (input->prefix && input->prefix_size) {
            NOTICE(d, "the beginning '%.*s' gives way to the line's prefix", shown(text), text.data);
            continue;
        }
        input->prefix = text.data;
        input->prefix_size = text.size;
    }
    d->prefix = (dgm_text){input->prefix, input->prefix ? input->prefix_size : 0};
    return DGM_OK;
}

// ---- words in texts ----------------------------------------------------------------------------

static bool word_before(dgm_text t, size_t at)
{
    return at > 0 && dgm_text_ends_in_word((dgm_text){t.data, at});
}

static bool word_behind(dgm_text t, size_t at)
{
    return at < t.size && dgm_text_begins_in_word((dgm_text){t.data + at, t.size - at});
}

// ---- patterns of a piece -----------------------------------------------------------------------

static bool is_never(const dgm_translator *t, int32_t id)
{
    for (int m = 0; m < t->member_count; m++) {
        const dgm_model_info *info = dgm_model_describe(t->members[m].model);
        if (dgm_holds_id(info->never, info->never_count, id)) return true;
    }
    return false;
}

// The tokens of a text in d->tokens; false in *fits unless they spell it exactly.
dgm_status dgm_demander_spell_by(dgm_demander *d, const dgm_vocab *v, dgm_text text, bool *fits, dgm_error *err)
{
    *fits = false;
    DGM_TRY(dgm_vocab_encode(v, text, &d->tokens, err));
    for (size_t i = 0; i < d->tokens.count; i++)
        if (dgm_vocab_is_unknown(v, d->tokens.ids[i]) || dgm_vocab_is_control(v, d->tokens.ids[i]))
            return DGM_OK;
    d->decoded.size = 0;
    DGM_TRY(dgm_vocab_decode(v, d->tokens.ids, d->tokens.count, &d->decoded, NULL, err));
    const dgm_text back = {(const char *)d->decoded.data, d->decoded.size};
    *fits = d->tokens.count > 0 && d->tokens.count <= DGM_CONSTRAINT_SUBWORDS &&
            dgm_text_equal(dgm_text_trim(back), dgm_text_trim(text));
    return DGM_OK;
}

// d->tokens are those of the text that was spelled last; false: it is another one.
static bool recall(dgm_demander *d, dgm_text text, bool *fits)
{
    const dgm_text last = {(const char *)d->spelled.data, d->spelled.size};
    if (last.size == 0 || !dgm_text_equal(last, text) || d->tokens.ids_cap < d->spelling_count) return false;
    d->tokens.count = d->spelling_count;
    if (d->spelling_count) memcpy(d->tokens.ids, d->spelling, d->spelling_count * sizeof *d->spelling);
    *fits = d->spelling_fits;
    return true;
}

static dgm_status remember(dgm_demander *d, dgm_text text, bool fits, dgm_error *err)
{
    const size_t n = d->tokens.count;
    DGM_TRY(dgm_grow(&d->spelling, &d->spelling_cap, n, sizeof *d->spelling, err));
    if (n) memcpy(d->spelling, d->tokens.ids, n * sizeof *d->spelling);
    d->spelling_count = n;
    d->spelling_fits = fits;
    dgm_write_bytes(&d->spelled, text.data, text.size);
    return d->spelled.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_demander_spell(dgm_demander *d, dgm_text text, bool *fits, dgm_error *err)
{
    if (recall(d, text, fits)) return DGM_OK;
    d->spelled.size = 0;
    DGM_TRY(dgm_demander_spell_by(d, d->t->target, text, fits, err));
    for (size_t i = 0; i < d->tokens.count && *fits; i++) *fits = !is_never(d->t, d->tokens.ids[i]);
    return remember(d, text, *fits, err);
}

// An end that begins outside of words stands behind the word before it without a space.
static dgm_status spell_end(dgm_demander *d, dgm_text text, bool *fits, dgm_error *err)
{
    DGM_TRY(dgm_demander_spell(d, text, fits, err));
    if (!*fits || dgm_text_begins_in_word(text) || dgm_vocab_get_kind(d->t->target) == DGM_VOCAB_WORDS)
        return DGM_OK;
    dgm_writer glued = {0};
    dgm_tokens tokens = {0};
    dgm_write_u8(&glued, 'a');
    dgm_write_bytes(&glued, text.data, text.size);
    dgm_status st = glued.failed ? dgm_no_memory(err) : DGM_OK;
    if (st == DGM_OK)
        st = dgm_vocab_encode(d->t->target, (dgm_text){(const char *)glued.data, glued.size}, &tokens, err);
    size_t first = 0; // the token behind the letter
    while (st == DGM_OK && first < tokens.count && tokens.spans[first].end < 1) first++;
    if (st == DGM_OK && first + 1 < tokens.count && tokens.spans[first].end == 1) {
        d->tokens.count = tokens.count - first - 1; // never longer than with the space mark
        st = dgm_grow(&d->tokens.ids, &d->tokens.ids_cap, d->tokens.count, sizeof *d->tokens.ids, err);
        if (st == DGM_OK)
            memcpy(d->tokens.ids, tokens.ids + first + 1, d->tokens.count * sizeof *d->tokens.ids);
    }
    dgm_tokens_free(&tokens);
    dgm_writer_free(&glued);
    return st;
}

// Adds a pattern of d->tokens. Its tokens lie in d->ids, which moves: an offset until compiled.
static dgm_status add_pattern(dgm_demander *d, dgm_pattern_kind kind, int term, bool open, int most, dgm_error *err)
{
    const size_t n = d->tokens.count;
    DGM_TRY(dgm_grow(&d->patterns, &d->pattern_cap, d->pattern_count + 1, sizeof *d->patterns, err));
    DGM_TRY(dgm_grow(&d->starts, &d->start_cap, d->pattern_count + 1, sizeof *d->starts, err));
    DGM_TRY(dgm_grow(&d->ids, &d->id_cap, d->id_count + n, sizeof *d->ids, err));
    memcpy(d->ids + d->id_count, d->tokens.ids, n * sizeof *d->ids);
    d->starts[d->pattern_count] = d->id_count;
    d->patterns[d->pattern_count++] =
        (dgm_pattern){.kind = kind, .term = term, .count = (int)n, .open = open, .most = most};
    d->id_count += n;
    return DGM_OK;
}

dgm_text dgm_want_variant(const dgm_demander *d, const dgm_want *w, size_t i)
{
    if (w->entry >= 0) return dgm_glossary_variant(d->glossary, w->entry, i);
    if (w->count == 0) return w->text;
    return dgm_demands_text(&d->demands, d->demands.variants[w->first + i]);
}

size_t dgm_want_variants(const dgm_demander *d, const dgm_want *w)
{
    if (w->entry >= 0) return dgm_glossary_variant_count(d->glossary, w->entry);
    return w->count ? w->count : 1;
}

// A beginning that the model writes last: tokens of the piece, as other models have them forced on their first words.
static dgm_status add_beginning(dgm_demander *d, const int32_t *ids, int count, dgm_error *err)
{
    if (count == 0) return DGM_OK;
    d->tokens.count = (size_t)count;
    DGM_TRY(dgm_grow(&d->tokens.ids, &d->tokens.ids_cap, d->tokens.count, sizeof *d->tokens.ids, err));
    memcpy(d->tokens.ids, ids, (size_t)count * sizeof *ids);
    return add_pattern(d, DGM_PATTERN_PREFIX, 0, true, 0, err);
}

// The texts of one demand as patterns of a term, as many as can be spelled.
static dgm_status add_want(dgm_demander *d, dgm_want *w, int *terms, dgm_error *err)
{
    bool any = false;
    for (size_t i = 0; i < dgm_want_variants(d, w); i++) {
        bool fits;
        if (w->kind == DGM_PATTERN_SUFFIX)
            DGM_TRY(spell_end(d, dgm_want_variant(d, w, i), &fits, err));
        else
            DGM_TRY(dgm_demander_spell(d, dgm_want_variant(d, w, i), &fits, err));
        if (!fits) continue;
        DGM_TRY(add_pattern(d, w->kind, *terms, w->open, w->most, err));
        any = true;
    }
    if (w->kind == DGM_PATTERN_TERM && any) ++*terms;
    if (!any && w->kind != DGM_PATTERN_FORBID && !w->reported) {
        const dgm_text text = dgm_want_variant(d, w, 0);
        NOTICE(d, "the vocabulary cannot spell '%.*s'", shown(text), text.data);
        w->reported = true;
    }
    return DGM_OK;
}

static dgm_status compile(dgm_demander *d, const int32_t *beginning, int count, dgm_piece_state *piece, dgm_error *err)
{
    const dgm_surfaces *surfaces;
    int terms = 0;
    dgm_constraint **out = &piece->constraint;
    DGM_TRY(need_surfaces(d->t, &surfaces, err));
    d->pattern_count = d->id_count = 0;
    DGM_TRY(add_beginning(d, beginning, count, err));
    for (size_t i = 0; i < d->want_count; i++) DGM_TRY(add_want(d, &d->wants[i], &terms, err));
    if (d->pattern_count == 0) return DGM_OK;
    for (size_t i = 0; i < d->pattern_count; i++) d->patterns[i].tokens = d->ids + d->starts[i];
    const int all = (int)d->pattern_count;
    if (d->from_both)
        return dgm_constraint_compile_both(out, &piece->constraint_right, surfaces, d->patterns, all, terms, err);
    if (d->from_right) return dgm_constraint_compile_right(out, surfaces, d->patterns, all, terms, err);
    return dgm_constraint_compile(out, surfaces, d->patterns, all, terms, err);
}

// ---- wants of a piece --------------------------------------------------------------------------

static dgm_status want(dgm_demander *d, const dgm_want *w, dgm_error *err)
{
    DGM_TRY(dgm_grow(&d->wants, &d->want_cap, d->want_count + 1, sizeof *d->wants, err));
    d->wants[d->want_count++] = *w;
    return DGM_OK;
}

// Does a beginning that is written last hold the text? Then it is said there.
static bool held_by_beginning(const dgm_demander *d, size_t index, dgm_text text)
{
    size_t at = 0;
    return d->from_right && index == 0 && dgm_term_find(d->prefix, text, &at);
}

// Is the text of a demand already part of another demand's only variant (an end that holds a term)?
static bool held_by_end(const dgm_demander *d, const dgm_demand *x)
{
    for (size_t i = 0; i < d->demands.count; i++) {
        const dgm_demand *e = &d->demands.items[i];
        if (e->kind != DGM_DEMAND_END) continue;
        const dgm_text end = dgm_demands_text(&d->demands, d->demands.variants[e->first]);
        for (size_t k = 0; k < x->count; k++) {
            size_t at = 0;
            if (dgm_term_find(end, dgm_demands_text(&d->demands, d->demands.variants[x->first + k]), &at))
                return true;
        }
    }
    return false;
}

static dgm_status want_demands(dgm_demander *d, const dgm_line_state *line, size_t index,
                               dgm_text text, dgm_error *err)
{
    const size_t last = line->pieces.count - 1;
    for (size_t i = 0; i < d->demands.count; i++) {
        const dgm_demand *x = &d->demands.items[i];
        const dgm_text source = dgm_demands_text(&d->demands, x->source);
        dgm_want w = {.entry = -1, .first = x->first, .count = x->count};
        size_t at = 0;
        bool here = index == 0; // forced words without a source: the line's first piece
        if (x->kind == DGM_DEMAND_BEGIN) continue;
        if (x->kind == DGM_DEMAND_FORBID) w.kind = DGM_PATTERN_FORBID, here = true;
        if (x->kind == DGM_DEMAND_END) w.kind = DGM_PATTERN_SUFFIX, here = index == last;
        if (source.size) here = dgm_term_find(text, source, &at);
        if (x->kind == DGM_DEMAND_TERM && index == last && held_by_end(d, x)) continue;
        for (size_t k = 0; k < x->count && here && x->kind == DGM_DEMAND_TERM; k++)
            here = !held_by_beginning(d, index, dgm_want_variant(d, &w, k));
        if (here && source.size) DGM_TRY(dgm_want_limit(d, text, source, &w, err));
        if (here) DGM_TRY(want(d, &w, err));
    }
    return DGM_OK;
}

bool dgm_demander_names(const dgm_demander *d, dgm_text source)
{
    for (size_t i = 0; i < d->demands.count; i++)
        if (dgm_text_equal(dgm_demands_text(&d->demands, d->demands.items[i].source), source))
            return true;
    return false;
}

static dgm_status want_glossary(dgm_demander *d, size_t index, dgm_text text, dgm_error *err)
{
    dgm_glossary_hit hit = {0};
    const size_t before = d->want_count;
    while (dgm_glossary_find(d->glossary, text, &hit)) {
        bool known = dgm_demander_names(d, dgm_glossary_source(d->glossary, hit.entry));
        for (size_t i = before; i < d->want_count && !known; i++)
            known = d->wants[i].entry == hit.entry;
        dgm_want w = {.entry = hit.entry};
        for (size_t i = 0; i < dgm_want_variants(d, &w) && !known; i++)
            known = held_by_beginning(d, index, dgm_want_variant(d, &w, i));
        if (known) continue;
        DGM_TRY(dgm_want_limit(d, text, dgm_glossary_source(d->glossary, hit.entry), &w, err));
        DGM_TRY(want(d, &w, err));
    }
    return DGM_OK;
}

// ---- kept text ---------------------------------------------------------------------------------

// A match inside a word: the word's beginning belongs to it, its rest may differ.
static dgm_status want_kept(dgm_demander *d, dgm_text text, dgm_error *err)
{
    regmatch_t m = {.rm_so = 0, .rm_eo = (regoff_t)text.size};
    for (size_t from = 0; from < text.size;) {
        m = (regmatch_t){(regoff_t)from, (regoff_t)text.size};
        if (regexec(&d->t->keep->regex, text.data, 1, &m, REG_STARTEND) != 0) break;
        size_t begin = (size_t)m.rm_so, end = (size_t)m.rm_eo;
        from = end > begin ? end : end + 1;
        if (end == begin) continue;
        const size_t found = begin;
        while (begin > 0 && word_behind(text, begin) && word_before(text, begin))
            begin = dgm_utf8_prev(text.data, begin);
        dgm_text kept = dgm_text_trim((dgm_text){text.data + begin, end - begin});
        if (kept.size == 0 || (begin < found && kept.size > 256)) continue;
        const dgm_want w = {.entry = -1,
                            .text = kept,
                            .open = word_behind(text, end) && dgm_text_ends_in_word(kept)};
        DGM_TRY(want(d, &w, err));
    }
    return DGM_OK;
}

dgm_status dgm_demander_direct(dgm_demander *d, const int direction[2], bool other, dgm_error *err)
{
    return dgm_terms_of(d->t, direction, other, &d->glossary, err);
}

bool dgm_constrain_claims(const dgm_line_state *line, dgm_text text, size_t begin, size_t end)
{
    const dgm_translator *t = line->job->translator;
    const dgm_glossary *g = line->glossary;
    dgm_glossary_hit hit = {0};
    while (g && dgm_glossary_find(g, text, &hit))
        if (hit.begin < end && hit.end > begin) return true;
    for (size_t from = 0; t->keep && from < text.size;) {
        regmatch_t m = {(regoff_t)from, (regoff_t)text.size};
        if (regexec(&t->keep->regex, text.data, 1, &m, REG_STARTEND) != 0) break;
        if ((size_t)m.rm_so < end && (size_t)m.rm_eo > begin) return true;
        from = (size_t)m.rm_eo + (m.rm_eo == m.rm_so);
    }
    return false;
}

// The last forced text goes first when there are too many for one sentence.
static bool drop_want(dgm_demander *d)
{
    for (size_t i = d->want_count; i-- > 0;) {
        if (d->wants[i].kind == DGM_PATTERN_FORBID) continue;
        const dgm_text text = dgm_want_variant(d, &d->wants[i], 0);
        NOTICE(d, "too many constraints in one sentence: '%.*s' is left out", shown(text), text.data);
        memmove(&d->wants[i], &d->wants[i + 1], (d->want_count - i - 1) * sizeof *d->wants);
        d->want_count--;
        return true;
    }
    return false;
}

static dgm_status constrain_piece(dgm_demander *d, dgm_line_state *line, size_t index, const int32_t *tokens,
                                  dgm_piece_state *piece, dgm_error *err)
{
    const dgm_piece *p = &line->pieces.items[index];
    const dgm_text text = {line->text + p->begin, p->end - p->begin};
    dgm_error why;
    d->want_count = 0;
    DGM_TRY(want_demands(d, line, index, text, err));
    if (d->glossary) DGM_TRY(want_glossary(d, index, text, err));
    if (d->t->keep) DGM_TRY(want_kept(d, text, err));
    const int beginning = d->from_right ? piece->prefix_count : 0;
    while (d->want_count > 0 || beginning > 0) {
        const dgm_status st = compile(d, beginning ? tokens + piece->prefix_at : NULL, beginning, piece, &why);
        if (st == DGM_OK && beginning > 0) piece->prefix_count = 0; // the automaton has it
        if (st == DGM_OK) return DGM_OK;
        if (st == DGM_ERR_MEMORY) return dgm_no_memory(err);
        if (st != DGM_ERR_UNSUPPORTED || !drop_want(d)) return dgm_fail(err, st, "%s", why.text);
    }
    return DGM_OK;
}

static bool in_a_piece(const dgm_line_state *line, dgm_text source)
{
    for (size_t i = 0; i < line->pieces.count; i++) {
        const dgm_piece *p = &line->pieces.items[i];
        size_t at = 0;
        if (dgm_term_find((dgm_text){line->text + p->begin, p->end - p->begin}, source, &at))
            return true;
    }
    return false;
}

// Demands that no piece will have.
static void report_absent(dgm_demander *d, const dgm_line_state *line)
{
    const dgm_text text = {line->text, line->size};
    for (size_t i = 0; i < d->demands.count; i++) {
        const dgm_demand *x = &d->demands.items[i];
        const dgm_text source = dgm_demands_text(&d->demands, x->source);
        const dgm_text words = dgm_demands_text(&d->demands, d->demands.variants[x->first]);
        size_t at = 0;
        if (source.size && !dgm_term_find(text, source, &at))
            NOTICE(d, "'%.*s' is not in the line", shown(source), source.data);
        else if (source.size && !in_a_piece(line, source))
            NOTICE(d, "the line is cut inside '%.*s'", shown(source), source.data);
        else if (line->pieces.count == 0 && x->kind != DGM_DEMAND_FORBID)
            NOTICE(d, "an empty line stays empty: '%.*s' is left out", shown(words), words.data);
    }
}

// A beam of one cannot take a term back that it has said in the wrong place, so it is not forced at first.
static void begin_attempts(dgm_piece_state *piece, int beam)
{
    if (!piece->constraint) return;
    piece->unforced = beam == 1 && piece->with_terms.count > 0;
    if (beam > 1 && dgm_constraint_limited(piece->constraint)) dgm_piece_loosen(piece, true);
}

dgm_status dgm_demander_end(dgm_demander *d, dgm_line_state *line, dgm_piece_state *pieces, const int32_t *tokens,
                            dgm_error *err)
{
    line->glossary = d->glossary;
    if (!d->active) return DGM_OK;
    if (d->demands.count) report_absent(d, line);
    for (size_t i = 0; i < line->pieces.count; i++) {
        DGM_TRY(constrain_piece(d, line, i, tokens, &pieces[i], err));
        if (!pieces[i].with_terms.count || d->inside_lattice) continue;
        if (pieces[i].constraint && pieces[i].unusual)
            dgm_piece_exchange(&pieces[i]);
        else
            pieces[i].as_written = pieces[i].constraint != NULL;
        begin_attempts(&pieces[i], d->t->config.beam);
        pieces[i].glance = pieces[i].as_written && d->unlisted && d->t->config.beam > 1;
    }
    if (d->notice.size == 0 && !d->notice.failed) return DGM_OK;
    // In one line, whatever the constraints hold.
    for (size_t i = 0; i < d->notice.size && !d->notice.failed; i++)
        if (d->notice.data[i] < 0x20 || d->notice.data[i] == 0x7f) d->notice.data[i] = ' ';
    line->notice = d->notice.failed
                       ? NULL
                       : dgm_strndup((const char *)d->notice.data, d->notice.size);
    if (!line->notice) return dgm_no_memory(err);
    line->flags |= DGM_LINE_UNMET;
    return DGM_OK;
}

// ---- translations of a piece -------------------------------------------------------------------

static bool meets(const dgm_piece_state *piece, const dgm_hypothesis *h, bool limits)
{
    const dgm_constraint *right = piece->constraint_right;
    if (right && !dgm_constraint_meets(right, h->tokens, h->count, limits)) return false;
    return dgm_constraint_meets(piece->constraint, h->tokens, h->count, limits);
}

bool dgm_piece_meets(const dgm_piece_state *piece, const dgm_hypothesis *h)
{
    return meets(piece, h, false);
}

bool dgm_piece_within(const dgm_piece_state *piece, const dgm_search_result *r)
{
    for (int k = 0; k < r->count; k++)
        if (!meets(piece, &r->hypotheses[k], true)) return false;
    return true;
}

void dgm_piece_loosen(dgm_piece_state *piece, bool loose)
{
    piece->loose = loose;
    dgm_constraint_loosen(piece->constraint, loose);
    if (piece->constraint_right) dgm_constraint_loosen(piece->constraint_right, loose);
}

void dgm_piece_lift(dgm_piece_state *piece, const int32_t *tokens, int count)
{
    dgm_constraint_lift(piece->constraint, tokens, count);
    if (piece->constraint_right) dgm_constraint_lift(piece->constraint_right, tokens, count);
}

void dgm_piece_exchange(dgm_piece_state *piece)
{
    const dgm_piece_source now = {piece->ids_at, piece->spans_at, piece->count, piece->text_count};
    piece->ids_at = piece->with_terms.ids_at;
    piece->spans_at = piece->with_terms.spans_at;
    piece->count = piece->with_terms.count;
    piece->text_count = piece->with_terms.text_count;
    piece->with_terms = now;
    piece->as_written = false;
}
