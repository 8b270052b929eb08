// SPDX-License-Identifier: MIT
// Exporters: our model file as a folder of another program, for Transformers that it can hold.
//
// An exporter is one file with one function and one row in the table of export.c. It looks at the model, which is
// checked already, refuses with a sentence what the other program cannot hold, and writes files into the job's folder.
#ifndef DGM_EXPORT_EXPORT_H
#define DGM_EXPORT_EXPORT_H

#include <stdio.h>

#include "base/json.h"
#include "dragoman/tools.h"
#include "format/gguf.h"
#include "format/modelfile.h"

// ---- the model (export_model.c) ----------------------------------------------------------------

typedef struct dgm_export_model {
    const dgm_gguf *g;
    int d, heads[2], ffn[2], layers[2]; // [0] encoder, [1] decoder
    bool pre_norm, scale_embedding;
    float eps;
    const char *activation, *positions;
    int position_offset;
    dgm_vocab_spec vocab[2]; // [1].shared: one for both
    dgm_decode_spec decode;
    int sizes[2];
    const dgm_tensor *source, *target, *output; // embeddings; target and output may be those before
    const float *output_bias;                   // NULL: none
} dgm_export_model;

// A Transformer with self-attention and nothing that this program alone knows. The message names key or tensor.
dgm_status dgm_export_look(dgm_export_model *m, const dgm_gguf *g, dgm_error *err);

// ---- spellings (export_vocab.c) ----------------------------------------------------------------

// Spelling of every id of a side, made up where there is none ("<unused_7>"). Freed by dgm_export_spellings_free.
dgm_status dgm_export_spellings(const dgm_export_model *m, int side, char ***out, dgm_error *err);
void dgm_export_spellings_free(const dgm_export_model *m, int side, char ***list);
// The SentencePiece model of a side as it was before import appended subwords to it: its first bytes. 0: none.
size_t dgm_export_spm_size(const dgm_export_model *m, int side);

// ---- weights (export_tensor.c) -----------------------------------------------------------------

enum { DGM_EXPORT_PARTS = 3 };

// A tensor of the folder: matrices or vectors of ours behind each other, and rows of zeros behind them.
typedef struct dgm_export_tensor {
    char name[160];
    const dgm_tensor *parts[DGM_EXPORT_PARTS];
    int count;
    const float *values; // instead of parts: f32, borrowed or (owned) freed with the list
    bool owned;
    int skip; // rows of the first part that are left out
    int zero_rows;
    int n_dims, rows, cols; // n_dims 1: a vector of cols; 2: [rows, cols]
    int type;               // dgm_tensor_type in the folder
    const char *alias;      // of the tensor with that name: no data
} dgm_export_tensor;

typedef struct dgm_export_list {
    dgm_export_tensor *items;
    size_t count, cap;
} dgm_export_list;

void dgm_export_list_free(dgm_export_list *l);
// Adds one; fills in type (f32 unless all parts are of one other real type, or, with keep_i8, i8), rows and cols.
dgm_status dgm_export_add(dgm_export_list *l, dgm_export_tensor t, bool keep_i8, dgm_error *err);
uint64_t dgm_export_bytes(const dgm_export_tensor *t);
// All of the data, row by row.
dgm_status dgm_export_write(const dgm_export_tensor *t, FILE *f, dgm_error *err);

// ---- the job (export.c) ------------------------------------------------------------------------

typedef struct dgm_export_job {
    const dgm_export_model *model;
    const char *folder; // to be filled
    const dgm_export_options *options;
} dgm_export_job;

typedef dgm_status (*dgm_export_fn)(const dgm_export_job *job, dgm_error *err);

typedef struct dgm_exporter {
    dgm_import_format info; // name and summary
    dgm_export_fn run;
} dgm_exporter;

extern const dgm_exporter dgm_exporters[]; // ends with a row of zeros

dgm_status dgm_export_run(const char *format, const char *model, const char *folder,
                          const dgm_export_options *options, dgm_error *err);

// For exporters: a file of the folder.
dgm_status dgm_export_file(const dgm_export_job *job, const char *name, const void *data, size_t size, dgm_error *err);
// The SentencePiece model of a side as such a file, without the names of files in it (import/spm_paths.h).
dgm_status dgm_export_spm(const dgm_export_job *job, int side, const char *name, dgm_error *err);
// Why jansson refused the spelling of an id: it is no UTF-8, or there was no memory.
dgm_status dgm_export_spelling(const char *text, int id, dgm_error *err);
dgm_status dgm_export_json(const dgm_export_job *job, const char *name, json_t *value, dgm_error *err); // takes value
// The same for weights: begin, write, end; all tensors of a list, with progress.
dgm_status dgm_export_open(const dgm_export_job *job, const char *name, FILE **f, dgm_error *err);
dgm_status dgm_export_close(const dgm_export_job *job, const char *name, FILE **f, dgm_status so_far, dgm_error *err);
void dgm_export_note(const dgm_export_job *job, const char *fmt, ...) DGM_PRINTF(2, 3); // for people
dgm_status dgm_export_tick(const dgm_export_job *job, double share, dgm_error *err);

dgm_status dgm_export_huggingface(const dgm_export_job *job, dgm_error *err);
dgm_status dgm_export_ctranslate2(const dgm_export_job *job, dgm_error *err);
// export_ct2_files.c: the folder's other files; spellings of all ids of each side.
dgm_status dgm_ct2_write_texts(const dgm_export_job *job, char **source, char **target, dgm_error *err);

#endif
