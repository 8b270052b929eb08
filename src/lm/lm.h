// SPDX-License-Identifier: MIT
// An n-gram language model with backoff: read from an ARPA file or mapped from a compact file,
// asked word by word. Built by lm_build.c, used by the tools and whatever scores with it.
//
// It is a trie of the n-grams' words from the first to the last, an array per order:
//
//     order n   node i = | word | prob | backoff | begin |   fields of bits, back to back
//
// `begin` is the first of a node's children in order n + 1, the next node's begin their end; nodes
// with one parent are sorted by word. Order 1 has no word field (node i is word i), the highest no
// backoff and no begin. A field has as many bits as its largest value needs; prob and backoff are
// floats (32 bits) or indices into a table of the order (quantised). The same bytes lie in memory
// and in the file, so that a file is used where it is mapped (little-endian machines only).
//
// A file is checked for its sizes when it is opened, its nodes when they are used: a damaged one
// gives wrong numbers, never a read outside it. An open model is never changed: threads share it.
#ifndef DGM_LM_LM_H
#define DGM_LM_LM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compact.h"
#include "base/status.h"
#include "text/unicode.h"

#define DGM_LM_ORDER_MAX 5
#define DGM_LM_NONE UINT32_MAX
#define DGM_LM_BITS_MAX 16 // of a quantised number

typedef struct dgm_lm_level {
    const uint8_t *nodes;
    uint64_t count;
    uint32_t word_bits, prob_bits, backoff_bits, begin_bits;
    const float *prob_table, *backoff_table; // [1 << bits]; NULL: floats
} dgm_lm_level;

typedef struct dgm_lm {
    dgm_compact bytes; // first: the whole, as in the file
    int order;
    uint32_t words, unk, bos, eos;
    int bits;                                 // 0: floats
    dgm_lm_level level[DGM_LM_ORDER_MAX + 1]; // [1] to [order]
    dgm_spellings spellings;
} dgm_lm;

// A compact file or an ARPA file, plain or gzip: found by the first bytes. Messages name the file.
dgm_status dgm_lm_open(dgm_lm **lm, const char *path, dgm_error *err);
dgm_status dgm_lm_open_bytes(dgm_lm **lm, const void *data, size_t size,
                             dgm_error *err); // borrowed
void dgm_lm_close(dgm_lm **lm);               // sets *lm to NULL; accepts NULL inside
dgm_status dgm_lm_save(const dgm_lm *lm, const char *path, dgm_error *err);

// The number of a word; that of <unk> if the model does not have it, and for <s> and </s>, which
// are no words of a text.
uint32_t dgm_lm_word(const dgm_lm *lm, dgm_text word);
dgm_text dgm_lm_spell(const dgm_lm *lm, uint32_t word);

// The last words, as nodes: node[k] is the n-gram of the last k + 1 of them or DGM_LM_NONE.
typedef struct dgm_lm_state {
    int length;
    uint32_t node[DGM_LM_ORDER_MAX - 1];
} dgm_lm_state;

void dgm_lm_begin(const dgm_lm *lm, dgm_lm_state *state); // behind <s>
void dgm_lm_empty(dgm_lm_state *state);                   // behind nothing
// log10 p(word | state). *next (may be state itself, NULL: not wanted) is the state behind it,
// *matched (NULL: not wanted) the length of the n-gram whose probability was found.
double dgm_lm_step(const dgm_lm *lm, const dgm_lm_state *state, uint32_t word, dgm_lm_state *next,
                   int *matched);

// A node's numbers, for whoever walks the trie. n from 1 to order, i < level[n].count.
float dgm_lm_prob(const dgm_lm *lm, int n, uint64_t i);
float dgm_lm_backoff(const dgm_lm *lm, int n, uint64_t i); // n < order
uint32_t dgm_lm_node_word(const dgm_lm *lm, int n, uint64_t i);
void dgm_lm_children(const dgm_lm *lm, int n, uint64_t i, uint64_t *begin, uint64_t *end);

// The largest distance from 1 of the sum of probabilities behind `contexts` contexts, drawn from the
// model's n-grams of every length below its order in turn; and the mean distance (NULL: not wanted).
double dgm_lm_check(const dgm_lm *lm, uint64_t contexts, uint64_t seed, double *mean);

// ---- ARPA -------------------------------------------------------------------------------------

// Takes an ARPA file line by line. Messages do not name the file.
typedef struct dgm_arpa dgm_arpa;
dgm_status dgm_arpa_open(dgm_arpa **a, dgm_error *err);
void dgm_arpa_close(dgm_arpa **a);
dgm_status dgm_arpa_line(dgm_arpa *a, dgm_text line, dgm_error *err);
// The end of the file: checks that nothing is missing and builds the model. bits 0: floats, else
// probabilities and backoffs of order 2 and above are rounded to 2^bits values each.
dgm_status dgm_arpa_finish(dgm_arpa *a, int bits, dgm_lm **lm, dgm_error *err);

dgm_status dgm_lm_read_arpa(dgm_lm **lm, const char *path, int bits, dgm_error *err);
// Writes n-grams in the order of the words' numbers: what was written so is read and written again
// byte by byte.
dgm_status dgm_lm_write_arpa(const dgm_lm *lm, const char *path, dgm_error *err);

// ---- inside -----------------------------------------------------------------------------------

// Builds the file's bytes from sorted n-grams (lm_build.c).
struct dgm_extsort;
struct dgm_words;
dgm_status dgm_lm_build(dgm_lm **lm, const struct dgm_words *words,
                        struct dgm_extsort *const *grams, int order, const uint64_t *counts,
                        int bits, dgm_error *err);

#endif
