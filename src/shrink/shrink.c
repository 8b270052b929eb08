// SPDX-License-Identifier: MIT
// The steps of shrinking: members are read and unfolded (rnn_unfold.c), widths for the size that was
// asked for are found, the network is shrunk to them (rnn_shrink.c) and handed to a writer.
//
// Widths are scaled so that the parameters are just below the share that was asked for: first that
// of embeddings, then that of a linear read-out, which lose little, down to a member's, and only
// then all of them together; the factors are found by bisection. Factors that were asked for are as
// they are: what is left to be found is found with the others. Widths from 64 on are multiples of 8,
// which products like.
#include "shrink/shrink.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "format/modelfile.h"
#include "shrink/rnn_net.h"

struct dgm_shrunk {
    rnn_net net;
    float *blocks[NET_COUNT]; // of its matrices, as they are written
};

void dgm_shrink_free(dgm_shrunk **keep)
{
    if (!*keep) return;
    dgm_net_free(&(*keep)->net);
    for (int i = 0; i < NET_COUNT; i++) dgm_free((*keep)->blocks[i]);
    dgm_free(*keep);
    *keep = NULL;
}

static int scaled(int width, double factor)
{
    int w = (int)lrint(width * factor);
    if (w >= 64) w = w / 8 * 8;
    return w < 1 ? 1 : w > width ? width : w;
}

// Factors of the widths for a position between 0, nothing left, and 3, the whole network: units
// from 0 to 1, a linear read-out from 1 to 2, embeddings from 2 to 3.
typedef struct factors {
    double embed, readout, units;
} factors;

static factors factors_of(const rnn_net *n, const dgm_shrink_plan *p, double at)
{
    const double least = n->heads > 1 ? 1.0 / n->heads : 0.5; // of linear layers alone
    const double below = least * fmin(at, 1);
    factors f = {.embed = at < 2 ? below : least + (at - 2) * (1 - least),
                 .readout = at < 1 ? below : fmin(least + (at - 1) * (1 - least), 1),
                 .units = fmin(at, 1)};
    if (n->readout != NET_READ_LINEAR) f.readout = f.units; // its units are neurons
    if (p->units > 0) f.units = p->units;
    if (p->embeddings > 0) f.embed = p->embeddings;
    if (p->readout > 0) f.readout = p->readout;
    if (n->readout == NET_READ_NONE) f.readout = f.units; // the same units
    return f;
}

// Sizes of the network at such a position, head by head; `to` has no matrices.
static void scale(const rnn_net *n, const dgm_shrink_plan *p, double at, rnn_net *to)
{
    const factors f = factors_of(n, p, at);
    *to = (rnn_net){.directions = n->directions, .heads = n->heads, .readout = n->readout};
    memcpy(to->size, n->size, sizeof to->size);
    to->size[DIM_EMBED] = scaled(n->size[DIM_EMBED], f.embed);
    memcpy(to->part[DIM_EMBED], n->part[DIM_EMBED], sizeof to->part[DIM_EMBED]); // unless reduced
    const net_dim dims[] = {DIM_ENCODER, DIM_HIDDEN, DIM_ATTENTION, DIM_READOUT};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        to->size[dims[i]] = 0;
        for (int m = 0; m < n->heads; m++)
            to->size[dims[i]] += to->part[dims[i]][m] =
                scaled(n->part[dims[i]][m], dims[i] == DIM_READOUT ? f.readout : f.units);
    }
    to->joint_embed = to->size[DIM_EMBED] < n->size[DIM_EMBED];
    to->joint_readout =
        n->readout == NET_READ_LINEAR && to->size[DIM_READOUT] < n->size[DIM_READOUT];
    const int rows = n->readout == NET_READ_MAXOUT ? 2 : 1;
    to->size[DIM_CONTEXT] = to->directions * to->size[DIM_ENCODER];
    to->size[DIM_ROWS] = rows * to->size[DIM_READOUT];
    for (int m = 0; m < n->heads; m++) {
        to->part[DIM_CONTEXT][m] = to->directions * to->part[DIM_ENCODER][m];
        to->part[DIM_ROWS][m] = rows * to->part[DIM_READOUT][m];
    }
}

// Parameters that network n would have with the sizes of `to`.
static uint64_t parameters(const rnn_net *n, const rnn_net *to)
{
    uint64_t sum = 0;
    for (int i = 0; i < NET_COUNT; i++) {
        const net_shape *s = &dgm_net_shapes[i];
        if (!n->m[i].w) continue;
        sum += dgm_net_weights(to, i);
        if (n->m[i].bias) sum += (uint64_t)dgm_net_extent(to, s->row, s->row_parts);
    }
    return sum;
}

