// SPDX-License-Identifier: MIT
// CPU backend: rank = projection, softmax sum, scorers' terms and top-k in one pass.
//
// The vocabulary is walked in chunks of CHUNK columns and the rows in blocks of ROWS, so that the
// logits of one (block, chunk) stay in cache and are consumed at once:
//
//     for each chunk of columns            weights are read once
//         for each block of rows           logits[ROWS, CHUNK]: 128 KiB
//             product -> running (max, sum of exponentials) -> terms -> top-k list
//
// A list of candidates is walked in the same way, CHUNK candidates at a time. Its columns are gathered
// when it is first needed (gather_cpu.c): each sentence's rows are multiplied with its own block.
// Of a list that was not gathered, only the weight panels that hold a candidate are multiplied, and
// the wanted columns are picked out of them. Lists of many sentences are walked side by side
// where that is faster (rank_lists_cpu.c). Chunks are cut by the list, never by the batch, so a
// row's sums do not depend on its neighbours. What a row may choose beside its list comes behind
// it, as one chunk, whose columns are gathered on the spot.
//
// Within a row the list is kept by raw value v = lambda * sum_p weight_p * logit_p + terms; the
// part that is the same for all tokens (base, constant, -log Z) is added at the end. An arithmetic
// mix needs every log Z before the first comparison: it keeps the logits of one row at a time.
#include <math.h>
#include <string.h>

#include "base/lower_bound.h"
#include "backend/cpu/rank_private.h"

enum { PANEL = DGM_GEMM_COLUMNS };

dgm_bytes cpu_rank_bytes(const dgm_backend *b, int rows, int parts, int vocabulary)
{
    (void)b;
    size_t floats = (size_t)parts * ROWS * CHUNK + ROWS * PANEL + CHUNK + cpu_rank_wide() + cpu_rank_whole(vocabulary);
    size_t arithmetic = ((size_t)parts + 1) * ((size_t)vocabulary + DGM_MORE_MAX);
    return (dgm_bytes){
        .device = dgm_arena_cost((size_t)rows * (size_t)parts * sizeof(rank_sum)) +
                  dgm_arena_cost((size_t)parts * sizeof(cpu_input)) +
                  (size_t)parts * cpu_prepare_bytes(rows) +
                  2 * dgm_arena_cost((size_t)rows * sizeof(rank_group)) +
                  dgm_arena_cost((size_t)parts * ROWS * sizeof(rank_sum)) +
                  dgm_arena_cost(CHUNK * sizeof(int32_t)) + 6 * dgm_arena_cost(0) +
                  (floats + arithmetic + 64) * sizeof(float) + 4096};
}

dgm_bytes cpu_rank_joint_bytes(const dgm_backend *b, int rows, int vocabulary)
{
    (void)b, (void)rows, (void)vocabulary;
    return (dgm_bytes){0};
}

dgm_bytes cpu_rank_more_bytes(const dgm_backend *b, const dgm_linear *out)
{
    dgm_bytes bytes = cpu_gathered_bytes(b, out, DGM_MORE_MAX, 1);
    bytes.device += dgm_arena_cost(sizeof(void *));
    return bytes;
}

static float exp_of(const dgm_kernels *k, float x)
{
    if (x > 88.0f) x = 88.0f; // raw logits of a mix; anything above is no probability
    return k->sum_exp_f32(&x, 1, 0.0f);
}

// Logits with this maximum, which is not -INFINITY, are added next.
void cpu_rank_raise(const dgm_kernels *k, rank_sum *s, float max)
{
    if (max <= s->max) return;
    if (s->max != -INFINITY) s->sum *= exp_of(k, s->max - max); // seldom, after the first chunks
    s->max = max;
}

// Adds n logits; returns their maximum.
static float lse_add(const dgm_kernels *k, rank_sum *s, const float *x, int n)
{
    float max = k->max_f32(x, n);
    if (max == -INFINITY) return max;
    cpu_rank_raise(k, s, max);
    s->sum += k->sum_exp_f32(x, n, s->max);
    return max;
}

static float lse_value(const rank_sum *s)
{
    return s->max == -INFINITY ? -INFINITY : s->max + logf(s->sum);
}

