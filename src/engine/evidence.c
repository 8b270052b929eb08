// SPDX-License-Identifier: MIT
// LMBR settings, and the rows that a line's evidence becomes when it is submitted.
//
//     candidates: text, score  --softmax of scale * score-->  weights
//                              --target vocabulary, </s>-->   subwords  --> posteriors --> rows
//     or a lattice             --target vocabulary-->         lattice of subwords --^
//
// They come with the line, or from a phrase-based system that decodes it first: on the threads that
// prepare lines, never on those of the search.
//
// Other systems speak words, ours subwords: every candidate is read with the model's own vocabulary,
// and n-grams are counted over its subwords. Most of the time goes into that reading, so words that
// were seen before are looked up. That is right where a text's subwords are those of its words, which
// holds for SentencePiece models that never join words; a line's first candidate is read in both ways,
// and where they differ all its candidates are read whole. So a line's rows depend on that line alone.
// N-grams are those of the order of writing: from right to left a word is followed by the one before it, and the end
// symbol by nothing behind the sentence's first word. Programs see them in the order of reading.
#include "engine/evidence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "engine/settings_table.h"
#include "format/directed.h"
#include "format/languages.h"

// ---- settings ----------------------------------------------------------------------------------

void dgm_lmbr_default(dgm_lmbr *l)
{
    if (l) *l = dgm_settings_usual().lmbr;
}

static dgm_status check_lmbr(const dgm_lmbr *l, int order, dgm_error *err)
{
    DGM_TRY(dgm_lmbr_check_values(l, err));
    if (l->use_thetas) return DGM_OK;
    dgm_lmbr_weights w;
    dgm_lmbr_thetas((double)l->p, (double)l->r, (double)l->t, order, w.theta);
    for (int n = 0; n <= DGM_LMBR_ORDER; n++)
        DGM_FAIL_IF(!(fabsf(w.theta[n]) <= 1e6f), err, DGM_ERR_ARGUMENT,
                    "theta %d of LMBR is %g; it must be between -1e+06 and 1e+06", n,
                    (double)w.theta[n]);
    return DGM_OK;
}

dgm_status dgm_lmbr_check(const dgm_settings *s, dgm_error *err)
{
    return dgm_wants_evidence(s) ? check_lmbr(&s->lmbr, s->lmbr_order, err) : DGM_OK;
}

void dgm_lmbr_resolve(dgm_translator *t, const dgm_lmbr *l)
{
    for (int n = 0; n <= DGM_LMBR_ORDER; n++)
        t->lmbr.theta[n] = n <= t->lmbr_order ? l->thetas[n] : 0.0f;
    if (!l->use_thetas)
        dgm_lmbr_thetas((double)l->p, (double)l->r, (double)l->t, t->lmbr_order, t->lmbr.theta);
    t->lmbr.lambda = l->lambda;
    t->lmbr_scale = (double)l->scale;
}

dgm_status dgm_lmbr_set(dgm_translator *t, const dgm_lmbr *l, dgm_error *err)
{
    DGM_FAIL_IF(!t->evidence, err, DGM_ERR_ARGUMENT, "the translator was opened without LMBR");
    DGM_TRY(check_lmbr(l, t->lmbr_order, err));
    dgm_lmbr_resolve(t, l);
    return DGM_OK;
}

// ---- phrase-based systems -----------------------------------------------------------------------
//
// Those of settings.phrase_system: "FILE" for all lines, or "en-de=FILE,fr-de=FILE", one for each direction. A file may
// say its languages itself; lines of others have no evidence then.

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

// ---- subwords ----------------------------------------------------------------------------------

static dgm_status append(dgm_evidence_maker *m, const int32_t *ids, size_t count, dgm_error *err)
{
    if (count == 0) return DGM_OK;
    DGM_TRY(dgm_grow(&m->ids, &m->ids_cap, m->id_count + count, sizeof *m->ids, err));
    memcpy(m->ids + m->id_count, ids, count * sizeof *ids);
    m->id_count += count;
    return DGM_OK;
}

// A word that was not seen before.
static dgm_status learn(dgm_evidence_maker *m, dgm_text word, dgm_error *err)
{
    dgm_word_subwords *k = &m->known;
    DGM_TRY(dgm_vocab_encode(m->t->target, word, &m->tokens, err));
    DGM_TRY(dgm_grow(&k->ids, &k->ids_cap, k->id_count + m->tokens.count + 1, sizeof *k->ids, err));
    DGM_TRY(dgm_grow(&k->at, &k->at_cap, k->words.count + 2, sizeof *k->at, err));
    uint32_t number = 0;
    DGM_TRY(dgm_words_add(&k->words, word, &number, err));
    if (number == 0) k->at[0] = 0;
    memcpy(k->ids + k->id_count, m->tokens.ids, m->tokens.count * sizeof *k->ids);
    k->id_count += m->tokens.count;
    k->at[number + 1] = k->id_count;
    return DGM_OK;
}

