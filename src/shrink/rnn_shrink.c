// SPDX-License-Identifier: MIT
// Shrinking a network without data: neurons that others can stand in for are removed, and linear
// layers are replaced by the best ones of a lower rank.
//
// A neuron i has incoming weights u_i (all of its gates' rows and biases side by side) and outgoing
// weights, columns of the matrices that read it. If u_i ~ sum over k of l_k u_k, its value is taken
// to be sum of l_k times the others' values, so its outgoing columns are added to theirs, times l_k.
// With G = (u_i . u_k) the least squares over all others are read off the inverse:
//
//     residual of i = 1 / G^-1[i, i]          l_k = -G^-1[i, k] / G^-1[i, i]
//     G^-1 without i: G^-1 - g g^T / G^-1[i, i],  g = column i           (O(n^2) a neuron)
//
// The neuron with the smallest residual times its squared outgoing norm goes first. Outgoing
// columns of a recurrent layer are incoming weights of its neighbours, so G is made anew ROUNDS
// times on the way. Neurons stand in for those of their own head only (and direction, in the
// encoder), so that what is zero between members stays zero and need not be stored; all that
// incoming weights of two members have in common is the word anyway. h_0's weights are incoming
// weights of the decoder's units, too.
//
// Embeddings of all members together are reduced with the layers that read them, a read-out that is
// linear with the output layer.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "shrink/rnn_net.h"

enum { ROUNDS = 4, INS = 4, OUTS = 5 };

typedef struct group {
    int n;
    int in_count, out_count;
    // Row of part k of unit u: base + u * unit + k * stride.
    struct {
        int id, base, unit, parts, stride;
    } in[INS];
    // Column of unit u: base + u.
    struct {
        int id, base;
    } out[OUTS];
} group;

// Rows and columns that are to be dropped.
typedef struct masks {
    bool *row[NET_COUNT], *col[NET_COUNT];
} masks;

typedef struct removal {
    rnn_net *net;
    const group *g;
    bool *dead;    // [n]
    int *alive;    // [n] units that are left
    int count;     // of them
    float *u;      // [alive, d]
    double *gram;  // [alive, alive]
    double *inv;   // [alive, alive]
    double *norm;  // [n] squared, of outgoing columns
    double *share; // [n] l_k of the neuron at hand
} removal;

// ---- groups ------------------------------------------------------------------------------------

static void add_in(group *g, const rnn_net *n, int id, int base, int unit, int parts, int stride)
{
    if (!n->m[id].w) return;
    g->in[g->in_count].id = id;
    g->in[g->in_count].base = base;
    g->in[g->in_count].unit = unit;
    g->in[g->in_count].parts = parts;
    g->in[g->in_count++].stride = stride;
}

static void add_out(group *g, const rnn_net *n, int id, int base)
{
    if (!n->m[id].w) return;
    g->out[g->out_count].id = id;
    g->out[g->out_count++].base = base;
}

static group encoder_group(const rnn_net *n, int head, int direction)
{
    const int all = n->size[DIM_ENCODER], units = n->part[DIM_ENCODER][head];
    int first = 0;
    for (int m = 0; m < head; m++) first += n->part[DIM_ENCODER][m];
    const int context = n->directions * first + direction * units;
    group g = {.n = units};
    add_in(&g, n, direction ? NET_BWD_W : NET_FWD_W, first, 1, 3, all);
    add_in(&g, n, direction ? NET_BWD_H : NET_FWD_H, first, 1, 3, all);
    add_out(&g, n, direction ? NET_BWD_H : NET_FWD_H, first);
    add_out(&g, n, NET_INIT, direction * all + first);
    add_out(&g, n, NET_KEY, direction * all + first);
    add_out(&g, n, NET_C, context);
    add_out(&g, n, NET_READ_C, context);
    return g;
}

static group attention_group(const rnn_net *n, int head)
{
    int first = 0;
    for (int m = 0; m < head; m++) first += n->part[DIM_ATTENTION][m];
    group g = {.n = n->part[DIM_ATTENTION][head]};
    add_in(&g, n, NET_QUERY, first, 1, 1, 0);
    add_in(&g, n, NET_KEY, first, 1, 1, 0);
    add_out(&g, n, NET_V, first);
    return g;
}

