// SPDX-License-Identifier: MIT
// The architectures this program knows: one row each.
#include "model/model_private.h"

extern const dgm_model_ops dgm_transformer_ops, dgm_double_ops, dgm_cmlm_ops;
extern const dgm_model_ops dgm_rnn_ops;

const dgm_model_ops *const dgm_model_table[] = {
    &dgm_transformer_ops,
    &dgm_double_ops,
    &dgm_cmlm_ops,
    &dgm_rnn_ops,
    NULL,
};