// ---- projection -------------------------------------------------------------------------------

// alone: by this thread, which may be a member of the team.
void cpu_rank_project(const rank_state *q, const dgm_linear *w, int part, int row, int rows, int begin,
                    int end, float *out, int ldc, bool alone)
{
    cpu_product p = {
        .c = out, .ldc = ldc, .first = row, .m = rows, .n_begin = begin, .n_end = end};
    if (alone)
        cpu_multiply(q->x->backend, w, &q->inputs[part], &p);
    else
        cpu_multiply_shared(q->x, w, &q->inputs[part], &p);
}

static int multiply_rows(const rank_state *q, int part, int row, int rows, const rank_columns *c, float *out)
{
    const int32_t *ids = c->ids;
    for (int i = 0; !ids && i < c->count; i++) q->span[i] = c->first + i;
    const cpu_product p = {.c = out, .ldc = CHUNK, .first = row, .m = rows};
    cpu_multiply_listed(q->x->backend, q->r->parts[part].out, &q->inputs[part], &p,
                        ids ? ids : q->span, c->count);
    return c->count;
}

// Returns how many columns were multiplied.
static int multiply_columns(const rank_state *q, int part, int row, int rows, const rank_columns *c,
                            float *out)
{
    const dgm_linear *w = q->r->parts[part].out;
    int walked = 0;
    if (!c->gathered && w->by_rows && (c->ids || !w->packed))
        return multiply_rows(q, part, row, rows, c, out);
    if (!c->ids || c->gathered) {
        if (c->gathered) w = &c->gathered[part]->columns;
        cpu_rank_project(q, w, part, row, rows, c->first, c->first + c->count, out, CHUNK, false);
        return c->count;
    }
    for (int i = 0; i < c->count;) {
        int begin = c->ids[i] / PANEL * PANEL, next = i;
        int end = begin + PANEL < q->vocabulary ? begin + PANEL : q->vocabulary;
        while (next < c->count && c->ids[next] < end) next++;
        cpu_rank_project(q, w, part, row, rows, begin, end, q->panel, PANEL, false);
        walked += end - begin;
        for (int r = 0; r < rows; r++)
            for (int j = i; j < next; j++)
                out[(size_t)r * CHUNK + (size_t)j] = q->panel[r * PANEL + c->ids[j] - begin];
        i = next;
    }
    return walked;
}

// Logits of the columns for `rows` rows into out [rows, CHUNK].
static void project_columns(rank_state *q, int part, int row, int rows, const rank_columns *c, float *out)
{
    double begin = cpu_begin(q->x);
    int walked = multiply_columns(q, part, row, rows, c, out);
    if (!q->x->meter) return;
    cpu_count_product(q->x, q->r->parts[part].out, rows, c->count, walked, begin);
    q->products += dgm_thread_time() - begin;
}

// ---- terms ------------------------------------------------------------------------------------

static int32_t column_token(const rank_columns *c, int i)
{
    return c->ids ? c->ids[i] : c->first + i;
}

// Column of a token, or -1.
static int find_column(const rank_columns *c, int32_t token)
{
    if (!c->ids) return token >= c->first && token < c->first + c->count ? token - c->first : -1;
    return dgm_find_id(c->ids, c->count, token);
}

// The same for tokens that are asked for in ascending order; *from moves along.
static int find_column_from(const rank_columns *c, int32_t token, int *from)
{
    if (!c->ids) return find_column(c, token);
    while (*from < c->count && c->ids[*from] < token) ++*from;
    return *from < c->count && c->ids[*from] == token ? *from : -1;
}

// What is below the chunk is passed over at once: lists are short, the chunks many.
static void mask_list(float *v, const rank_columns *c, const int32_t *list, int count)
{
    int32_t last = column_token(c, c->count - 1);
    for (int i = dgm_lower_id(list, count, column_token(c, 0)); i < count && list[i] <= last; i++) {
        int at = find_column(c, list[i]);
        if (at >= 0) v[at] = -INFINITY;
    }
}

static void add_list(const rank_columns *c, const dgm_addition *a, float *v)
{
    int32_t last = column_token(c, c->count - 1);
    for (int i = dgm_lower_id(a->ids, a->count, column_token(c, 0));
         i < a->count && a->ids[i] <= last; i++) {
        int at = find_column(c, a->ids[i]);
        if (at >= 0) v[at] += a->values[i];
    }
}