static group decoder_group(const rnn_net *n, int head)
{
    const int all = n->size[DIM_HIDDEN];
    int first = 0;
    for (int m = 0; m < head; m++) first += n->part[DIM_HIDDEN][m];
    group g = {.n = n->part[DIM_HIDDEN][head]};
    add_in(&g, n, NET_X, first, 1, 3, all);
    add_in(&g, n, NET_C, first, 1, 3, all);
    add_in(&g, n, NET_H, first, 1, 3, all);
    add_in(&g, n, NET_INIT, first, 1, 1, 0);
    add_out(&g, n, NET_H, first);
    add_out(&g, n, NET_QUERY, first);
    add_out(&g, n, n->readout == NET_READ_NONE ? NET_OUT : NET_READ_H, first);
    return g;
}

static group readout_group(const rnn_net *n, int head)
{
    const int parts = n->readout == NET_READ_MAXOUT ? 2 : 1;
    int first = 0;
    for (int m = 0; m < head; m++) first += n->part[DIM_READOUT][m];
    group g = {.n = n->part[DIM_READOUT][head]};
    add_in(&g, n, NET_READ_X, first * parts, parts, parts, 1);
    add_in(&g, n, NET_READ_H, first * parts, parts, parts, 1);
    add_in(&g, n, NET_READ_C, first * parts, parts, parts, 1);
    add_out(&g, n, NET_OUT, first);
    return g;
}

// ---- removing neurons --------------------------------------------------------------------------

static int incoming(const rnn_net *n, const group *g)
{
    int d = 0;
    for (int i = 0; i < g->in_count; i++) {
        const net_matrix *m = &n->m[g->in[i].id];
        d += g->in[i].parts * (m->cols + (m->bias != NULL));
    }
    return d;
}

static void gather(const removal *r, int unit, float *u)
{
    const group *g = r->g;
    for (int i = 0; i < g->in_count; i++) {
        const net_matrix *m = &r->net->m[g->in[i].id];
        for (int k = 0; k < g->in[i].parts; k++) {
            const int row = g->in[i].base + unit * g->in[i].unit + k * g->in[i].stride;
            memcpy(u, m->w + (size_t)row * (size_t)m->cols, (size_t)m->cols * sizeof *u);
            u += m->cols;
            if (m->bias) *u++ = m->bias[row];
        }
    }
}

// G of the units that are left, and its inverse.
static dgm_status prepare(removal *r, int d, dgm_error *err)
{
    const size_t n = (size_t)r->count;
    double trace = 0;
    for (int i = 0; i < r->count; i++) {
        float *ui = r->u + (size_t)i * (size_t)d;
        gather(r, r->alive[i], ui);
        for (int j = 0; j <= i; j++) {
            const float *uj = r->u + (size_t)j * (size_t)d;
            r->gram[(size_t)i * n + (size_t)j] = dgm_algebra_dot(ui, uj, d);
        }
        trace += r->gram[(size_t)i * n + (size_t)i];
    }
    for (size_t i = 0; i < n; i++) r->gram[i * n + i] += 1e-7 * trace / (double)n + 1e-20;
    DGM_FAIL_IF(!dgm_algebra_invert(r->gram, r->inv, r->count), err, DGM_ERR_FORMAT,
                "weights that are not finite numbers");
    return DGM_OK;
}

static void measure(removal *r)
{
    for (int i = 0; i < r->count; i++) r->norm[r->alive[i]] = 0;
    for (int o = 0; o < r->g->out_count; o++) {
        const net_matrix *m = &r->net->m[r->g->out[o].id];
        for (int row = 0; row < m->rows; row++) {
            const float *w = m->w + (size_t)row * (size_t)m->cols + r->g->out[o].base;
            for (int i = 0; i < r->count; i++) {
                const double v = (double)w[r->alive[i]];
                r->norm[r->alive[i]] += v * v;
            }
        }
    }
}

// Neuron `at` of those that were left when the round began goes; the others stand in for it.
static void remove_one(removal *r, int at, const bool *gone)
{
    const size_t n = (size_t)r->count;
    const double *g = r->inv + (size_t)at * n;
    const double pivot = g[at];
    const int unit = r->alive[at];
    for (int k = 0; k < r->count; k++) r->share[k] = gone[k] || k == at ? 0.0 : -g[k] / pivot;
    for (int o = 0; o < r->g->out_count; o++) {
        net_matrix *m = &r->net->m[r->g->out[o].id];
        for (int row = 0; row < m->rows; row++) {
            float *w = m->w + (size_t)row * (size_t)m->cols + r->g->out[o].base;
            const double v = (double)w[unit];
            w[unit] = 0.0f;
            if (v == 0.0) continue;
            for (int k = 0; k < r->count; k++) w[r->alive[k]] += (float)(r->share[k] * v);
        }
    }
    // share is the column over the pivot already: downdate by -g g^T / pivot = share g^T.
    for (int k = 0; k < r->count; k++) {
        if (r->share[k] == 0.0) continue;
        double *row = r->inv + (size_t)k * n;
        for (int j = 0; j < r->count; j++) row[j] += r->share[k] * g[j];
    }
    r->dead[unit] = true;
}

