// SPDX-License-Identifier: MIT
// Importers: models of other programs to our model file.
//
// An importer is one file NAME.c with one function and one row in the table of import.c; format/foreign.c says
// by which files `import auto` knows its kind. It reads the folder, sets keys and adds weights through the job,
// and calls dgm_import_write while its input is still open. Weights are converted a few rows at a
// time while the file is written.
#ifndef DGM_IMPORT_IMPORT_H
#define DGM_IMPORT_IMPORT_H

#include "dragoman/tools.h"
#include "format/gguf.h"

typedef struct dgm_import_weight dgm_import_weight;
// Does a SentencePiece model open? That is for text/ to say, above this folder.
typedef dgm_status (*dgm_import_opens)(const void *model, size_t size, dgm_error *err);

typedef struct dgm_import_job {
    const char *dir, *output; // dir: what the user named, also a file where an importer reads files
    const char *file;         // of the weights, for messages; NULL: dir
    dgm_import_options options;
    int storage;            // dgm_tensor_type of matrices; -1: as in the input
    dgm_import_opens opens; // NULL: not asked
    dgm_gguf_writer *w;
    dgm_import_weight *weights; // list of all that were added
} dgm_import_job;

typedef dgm_status (*dgm_import_fn)(dgm_import_job *job, dgm_error *err);

typedef struct dgm_importer {
    dgm_import_format info;
    dgm_import_fn run;
} dgm_importer;

extern const dgm_importer dgm_importers[]; // ends with a row of zeros
const dgm_importer *dgm_importer_named(const char *name); // NULL: there is none, or no name

// The whole import: what dgm_import of models.h does.
dgm_status dgm_import_run(const char *format, const char *path, const char *output,
                          const dgm_import_options *options, dgm_import_opens opens,
                          dgm_error *err);

// ---- for importers ----------------------------------------------------------------------------

// Fills out [rows, cols] with the real values of an input matrix from row `first` on. Called for all rows,
// a few at a time and in order, perhaps more than once.
typedef dgm_status (*dgm_import_fetch)(const void *source, int first, int rows, float *out,
                                       dgm_error *err);

// Adds a matrix [rows, cols] in the job's storage type (input_type where it is -1), with its scale
// companion where the type has one. source is borrowed until the file is written.
dgm_status dgm_import_matrix(dgm_import_job *job, const char *name, int rows, int cols,
                             int input_type, dgm_import_fetch fetch, const void *source,
                             dgm_error *err);
// Adds an i8 matrix [rows, cols] as it is stored: real = q * scale of its row. fetch fills in q, scales
// all of them.
typedef dgm_status (*dgm_import_fetch_i8)(const void *source, int first, int rows, int8_t *out,
                                          dgm_error *err);
typedef void (*dgm_import_scales)(const void *source, int rows, float *out);
dgm_status dgm_import_matrix_i8(dgm_import_job *job, const char *name, int rows, int cols,
                                dgm_import_fetch_i8 fetch, dgm_import_scales scales,
                                const void *source, dgm_error *err);
// Adds an f32 vector [size]: fetch is called once, with row 0 of 1.
dgm_status dgm_import_vector(dgm_import_job *job, const char *name, int size,
                             dgm_import_fetch fetch, const void *source, dgm_error *err);
// Sets the keys of docs/internals/FORMAT.md section 2.1; languages: NULL where unknown (options come first).
void dgm_import_general(dgm_import_job *job, const char *architecture, const char *source_language,
                        const char *target_language);
dgm_status dgm_import_write(dgm_import_job *job, dgm_error *err);
void dgm_import_note(const dgm_import_job *job, const char *fmt, ...) DGM_PRINTF(2, 3); // for people
void dgm_import_free_weights(dgm_import_job *job); // what was added, after writing

// ISO 639-3 to the shorter code that BCP 47 wants ("deu" -> "de"); other text is returned as it is.
const char *dgm_import_language(const char *code);

dgm_status dgm_import_huggingface(dgm_import_job *job, dgm_error *err);
dgm_status dgm_import_ctranslate2(dgm_import_job *job, dgm_error *err);
dgm_status dgm_import_argos(dgm_import_job *job, dgm_error *err);
dgm_status dgm_import_marian(dgm_import_job *job, dgm_error *err);
dgm_status dgm_import_bergamot(dgm_import_job *job, dgm_error *err);
dgm_status dgm_import_nematus(dgm_import_job *job, dgm_error *err);
dgm_status dgm_import_fairseq(dgm_import_job *job, dgm_error *err);
dgm_status dgm_import_opennmt_py(dgm_import_job *job, dgm_error *err);

#endif
