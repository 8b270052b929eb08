// SPDX-License-Identifier: MIT
// Lattices: acyclic graphs whose paths are sentences with scores.
//
//     node 0 --Guten/-0.4--> 1 --Morgen/-0.1--> 2 --"~."/0--> 3 (end, 0)
//            \-Schönen/-1.2-^
//
// A path's score is the sum over its arcs and of its end; scores are logarithms, higher is better
// (OpenFst's costs are their negatives). An arc says one or more words, or nothing (word -1). Words
// stand one space apart unless a mark glues them together, so that a path is text again. In a
// lattice of tokens (dgm_lattice_subwords) words are ids of a vocabulary and there are no marks.
//
// Built by adding nodes, arcs and ends; dgm_lattice_seal then checks it, numbers the nodes in
// topological order from the start, 0, and sorts the arcs by the node they leave. Everything below
// it wants sealed lattices, which no function changes: threads may share them.
//
//   lattice.c           building, sealing, text of a path
//   lattice_text.c      the text format and OpenFst's (docs/manual/LATTICES.md)
//   lattice_file.c      files of many lattices
//   lattice_list.c      n-best lists as lattices
//   lattice_ops.c       best scores, posteriors, pruning, union, reversal
//   lattice_nbest.c     the n best paths
//   lattice_subwords.c  words into tokens of a vocabulary
//   lattice_subsets.c   one arc per token and node
#ifndef DGM_LATTICE_LATTICE_H
#define DGM_LATTICE_LATTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "base/words.h"
#include "text/unicode.h"
#include "text/vocab.h"

#define DGM_LATTICE_MAX ((size_t)1 << 24) // nodes, and arcs
#define DGM_LATTICE_NO_WORD (-1)

enum { DGM_GLUE_LEFT = 1, DGM_GLUE_RIGHT = 2 }; // no space before, after

typedef struct dgm_lattice_arc {
    int32_t from, to;
    int32_t word;  // of `words`, or an id of a vocabulary; DGM_LATTICE_NO_WORD
    uint32_t glue; // DGM_GLUE_...
    float score;   // finite
    uint32_t line; // of the file it was read from, 0: none
} dgm_lattice_arc;

typedef struct dgm_lattice {
    int32_t node_count;
    float *ends;     // [node_count] score of ending there; -inf: no end
    uint32_t *lines; // [node_count] line of the file that first named it, 0: none
    dgm_lattice_arc *arcs;
    size_t arc_count;
    size_t *first;   // sealed: [node_count + 1] arcs of node i are first[i] .. first[i + 1] - 1
    dgm_words words; // spellings; empty in a lattice of tokens
    char *name;      // of a file's block, or NULL
    size_t end_cap, line_cap, arc_cap;
} dgm_lattice;

// ---- building (lattice.c) ------------------------------------------------------------------

dgm_status dgm_lattice_open(dgm_lattice **l, dgm_error *err);
void dgm_lattice_close(dgm_lattice **l); // sets *l to NULL; accepts NULL inside
// The next node's number. The first one, 0, is the start.
dgm_status dgm_lattice_add_node(dgm_lattice *l, uint32_t line, int32_t *node, dgm_error *err);
dgm_status dgm_lattice_add_arc(dgm_lattice *l, const dgm_lattice_arc *arc, dgm_error *err);
// An arc that says `text` (may be several words; empty: no word).
dgm_status dgm_lattice_add_text(dgm_lattice *l, int32_t from, int32_t to, dgm_text text,
                                uint32_t glue, float score, dgm_error *err);
void dgm_lattice_add_end(dgm_lattice *l, int32_t node, float score); // twice: the better one
// DGM_ERR_FORMAT for a cycle or no path at all, with the line of an arc of it. Nodes that lie on no
// path from the start to an end: trim drops them, otherwise they are DGM_ERR_FORMAT, too. Nodes
// that are in topological order keep it. A lattice that failed can only be closed.
dgm_status dgm_lattice_seal(dgm_lattice *l, bool trim, dgm_error *err);

// The words of a path (indices of arcs) as text, appended to out. Not for tokens.
dgm_status dgm_lattice_spell(const dgm_lattice *l, const uint32_t *arcs, size_t count,
                             dgm_writer *out, dgm_error *err);
size_t dgm_lattice_longest(const dgm_lattice *l); // arcs of the longest path

// ---- files (lattice_text.c) ------------------------------------------------------------------

typedef enum dgm_lattice_format { DGM_LATTICE_NATIVE = 0, DGM_LATTICE_OPENFST } dgm_lattice_format;

typedef struct dgm_lattice_syntax {
    bool transducer;          // OpenFst: arcs of four fields have two labels, not one and a weight
    const dgm_words *symbols; // OpenFst: labels are numbers of this table; NULL: they are words
    const int64_t *ids;       // [symbols->count] number of each word
    const uint32_t *order;    // [symbols->count] words by rising number
    bool trim;                // drop dead ends instead of refusing them
} dgm_lattice_syntax;

enum { DGM_LATTICE_LABEL_MAX = 1 << 30 };

// One block of text: a lattice in either format (the first line tells). first_line: number of its
// first line for messages. syntax NULL: all off.
dgm_status dgm_lattice_parse(dgm_lattice **l, dgm_text block, uint32_t first_line,
                             const dgm_lattice_syntax *syntax, dgm_error *err);