static dgm_status round_of(removal *r, int remove, bool *gone, dgm_error *err)
{
    r->count = 0;
    for (int i = 0; i < r->g->n; i++)
        if (!r->dead[i]) r->alive[r->count++] = i;
    DGM_TRY(prepare(r, incoming(r->net, r->g), err));
    memset(gone, 0, (size_t)r->count * sizeof *gone);
    for (; remove > 0; remove--) {
        measure(r);
        int best = -1;
        double least = INFINITY;
        for (int i = 0; i < r->count; i++) {
            if (gone[i]) continue;
            const double diagonal = r->inv[(size_t)i * (size_t)r->count + (size_t)i];
            const double cost = r->norm[r->alive[i]] / (diagonal > 1e-300 ? diagonal : 1e-300);
            if (best < 0 || cost < least) best = i, least = cost;
        }
        remove_one(r, best, gone);
        gone[best] = true;
    }
    return DGM_OK;
}

// Marks `remove` units of the group as dead.
static dgm_status remove_units(rnn_net *n, const group *g, int remove, bool *dead, dgm_error *err)
{
    const size_t units = (size_t)g->n, d = (size_t)incoming(n, g);
    removal r = {.net = n, .g = g, .dead = dead};
    r.alive = dgm_malloc(units * sizeof *r.alive);
    r.u = dgm_malloc(units * d * sizeof *r.u);
    r.gram = dgm_malloc(units * units * sizeof *r.gram);
    r.inv = dgm_malloc(units * units * sizeof *r.inv);
    r.norm = dgm_malloc(units * sizeof *r.norm);
    r.share = dgm_malloc(units * sizeof *r.share);
    bool *gone = dgm_malloc(units * sizeof *gone);
    dgm_status st = r.alive && r.u && r.gram && r.inv && r.norm && r.share && gone
                        ? DGM_OK
                        : dgm_no_memory(err);
    for (int left = ROUNDS; st == DGM_OK && left > 0; left--) {
        const int now = (remove + left - 1) / left;
        if (now > 0) st = round_of(&r, now, gone, err);
        remove -= now;
    }
    void *const all[] = {r.alive, r.u, r.gram, r.inv, r.norm, r.share, gone};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) dgm_free(all[i]);
    return st;
}

// ---- dropping rows and columns -----------------------------------------------------------------

static void free_masks(masks *k)
{
    for (int i = 0; i < NET_COUNT; i++) {
        dgm_free(k->row[i]);
        dgm_free(k->col[i]);
    }
}

static dgm_status make_masks(masks *k, const rnn_net *n, dgm_error *err)
{
    bool fine = true;
    for (int i = 0; i < NET_COUNT; i++) {
        if (!n->m[i].w) continue;
        k->row[i] = dgm_calloc((size_t)n->m[i].rows, sizeof(bool));
        k->col[i] = dgm_calloc((size_t)n->m[i].cols, sizeof(bool));
        fine &= k->row[i] && k->col[i];
    }
    return fine ? DGM_OK : dgm_no_memory(err);
}

static void mark(masks *k, const group *g, const bool *dead)
{
    for (int u = 0; u < g->n; u++) {
        if (!dead[u]) continue;
        for (int i = 0; i < g->in_count; i++)
            for (int p = 0; p < g->in[i].parts; p++)
                k->row[g->in[i].id][g->in[i].base + u * g->in[i].unit + p * g->in[i].stride] = true;
        for (int o = 0; o < g->out_count; o++) k->col[g->out[o].id][g->out[o].base + u] = true;
    }
}

static void compact(net_matrix *m, const bool *dead_row, const bool *dead_col)
{
    int rows = 0, cols = 0;
    float *to = m->w;
    for (int c = 0; c < m->cols; c++) cols += !dead_col[c];
    for (int r = 0; r < m->rows; r++) {
        if (dead_row[r]) continue;
        const float *from = m->w + (size_t)r * (size_t)m->cols;
        for (int c = 0; c < m->cols; c++)
            if (!dead_col[c]) *to++ = from[c];
        if (m->bias) m->bias[rows] = m->bias[r];
        rows++;
    }
    m->rows = rows;
    m->cols = cols;
}

