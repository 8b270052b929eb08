// SPDX-License-Identifier: MIT
// The seam between models and searches.
//
// A search never sees an architecture, a device or a vocabulary size. It speaks of
//   slots   one per sentence: what the encoder left behind, filled once (dgm_encode, dgm_release)
//   rows    decoder states. dgm_start makes one per slot; dgm_step feeds each row's parent one
//           token and makes a new row. Parents stay valid: siblings may share one, and a row may be
//           stepped again. dgm_retain drops every row that is not named (a Transformer keeps the
//           key/value entries of their ancestors by reference; nothing is copied).
//           A model of pairs takes two tokens and gives two hidden vectors a row.
//   hidden  per new row the vector that multiplies the output matrix; dgm_op_rank takes it further.
// A model that fills in whole sentences (info.mask >= 0) has no use for steps: dgm_lengths and
// dgm_refine take their place.
// Rows of one call may differ in sentence, position and length, so that a sentence can enter or
// leave at any step.
//
//   dgm_model   immutable weights, shared by all threads
//   dgm_state   one worker's slots and rows of one model, on a dgm_exec
#ifndef DGM_MODEL_MODEL_H
#define DGM_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/rank.h"
#include "base/status.h"
#include "format/gguf.h"
#include "format/languages.h"
#include "format/modelfile.h"

typedef struct dgm_model dgm_model;
typedef struct dgm_state dgm_state;

enum { DGM_STEP_TOKENS = 2, DGM_NO_TOKEN = -1 };

// In which order a model writes the words of a sentence, as dgm_order_names. Pairs from both ends:
// (y1, yn) (y2, yn-1) ...
typedef enum dgm_order { DGM_ORDER_L2R = 0, DGM_ORDER_R2L, DGM_ORDER_BIDIRECTIONAL } dgm_order;

// What the model file says about itself; strings and arrays are borrowed from the file.
typedef struct dgm_model_info {
    const char *architecture; // row of the model table
    int source_vocab, target_vocab;
    int hidden;                 // width of the vectors that rank takes
    int tokens_per_step;        // 1; 2 for double-token models
    dgm_order order;
    int layers, heads;          // decoder's, for alignments
    // Hard limits of learned positions; INT32_MAX if there is none. The target's counts steps, the
    // start included.
    int max_source, max_target;
    int32_t source_eos, source_unk, unk, pad;
    int32_t eos;     // what ends a sentence: of a model of pairs its EOD
    int32_t start;   // first decoder input; DGM_NO_TOKEN: the architecture's own start
    int32_t start_second; // its other half, of a model of pairs
    int32_t mask;    // the masked word of a model that fills in whole sentences; -1: it makes steps
    bool append_eos; // the encoder's input ends with source_eos
    const int32_t *source_prefix, *target_prefix, *never; // never is ascending
    int source_prefix_count, target_prefix_count, never_count;
    // What the model translates. The last tags[side] ids of a prefix are the tokens of its direction
    // (dgm_model_direction); those of the source lie in source_suffix where they stand last.
    const dgm_languages *languages;
    const int32_t *source_suffix; // behind source_eos
    int source_suffix_count;
    bool source_backwards; // the encoder reads the last token first, eos behind the first
    bool self_normalised;
    bool recurrent; // it has the choices of dgm_tuning
    bool scaled;    // its file holds static scales of activations
    int align_layer, align_head; // resolved: layer from 0, head -1 = mean
    uint64_t parameters, packed_bytes;
    uint64_t table_bytes;     // of pre-computed products (dgm_tuning.precompute)
    int table_words[2];       // words of each side in them
    bool plain_attention;     // contexts are multiplied at every step (dgm_tuning)
    dgm_decode_spec defaults; // section 2.3 of docs/internals/FORMAT.md
} dgm_model_info;

// The file must outlive the model. precision: how products are computed.
dgm_status dgm_model_load(dgm_model **m, dgm_backend *b, const dgm_gguf *file,
                          dgm_precision precision, dgm_error *err);
// Loads the model to tell of every layer that it is made of, and frees it again. parts are the layer's, stacked.
struct dgm_linear_part; // backend/device.h
typedef dgm_status (*dgm_layer_watch)(void *cookie, const struct dgm_linear_part *parts, int count, dgm_error *err);
dgm_status dgm_model_layers(dgm_backend *b, const dgm_gguf *file, dgm_precision precision, dgm_layer_watch watch,
                            void *cookie, dgm_error *err);
void dgm_model_free(dgm_model **m); // sets NULL; accepts NULL inside
const dgm_model_info *dgm_model_describe(const dgm_model *m);
const dgm_linear *dgm_model_output(const dgm_model *m); // [target_vocab, hidden]
// dgm_linear_by_rows for the output layer. Before any state is opened.
dgm_status dgm_model_output_by_rows(dgm_model *m, dgm_error *err);
// The experts of all layers and how many of them rows were sent to so far; zeros without any.
void dgm_model_experts(const dgm_model *m, dgm_experts_use *out);
// Sets the direction (dgm_languages_choose) of sentences that do not bring their own. Before any
// state is opened; at first it is the file's default, else the first that it offers.
void dgm_model_direction(dgm_model *m, const int direction[2]);
// Reads alignments from another layer (negative: from the end) and head (-1: mean) than the file
// says. Before any state is opened.
dgm_status dgm_model_align(dgm_model *m, int layer, int head, dgm_error *err);

