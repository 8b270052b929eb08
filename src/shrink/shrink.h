// SPDX-License-Identifier: MIT
// An ensemble of recurrent models as one network, made smaller without any data (Stahlberg & Byrne,
// 2017). The work of `dragoman shrink`; reads and writes model files, loads nothing on a device.
#ifndef DGM_SHRINK_SHRINK_H
#define DGM_SHRINK_SHRINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "format/gguf.h"

enum { DGM_SHRINK_MEMBERS = 8 };

typedef struct dgm_shrink_plan {
    const dgm_gguf *const *files; // [count] model files with the same vocabularies
    const double *weights;        // [count] positive, sum 1
    int count;                    // 1 to DGM_SHRINK_MEMBERS
    double share;                 // parameters of the result : sum of the members'; 0: as many as are left
    // Widths : all members' together, above 0 and at most 1: units of encoder, decoder and attention,
    // columns of the embeddings, units of the read-out. 0: not fixed, so that `share` is reached by them;
    // without a share as they are.
    double units, embeddings, readout;
    // Called between steps with the share of the work that is done; false stops it. May be NULL.
    bool (*tick)(void *cookie, double share);
    void *cookie;
} dgm_shrink_plan;

typedef struct dgm_shrink_sizes {
    int embed, encoder, hidden, attention, readout;
    uint64_t parameters;
} dgm_shrink_sizes;

typedef struct dgm_shrink_result {
    uint64_t members; // parameters of all members together
    dgm_shrink_sizes unfolded, final;
} dgm_shrink_result;

// Adds tensors and keys to a writer that has the first file's metadata already; tensors of the first
// file that are no weights are added, too. *keep holds the numbers until the writer has written:
// dgm_shrink_free. DGM_ERR_UNSUPPORTED for models that cannot be unfolded, with the reason.
typedef struct dgm_shrunk dgm_shrunk;
dgm_status dgm_shrink(const dgm_shrink_plan *plan, dgm_gguf_writer *out, dgm_shrunk **keep,
                      dgm_shrink_result *result, dgm_error *err);
void dgm_shrink_free(dgm_shrunk **keep); // sets NULL; accepts NULL inside

#endif
