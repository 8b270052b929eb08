// SPDX-License-Identifier: MIT
// Dragoman tools: an ensemble as one smaller network. Conventions as in tools.h.
#ifndef DRAGOMAN_SHRINK_H
#define DRAGOMAN_SHRINK_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DGM_SHRINK_MAX = 8 };

typedef struct dgm_shrink_options {
    size_t size;
    const double *weights; // [count] of the members, positive; NULL: equal
    // Parameters of the result as a share of those of all models together, above 0. Default 0: what
    // the widths below leave.
    double share;
    const char *name; // of the new model. NULL: the first one's
    dgm_progress progress;
    // Widths of the result as shares of those of all models together, above 0 and at most 1: units of
    // encoder, decoder and attention; columns of the embeddings; units of the read-out. 0, the default:
    // found so that there are no more parameters than `share` says (embeddings first, then a linear
    // read-out, then all of them); all of them without a share. A share needs one that is 0.
    double units, embeddings, readout;
} dgm_shrink_options;

DGM_API void dgm_shrink_init(dgm_shrink_options *options, size_t size);
static inline void dgm_shrink_default(dgm_shrink_options *options)
{
    dgm_shrink_init(options, sizeof *options);
}

typedef struct dgm_shrink_widths {
    int embed, encoder, hidden, attention, readout; // encoder: of one direction
    uint64_t parameters;
} dgm_shrink_widths;

typedef struct dgm_shrink_report {
    size_t size;
    uint64_t members; // parameters of all models together
    dgm_shrink_widths unfolded, shrunk;
} dgm_shrink_report;

// Makes one network of 1 to DGM_SHRINK_MAX recurrent models with the same vocabularies, whose
// distribution is their log-linear mixture, and removes neurons from it without any data until it
// has the size asked for. options NULL: defaults, report NULL: not wanted. DGM_ERR_UNSUPPORTED for
// architectures that cannot be unfolded.
DGM_API dgm_status dgm_shrink_ensemble(const char *const *models, size_t count, const char *output,
                                       const dgm_shrink_options *options,
                                       dgm_shrink_report *report, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