// False: nothing was added.
static bool add_terms(const dgm_kernels *k, const dgm_terms *t, const rank_columns *c, float *v)
{
    const float *table = t->table;
    if (!table && t->add_count == 0) return false;
    if (table && c->ids)
        for (int i = 0; i < c->count; i++) v[i] += table[c->ids[i]];
    else if (table)
        k->axpy_f32(v, table + c->first, c->count, 1.0f);
    for (int i = 0; i < t->add_count; i++) add_list(c, &t->add[i], v);
    return true;
}

// Offers the values of one row's chunk to its list. v is overwritten. No value is above `bound`
// before the terms.
static void offer(const rank_state *q, int row, const rank_columns *c, float *v, float bound)
{
    const dgm_rank *r = q->r;
    const dgm_terms *t = dgm_rank_terms(r, row);
    if (add_terms(q->k, t, c, v)) bound = q->k->max_f32(v, c->count);
    for (int w = 0; w < r->watch_count; w++) {
        size_t at = (size_t)row * (size_t)r->watch_count + (size_t)w;
        int column = r->watch[at] < 0 ? -1 : find_column(c, r->watch[at]);
        if (column >= 0) r->watch_score[at] = v[column];
    }
    // Most chunks cannot change the list; on a tie the earlier, lower token stays.
    const float worst = r->score[(size_t)(row + 1) * (size_t)r->k - 1];
    if (c->late ? bound < worst : bound <= worst) return;
    mask_list(v, c, r->never, r->never_count);
    mask_list(v, c, t->deny, t->deny_count);
    dgm_topk list = {r->score + (size_t)row * (size_t)r->k, r->token + (size_t)row * (size_t)r->k,
                     r->k};
    if (!t->allow) {
        q->k->topk_f32(&list, v, c->count, c->first, c->ids);
        return;
    }
    // A list of few tokens (a forced prefix) is looked up; one of most of the vocabulary (what may
    // follow a term) is walked beside the columns.
    const int32_t last = column_token(c, c->count - 1);
    int at = dgm_lower_id(t->allow, t->allow_count, column_token(c, 0)), column = 0;
    for (; at < t->allow_count && t->allow[at] <= last; at++) {
        const int found = find_column_from(c, t->allow[at], &column);
        if (found >= 0) q->k->topk_f32(&list, v + found, 1, t->allow[at], NULL);
    }
}

// ---- the two mixes ----------------------------------------------------------------------------

static float part_scale(const dgm_rank *r, int row, int part)
{
    return dgm_rank_terms(r, row)->lambda * r->parts[part].weight;
}

// Offers the logits of one chunk to one row's list, none of them above `bound`, the maximum of the last part.
void cpu_rank_offer(rank_state *q, int row, int in_block, const rank_columns *c, float bound)
{
    const dgm_rank *r = q->r;
    float *first = q->logits + (size_t)in_block * CHUNK;
    float scale = part_scale(r, row, 0);
    float *v = first;
    if (r->part_count > 1 || scale != 1.0f) {
        v = q->values;
        // A product with a positive number keeps the order, rounding and all.
        bound = r->part_count == 1 && scale > 0.0f ? bound * scale : INFINITY;
        memset(v, 0, (size_t)c->count * sizeof(float)); // 0 + x s is x s, rounded alike
        for (int p = 0; p < r->part_count; p++)
            q->k->axpy_f32(v, first + (size_t)p * ROWS * CHUNK, c->count, part_scale(r, row, p));
    }
    offer(q, row, c, v, bound);
}

// Consumes the logits of one chunk for one row.
void cpu_rank_consume(rank_state *q, int row, int in_block, const rank_columns *c)
{
    const dgm_rank *r = q->r;
    const float *first = q->logits + (size_t)in_block * CHUNK;
    float bound = INFINITY;
    for (int p = 0; r->normalise && p < r->part_count; p++)
        bound = lse_add(q->k, &q->sums[row * r->part_count + p], first + (size_t)p * ROWS * CHUNK,
                        c->count);
    cpu_rank_offer(q, row, in_block, c, bound);
}