static dgm_status read_words(dgm_evidence_maker *m, dgm_text text, dgm_error *err)
{
    const dgm_word_subwords *k = &m->known;
    m->id_count = 0;
    for (size_t i = 0; i < text.size;) {
        size_t end = i;
        while (end < text.size && text.data[end] != ' ') end++;
        const dgm_text word = {text.data + i, end - i};
        i = end + 1;
        if (word.size == 0) continue;
        int64_t number = dgm_words_find(&k->words, word);
        if (number < 0) {
            DGM_TRY(learn(m, word, err));
            number = (int64_t)k->words.count - 1;
        }
        DGM_TRY(append(m, k->ids + k->at[number], k->at[number + 1] - k->at[number], err));
    }
    return DGM_OK;
}

static dgm_status read_whole(dgm_evidence_maker *m, dgm_text text, dgm_error *err)
{
    DGM_TRY(dgm_vocab_encode(m->t->target, text, &m->tokens, err));
    m->id_count = 0;
    return append(m, m->tokens.ids, m->tokens.count, err);
}

// Are the subwords of the text those of its words?
static dgm_status compare(dgm_evidence_maker *m, dgm_text text, bool *same, dgm_error *err)
{
    *same = false;
    if (dgm_vocab_get_kind(m->t->target) != DGM_VOCAB_SENTENCEPIECE) return DGM_OK;
    DGM_TRY(read_words(m, text, err));
    DGM_TRY(dgm_vocab_encode(m->t->target, text, &m->tokens, err));
    *same = m->tokens.count == m->id_count &&
            (m->id_count == 0 || memcmp(m->tokens.ids, m->ids, m->id_count * sizeof *m->ids) == 0);
    return DGM_OK;
}

// ---- rows --------------------------------------------------------------------------------------

static dgm_status weigh(dgm_evidence_maker *m, const dgm_evidence *e, dgm_error *err)
{
    DGM_TRY(dgm_grow(&m->weights, &m->weights_cap, e->count, sizeof *m->weights, err));
    for (size_t i = 0; i < e->count; i++) {
        DGM_FAIL_IF(!isfinite(e->candidates[i].score), err, DGM_ERR_TEXT,
                    "the score of candidate %zu of the evidence is not a finite number", i + 1);
        m->weights[i] = e->candidates[i].score;
    }
    dgm_evidence_weights(m->weights, e->count, m->t->lmbr_scale);
    return DGM_OK;
}

static bool turned(const dgm_evidence_maker *m)
{
    return dgm_model_describe(m->t->members[0].model)->order == DGM_ORDER_R2L;
}

static dgm_status collect(dgm_evidence_maker *m, const dgm_evidence *e, dgm_error *err)
{
    const int32_t eos = dgm_model_describe(m->t->members[0].model)->eos;
    bool words = false;
    dgm_posteriors_clear(&m->posteriors);
    for (size_t i = 0; i < e->count; i++) {
        const dgm_text text = {e->candidates[i].text, e->candidates[i].size};
        if (i == 0) DGM_TRY(compare(m, text, &words, err));
        DGM_TRY(words ? read_words(m, text, err) : read_whole(m, text, err));
        if (turned(m)) dgm_turn_ids(m->ids, 0, m->id_count);
        DGM_TRY(append(m, &eos, 1, err));
        DGM_TRY(dgm_posteriors_add(&m->posteriors, m->ids, m->id_count, m->weights[i], err));
    }
    return DGM_OK;
}

// Posteriors of a lattice of subwords; of one that is too large, of its better half, and so on.
static dgm_status collect_subwords(dgm_evidence_maker *m, dgm_lattice **subwords, dgm_error *err)
{
    const int32_t eos = dgm_model_describe(m->t->members[0].model)->eos;
    for (bool pruned = false;; pruned = true) {
        dgm_posteriors_clear(&m->posteriors);
        const dgm_status st = dgm_posteriors_lattice(&m->posteriors, *subwords, m->t->lmbr_scale,
                                                     eos, m->t->lmbr_limit, err);
        if (st == DGM_OK && pruned) m->pruned++;
        if (st != DGM_ERR_UNSUPPORTED || (*subwords)->arc_count < 2) return st;
        dgm_lattice *half = NULL;
        const dgm_lattice_pruning how = {.behind = -1, .max_arcs = (*subwords)->arc_count / 2};
        DGM_TRY(dgm_lattice_prune(*subwords, &how, &half, err));
        const bool smaller = half->arc_count < (*subwords)->arc_count;
        dgm_lattice_close(subwords);
        *subwords = half;
        if (!smaller) return st;
    }
}

// A lattice none of whose paths the vocabulary can spell says nothing.
static dgm_status collect_lattice(dgm_evidence_maker *m, const dgm_lattice *words, dgm_error *err)
{
    dgm_lattice *subwords = NULL;
    dgm_posteriors_clear(&m->posteriors);
    dgm_status st = dgm_lattice_subwords(words, m->t->target, &subwords, NULL, err);
    if (st == DGM_ERR_TEXT) return DGM_OK;
    if (st == DGM_OK && turned(m)) {
        dgm_lattice *forwards = subwords;
        st = dgm_lattice_reverse(forwards, &subwords, err);
        dgm_lattice_close(&forwards);
    }
    if (st == DGM_OK) st = collect_subwords(m, &subwords, err);
    dgm_lattice_close(&subwords);
    return st;
}

