// SPDX-License-Identifier: MIT
// Unknown words of the output, replaced with the help of attention (Devlin 2017, after Jean 2015).
//
// A model with a word vocabulary may produce <unk>. It stands for the source word that it attended
// to most: what a dictionary translates that word by is written instead, or, where there is none,
// the word as it stands in the source text. The dictionary is a lexical table over words (the text
// form of align/lexicon.h, `dragoman align --lex-s2t`), which knows words that neither vocabulary
// holds. A word is looked up as it is written, then in lower case.
//
// Called by assemble.c for every hypothesis, before its words become text.
#include <string.h>

#include "base/mem.h"
#include "engine/engine_private.h"
#include "align/lexicon.h"

struct dgm_dictionary {
    dgm_lexicon *lex;
};

void dgm_dictionary_close(dgm_dictionary **d)
{
    if (!*d) return;
    dgm_lexicon_close(&(*d)->lex);
    dgm_free(*d);
    *d = NULL;
}

dgm_status dgm_dictionary_open(dgm_dictionary **d, const char *path, dgm_error *err)
{
    *d = dgm_calloc(1, sizeof **d);
    if (!*d) return dgm_no_memory(err);
    dgm_status st = dgm_lexicon_read(&(*d)->lex, path, err);
    if (st != DGM_OK) dgm_dictionary_close(d);
    return st;
}

// The most probable translation that is a word; empty: none.
static dgm_text best_translation(const dgm_lexicon *lex, dgm_text word)
{
    int64_t row = dgm_words_find(&lex->source, word);
    if (row < 0 || row >= (int64_t)lex->sources) return (dgm_text){"", 0};
    for (uint64_t i = lex->at[row]; i < lex->at[row + 1]; i++)
        if (lex->entry[i].target < lex->targets)
            return dgm_words_spell(&lex->target, lex->entry[i].target);
    return (dgm_text){"", 0};
}

dgm_status dgm_settings_unknown(dgm_translator *t, const dgm_settings *s, dgm_error *err)
{
    dgm_asked possible = t->wanted; // where nobody asks for it, it is done where it can be
    possible.replace_unknown = true;
    int how = s->unknown;
    if (how == DGM_UNKNOWN_MODEL && s->dictionary) how = DGM_UNKNOWN_REPLACE;
    if (how == DGM_UNKNOWN_MODEL)
        how = t->config.allow_unk && dgm_asked_check(&possible, NULL) == DGM_OK
                  ? DGM_UNKNOWN_REPLACE
                  : DGM_UNKNOWN_KEEP;
    if (how == DGM_UNKNOWN_KEEP) return DGM_OK;
    t->config.allow_unk = s->allow_unk != 0;
    t->config.alignment = true;
    t->replace_unknown = true;
    if (s->dictionary && how == DGM_UNKNOWN_REPLACE)
        DGM_TRY(dgm_dictionary_open(&t->dictionary, s->dictionary, err));
    return DGM_OK;
}

// Where token `token` of a piece stands in its line.
static dgm_text source_word(const dgm_piece_state *piece, int32_t token)
{
    const dgm_line_state *line = piece->line;
    if (token < 0 || token >= piece->text_count) return (dgm_text){"", 0};
    dgm_span span = line->job->encoded.spans[piece->spans_at + (size_t)token];
    return (dgm_text){line->text + span.begin, span.end - span.begin};
}

// *translated: the dictionary has it.
static dgm_status spell_unknown(const dgm_translator *t, dgm_text word, dgm_scratch *s,
                                dgm_text *out, bool *translated, dgm_error *err)
{
    *out = word;
    *translated = false;
    if (!t->dictionary || !word.size) return DGM_OK;
    const dgm_lexicon *lex = t->dictionary->lex;
    dgm_text found = best_translation(lex, word);
    if (!found.size) {
        s->lower.size = 0;
        DGM_TRY(dgm_utf8_lower(word, &s->lower, err));
        found = best_translation(lex, (dgm_text){(const char *)s->lower.data, s->lower.size});
    }
    *translated = found.size > 0;
    if (*translated) *out = found;
    return DGM_OK;
}

dgm_status dgm_unknown_spell(const dgm_piece_state *piece, const dgm_raw *h, dgm_scratch *s,
                             const dgm_text **spelled, dgm_error *err)
{
    const dgm_translator *t = piece->line->job->translator;
    *spelled = NULL;
    if (!t->replace_unknown || !h->align) return DGM_OK;
    bool any = false;
    for (int j = 0; j < h->count && !any; j++) any = dgm_vocab_is_unknown(t->target, h->tokens[j]);
    if (!any) return DGM_OK;
    DGM_TRY(dgm_grow(&s->spelled, &s->spelled_cap, (size_t)h->count, sizeof *s->spelled, err));
    uint64_t words = 0, translated = 0;
    for (int j = 0; j < h->count; j++) {
        bool known;
        s->spelled[j] = (dgm_text){NULL, 0};
        if (!dgm_vocab_is_unknown(t->target, h->tokens[j])) continue;
        dgm_text word = source_word(piece, h->align[j]);
        DGM_TRY(spell_unknown(t, word, s, &s->spelled[j], &known, err));
        if (!s->spelled[j].size) s->spelled[j] = (dgm_text){NULL, 0};
        words += s->spelled[j].size > 0;
        translated += known;
    }
    dgm_translator *counted = (dgm_translator *)(uintptr_t)t; // counts are no part of the settings
    pthread_mutex_lock(&counted->lock);
    counted->unknown_words += words;
    counted->unknown_translated += translated;
    pthread_mutex_unlock(&counted->lock);
    *spelled = s->spelled;
    return DGM_OK;
}