void cpu_rank_chunk(rank_state *q, int row, int rows, const rank_columns *c)
{
    for (int from = row; from < row + rows; from += ROWS) {
        int n = row + rows - from < ROWS ? row + rows - from : ROWS;
        for (int p = 0; p < q->r->part_count; p++)
            project_columns(q, p, from, n, c, q->logits + (size_t)p * ROWS * CHUNK);
        for (int i = 0; i < n; i++) cpu_rank_consume(q, from + i, i, c);
    }
}

rank_columns cpu_rank_columns(const rank_state *q, const dgm_candidates *list, int at)
{
    int total = list ? list->count : q->vocabulary;
    rank_columns c = {.first = at, .count = total - at < CHUNK ? total - at : CHUNK};
    if (list) {
        c.ids = list->ids + at;
        c.gathered = list->gathered;
    }
    return c;
}

// Candidates of a row beside its list; NULL: none.
static const dgm_candidates *more_of(const rank_state *q, const dgm_candidates *list, int row)
{
    const dgm_candidates *more = list && q->r->more ? q->r->more[row] : NULL;
    return more && more->count ? more : NULL;
}

// The same as a chunk, its columns of one part gathered; the caller resets the memory.
static rank_columns chunk_of_more(const rank_state *q, const dgm_candidates *more, int part)
{
    rank_columns c = {.first = 0, .count = more->count, .ids = more->ids, .late = true};
    dgm_gathered *g = cpu_gathered_open(q->x, q->r->parts[part].out, DGM_MORE_MAX);
    dgm_gathered **of_parts = DGM_ARENA_ARRAY(&q->x->device, dgm_gathered *, (size_t)part + 1);
    cpu_gather_columns(q->x, g, more->ids, more->count);
    cpu_gathered_make(q->x, g);
    of_parts[part] = g;
    c.gathered = of_parts;
    return c;
}

static void rank_more(rank_state *q, const dgm_candidates *more, int row)
{
    rank_columns c = {0};
    for (int p = 0; p < q->r->part_count; p++) {
        dgm_mark mark = dgm_exec_mark(q->x);
        c = chunk_of_more(q, more, p);
        project_columns(q, p, row, 1, &c, q->logits + (size_t)p * ROWS * CHUNK);
        dgm_exec_reset(q->x, mark);
    }
    cpu_rank_consume(q, row, 0, &c);
}

void cpu_rank_all_more(rank_state *q, const dgm_candidates *list, int row, int rows)
{
    for (int i = row; i < row + rows; i++) {
        const dgm_candidates *more = more_of(q, list, i);
        if (more) rank_more(q, more, i);
    }
}

static void make_gathered(const rank_state *q, const dgm_candidates *list)
{
    for (int p = 0; list && list->gathered && p < q->r->part_count; p++) cpu_gathered_make(q->x, list->gathered[p]);
}

static void rank_log_linear(rank_state *q, const dgm_candidates *list, int row, int rows)
{
    int total = list ? list->count : q->vocabulary;
    make_gathered(q, list);
    for (int at = 0, chunks; at < total; at += chunks * CHUNK) {
        chunks = cpu_rank_share(q, list, row, rows, at, total);
        if (chunks) continue;
        rank_columns c = cpu_rank_columns(q, list, at);
        cpu_rank_chunk(q, row, rows, &c);
        chunks = 1;
    }
    cpu_rank_all_more(q, list, row, rows);
}

static void rank_lists(rank_state *q, const rank_group *groups, int count)
{
    const bool done = count && cpu_rank_read_off(q, groups, count);
    for (const rank_group *g = groups; g < groups + count; g++)
        if (done)
            cpu_rank_all_more(q, g->list, g->row, g->rows);
        else
            rank_log_linear(q, g->list, g->row, g->rows);
}

static bool listed_by_rows(const dgm_rank *r, const dgm_candidates *list)
{
    if (!list || list->gathered) return false;
    for (int p = 0; p < r->part_count; p++)
        if (!r->parts[p].out->by_rows) return false;
    return true;
}

