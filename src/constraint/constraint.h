// SPDX-License-Identifier: MIT
// Lexical constraints of one sentence as an automaton over the bytes that a hypothesis has written.
//
// Terms must occur, forbidden texts must not, a suffix must come last. All are whole words: a term
// that begins or ends inside a word matches only where a word begins or ends. The automaton reads
// bytes, not tokens, so that a text is recognised however the model spells it in subwords:
//
//     root --(word begins)--> o --H--> o --a--> o --u--> o --s--> [term 0, if the word ends here]
//                             |--K--> ...
//     fail links as in Aho and Corasick (1975): the longest beginning of a pattern that the
//     hypothesis ends with
//
// A state is one int32: the node in the low bits, above it one bit per term that is met. What a
// search needs beside following the state (search/banks.c):
//
//   offers   the next subwords of unmet terms, as the vocabulary itself spells them: candidates that
//            a hypothesis always has, whatever the model thinks of them
//   missing  subwords still to come before the sentence may end
//   bank     how far a hypothesis has come: terms met, and whether one is under way
//   debt     what the missing subwords are expected to cost
//
// A model that writes from right to left takes an automaton that reads from the right: it is fed the last
// token first, and each token's last byte first. What must come first in a sentence is what it reads last; what must
// come last is no matter of the automaton then: those tokens are the ones to begin with (dgm_constraint_end).
//
// A term may be limited: its text then occurs no more often than its source words do, and those of all terms that
// have it (a model that says a term early says it again in the term's own place otherwise). An occurrence beyond
// that is as bad as a forbidden text. No limit counts where another forced pattern holds the text of the term, or a
// term its own text twice.
//
// An automaton is made when a line is prepared and belongs to who translates the line.
#ifndef DGM_CONSTRAINT_CONSTRAINT_H
#define DGM_CONSTRAINT_CONSTRAINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "text/surface.h"

enum {
    DGM_CONSTRAINT_BITS = 31,   // of a state
    DGM_CONSTRAINT_SUBWORDS = 512 // of all forced patterns of a sentence
};

typedef struct dgm_constraint dgm_constraint;

typedef enum dgm_pattern_kind {
    DGM_PATTERN_TERM = 0, // one of the patterns of each term must occur
    DGM_PATTERN_FORBID,
    DGM_PATTERN_SUFFIX, // comes last in the sentence; at most one
    DGM_PATTERN_PREFIX  // comes first, a word may go on behind it; at most one, only where it is read from the right
} dgm_pattern_kind;

// Everything is borrowed for the call to compile only.
typedef struct dgm_pattern {
    dgm_pattern_kind kind;
    int term;              // of DGM_PATTERN_TERM: 0 .. terms - 1
    const int32_t *tokens; // [count] as the vocabulary spells it
    int count;
    bool open; // a word may go on behind it
    int most;  // of all patterns of a term: how often they may occur together; 0: any number
} dgm_pattern;

// surfaces must outlive the automaton. Every term has at least one pattern. DGM_ERR_UNSUPPORTED:
// terms and patterns do not fit a state; leave some out.
dgm_status dgm_constraint_compile(dgm_constraint **c, const dgm_surfaces *surfaces,
                                  const dgm_pattern *patterns, int count, int terms,
                                  dgm_error *err);
// The same for who reads from the right.
dgm_status dgm_constraint_compile_right(dgm_constraint **c, const dgm_surfaces *surfaces,
                                        const dgm_pattern *patterns, int count, int terms,
                                        dgm_error *err);
// For who writes from both ends: an automaton for the left words, without a suffix, and one for the right words. Of a
// suffix alone there is only the left one, which has it. NULL inside both on failure.
dgm_status dgm_constraint_compile_both(dgm_constraint **left, dgm_constraint **right, const dgm_surfaces *surfaces,
                                       const dgm_pattern *patterns, int count, int terms, dgm_error *err);
