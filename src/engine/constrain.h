// SPDX-License-Identifier: MIT
// Private to engine/: constraints of lines, from texts to automata; see constrain.c.
#ifndef DGM_ENGINE_CONSTRAIN_H
#define DGM_ENGINE_CONSTRAIN_H

#include "engine/engine_private.h"
#include "constraint/demands.h"
#include "constraint/glossary.h"
#include "text/splice.h"

// Something that a piece's translation must or must not say: variants of the line's demands, a
// glossary entry, or one text of the line.
typedef struct dgm_want {
    dgm_pattern_kind kind;
    int32_t entry; // of the glossary; -1: none
    size_t first, count; // of the demands' variants; count 0: `text`
    dgm_text text;
    bool open;     // a word may go on behind it
    int most;      // how often it may be said; 0: any number
    bool reported; // in the notice
} dgm_want;

// Words of a text for which a term stands.
typedef struct dgm_term_place {
    size_t begin, end;
    dgm_text with;
} dgm_term_place;

// Buffers of one submit call, used again for every line; start with all zero.
typedef struct dgm_demander {
    const dgm_translator *t;
    bool active; // something may be demanded of this line
    const dgm_glossary *glossary; // of its direction; NULL: none
    bool from_right; // the model writes the last word first,
    bool from_both;  // or pairs from both ends
    bool inside_lattice; // of the line: it says what a translation may hold, whatever the model reads
    dgm_text prefix; // of the line
    bool token_prefix; // it is given as tokens
    dgm_demands demands;
    dgm_writer clean, decoded, notice;
    dgm_tokens tokens;
    dgm_writer spelled; // the text that was spelled last, and as what: a term is looked at several times
    int32_t *spelling;
    size_t spelling_count, spelling_cap;
    bool spelling_fits;
    int32_t *ids; // tokens of all patterns
    size_t id_count, id_cap;
    dgm_pattern *patterns;
    size_t *starts; // of each pattern in ids
    size_t pattern_count, pattern_cap, start_cap;
    dgm_want *wants; // of the piece at hand
    size_t want_count, want_cap;
    dgm_term_place *places; // of the text at hand
    size_t place_count, place_cap;
    bool unusual; // the model never says one of them by itself
    bool unlisted; // nobody knows, as it has no shortlist
    dgm_tokens words; // of the source of a term
    dgm_tokens around; // of the text at hand, as the model reads it without terms
} dgm_demander;

// constrain_source.c: what source tokens usually become, as the model's shortlist knows it. Guarded by the translator's
// lock.
dgm_status dgm_usual_open(struct dgm_usual **u, const dgm_gguf *file, dgm_error *err);
void dgm_usual_close(struct dgm_usual **u); // sets NULL; accepts NULL inside
bool dgm_usual_known(const struct dgm_usual *u); // has the model a shortlist?
// Is every target token among those that the source tokens become? Where nothing is known, yes.
bool dgm_usual_becomes(const struct dgm_usual *u, const dgm_tokens *source, const dgm_tokens *target);

// constrain.c: the tokens of a text in d->tokens; *fits: the vocabulary spells it exactly, and models say all of them.
dgm_status dgm_demander_spell(dgm_demander *d, dgm_text text, bool *fits, dgm_error *err);
dgm_status dgm_demander_spell_by(dgm_demander *d, const dgm_vocab *v, dgm_text text, bool *fits, dgm_error *err);
dgm_text dgm_want_variant(const dgm_demander *d, const dgm_want *w, size_t i);
size_t dgm_want_variants(const dgm_demander *d, const dgm_want *w);
bool dgm_demander_names(const dgm_demander *d, dgm_text source); // do the line's demands have a term for it?
// constrain_source.c: sets w->most, of a term with a source.
dgm_status dgm_want_limit(dgm_demander *d, dgm_text text, dgm_text source, dgm_want *w, dgm_error *err);

void dgm_demander_free(dgm_demander *d);
// Before the line is cut: reads its demands; a demanded beginning becomes the input's prefix,
// borrowed from d until the next line.
dgm_status dgm_demander_begin(dgm_demander *d, const dgm_translator *t, dgm_input *input,
                              uint32_t *flags, dgm_error *err);
// Its direction is known (other: it is not the translator's): whose glossaries it has.
dgm_status dgm_demander_direct(dgm_demander *d, const int direction[2], bool other, dgm_error *err);
// constrain_source.c. When a part of it is encoded (`written` as in the line, `part` in the case that the model sees,
// of the same length): the part with terms in place of their source words; *switched: it has some. A term that either
// vocabulary cannot spell stays away.
dgm_status dgm_demander_switch(dgm_demander *d, dgm_text written, dgm_text part, dgm_spliced *out, bool *switched,
                               dgm_error *err);
// Afterwards: automata of its pieces, and what is to be said about it. tokens: of the job. A beginning that the model
// writes last becomes part of an automaton.
dgm_status dgm_demander_end(dgm_demander *d, dgm_line_state *line, dgm_piece_state *pieces, const int32_t *tokens,
                            dgm_error *err);

#endif
