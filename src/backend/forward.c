// SPDX-License-Identifier: MIT
// The functions of device.h, ops.h, rank.h and meter.h: each hands its arguments to the device that
// its object belongs to.
//
// They are plain functions rather than inline ones so that nobody outside backend/ sees the table:
// a call costs a few instructions, an operation at least some thousands.
#include "backend/backend_ops.h"
#include "base/mem.h"

// Every object of a device begins with a pointer to its table.
static const dgm_backend_ops *ops_of(const void *object)
{
    return *(const dgm_backend_ops *const *)object;
}

// ---- device.h: device ---------------------------------------------------------------------------

void dgm_backend_close(dgm_backend **b)
{
    if (*b) ops_of(*b)->close(b);
}

const dgm_backend_props *dgm_backend_properties(const dgm_backend *b)
{
    return ops_of(b)->properties(b);
}

dgm_status dgm_backend_supports(const dgm_backend *b, dgm_precision precision, dgm_error *err)
{
    const dgm_backend_props *p = dgm_backend_properties(b);
    char has[64];
    DGM_FAIL_IF(!(p->precisions & 1u << precision), err, DGM_ERR_UNSUPPORTED,
                "device %s has no products in %s: the precision must be one of %s", p->name,
                dgm_precision_names[precision], dgm_precision_list(p->precisions, has, sizeof has));
    return DGM_OK;
}

const char *dgm_backend_describe(const dgm_backend *b, char *buffer, size_t size)
{
    return ops_of(b)->describe(b, buffer, size);
}

const char *dgm_backend_variants(dgm_backend *b, char *buffer, size_t size)
{
    return ops_of(b)->variants(b, buffer, size);
}

void dgm_backend_static(dgm_backend *b, bool on)
{
    ops_of(b)->static_scales(b, on);
}

void dgm_backend_activations(dgm_backend *b, dgm_activations how)
{
    ops_of(b)->activations(b, how);
}

// ---- device.h: weights --------------------------------------------------------------------------

dgm_status dgm_linear_load(dgm_backend *b, const dgm_linear_part *parts, int count,
                           dgm_precision precision, dgm_linear **out, dgm_error *err)
{
    *out = NULL;
    DGM_TRY(dgm_backend_supports(b, precision, err));
    return ops_of(b)->linear_load(b, parts, count, precision, out, err);
}

void dgm_linear_free(dgm_backend *b, dgm_linear **l)
{
    if (*l) ops_of(b)->linear_free(b, l);
}

int dgm_linear_rows(const dgm_linear *l)
{
    return ops_of(l)->linear_rows(l);
}

int dgm_linear_cols(const dgm_linear *l)
{
    return ops_of(l)->linear_cols(l);
}

size_t dgm_linear_bytes(const dgm_linear *l)
{
    return ops_of(l)->linear_bytes(l);
}

dgm_status dgm_linear_by_rows(dgm_backend *b, dgm_linear *l, dgm_error *err)
{
    return ops_of(b)->linear_by_rows(b, l, err);
}

const dgm_tensor *dgm_linear_tensor(const dgm_linear *l, int part)
{
    return ops_of(l)->linear_tensor(l, part);
}

dgm_status dgm_embedding_load(dgm_backend *b, const dgm_tensor *table, dgm_embedding **out,
                              dgm_error *err)
{
    return ops_of(b)->embedding_load(b, table, out, err);
}

void dgm_embedding_free(dgm_backend *b, dgm_embedding **e)
{
    if (*e) ops_of(b)->embedding_free(b, e);
}

dgm_status dgm_vector_from(dgm_backend *b, const float *data, int rows, int cols, dgm_vector **out,
                           dgm_error *err)
{
    return ops_of(b)->vector_from(b, data, rows, cols, out, err);
}

void dgm_vector_free(dgm_backend *b, dgm_vector **v)
{
    if (*v) ops_of(b)->vector_free(b, v);
}

dgm_status dgm_centroids_load(dgm_backend *b, const dgm_tensor *centroids, dgm_centroids **out,
                              dgm_error *err)
{
    return ops_of(b)->centroids_load(b, centroids, out, err);
}

void dgm_centroids_free(dgm_backend *b, dgm_centroids **c)
{
    if (*c) ops_of(b)->centroids_free(b, c);
}

size_t dgm_centroids_bytes(const dgm_centroids *c)
{
    return ops_of(c)->centroids_bytes(c);
}

dgm_status dgm_centroids_lists(dgm_backend *b, dgm_centroids *c, const uint64_t *bits, int vocabulary, dgm_error *err)
{
    return ops_of(b)->centroids_lists(b, c, bits, vocabulary, err);
}

