// SPDX-License-Identifier: MIT
// How large the numbers get that a model computes with: whether they fit a precision.
#ifndef DGM_MODEL_RANGE_H
#define DGM_MODEL_RANGE_H

#include "model/model.h"

// The largest |x| in the inputs of the model's products, over a few sentences of random words that are always the
// same: a property of the model and its precision, not of any text. Infinity: something was no number.
// Takes a worker of its own for the while; weights that are not used are seen by nobody.
dgm_status dgm_model_range(const dgm_model *m, float *largest, dgm_error *err);

#endif
