// SPDX-License-Identifier: MIT
// The architectures this program knows: one row each.
#include "model/model_private.h"

#include <stddef.h>

extern const dgm_model_ops dgm_transformer_ops, dgm_cmlm_ops, dgm_rnn_ops;

dgm_status dgm_transformer_load(dgm_model *m, dgm_error *err);
dgm_status dgm_double_load(dgm_model *m, dgm_error *err);
dgm_status dgm_cmlm_load(dgm_model *m, dgm_error *err);
dgm_status dgm_rnn_load(dgm_model *m, dgm_error *err);

const dgm_architecture dgm_model_table[] = {
    {"transformer", dgm_transformer_load, &dgm_transformer_ops},
    {"double", dgm_double_load, &dgm_transformer_ops},
    {"cmlm", dgm_cmlm_load, &dgm_cmlm_ops},
    {"rnn", dgm_rnn_load, &dgm_rnn_ops},
    {NULL, NULL, NULL},
};