dgm_status dgm_experts_load(dgm_backend *b, const dgm_gguf *file, const dgm_expert_part *parts,
                            int count, dgm_precision precision, dgm_experts **out, dgm_error *err)
{
    *out = NULL;
    DGM_TRY(dgm_backend_supports(b, precision, err));
    return ops_of(b)->experts_load(b, file, parts, count, precision, out, err);
}

void dgm_experts_free(dgm_backend *b, dgm_experts **e)
{
    if (*e) ops_of(b)->experts_free(b, e);
}

void dgm_experts_count(const dgm_experts *e, dgm_experts_use *add)
{
    ops_of(e)->experts_count(e, add);
}

// ---- device.h: memory of a worker ---------------------------------------------------------------

dgm_status dgm_exec_open(dgm_backend *b, dgm_bytes bytes, dgm_exec **out, dgm_error *err)
{
    *out = NULL;
    dgm_exec *x = dgm_calloc(1, sizeof *x);
    if (!x) return dgm_no_memory(err);
    x->ops = ops_of(b);
    x->backend = b;
    dgm_status st = dgm_team_open(&x->team, err);
    if (st == DGM_OK) st = dgm_arena_init(&x->host, bytes.host, err);
    if (st == DGM_OK) st = x->ops->exec_open(x, bytes.device, err);
    if (st != DGM_OK)
        dgm_exec_close(&x);
    else
        *out = x;
    return st;
}

void dgm_exec_close(dgm_exec **x)
{
    if (!*x) return;
    (*x)->ops->exec_close(*x);
    dgm_arena_free(&(*x)->host);
    dgm_team_close(&(*x)->team);
    dgm_free(*x);
    *x = NULL;
}

dgm_status dgm_exec_status(dgm_exec *x, dgm_error *err)
{
    dgm_status st = x->failed;
    x->failed = DGM_OK;
    return st == DGM_OK ? DGM_OK : dgm_fail(err, st, "%s", x->why.text);
}

void dgm_exec_start(dgm_exec *x, int rows)
{
    x->ops->start(x, rows);
}

void dgm_exec_sync(dgm_exec *x)
{
    x->ops->sync(x);
}

dgm_backend *dgm_exec_backend(dgm_exec *x)
{
    return x->backend;
}

size_t dgm_exec_mat_bytes(const dgm_backend *b, int rows, int cols)
{
    return ops_of(b)->mat_bytes(b, rows, cols);
}

dgm_mat dgm_exec_mat(dgm_exec *x, int rows, int cols)
{
    return x->ops->mat(x, rows, cols);
}

size_t dgm_exec_cache_bytes(const dgm_backend *b, int rows, int cols, dgm_precision precision)
{
    return ops_of(b)->cache_bytes(b, rows, cols, precision);
}

dgm_mat dgm_exec_cache(dgm_exec *x, int rows, int cols, dgm_precision precision)
{
    return x->ops->cache(x, rows, cols, precision);
}

size_t dgm_exec_blocks_bytes(const dgm_backend *b, int count, int heads, int dk, int dv,
                             dgm_precision precision)
{
    return ops_of(b)->blocks_bytes(b, count, heads, dk, dv, precision);
}

dgm_blocks dgm_exec_blocks(dgm_exec *x, int count, int heads, int dk, int dv,
                           dgm_precision precision)
{
    return x->ops->blocks(x, count, heads, dk, dv, precision);
}

dgm_mark dgm_exec_mark(dgm_exec *x)
{
    return (dgm_mark){dgm_arena_mark(&x->host), dgm_arena_mark(&x->device)};
}

void dgm_exec_reset(dgm_exec *x, dgm_mark mark)
{
    dgm_arena_reset(&x->host, mark.host);
    dgm_arena_reset(&x->device, mark.device);
}

dgm_bytes dgm_exec_peak(const dgm_exec *x)
{
    return (dgm_bytes){x->host.peak, x->device.peak};
}

dgm_team *dgm_exec_team(dgm_exec *x)
{
    return x->team;
}

void dgm_exec_large(dgm_exec *x)
{
    dgm_arena_large(&x->host);
    if (dgm_backend_properties(x->backend)->host_memory) dgm_arena_large(&x->device);
}

dgm_arena *dgm_exec_host(dgm_exec *x)
{
    return &x->host;
}

// ---- meter.h ------------------------------------------------------------------------------------

void dgm_exec_meter(dgm_exec *x, dgm_meter *meter)
{
    x->meter = meter;
}

void dgm_exec_observe(dgm_exec *x, const dgm_observer *observer)
{
    x->observer = observer;
}

dgm_status dgm_exec_clock(dgm_exec *x, dgm_error *err)
{
    return x->ops->clock(x, err);
}

double dgm_backend_busy(dgm_backend *b)
{
    return ops_of(b)->busy(b);
}