// Appends a block with its final empty line. OpenFst's labels are words.
dgm_status dgm_lattice_write(const dgm_lattice *l, dgm_lattice_format format, dgm_writer *out,
                             dgm_error *err);

// The lattices of a file (lattice_file.c), plain or gzip, one after the other. Messages name the
// file and the line. symbols: a table of OpenFst's, lines of WORD NUMBER, or NULL.
typedef struct dgm_lattice_file dgm_lattice_file;
dgm_status dgm_lattice_file_open(dgm_lattice_file **f, const char *path, const char *symbols,
                                 bool transducer, bool trim, dgm_error *err);
void dgm_lattice_file_close(dgm_lattice_file **f); // sets *f to NULL; accepts NULL inside
// The text of the next one and the number of its first line; borrowed until the next call. data
// NULL: there are no more.
dgm_status dgm_lattice_file_block(dgm_lattice_file *f, dgm_text *block, uint32_t *line,
                                  dgm_error *err);
// The next one. *l NULL: there are no more. After DGM_ERR_FORMAT the one behind it can be read.
dgm_status dgm_lattice_file_next(dgm_lattice_file *f, dgm_lattice **l, dgm_error *err);

// N-best lists as lattices (lattice_list.c): a tree of words, scores at its ends. finish closes the
// list in any case; DGM_ERR_FORMAT if nothing was added.
typedef struct dgm_lattice_list dgm_lattice_list;
dgm_status dgm_lattice_list_open(dgm_lattice_list **list, dgm_error *err);
dgm_status dgm_lattice_list_add(dgm_lattice_list *list, dgm_text text, float score, dgm_error *err);
dgm_status dgm_lattice_list_finish(dgm_lattice_list **list, dgm_lattice **l, dgm_error *err);
void dgm_lattice_list_close(dgm_lattice_list **list); // sets NULL; accepts NULL inside

// ---- whole lattices (lattice_ops.c) -------------------------------------------------------------

// best[node]: score of the best path from the node to an end (with `sum`: log of the sum of
// exp(scale * score) over all of them, scale being 1 otherwise). [node_count] of the caller's.
void dgm_lattice_backward(const dgm_lattice *l, bool sum, double scale, double *best);
// The same from the start to the node.
void dgm_lattice_forward(const dgm_lattice *l, bool sum, double scale, double *best);
// Probability of every arc when paths are drawn by exp(scale * score); arcs [arc_count] and ends
// [node_count] (or NULL) of the caller's.
dgm_status dgm_lattice_posteriors(const dgm_lattice *l, double scale, double *arcs, double *ends,
                                  dgm_error *err);

typedef struct dgm_lattice_pruning {
    double behind;   // arcs whose best path is further behind the best of all go; < 0: none
    size_t max_arcs; // no more arcs than this are left, except those of the best path; 0: any
} dgm_lattice_pruning;

dgm_status dgm_lattice_prune(const dgm_lattice *l, const dgm_lattice_pruning *how,
                             dgm_lattice **out, dgm_error *err);
// Every path of every lattice, once for each that has it.
dgm_status dgm_lattice_union(const dgm_lattice *const *lattices, size_t count, dgm_lattice **out,
                             dgm_error *err);
// Every path from its end to its start. Not of words that are glued together.
dgm_status dgm_lattice_reverse(const dgm_lattice *l, dgm_lattice **out, dgm_error *err);
// The same paths without arcs that say nothing.
dgm_status dgm_lattice_without_empty(const dgm_lattice *l, dgm_lattice **out, dgm_error *err);

// ---- paths (lattice_nbest.c) -------------------------------------------------------------------

// Borrowed during the call.
typedef struct dgm_lattice_path {
    const dgm_lattice *lattice; // whose arcs they are: l, or l without its empty arcs
    double score;
    const uint32_t *arcs; // [count] indices, from the start
    size_t count;
} dgm_lattice_path;

// Gives the n best paths one by one, best first, to `take` until it returns false. distinct: of
// paths that say the same text only the best one.
typedef bool (*dgm_lattice_take)(void *cookie, const dgm_lattice_path *path);
dgm_status dgm_lattice_nbest(const dgm_lattice *l, size_t n, bool distinct, dgm_lattice_take take,
                             void *cookie, dgm_error *err);

// ---- tokens (lattice_subwords.c) ----------------------------------------------------------------

// Words become tokens of the vocabulary. What stands between two spaces is encoded together, as it
// would be in the whole sentence, so a path's tokens are those of its text. Paths keep their
// scores. Arcs that the vocabulary cannot spell are dropped and counted in *dropped (may be NULL);
// DGM_ERR_TEXT, with the word and its line, when that leaves no path.
dgm_status dgm_lattice_subwords(const dgm_lattice *words, const dgm_vocab *v, dgm_lattice **subwords,
                              size_t *dropped, dgm_error *err);
// lattice_subsets.c: a lattice of tokens with at most one arc per token leaving a node. The best
// score of each token sequence is kept; scored false: scores become 0. DGM_ERR_UNSUPPORTED when it
// would grow beyond most_nodes.
dgm_status dgm_lattice_determine(const dgm_lattice *subwords, bool scored, size_t most_nodes,
                                 dgm_lattice **out, dgm_error *err);

#endif
