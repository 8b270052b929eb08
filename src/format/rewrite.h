// SPDX-License-Identifier: MIT
// A model file written again with changes: what average, quantize, shrink, shortlist and cluster
// have in common. Metadata is copied first and may then be changed; tensors are copied as they are,
// or converted while the file is written, one in memory at a time.
#ifndef DGM_FORMAT_REWRITE_H
#define DGM_FORMAT_REWRITE_H

#include <stdbool.h>

#include "format/convert.h"
#include "format/gguf.h"

#define DGM_INPUT_SCALE ".input_scale" // of NAME: what a calibration measured
#define DGM_PACKED ".packed"           // of NAME: a layer that begins with it, as products read it
#define DGM_PACKED_LAYOUT "dragoman.packed.layout"

// A writer with all metadata of g but that of packed layers, which are not copied: the numbers may change. producer:
// who writes it, NULL: as in g.
dgm_status dgm_rewrite_open(dgm_gguf_writer **out, const dgm_gguf *g, const char *producer,
                            dgm_error *err);
// Writes the file if st is DGM_OK, and closes the writer in any case.
dgm_status dgm_rewrite_finish(dgm_gguf_writer **out, const char *path, dgm_status st,
                              dgm_error *err);

// Can every tensor of g be copied? DGM_ERR_UNSUPPORTED names the first that cannot.
dgm_status dgm_rewrite_check(const dgm_gguf *g, dgm_error *err);
// The tensor as it is, unless it is a packed layer; its data must be there (dgm_rewrite_check).
void dgm_rewrite_copy(dgm_gguf_writer *out, const dgm_tensor *t);
// Is t the scale of an integer matrix of the same file? It is written with it, or not at all.
bool dgm_rewrite_is_scale(const dgm_gguf *g, const dgm_tensor *t);
bool dgm_rewrite_is_input_scale(const dgm_tensor *t);
bool dgm_rewrite_is_packed(const dgm_tensor *t);
bool dgm_rewrite_is_integer(int type);

// A tensor that is converted. It must stay where it is until the file is written.
typedef struct dgm_rewrite_item {
    const dgm_tensor *t; // name, shape and, without `fill`, numbers
    int type;            // of the output
    // Makes the numbers [rows, cols]; NULL: those of t. May be asked twice.
    dgm_status (*fill)(const void *cookie, const dgm_tensor *t, float *real, dgm_error *err);
    const void *cookie;
    dgm_convert_error *errors; // filled once, then NULL; NULL: not wanted
} dgm_rewrite_item;

// Adds the tensor and, for integers, its scale NAME.scale.
dgm_status dgm_rewrite_add(dgm_gguf_writer *out, dgm_rewrite_item *item, dgm_error *err);
// Converts it now, for its errors alone.
dgm_status dgm_rewrite_measure(dgm_rewrite_item *item, dgm_error *err);
// The name of a tensor that belongs to another: name and ending, checked for its length.
dgm_status dgm_rewrite_name(char text[DGM_GGUF_MAX_NAME + 1], const char *name, const char *ending,
                            dgm_error *err);

#endif