// Groups of one dimension at a time: their units, then everything that names them.
typedef struct layer {
    group groups[2 * DGM_SHRINK_MEMBERS];
    int remove[2 * DGM_SHRINK_MEMBERS];
    int count;
} layer;

static dgm_status shrink_layer(rnn_net *n, const layer *l, dgm_error *err)
{
    masks k;
    memset(&k, 0, sizeof k);
    dgm_status st = make_masks(&k, n, err);
    for (int i = 0; st == DGM_OK && i < l->count; i++) {
        if (l->remove[i] <= 0) continue;
        bool *dead = dgm_calloc((size_t)l->groups[i].n, sizeof *dead);
        st = dead ? remove_units(n, &l->groups[i], l->remove[i], dead, err) : dgm_no_memory(err);
        if (st == DGM_OK) mark(&k, &l->groups[i], dead);
        dgm_free(dead);
    }
    for (int i = 0; st == DGM_OK && i < NET_COUNT; i++)
        if (n->m[i].w) compact(&n->m[i], k.row[i], k.col[i]);
    free_masks(&k);
    return st;
}

static void add(layer *l, group g, int remove)
{
    l->groups[l->count] = g;
    l->remove[l->count++] = remove;
}

static void resize(rnn_net *n, const rnn_net *to, net_dim dim)
{
    n->size[dim] = to->size[dim];
    memcpy(n->part[dim], to->part[dim], sizeof n->part[dim]);
}

static dgm_status shrink_encoder(rnn_net *n, const rnn_net *to, dgm_error *err)
{
    layer l = {.count = 0};
    for (int m = 0; m < n->heads; m++)
        for (int d = 0; d < n->directions; d++)
            add(&l, encoder_group(n, m, d), n->part[DIM_ENCODER][m] - to->part[DIM_ENCODER][m]);
    DGM_TRY(shrink_layer(n, &l, err));
    resize(n, to, DIM_ENCODER);
    resize(n, to, DIM_CONTEXT);
    return DGM_OK;
}

static dgm_status shrink_attention(rnn_net *n, const rnn_net *to, dgm_error *err)
{
    layer l = {.count = 0};
    for (int m = 0; m < n->heads; m++)
        add(&l, attention_group(n, m), n->part[DIM_ATTENTION][m] - to->part[DIM_ATTENTION][m]);
    DGM_TRY(shrink_layer(n, &l, err));
    resize(n, to, DIM_ATTENTION);
    return DGM_OK;
}

static dgm_status shrink_decoder(rnn_net *n, const rnn_net *to, dgm_error *err)
{
    layer l = {.count = 0};
    for (int m = 0; m < n->heads; m++)
        add(&l, decoder_group(n, m), n->part[DIM_HIDDEN][m] - to->part[DIM_HIDDEN][m]);
    DGM_TRY(shrink_layer(n, &l, err));
    resize(n, to, DIM_HIDDEN);
    if (n->readout != NET_READ_NONE) return DGM_OK;
    resize(n, to, DIM_READOUT);
    resize(n, to, DIM_ROWS);
    return DGM_OK;
}

// ---- linear layers -----------------------------------------------------------------------------

// Layers that read the columns `d` of a table: their matrices below each other, or with `flip`
// matrices whose rows are read.
typedef struct readers {
    int ids[4], count;
    bool flip;
} readers;

static int reader_rows(const rnn_net *n, const readers *r)
{
    int rows = 0;
    for (int i = 0; i < r->count; i++) {
        const net_matrix *m = &n->m[r->ids[i]];
        rows += r->flip ? m->cols + (m->bias != NULL) : m->rows;
    }
    return rows;
}

// right [reader_rows, d] from the matrices, or back into them at their new width.
static void pass_readers(rnn_net *n, const readers *r, int d, float *right, bool back)
{
    for (int i = 0; i < r->count; i++) {
        net_matrix *m = &n->m[r->ids[i]];
        const int rows = r->flip ? m->cols : m->rows;
        if (back && r->flip) m->rows = d;
        if (back && !r->flip) m->cols = d;
        for (int k = 0; k < rows; k++, right += d)
            for (int c = 0; c < d; c++) {
                float *w = r->flip ? &m->w[(size_t)c * (size_t)m->cols + (size_t)k]
                                   : &m->w[(size_t)k * (size_t)d + (size_t)c];
                if (back)
                    *w = right[c];
                else
                    right[c] = *w;
            }
        if (!r->flip || !m->bias) continue;
        for (int c = 0; c < d; c++) {
            if (back)
                m->bias[c] = right[c];
            else
                right[c] = m->bias[c];
        }
        right += d;
    }
}