static dgm_status choose_sizes(const rnn_net *n, const dgm_shrink_plan *p, uint64_t members,
                               rnn_net *to, dgm_error *err)
{
    double low = 0, high = 3;
    DGM_FAIL_IF(p->readout > 0 && n->readout == NET_READ_NONE, err, DGM_ERR_ARGUMENT,
                "the models have no read-out that could be made smaller");
    scale(n, p, 3.0, to);
    const uint64_t most = p->share > 0 ? (uint64_t)(p->share * (double)members) : UINT64_MAX;
    if (parameters(n, to) <= most) return DGM_OK;
    for (int i = 0; i < 50; i++) {
        const double mid = (low + high) / 2;
        scale(n, p, mid, to);
        if (parameters(n, to) <= most)
            low = mid;
        else
            high = mid;
    }
    scale(n, p, low, to);
    DGM_FAIL_IF(parameters(n, to) > most, err, DGM_ERR_ARGUMENT,
                "no network of this shape has only %llu parameters", (unsigned long long)most);
    return DGM_OK;
}

static dgm_shrink_sizes sizes_of(const rnn_net *n)
{
    return (dgm_shrink_sizes){.embed = n->size[DIM_EMBED],
                              .encoder = n->size[DIM_ENCODER],
                              .hidden = n->size[DIM_HIDDEN],
                              .attention = n->size[DIM_ATTENTION],
                              .readout = n->size[DIM_READOUT],
                              .parameters = dgm_net_parameters(n)};
}

static dgm_status read_members(const dgm_shrink_plan *p, rnn_net *members, dgm_shrink_result *r,
                               dgm_error *err)
{
    for (int i = 0; i < p->count; i++) {
        const dgm_status st = dgm_net_read(&members[i], p->files[i], err);
        if (st != DGM_OK && st != DGM_ERR_MEMORY)
            dgm_error_prefix(err, "%s", dgm_gguf_path(p->files[i]));
        DGM_TRY(st);
        // A member whose output layer is an embedding has it once.
        const net_matrix *out = &members[i].m[NET_OUT];
        r->members += dgm_net_parameters(&members[i]);
        if (!dgm_gguf_find_tensor(p->files[i], "out.weight"))
            r->members -= (uint64_t)out->rows * (uint64_t)out->cols;
    }
    return DGM_OK;
}

// Tensors of the file that are no weights of the network, nor scales of such: tables.
static void copy_tables(const dgm_gguf *g, dgm_gguf_writer *out)
{
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        if (t->data && t->type == DGM_TYPE_I32)
            dgm_gguf_add_tensor(out, t->name, DGM_TYPE_I32, t->n_dims, t->shape, t->data);
    }
}

dgm_status dgm_shrink(const dgm_shrink_plan *p, dgm_gguf_writer *out, dgm_shrunk **keep,
                      dgm_shrink_result *result, dgm_error *err)
{
    *result = (dgm_shrink_result){0};
    *keep = NULL;
    DGM_FAIL_IF(p->count < 1 || p->count > DGM_SHRINK_MEMBERS, err, DGM_ERR_ARGUMENT,
                "an ensemble of %d models; it must be 1 to %d", p->count, DGM_SHRINK_MEMBERS);
    dgm_shrunk *k = dgm_calloc(1, sizeof *k);
    rnn_net *members = dgm_calloc((size_t)p->count, sizeof *members);
    dgm_status st = k && members ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = read_members(p, members, result, err);
    if (st == DGM_OK) st = dgm_net_unfold(&k->net, members, p->weights, p->count, err);
    for (int i = 0; members && i < p->count; i++) dgm_net_free(&members[i]);
    dgm_free(members);
    if (st == DGM_OK) result->unfolded = sizes_of(&k->net);
    if (st == DGM_OK && (p->share > 0 || p->units > 0 || p->embeddings > 0 || p->readout > 0)) {
        rnn_net to;
        st = choose_sizes(&k->net, p, result->members, &to, err);
        if (st == DGM_OK) st = dgm_net_shrink(&k->net, &to, p, err);
    }
    if (st == DGM_OK) {
        result->final = sizes_of(&k->net);
        copy_tables(p->files[0], out);
        st = dgm_net_write(&k->net, out, k->blocks, err);
    }
    if (st == DGM_OK)
        *keep = k;
    else
        dgm_shrink_free(&k);
    return st;
}
