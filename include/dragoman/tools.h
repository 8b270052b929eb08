// SPDX-License-Identifier: MIT
// Dragoman: functions behind the tool commands (import, inspect, eval, ...). Same conventions as
// dragoman.h, but without its promise of a stable ABI: a tool's struct may change with a release.
#ifndef DRAGOMAN_TOOLS_H
#define DRAGOMAN_TOOLS_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/dragoman.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- import -----------------------------------------------------------------------------------

// Zero or NULL is the default of every field.
typedef struct dgm_import_options {
    // Storage of the weight matrices: "f32", "f16", "bf16", "i16", "i8". NULL: as in the input.
    // Vectors (biases, norms) are always f32.
    const char *type;
    // BCP 47 codes. NULL: what the model says, if it says anything.
    const char *source_language, *target_language;
    // Token put before every source sentence, e.g. ">>deu<<" of a multilingual model.
    const char *source_prefix;
    // Model card. name NULL: the folder's name. The others: absent.
    const char *name, *description, *license, *author, *url;
    const char *card;  // Markdown
    void *reserved[8]; // NULL
} dgm_import_options;

// Reads a model of another program from folder `dir` and writes it as a Dragoman model file.
// format: a name from dgm_import_format_at. options NULL: defaults. An existing output is replaced
// at the end, in one step, and left alone on failure.
DGM_API dgm_status dgm_import(const char *format, const char *dir, const char *output,
                              const dgm_import_options *options, dgm_error *err);

typedef struct dgm_import_format {
    const char *name;    // "huggingface"
    const char *summary; // for a help text
} dgm_import_format;

// The formats that dgm_import knows, one after the other; NULL behind the last. Static memory.
DGM_API const dgm_import_format *dgm_import_format_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
