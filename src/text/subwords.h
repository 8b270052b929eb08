// SPDX-License-Identifier: MIT
// Vocabularies of byte-pair encodings, as other systems write them; the engine sees them through
// vocab.h, which owns the spellings of the ids.
//
//   subword-nmt   words of a tokeniser, "low@@ er": a token that ends in the separator goes on
//   byte-level    GPT-2's: words by its pattern with their space before them, bytes spelled as letters
//   metaspace     "▁low er": a space is a character; bytes of unknown characters as <0xE2>
//   joiner        OpenNMT's: a mark at the side of a token where no space stands ("low￭ er ￭,")
//   spacer        OpenNMT's: "low er ▁and", a mark where a space stands
//   words         no merging: every word is one token (words of a tokeniser that rewrites text)
//
// From text to ids: normaliser, words, symbols of a word, merges, ids. Everything works on glyphs.h, so
// every token knows its place in the text. Nothing changes after opening but one byte per token, which
// remembers whether it is how its own word is encoded: threads may write it at the same time.
#ifndef DGM_TEXT_SUBWORDS_H
#define DGM_TEXT_SUBWORDS_H

#include "text/glyphs.h"
#include "text/opennmt.h"
#include "text/sacremoses.h"
#include "text/spellings.h"

typedef enum dgm_bpe_style {
    DGM_BPE_SUBWORD_NMT = 0,
    DGM_BPE_BYTE_LEVEL,
    DGM_BPE_METASPACE,
    DGM_BPE_JOINER,
    DGM_BPE_SPACER,
    DGM_BPE_WORDS,
} dgm_bpe_style;

// Everything is borrowed for the call to open only.
typedef struct dgm_bpe_options {
    dgm_bpe_style style;
    const dgm_text *merges; // [merge_count] "left right"
    size_t merge_count;
    dgm_text separator;        // subword-nmt; empty: "@@". joiner: the mark; empty: "￭"
    const dgm_text *protect;   // [protect_count] never taken apart (glossaries)
    size_t protect_count;
    const dgm_text *normalize; // [normalize_count] steps of normalize.h
    size_t normalize_count;
    const void *charsmap; // of the step "charsmap"
    size_t charsmap_size;
    bool end_apart;     // subword-nmt 0.1: the end of a word is a symbol of its own
    bool restricted;    // pieces that are no tokens are taken apart again
    bool prefix_space;  // byte-level, metaspace: a space before the text, unless it begins with one
    bool space_always;  // metaspace: even then
    bool whole_text;    // metaspace: merges reach across spaces
    bool byte_fallback; // metaspace
    bool fuse_unknown;  // metaspace: unknown characters in a row are one
    bool whole_words;   // a word that is a token is not looked at further
    bool moses;         // words by sacremoses.h, else what stands between white space
    unsigned moses_options;
    dgm_opennmt_mode opennmt; // joiner, spacer
    dgm_text language;
} dgm_bpe_options;

typedef struct dgm_subwords dgm_subwords;

// spellings: of the ids; must outlive the object.
dgm_status dgm_subwords_open(dgm_subwords **s, const dgm_bpe_options *options,
                             const dgm_spelling_list *spellings, int32_t unk, dgm_error *err);
void dgm_subwords_close(dgm_subwords **s); // sets NULL; accepts NULL inside

// Called once per token, in order; begin and end are bytes of the text.
typedef dgm_status (*dgm_subword_fn)(void *arg, int32_t id, uint32_t begin, uint32_t end);
dgm_status dgm_subwords_encode(const dgm_subwords *s, dgm_text text, dgm_subword_fn fn, void *arg,
                               dgm_error *err);

// A token on its way to text.
typedef struct dgm_subword {
    dgm_text text;
    bool plain; // text from elsewhere, to be written as it is
} dgm_subword;

// Tokens to text, as glyphs that came from tokens begin .. end.
dgm_status dgm_subwords_decode(const dgm_subwords *s, const dgm_subword *tokens, size_t count,
                               dgm_glyphs *out, dgm_error *err);

// Does it cut text into words itself, or take words that stand between spaces?
bool dgm_subwords_takes_text(const dgm_subwords *s);
// What a token writes wherever it stands (surface.h). *inside: it continues a word.
void dgm_subwords_surface(const dgm_subwords *s, dgm_text token, dgm_writer *out, bool *inside);
bool dgm_subwords_begins_word(const dgm_subwords *s, dgm_text token);
// How many of the first tokens make a text that later ones do not change but in its last word.
size_t dgm_subwords_settled(const dgm_subwords *s, const dgm_subword *tokens, size_t count);

#endif
