// SPDX-License-Identifier: MIT
// Private to model/: what an architecture implements, and the row and slot pools they share.
//
// model.c owns loading of the common metadata, argument checks and the pools; an architecture
// (transformer.c, rnn.c) owns weights and arithmetic and is one row in model_table.c.
#ifndef DGM_MODEL_MODEL_PRIVATE_H
#define DGM_MODEL_MODEL_PRIVATE_H

#include "backend/meter.h"
#include "backend/ops.h"
#include "model/model.h"

typedef struct dgm_model_ops {
    void (*unload)(dgm_model *m); // accepts a half-loaded model
    dgm_status (*tune)(dgm_model *m, const dgm_tuning *t,
                       dgm_error *err);                                  // NULL: nothing to choose
    dgm_bytes (*state_bytes)(const dgm_model *m, const dgm_limits *limits); // beyond the pools'
    // Allocates its storage from s->exec, as s->storage.
    dgm_status (*state_open)(dgm_state *s, dgm_error *err);
    // Slots and rows are chosen by model.c; these only do the arithmetic.
    void (*encode)(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots);
    void (*start)(dgm_state *s, int count, const int32_t *slots,
                  const int32_t *rows); // NULL: a row begins with nothing
    void (*step)(dgm_state *s, int count, const dgm_step_row *steps, const int32_t *rows,
                 dgm_mat *hidden, float *const *align);
    // Models that fill in whole sentences; NULL for the others, whose step is not.
    void (*lengths)(dgm_state *s, int count, dgm_length_query *queries, int most);
    void (*refine)(dgm_state *s, int count, const dgm_refine_target *targets, dgm_mat *hidden);
    void (*counts)(const dgm_state *s, dgm_model_counts *out); // NULL: it counts nothing
    void (*experts)(const dgm_model *m, dgm_experts_use *out); // adds up; NULL: it never has any
} dgm_model_ops;

// An architecture of files. Several may share what they do once they are loaded.
typedef struct dgm_architecture {
    const char *name; // value of dragoman.architecture
    // Reads its own metadata and tensors from m->file, fills m->weights and the fields of
    // m->info that depend on them (hidden, layers, heads, max_source, max_target, packed_bytes),
    // and m->keep_ancestors. m->out is loaded by model.c.
    dgm_status (*load)(dgm_model *m, dgm_error *err);
    const dgm_model_ops *ops;
} dgm_architecture;

extern const dgm_architecture dgm_model_table[]; // the last one has no name

// Packs linear layers of m's file (looking up their static scales), counts their bytes, and gives
// the file's pages back.
dgm_status dgm_model_linear(dgm_model *m, dgm_linear_part *parts, int count, dgm_linear **out,
                            dgm_error *err);

// The static scale of a part's weight, where the file has one.
dgm_status dgm_model_input_scale(dgm_model *m, dgm_linear_part *part, dgm_error *err);

struct dgm_model {
    const dgm_model_ops *ops;
    dgm_backend *backend;
    const dgm_gguf *file;
    dgm_precision precision;
    dgm_model_info info;
    dgm_linear *out;
    void *weights;        // the architecture's
    dgm_layer_watch watch; // of layers while they are loaded; NULL: nobody
    void *cookie;
    bool keep_ancestors;  // rows need their ancestors' storage (key/value paths)
    int32_t *owned_never; // sorted copy
    dgm_languages languages;
    int32_t *owned_prefix[2]; // with room for the tokens of a direction; NULL: it has none
};

// Node r of the pool is row r. refs = children + 1 while it is held; at 0 the node is free and its
// parent loses a reference (only with keep_ancestors; otherwise children do not count).
typedef struct dgm_row_node {
    int32_t parent; // -1 for a start row
    int32_t slot;
    int32_t position; // tokens fed so far; a start row has 0
    uint32_t refs : 31, keep : 1; // keep: mark of dgm_retain
    int32_t path_at;    // where its path begins in the pool's paths,
    uint32_t path_call; // when they are those of this call; 0: it has none yet
} dgm_row_node;

typedef struct dgm_row_pool {
    dgm_row_node *nodes;
    int32_t *free_list; // stack of free rows
    int32_t *held;      // rows that are held, in no order
    int capacity, free_count, held_count;
    bool keep_ancestors;
    int32_t *paths[2]; // of the last call of dgm_row_pool_paths and the one before, turn by turn
    uint32_t path_calls;
} dgm_row_pool;

// Capacity of the pool for these limits, and of the memory of sources.
int dgm_state_rows(const dgm_model *m, const dgm_limits *limits);
int dgm_state_sources(const dgm_limits *limits);

// model.c, for architectures: sources in chunks that a device likes.
typedef struct dgm_encode_chunks {
    int most; // tokens of a chunk, unless its only source has more
    int more; // that every source takes beside its own
    void (*encode)(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots,
                   int tokens);
} dgm_encode_chunks;
// Tokens of a chunk, of a device that likes `most`: no more than all sources together, never less than one.
int dgm_encode_capacity(const dgm_limits *limits, int most, int more);
void dgm_encode_in_chunks(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots,
                          const dgm_encode_chunks *how);

// slots.c: a free slot with room for `length` tokens, -1 if there is none; and back.
int32_t dgm_slot_take(dgm_state *s, int32_t length);
void dgm_slot_free(dgm_state *s, int32_t slot);

// The alignments that a step's caller wants (dgm_step_result.align), of its n vectors, as operations
// take them; from the worker's host memory.
dgm_align_list dgm_model_alignment(const dgm_state *s, int n, float *const *wanted);

size_t dgm_row_pool_bytes(int capacity); // of host memory
dgm_status dgm_row_pool_open(dgm_row_pool *p, dgm_arena *a, int capacity, bool keep_ancestors,
                             dgm_error *err);
void dgm_row_pool_clear(dgm_row_pool *p);
int32_t dgm_row_pool_take(dgm_row_pool *p, int32_t parent, int32_t slot); // -1 when full
void dgm_row_pool_retain(dgm_row_pool *p, int count, const int32_t *rows);
// Memory for paths of so many entries in all.
size_t dgm_row_pool_paths_bytes(size_t entries);
bool dgm_row_pool_paths_open(dgm_row_pool *p, dgm_arena *a, size_t entries);
// The entries of new rows: of every row from the first fed token to itself, `tokens` each, row * tokens and those
// behind. Row i's are length[i] from first[i] on in what is returned, which stays until the call after the next. The
// team (NULL: none) copies many of them together.
const int32_t *dgm_row_pool_paths(dgm_row_pool *p, dgm_team *team, int count, const int32_t *rows, int tokens,
                                  int32_t *first, int32_t *length);

struct dgm_state {
    const dgm_model *model;
    dgm_exec *exec;
    dgm_limits limits;
    dgm_row_pool rows;
    int32_t *slot_length; // [slots]; 0 = free
    int32_t *slot_first;  // [slots] where its tokens begin in the memory of sources
    int32_t *slot_order;  // [slots] the used ones, by slot_first
    int slot_used;
    int32_t slot_lowest; // all below are used
    int slot_packed;     // so many of slot_order, from the first on, lie end to end
    int32_t *new_slots; // [slots] scratch of dgm_state_fits
    int step_rows;        // capacity of the row pool
    void *storage;        // the architecture's
};

#endif
