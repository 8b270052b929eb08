// SPDX-License-Identifier: MIT
// Layer norms of products, as Marian's and Nematus' recurrent models have them.
//
//   whole   norm(W x + b) over all outputs of one matrix
//   gates   norm of the two gates (2n outputs) and of the candidate (n outputs) of a GRU apart
//
// The file has NAME.norm.weight and NAME.norm.bias for both kinds, one number for each output of NAME.
#include <stdio.h>

#include "model/rnn/rnn_private.h"

static dgm_status add_norm(dgm_model *m, const float *gamma, const float *beta, int first, int cols,
                           float eps, rnn_norms *out, dgm_error *err)
{
    const int at = out->count++;
    out->part[at].first = first;
    out->part[at].cols = cols;
    out->part[at].eps = eps;
    DGM_TRY(dgm_vector_from(m->backend, gamma, 1, cols, &out->part[at].gamma, err));
    return dgm_vector_from(m->backend, beta, 1, cols, &out->part[at].beta, err);
}

static dgm_status load_one(dgm_model *m, const rnn_matrix *matrix, int first, rnn_norms *out,
                           dgm_error *err)
{
    const rnn *r = m->weights;
    const float *gamma = NULL, *beta = NULL;
    char name[96];
    snprintf(name, sizeof name, "%.80s.norm.weight", matrix->name);
    DGM_TRY(dgm_gguf_vector(m->file, name, matrix->rows, DGM_REQUIRED, &gamma, err));
    snprintf(name, sizeof name, "%.80s.norm.bias", matrix->name);
    DGM_TRY(dgm_gguf_vector(m->file, name, matrix->rows, DGM_REQUIRED, &beta, err));
    if (matrix->norm == NORM_WHOLE)
        return add_norm(m, gamma, beta, first, matrix->rows, r->norm_eps, out, err);
    const int gates = matrix->rows / 3 * 2;
    DGM_TRY(add_norm(m, gamma, beta, first, gates, r->gate_norm_eps, out, err));
    return add_norm(m, gamma + gates, beta + gates, first + gates, matrix->rows - gates,
                    r->gate_norm_eps, out, err);
}

dgm_status dgm_rnn_norms_load(dgm_model *m, const rnn_matrix *matrices, int count, rnn_norms *out,
                              dgm_error *err)
{
    for (int i = 0, first = 0; i < count; first += matrices[i++].rows)
        if (matrices[i].norm != NORM_NONE && matrices[i].rows)
            DGM_TRY(load_one(m, &matrices[i], first, out, err));
    return DGM_OK;
}

void dgm_rnn_norms_free(dgm_backend *b, rnn_norms *n)
{
    for (int i = 0; i < n->count; i++) {
        dgm_vector_free(b, &n->part[i].gamma);
        dgm_vector_free(b, &n->part[i].beta);
    }
    n->count = 0;
}

void dgm_rnn_norms_apply(dgm_exec *e, const rnn_norms *n, dgm_mat y)
{
    for (int i = 0; i < n->count; i++) {
        const dgm_mat part = dgm_mat_cols(y, n->part[i].first, n->part[i].cols);
        dgm_op_norm(e, part, part, n->part[i].gamma, n->part[i].beta, n->part[i].eps);
    }
}
