// SPDX-License-Identifier: MIT
// Lexical translation tables: p(target | source) for words that alignments link.
//
// Probabilities are relative frequencies of links, p(t | s) = c(s, t) / c(s); a word without any
// link counts as linked with NULL. A row is one source word, its entries stand by falling
// probability, then by target number. Text form, one entry a line, the target first as in Marian's
// lex.s2t:
//
//     TARGET SOURCE PROBABILITY
//
// where NULL is the empty word (a real word of that spelling cannot be told from it and is left
// out). The same file read as SOURCE TARGET is p of the other direction's lex.t2s.
#ifndef DGM_ALIGN_LEXICON_H
#define DGM_ALIGN_LEXICON_H

#include <stdint.h>

#include "base/status.h"
#include "base/textfile.h"
#include "base/words.h"
#include "text/unicode.h"

typedef struct dgm_lexicon_entry {
    uint32_t target; // == targets: NULL
    float prob;
} dgm_lexicon_entry;

typedef struct dgm_lexicon {
    uint32_t sources, targets; // words without NULL
    uint64_t *at;              // [sources + 2]; row `sources` is NULL's
    dgm_lexicon_entry *entry;
    dgm_words source, target; // spellings, of a table that was read; else empty
} dgm_lexicon;

void dgm_lexicon_close(dgm_lexicon **lex); // sets NULL; accepts NULL inside

// ---- counting ---------------------------------------------------------------------------------

// Linked word pairs; a word == sources (targets) stands for NULL. Start with sources and targets
// set and everything else zero.
typedef struct dgm_link_counts {
    uint32_t sources, targets;
    uint64_t *key; // source * (targets + 1) + target, one for every link seen
    size_t count, cap;
} dgm_link_counts;

dgm_status dgm_link_counts_add(dgm_link_counts *c, uint32_t source, uint32_t target,
                               dgm_error *err);
void dgm_link_counts_free(dgm_link_counts *c);

// reverse: the table is p(source | target), its `sources` are the targets of the counts.
// Sorts the counts.
dgm_status dgm_lexicon_count(dgm_lexicon **lex, dgm_link_counts *c, bool reverse, dgm_error *err);

// ---- text -------------------------------------------------------------------------------------

// Spelling of a word; target: of which side.
typedef dgm_text (*dgm_lexicon_spell)(const void *context, bool target, uint32_t word);

dgm_status dgm_lexicon_write(const dgm_lexicon *lex, dgm_lexicon_spell spell, const void *context,
                             const char *path, dgm_error *err);

// Plain or gzip. Entries with NULL are skipped; of an entry that stands twice the last counts.
// Messages name file and line.
dgm_status dgm_lexicon_read(dgm_lexicon **lex, const char *path, dgm_error *err);
// The same from memory; messages name the line ("line 3: ...").
dgm_status dgm_lexicon_parse(dgm_lexicon **lex, const char *text, size_t size, dgm_error *err);

#endif