// Choices that leave the result as it is, exactly or up to rounding. Zeros: the default.
typedef struct dgm_tuning {
    // Products with the embeddings of so many most frequent words of each side are made now and
    // looked up later; bit for bit the same. 0: none.
    int precompute;
    // Attention adds up encoder vectors and multiplies the sum by the gates' matrix at every step,
    // instead of adding up products made once per sentence. Equal up to rounding.
    bool plain_attention;
    // Products with a parent's state are made again for each of its rows; bit for bit the same.
    bool separate_rows;
} dgm_tuning;

// Before any state is opened. Nothing to choose (info.recurrent is false): nothing happens.
dgm_status dgm_model_tune(dgm_model *m, const dgm_tuning *t, dgm_error *err);

// Capacities of one worker's state.
typedef struct dgm_limits {
    int slots;  // sentences at once
    int rows;   // rows of one step
    int source; // longest source in tokens, eos included
    int target; // longest target in tokens
    // What all sentences take together, for a worker whose memory is bounded; 0: the worst case.
    int sources; // source tokens of all slots
    int past;    // decoder rows alive at once, where a row needs its ancestors
} dgm_limits;

// What a state takes of a worker's memory.
dgm_bytes dgm_state_bytes(const dgm_model *m, const dgm_limits *limits);
dgm_status dgm_state_open(const dgm_model *m, dgm_exec *x, const dgm_limits *limits, dgm_state **s,
                          dgm_error *err);
void dgm_state_close(dgm_state **s);
void dgm_state_clear(dgm_state *s); // drops all slots and rows, e.g. after an error
const dgm_model *dgm_state_model(const dgm_state *s);
const dgm_limits *dgm_state_limits(const dgm_state *s);

// What a state has done so far; zeros where the architecture has nothing to share or look up.
typedef struct dgm_model_counts {
    uint64_t rows, distinct;             // rows stepped, and distinct parents of each step
    uint64_t state_rows, state_products; // rows of all recurrent layers; products with states made
    uint64_t source_words, source_found; // words of the first encoder layer; of them in the table
    uint64_t target_words, target_found;
    uint64_t context_products; // rows multiplied by the matrix of the context
    uint64_t activations;      // values of sigmoid and tanh in cells, queries and read-outs
} dgm_model_counts;

void dgm_state_counts(const dgm_state *s, dgm_model_counts *out);
void dgm_model_counts_add(dgm_model_counts *to, const dgm_model_counts *n);

typedef struct dgm_source {
    const int32_t *ids; // eos included where the model wants it
    int count;          // 1 .. limits.source
} dgm_source;

// How many of the first sources can be encoded now: slots are free, and room for their tokens.
int dgm_state_fits(dgm_state *s, int count, const dgm_source *sources);
// Decoder rows that can still be made before dgm_retain drops some.
int dgm_state_free_rows(const dgm_state *s);

// Fills a free slot per source. DGM_ERR_ARGUMENT when there are too few, a source is too long or an
// id is none of the vocabulary's.
dgm_status dgm_encode(dgm_state *s, int count, const dgm_source *sources, int32_t *slots,
                      dgm_error *err);
void dgm_release(dgm_state *s, int count, const int32_t *slots); // their rows are dropped already

dgm_status dgm_start(dgm_state *s, int count, const int32_t *slots, int32_t *rows, dgm_error *err);

typedef struct dgm_step_row {
    int32_t parent;                 // a live row
    int32_t token[DGM_STEP_TOKENS]; // DGM_NO_TOKEN as first input: the architecture's start
} dgm_step_row;

typedef struct dgm_step_result {
    int32_t *rows;  // [count], filled: the new rows
    dgm_mat hidden; // [count * tokens_per_step, hidden], valid until the next step of this state
    // Caller's: NULL, or per hidden vector NULL or [source length] for attention weights, which are
    // there after the rank of this step, or after dgm_exec_sync.
    float *const *align;
} dgm_step_result;

// count <= limits.rows. DGM_ERR_ARGUMENT, and nothing is done, for a token outside the vocabulary.
dgm_status dgm_step(dgm_state *s, int count, const dgm_step_row *steps, dgm_step_result *out,
                    dgm_error *err);
void dgm_retain(dgm_state *s, int count, const int32_t *rows); // rows may repeat

// ---- models that fill in whole sentences -------------------------------------------------------

// A sentence whose lengths are asked for.
typedef struct dgm_length_query {
    int32_t slot;
    int shortest, longest; // none below and above
    const uint64_t *only;  // bit n, up to longest: n is one of them; NULL: all are
    int32_t *lengths; // [most]: the most probable target lengths, best first (ties: the shorter)
    int found;        // how many of them there are
} dgm_length_query;

// Answers all queries, at most limits.slots of them, with one look at the device.
void dgm_lengths(dgm_state *s, int count, dgm_length_query *queries, int most);

// A whole target, masked words and all, and the positions whose hidden vectors are wanted.
typedef struct dgm_refine_target {
    int32_t slot;
    const int32_t *ids; // [count]
    int count;          // 1 .. limits.target
    const int32_t *wanted; // [wanted_count], ascending
    int wanted_count;
    float *const *align; // [wanted_count] where their attention weights go [source length]; NULL: nobody wants them
} dgm_refine_target;

// hidden [wanted of all targets, hidden]: in order, valid until the next call. The targets' tokens
// together are at most limits.rows.
dgm_status dgm_refine(dgm_state *s, int count, const dgm_refine_target *targets, dgm_mat *hidden,
                      dgm_error *err);

int dgm_row_slot(const dgm_state *s, int32_t row);
int dgm_slot_length(const dgm_state *s, int32_t slot); // source tokens

#endif