static dgm_status reduce(rnn_net *n, int table, const readers *r, int to, dgm_error *err)
{
    net_matrix *t = &n->m[table];
    const int d = t->cols, other = reader_rows(n, r);
    if (to >= d || !t->w) return DGM_OK;
    float *right = dgm_malloc((size_t)other * (size_t)d * sizeof *right);
    float *new_right = dgm_malloc((size_t)other * (size_t)to * sizeof *new_right);
    float *new_left = dgm_malloc((size_t)t->rows * (size_t)to * sizeof *new_left);
    dgm_status st = right && new_right && new_left ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        pass_readers(n, r, d, right, false);
        st = dgm_algebra_reduce(t->w, t->rows, right, other, d, to, new_left, new_right, err);
    }
    if (st == DGM_OK) {
        memcpy(t->w, new_left, (size_t)t->rows * (size_t)to * sizeof *new_left);
        t->cols = to;
        pass_readers(n, r, to, new_right, true);
    }
    dgm_free(right);
    dgm_free(new_right);
    dgm_free(new_left);
    return st;
}

static void add_reader(const rnn_net *n, readers *r, int id)
{
    if (n->m[id].w) r->ids[r->count++] = id;
}

static dgm_status shrink_readout(rnn_net *n, const rnn_net *to, dgm_error *err)
{
    if (n->readout == NET_READ_NONE) return DGM_OK;
    if (n->readout == NET_READ_LINEAR) {
        readers r = {.flip = true};
        add_reader(n, &r, NET_READ_X);
        add_reader(n, &r, NET_READ_H);
        add_reader(n, &r, NET_READ_C);
        n->joint_readout = to->joint_readout;
        DGM_TRY(reduce(n, NET_OUT, &r, to->size[DIM_READOUT], err));
    } else {
        layer l = {.count = 0};
        for (int m = 0; m < n->heads; m++)
            add(&l, readout_group(n, m), n->part[DIM_READOUT][m] - to->part[DIM_READOUT][m]);
        DGM_TRY(shrink_layer(n, &l, err));
    }
    resize(n, to, DIM_READOUT);
    resize(n, to, DIM_ROWS);
    return DGM_OK;
}

static dgm_status shrink_embeddings(rnn_net *n, const rnn_net *to, dgm_error *err)
{
    readers source = {.count = 0}, target = {.count = 0};
    readers *behind = n->m[NET_TARGET].w ? &target : &source; // one table for both: all read it
    add_reader(n, &source, NET_FWD_W);
    add_reader(n, &source, NET_BWD_W);
    add_reader(n, behind, NET_X);
    add_reader(n, behind, NET_READ_X);
    n->joint_embed = to->joint_embed;
    DGM_TRY(reduce(n, NET_SOURCE, &source, to->size[DIM_EMBED], err));
    if (n->m[NET_TARGET].w) DGM_TRY(reduce(n, NET_TARGET, &target, to->size[DIM_EMBED], err));
    n->size[DIM_EMBED] = to->size[DIM_EMBED];
    return DGM_OK;
}

// ---- all of it ---------------------------------------------------------------------------------

static dgm_status tick(const dgm_shrink_plan *p, double share, dgm_error *err)
{
    DGM_FAIL_IF(p->tick && !p->tick(p->cookie, share), err, DGM_ERR_CANCELLED, "stopped");
    return DGM_OK;
}

dgm_status dgm_net_shrink(rnn_net *n, const rnn_net *to, const dgm_shrink_plan *plan,
                          dgm_error *err)
{
    static dgm_status (*const steps[])(rnn_net *, const rnn_net *, dgm_error *) = {
        shrink_encoder, shrink_attention, shrink_decoder, shrink_readout, shrink_embeddings};
    const int count = sizeof steps / sizeof steps[0];
    for (int i = 0; i < count; i++) {
        DGM_TRY(tick(plan, 0.1 + 0.9 * i / count, err));
        DGM_TRY(steps[i](n, to, err));
    }
    return DGM_OK;
}