void dgm_exec_phase(dgm_exec *x, dgm_phase phase)
{
    if (!x->meter) return;
    x->meter->phase = phase;
    x->meter->phases[phase]++;
}

// ---- ops.h --------------------------------------------------------------------------------------

void dgm_op_linear(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *w, dgm_act act,
                   const dgm_mat *residual)
{
    x->ops->linear(x, y, in, w, act, residual);
}

void dgm_op_feed_forward(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *v, dgm_act act,
                         dgm_mat inner, const dgm_linear *w, const dgm_mat *residual)
{
    x->ops->feed_forward(x, y, in, v, act, inner, w, residual);
}

void dgm_op_experts(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_experts *e,
                    const dgm_mixture *how, dgm_mat inner)
{
    x->ops->experts(x, y, in, e, how, inner);
}

dgm_bytes dgm_experts_bytes(const dgm_backend *b, int rows, int width, int experts)
{
    return ops_of(b)->experts_bytes(b, rows, width, experts);
}

void dgm_op_embed(dgm_exec *x, dgm_mat y, const dgm_embedding *table, const int32_t *ids,
                  float scale, const dgm_vector *start, const dgm_vector *positions,
                  const int32_t *pos)
{
    x->ops->embed(x, y, table, ids, scale, start, positions, pos);
}

void dgm_op_norm(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma,
                 const dgm_vector *beta, float eps)
{
    x->ops->norm(x, y, in, gamma, beta, eps);
}

void dgm_op_rms_norm(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma, float eps)
{
    x->ops->rms_norm(x, y, in, gamma, eps);
}

void dgm_op_norm_for(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_mat *add, const dgm_norm *how,
                     const dgm_linear *reader)
{
    x->ops->norm_for(x, y, in, add, how, reader);
}

void dgm_op_act(dgm_exec *x, dgm_mat y, dgm_mat in, dgm_act act)
{
    x->ops->act(x, y, in, act);
}

void dgm_op_add(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b)
{
    x->ops->add(x, y, a, b);
}

void dgm_op_add_vector(dgm_exec *x, dgm_mat y, dgm_mat a, const dgm_vector *v)
{
    x->ops->add_vector(x, y, a, v);
}

void dgm_op_maxout(dgm_exec *x, dgm_mat y, dgm_mat in)
{
    x->ops->maxout(x, y, in);
}

void dgm_op_zero(dgm_exec *x, dgm_mat y)
{
    x->ops->zero(x, y);
}

void dgm_op_gather(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index)
{
    x->ops->gather(x, y, in, index);
}

void dgm_op_scatter(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index)
{
    x->ops->scatter(x, y, in, index);
}

void dgm_op_copy(dgm_exec *x, dgm_mat y, const int32_t *to, dgm_mat in, const int32_t *from,
                 int count)
{
    x->ops->copy(x, y, to, in, from, count);
}

void dgm_op_zero_rows(dgm_exec *x, const dgm_mat *y, int matrices, const int32_t *rows, int count)
{
    x->ops->zero_rows(x, y, matrices, rows, count);
}

void dgm_op_mean(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *first, const int32_t *count)
{
    x->ops->mean(x, y, in, first, count);
}

const dgm_paths *dgm_op_paths(dgm_exec *x, int rows, const int32_t *first, const int32_t *length,
                              const int32_t *entries, int entry_count)
{
    return x->ops->paths(x, rows, first, length, entries, entry_count);
}

dgm_bytes dgm_paths_bytes(const dgm_backend *b, int rows, size_t entry_count)
{
    return ops_of(b)->paths_bytes(b, rows, entry_count);
}

dgm_bytes dgm_attend_bytes(const dgm_backend *b, int heads, int keys)
{
    return ops_of(b)->attend_bytes(b, heads, keys);
}

void dgm_op_attend(dgm_exec *x, dgm_mat out, dgm_mat q, dgm_mat k, dgm_mat v,
                   const dgm_heads *heads, const dgm_paths *paths, const dgm_align_list *align)
{
    x->ops->attend(x, out, q, k, v, heads, paths, align);
}

void dgm_op_attend_add(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_vector *w, dgm_mat k,
                       dgm_mat v, const dgm_paths *paths, const dgm_align_list *align)
{
    x->ops->attend_add(x, out, q, w, k, v, paths, align);
}

void dgm_op_blocks_put(dgm_exec *x, const dgm_blocks *memories, int layers, dgm_mat kv,
                       const dgm_block_span *spans, int count)
{
    x->ops->blocks_put(x, memories, layers, kv, spans, count);
}

void dgm_op_attend_blocks(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_blocks *blocks,
                          float scale, const dgm_paths *paths, const dgm_align_list *align)
{
    x->ops->attend_blocks(x, out, q, blocks, scale, paths, align);
}