// ---- n-grams -----------------------------------------------------------------------------------

static void write_tokens(const dgm_evidence_maker *m, const dgm_lmbr_entry *e, dgm_writer *out)
{
    for (int i = 0; i < e->length; i++) {
        const dgm_text piece = dgm_vocab_piece(m->t->target, e->tokens[turned(m) ? e->length - 1 - i : i]);
        if (i) dgm_write_u8(out, ' ');
        dgm_write_bytes(out, piece.data, piece.size);
    }
    dgm_write_u8(out, 0);
}

// One block: the n-grams, and behind them their spellings.
static dgm_status make_ngrams(const dgm_evidence_maker *m, dgm_line_state *line, dgm_error *err)
{
    dgm_lmbr_entry *entries = NULL;
    size_t count = 0;
    dgm_writer text = {0};
    DGM_TRY(dgm_lmbr_entries(&m->posteriors, line->lmbr, &entries, &count, err));
    for (size_t i = 0; i < count; i++) write_tokens(m, &entries[i], &text);
    dgm_evidence_ngram *all =
        text.failed ? NULL : dgm_malloc((count + 1) * sizeof *all + text.size);
    if (all) {
        char *at = (char *)(all + count);
        if (text.size) memcpy(at, text.data, text.size);
        for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
            all[i] = (dgm_evidence_ngram){.tokens = at,
                                          .length = entries[i].length,
                                          .posterior = entries[i].p,
                                          .gain = (double)entries[i].gain};
        line->ngrams = all;
        line->ngram_count = count;
    }
    dgm_writer_free(&text);
    dgm_free(entries);
    return all ? DGM_OK : dgm_no_memory(err);
}

// ---- lines -------------------------------------------------------------------------------------

// The phrase-based system's word on a line, without a language's token before its text.
static dgm_status ask_phrases(dgm_evidence_maker *m, const dgm_line_state *line, dgm_evidence *e,
                              dgm_lattice **words, dgm_error *err)
{
    const size_t skip = line->pieces.items[0].begin;
    const dgm_text text = {line->text + skip, line->size - skip};
    const double begin = dgm_thread_time();
    const dgm_status st = dgm_phrases_say(m->phrases, text, &m->said, words, err);
    m->decoded++;
    m->decode_seconds += dgm_thread_time() - begin;
    *e = dgm_candidate_list_evidence(&m->said);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "phrase-based system");
    return st;
}

// Rows of a list, or of a lattice of words.
static dgm_status make_rows(dgm_evidence_maker *m, const dgm_evidence *e, const dgm_lattice *words,
                            dgm_line_state *line, dgm_error *err)
{
    const double begin = dgm_thread_time();
    m->posteriors.order = m->t->lmbr_order;
    if (!words) DGM_TRY(weigh(m, e, err));
    DGM_TRY(words ? collect_lattice(m, words, err) : collect(m, e, err));
    if (m->posteriors.count == 0) return DGM_OK;
    DGM_TRY(dgm_lmbr_compile(&line->lmbr, &m->posteriors, &m->t->lmbr, err));
    m->lines++;
    m->rows += (uint64_t)line->lmbr->states;
    m->values += (uint64_t)line->lmbr->at[line->lmbr->states];
    m->seconds += dgm_thread_time() - begin;
    return m->t->lmbr_ngrams ? make_ngrams(m, line, err) : DGM_OK;
}

dgm_status dgm_evidence_line(dgm_evidence_maker *m, const dgm_evidence *e, dgm_line_state *line,
                             dgm_error *err)
{
    DGM_FAIL_IF(!m->t->evidence, err, DGM_ERR_ARGUMENT,
                "the line has evidence, but the translator was opened without LMBR");
    DGM_FAIL_IF(e->count && e->lattice, err, DGM_ERR_ARGUMENT,
                "the evidence of a line must be an n-best list or a lattice, not both");
    dgm_lattice *words = NULL;
    dgm_evidence own = *e;
    dgm_status st = DGM_OK;
    if (e->lattice)
        st = dgm_lattice_parse(&words, (dgm_text){e->lattice, e->lattice_size}, 1, NULL, err);
    else if (e->count == 0 && m->phrases)
        st = ask_phrases(m, line, &own, &words, err);
    if (st == DGM_OK && (words || own.count)) st = make_rows(m, &own, words, line, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY && (e->lattice || words))
        dgm_error_prefix(err, "lattice of the evidence");
    dgm_lattice_close(&words);
    return st;
}

void dgm_evidence_maker_free(dgm_evidence_maker *m)
{
    dgm_posteriors_free(&m->posteriors);
    dgm_candidate_list_free(&m->said);
    dgm_words_free(&m->known.words);
    dgm_free(m->known.at);
    dgm_free(m->known.ids);
    dgm_tokens_free(&m->tokens);
    dgm_free(m->weights);
    dgm_free(m->ids);
}