// Adds the logits of one part's chunk to the row's store.
static void store_chunk(rank_state *q, int part, int row, const rank_columns *c, float *store)
{
    project_columns(q, part, row, 1, c, q->logits);
    memcpy(store, q->logits, (size_t)c->count * sizeof(float));
    if (q->r->normalise)
        lse_add(q->k, &q->sums[row * q->r->part_count + part], q->logits, c->count);
}

// Mixes the stored logits of one chunk, which begin at `at` in the store of each part.
static void mix_chunk(rank_state *q, int row, const rank_columns *c, const float *store, int total, int at)
{
    const dgm_rank *r = q->r;
    memset(q->values, 0, (size_t)c->count * sizeof(float));
    for (int p = 0; p < r->part_count; p++) {
        float z = r->normalise ? lse_value(&q->sums[row * r->part_count + p]) : 0;
        const float *logits = store + (size_t)p * (size_t)total + (size_t)at;
        for (int i = 0; i < c->count; i++)
            q->values[i] += r->parts[p].weight * exp_of(q->k, logits[i] - z);
    }
    const float lambda = dgm_rank_terms(r, row)->lambda;
    for (int i = 0; i < c->count; i++) q->values[i] = lambda * logf(q->values[i]);
    offer(q, row, c, q->values, INFINITY);
}

// log sum_p weight_p softmax_p(v): two walks over one row's stored logits, [parts, total].
static void rank_arithmetic(rank_state *q, const dgm_candidates *list, int row, float *store)
{
    const dgm_candidates *more = more_of(q, list, row);
    const int listed = list ? list->count : q->vocabulary;
    const int total = listed + (more ? more->count : 0);
    rank_columns c = {0};
    make_gathered(q, list);
    for (int p = 0; p < q->r->part_count; p++) {
        float *logits = store + (size_t)p * (size_t)total;
        for (int at = 0; at < listed; at += CHUNK) {
            c = cpu_rank_columns(q, list, at);
            store_chunk(q, p, row, &c, logits + at);
        }
        if (!more) continue;
        dgm_mark mark = dgm_exec_mark(q->x);
        c = chunk_of_more(q, more, p);
        store_chunk(q, p, row, &c, logits + listed);
        dgm_exec_reset(q->x, mark);
    }
    for (int at = 0; at < listed; at += CHUNK) {
        c = cpu_rank_columns(q, list, at);
        mix_chunk(q, row, &c, store, total, at);
    }
    if (!more) return;
    c = (rank_columns){.first = 0, .count = more->count, .ids = more->ids};
    mix_chunk(q, row, &c, store, total, listed);
}

// An arithmetic mix of one part is that part.
static bool arithmetic(const dgm_rank *r)
{
    return r->mix == DGM_MIX_ARITHMETIC && r->part_count > 1;
}

// Adds what all tokens of a row share.
static void finish_row(const rank_state *q, int row)
{
    const dgm_rank *r = q->r;
    float shift = dgm_rank_base(r, row) + dgm_rank_terms(r, row)->constant;
    for (int p = 0; p < r->part_count; p++) {
        float z = r->normalise ? lse_value(&q->sums[row * r->part_count + p]) : 0;
        if (r->log_z) r->log_z[row * r->part_count + p] = z;
        if (!arithmetic(r) && r->normalise) shift -= part_scale(r, row, p) * z;
    }
    for (int i = 0; i < r->k; i++) {
        float *score = &r->score[(size_t)row * (size_t)r->k + (size_t)i];
        int32_t *token = &r->token[(size_t)row * (size_t)r->k + (size_t)i];
        *score += shift;
        if (!(*score > -INFINITY)) {
            *score = -INFINITY;
            *token = -1;
        }
    }
    for (int w = 0; w < r->watch_count; w++) {
        float *score = &r->watch_score[(size_t)row * (size_t)r->watch_count + (size_t)w];
        if (*score != -INFINITY) *score += shift; // of an empty list the shift is infinite
    }
}

static int32_t size_of_row(const rank_state *q, int row)
{
    const dgm_candidates *list = q->r->candidates ? q->r->candidates[row] : NULL, *more = more_of(q, list, row);
    return (list ? list->count : q->vocabulary) + (more ? more->count : 0);
}