void dgm_constraint_free(dgm_constraint **c); // sets NULL; accepts NULL inside
bool dgm_constraint_from_right(const dgm_constraint *c);
// All of a sentence's tokens, in the order of reading, through the automaton: does it meet everything, and with
// `limits` say nothing too often?
bool dgm_constraint_meets(const dgm_constraint *c, const int32_t *tokens, int count, bool limits);
// From now on, what these tokens say too often may be said any number of times; NULL: everything may. Not while a
// search follows it.
void dgm_constraint_lift(dgm_constraint *c, const int32_t *tokens, int count);
// loose: searches follow it as if nothing were limited. Not while one does.
void dgm_constraint_loosen(dgm_constraint *c, bool loose);
bool dgm_constraint_limited(const dgm_constraint *c); // is a term?

int32_t dgm_constraint_start(const dgm_constraint *c);
// The state after one more token. *broken: with it a forbidden text occurs, or a limited one too often.
int32_t dgm_constraint_advance(const dgm_constraint *c, int32_t state, int32_t token, bool *broken);
// The state of a reading from the left, with the terms that a reading of other words from the right has met: c and
// right are of the same patterns.
int32_t dgm_constraint_join(const dgm_constraint *c, int32_t state, const dgm_constraint *right, int32_t other);
// Do both readings have a term that may be said once?
bool dgm_constraint_clashes(const dgm_constraint *c, int32_t state, const dgm_constraint *right, int32_t other);
// Is a term unmet, and nothing of any pattern stands at the end of what was read? Then no words behind it complete one
// that began before them.
bool dgm_constraint_lacks(const dgm_constraint *c, int32_t state);
bool dgm_constraint_may_end(const dgm_constraint *c, int32_t state); // everything is met
int dgm_constraint_missing(const dgm_constraint *c, int32_t state);  // subwords still to come
// Read from the right: does the text end inside of a word? A term that is not under way can only stand behind a token
// with that word's beginning (dgm_constraint_beginnings).
bool dgm_constraint_glued(const dgm_constraint *c, int32_t state);
bool dgm_constraint_under_way(const dgm_constraint *c, int32_t state); // is some of what it lacks said?
// Does a term count as met only if the word ends here?
bool dgm_constraint_pending(const dgm_constraint *c, int32_t state);
// Tokens that begin outside of words, the end symbol among them, ascending; named as other lists are.
const int32_t *dgm_constraint_beginnings(const dgm_constraint *c, int *count);
int dgm_constraint_banks(const dgm_constraint *c);                  // their number
int dgm_constraint_bank(const dgm_constraint *c, int32_t state);    // 0 .. banks - 1
// What the missing subwords cost if subword i of all forced patterns, behind each other, costs cost[i].
float dgm_constraint_debt(const dgm_constraint *c, int32_t state, const float *cost);
int dgm_constraint_subwords(const dgm_constraint *c);               // how many costs there are
bool dgm_constraint_subword_first(const dgm_constraint *c, int i);  // does it begin a pattern?
// Next subwords of unmet terms, without doubles, at most `most`; returns their number. subwords: their
// numbers among the costs.
int dgm_constraint_offers(const dgm_constraint *c, int32_t state, int32_t *tokens, int *subwords,
                          int most);
// What may follow at all (allow, ascending; NULL: anything) and what may not (deny, ascending).
void dgm_constraint_limits(const dgm_constraint *c, int32_t state, const int32_t **allow,
                           int *allow_count, const int32_t **deny, int *deny_count);
// Tokens with which a term would be said too often, as the vocabulary spells it: at most `most`; returns their number.
int dgm_constraint_spent(const dgm_constraint *c, int32_t state, int32_t *tokens, int most);
// A number for such a list of allowed tokens, which means it and no other, always; 0 for NULL.
uint64_t dgm_constraint_list_name(const dgm_constraint *c, const int32_t *allow);
// Every token of the patterns, ascending, without doubles: they must be candidates.
const int32_t *dgm_constraint_tokens(const dgm_constraint *c, int *count);
// The tokens of a suffix, the last one first: what a model can follow that begins at the end of a sentence. NULL:
// there is none.
const int32_t *dgm_constraint_end(const dgm_constraint *c, int *count);
bool dgm_constraint_end_alone(const dgm_constraint *c); // has a suffix and nothing else
bool dgm_constraint_closes(const dgm_constraint *c); // is something read last, so that any token behind it undoes it?
bool dgm_constraint_forces(const dgm_constraint *c); // has terms or a suffix, not only bans

#endif