void dgm_op_gru(dgm_exec *x, dgm_mat out, dgm_mat state, dgm_mat gx, dgm_mat gh)
{
    x->ops->gru(x, out, state, gx, gh);
}

void dgm_op_lstm(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat gx, dgm_mat gh)
{
    x->ops->lstm(x, out, cell_out, cell, gx, gh);
}

void dgm_op_ssru(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat in, dgm_mat f)
{
    x->ops->ssru(x, out, cell_out, cell, in, f);
}

void dgm_op_scale(dgm_exec *x, dgm_mat y, dgm_mat in, const float *factor)
{
    x->ops->scale(x, y, in, factor);
}

void dgm_op_gated_sum(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_mat g)
{
    x->ops->gated_sum(x, y, a, b, g);
}

void dgm_op_gated(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_act act)
{
    x->ops->gated(x, y, a, b, act);
}

void dgm_op_read(dgm_exec *x, float *host, dgm_mat in)
{
    x->ops->read(x, host, in);
}

void dgm_op_write(dgm_exec *x, dgm_mat y, const float *host)
{
    x->ops->write(x, y, host);
}

// ---- rank.h -------------------------------------------------------------------------------------

dgm_mat dgm_tables_open(dgm_exec *x, int count, int vocabulary)
{
    dgm_mat tables = dgm_exec_mat(x, count, vocabulary);
    if (tables.data) x->ops->zero(x, tables);
    return tables;
}

void dgm_op_set(dgm_exec *x, dgm_mat tables, int row, const int32_t *ids, const float *values,
                int count)
{
    x->ops->set(x, tables, row, ids, values, count);
}

dgm_gathered *dgm_gathered_open(dgm_exec *x, const dgm_linear *w, int capacity)
{
    return x->ops->gathered_open(x, w, capacity);
}

dgm_bytes dgm_gathered_bytes(const dgm_backend *b, const dgm_linear *w, int capacity, int count)
{
    return ops_of(b)->gathered_bytes(b, w, capacity, count);
}

void dgm_op_gather_columns(dgm_exec *x, dgm_gathered *g, const int32_t *ids, int count)
{
    x->ops->gather_columns(x, g, ids, count);
}

void dgm_op_rank(dgm_exec *x, const dgm_rank *r)
{
    x->ops->rank(x, r);
}

dgm_bytes dgm_rank_bytes(const dgm_backend *b, int rows, int parts, int vocabulary)
{
    return ops_of(b)->rank_bytes(b, rows, parts, vocabulary);
}

void dgm_op_closest(dgm_exec *x, const dgm_centroids *c, dgm_mat rows, int32_t *found)
{
    x->ops->closest(x, c, rows, found);
}

dgm_bytes dgm_closest_bytes(const dgm_backend *b, int rows, int centroids)
{
    return ops_of(b)->closest_bytes(b, rows, centroids);
}

void dgm_op_distances(dgm_exec *x, dgm_mat rows, const int32_t *one, const int32_t *two, int count,
                      dgm_distance *out)
{
    x->ops->distances(x, rows, one, two, count, out);
}

dgm_bytes dgm_rank_more_bytes(const dgm_backend *b, const dgm_linear *out)
{
    return ops_of(b)->rank_more_bytes(b, out);
}

dgm_bytes dgm_rank_joint_bytes(const dgm_backend *b, int rows, int vocabulary)
{
    return ops_of(b)->rank_joint_bytes(b, rows, vocabulary);
}

void dgm_op_keep(dgm_exec *x, dgm_mat kept, int first, dgm_mat in)
{
    x->ops->gather(x, dgm_mat_rows(kept, first, in.rows), in, NULL);
}

// ---- meters -------------------------------------------------------------------------------------

static void add_row(dgm_meter *sum, const dgm_meter_row *r)
{
    int i = 0;
    while (i < sum->count && (sum->rows[i].phase != r->phase || sum->rows[i].work != r->work ||
                              sum->rows[i].precision != r->precision || sum->rows[i].n != r->n ||
                              sum->rows[i].k != r->k))
        i++;
    if (i == DGM_METER_ROWS) i--;
    dgm_meter_row *to = &sum->rows[i];
    if (i == sum->count) {
        *to = *r;
        sum->count++;
        return;
    }
    to->calls += r->calls;
    to->rows += r->rows;
    to->madds += r->madds;
    to->weight_bytes += r->weight_bytes;
    to->other_bytes += r->other_bytes;
    to->seconds += r->seconds;
}

void dgm_meter_add(dgm_meter *sum, const dgm_meter *m)
{
    for (int k = 0; k < m->count; k++) add_row(sum, &m->rows[k]);
    for (int k = 0; k < DGM_PHASE_COUNT; k++) sum->phases[k] += m->phases[k];
}