static void clear_results(const dgm_rank *r, rank_sum *sums)
{
    for (int i = 0; i < r->rows * r->k; i++) {
        r->score[i] = -INFINITY;
        r->token[i] = -1;
    }
    for (int i = 0; i < r->rows * r->watch_count; i++) r->watch_score[i] = -INFINITY;
    for (int i = 0; i < r->rows * r->part_count; i++) sums[i] = (rank_sum){-INFINITY, 0};
}

void cpu_rank(dgm_exec *x, const dgm_rank *r)
{
    size_t mark = dgm_arena_mark(&x->device);
    dgm_exec_phase(x, DGM_PHASE_RANK);
    rank_state q = {.x = x, .k = &x->backend->k, .r = r, .vocabulary = r->parts[0].out->rows};
    dgm_arena *a = &x->device;
    q.sums = DGM_ARENA_ARRAY(a, rank_sum, (size_t)r->rows * (size_t)r->part_count);
    q.logits = DGM_ARENA_ARRAY(a, float, (size_t)r->part_count * ROWS * CHUNK);
    q.panel = DGM_ARENA_ARRAY(a, float, ROWS * PANEL);
    q.values = DGM_ARENA_ARRAY(a, float, CHUNK);
    q.span = DGM_ARENA_ARRAY(a, int32_t, CHUNK);
    q.wide = DGM_ARENA_ARRAY(a, float, cpu_rank_wide());
    const size_t whole = cpu_rank_whole(q.vocabulary);
    q.whole = whole ? DGM_ARENA_ARRAY(a, float, whole) : NULL;
    q.chunk = DGM_ARENA_ARRAY(a, rank_sum, (size_t)r->part_count * ROWS);
    rank_group *groups = DGM_ARENA_ARRAY(a, rank_group, (size_t)r->rows);
    rank_group *lists = DGM_ARENA_ARRAY(a, rank_group, (size_t)r->rows);
    int group_count = 0, list_count = 0;
    q.inputs = DGM_ARENA_ARRAY(a, cpu_input, (size_t)r->part_count);
    for (int p = 0; p < r->part_count; p++)
        q.inputs[p] = cpu_prepare(x, r->parts[p].out, dgm_mat_rows(r->parts[p].hidden, 0, r->rows));
    double begin = cpu_begin(x);
    clear_results(r, q.sums);
    for (int row = 0, end; row < r->rows; row = end) {
        const dgm_candidates *list = r->candidates ? r->candidates[row] : NULL;
        end = row + 1;
        while (end < r->rows && (r->candidates ? r->candidates[end] : NULL) == list) end++;
        if (arithmetic(r)) {
            size_t room = (size_t)r->part_count *
                          (size_t)(list ? list->count + DGM_MORE_MAX : q.vocabulary);
            size_t before = dgm_arena_mark(&x->device);
            float *store = DGM_ARENA_ARRAY(a, float, room);
            for (int i = row; i < end; i++) rank_arithmetic(&q, list, i, store);
            dgm_arena_reset(&x->device, before);
        } else if (listed_by_rows(r, list)) {
            groups[group_count++] = (rank_group){list, row, end - row, 0};
        } else if (list) {
            lists[list_count++] = (rank_group){list, row, end - row, 0};
        } else {
            rank_log_linear(&q, NULL, row, end - row);
        }
    }
    rank_lists(&q, lists, list_count);
    cpu_rank_by_rows(&q, groups, group_count);
    for (int row = 0; row < r->rows; row++) finish_row(&q, row);
    for (int row = 0; r->sizes && row < r->rows; row++) r->sizes[row] = size_of_row(&q, row);
    dgm_arena_reset(&x->device, mark);
    if (x->observer && x->observer->ranked) x->observer->ranked(x->observer->cookie, x, r);
    if (x->meter) {
        dgm_meter_row what = {.work = DGM_WORK_TOPK, .rows = (uint64_t)r->rows};
        for (int row = 0; row < r->rows; row++) { // logits
            const dgm_candidates *list = r->candidates ? r->candidates[row] : NULL;
            what.other_bytes += (uint64_t)(list ? list->count : q.vocabulary) *
                                (uint64_t)r->part_count * sizeof(float);
        }
        cpu_count(x, &what, begin + q.products);
    }
}
