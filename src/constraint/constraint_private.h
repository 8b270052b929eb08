// SPDX-License-Identifier: MIT
// Private to score/constraint*.c: the automaton's tables.
#ifndef DGM_CONSTRAINT_CONSTRAINT_PRIVATE_H
#define DGM_CONSTRAINT_CONSTRAINT_PRIVATE_H

#include "constraint/constraint.h"

// Nodes 0 and 1: nothing matches; nothing matches and a word may begin.
enum { ROOT = 0, BEGIN = 1 };

// What ends at a node or at one on its chain of fail links.
enum {
    HAS_BOUNDED = 1,  // a term, if the word ends here
    HAS_OPEN = 2,     // a term
    BANS_BOUNDED = 4, // a forbidden text, if the word ends here
    BANS_OPEN = 8,    // a forbidden text
    ENDS_SUFFIX = 16
};

typedef struct trie_node {
    int32_t child, sibling, fail;
    int first_end, first_stage; // of this node alone; -1: none
    int deny, deny_count;       // in `denied`: tokens that would complete a forbidden text
    int32_t depth;              // bytes on the way to it
    int16_t byte;               // -1: ROOT and BEGIN
    uint16_t flags;             // with those of the fail links
    bool opens;                 // its last character is outside of words
} trie_node;

// A pattern that ends at a node.
typedef struct end {
    dgm_pattern_kind kind;
    int term;     // its bit in a state
    int owner;    // the term; another one where this is an occurrence more than the one it needs
    bool bounded; // only where a word ends
    int next;
} end;

// A pattern whose first `done` subwords end at a node; `token` is the next one, -1: none.
typedef struct stage {
    int term; // -1: the suffix
    int done, left;
    int32_t token;
    int subword; // the next one's number among the costs
    int next;
} stage;

// A forced pattern from its beginning.
typedef struct first_subword {
    int term; // -1: the suffix
    int32_t token;
    int subword, count;
} first_subword;

// Bits of the occurrences of a term that its limit leaves beyond the one that it needs.
typedef struct term_slots {
    int first, count;
} term_slots;

struct dgm_constraint {
    const dgm_surfaces *surfaces;
    int terms, node_bits;
    uint32_t all; // bits of all terms
    int slots;    // bits that are used: of terms, then of occurrences that limits leave to them beyond one
    uint32_t limited, once; // terms that are limited; that are to one occurrence, of a text that no other term has
    bool loose; // limits do not count
    bool from_right, endless; // endless: an end is demanded, but not of this automaton
    int suffix_subwords; // of what is read last: a suffix, or from the right a prefix
    int32_t *end; // [end_subwords] of a suffix, the last one first; NULL: there is none
    int end_subwords;
    bool end_alone;
    int *subwords; // [terms] of the shortest pattern
    term_slots *more; // [terms] of limited ones
    bool begins[256]; // bytes with which a pattern may begin
    trie_node *nodes;
    end *ends;
    stage *stages;
    first_subword *firsts;
    int32_t *denied, *tokens;
    size_t node_count, node_cap, end_count, end_cap, stage_count, stage_cap;
    size_t first_cap, denied_count, denied_cap, token_cap;
    int first_count, token_count, subword_count;
};

int32_t dgm_constraint_go(const dgm_constraint *c, int32_t node, uint8_t byte);
// What is wrong with a text.
enum { FORBIDDEN = 1, TOO_OFTEN = 2 };

// Reads text from a node; mask collects terms, *wrong what is wrong with it. over: NULL, or what collects the terms
// that are said too often.
int32_t dgm_constraint_read(const dgm_constraint *c, int32_t node, uint32_t *mask, dgm_text text, unsigned *wrong,
                            uint32_t *over);
// Terms met at a node if the word ended there, and those said too often with them.
uint32_t dgm_constraint_met(const dgm_constraint *c, int32_t node, uint32_t mask, uint32_t *over);

#endif
