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
// A list of candidates is walked in the same way, CHUNK candidates at a time. Its columns were gathered
// when the sentence came in (gather_cpu.c): each sentence's rows are multiplied with its own block.
// Of a list that was not gathered, only the weight panels that hold a candidate are multiplied, and
// the wanted columns are picked out of them. Chunks are cut by the list, never by the batch, so a
// row's sums do not depend on its neighbours. What a row may choose beside its list comes behind
// it, as one chunk, whose columns are gathered on the spot.
//
// Lists that change with every step are not worth gathering. Of a layer that keeps its weights by
// rows (cpu_linear_by_rows) each listed row is read where it lies, and the loops turn around:
//
//     for each SPAN of the vocabulary      rows of weights that several sentences want are read
//         for each sentence                from memory once, then from the cache
//
// Chunks of such a list end at the borders of spans, too: again cut by the list alone. Where the
// rows of a batch together want more than a DENSE-th of a span, its product with all of them is
// cheaper, and lists are read off it: integers only, whose bits are the same either way.
//
// Within a row the list is kept by raw value v = lambda * sum_p weight_p * logit_p + terms; the
// part that is the same for all tokens (base, constant, -log Z) is added at the end. An arithmetic
// mix needs every log Z before the first comparison: it keeps the logits of one row at a time.
#include <math.h>
#include <string.h>

#include "base/lower_bound.h"
#include "backend/cpu/cpu_private.h"

enum { CHUNK = 512, ROWS = 64, SPAN = 2048, PANEL = DGM_GEMM_COLUMNS };
enum { DENSE = 6, DENSE_ROWS = 16 };

// Running log-sum-exp of one (row, part).
typedef struct lse {
    float max, sum;
} lse;

// Columns of one chunk: tokens first .. first + count - 1; of a list ids[0 .. count), which are its
// entries from `first` on.
typedef struct columns {
    int first, count;
    const int32_t *ids;
    dgm_gathered *const *gathered; // of the whole list, or NULL
    bool late;                     // its tokens may be lower than those of earlier chunks
} columns;

// Rows of one sentence whose list is read by rows.
typedef struct group {
    const dgm_candidates *list;
    int row, rows, at;
} group;

typedef struct ranker {
    dgm_exec *x;
    const dgm_kernels *k;
    const dgm_rank *r;
    int vocabulary;
    cpu_input *inputs; // [parts]: hidden rows as the parts' precisions want them
    lse *sums;     // [rows, parts]
    float *logits; // [parts, ROWS, CHUNK]
    float *panel;  // [ROWS, PANEL]
    float *values; // [CHUNK]
    float *wide;   // [DENSE_ROWS, SPAN]
    int32_t *span; // [CHUNK]: tokens of a chunk without a list, of a layer without panels
    double products; // seconds, where somebody counts
} ranker;

dgm_bytes cpu_rank_bytes(const dgm_backend *b, int rows, int parts, int vocabulary)
{
    (void)b;
    size_t floats = (size_t)parts * ROWS * CHUNK + ROWS * PANEL + CHUNK + DENSE_ROWS * SPAN;
    size_t arithmetic = ((size_t)parts + 1) * ((size_t)vocabulary + DGM_MORE_MAX);
    return (dgm_bytes){
        .device = dgm_arena_cost((size_t)rows * (size_t)parts * sizeof(lse)) +
                  dgm_arena_cost((size_t)parts * sizeof(cpu_input)) +
                  (size_t)parts * cpu_prepare_bytes(rows) +
                  dgm_arena_cost((size_t)rows * sizeof(group)) +
                  dgm_arena_cost(CHUNK * sizeof(int32_t)) + 5 * dgm_arena_cost(0) +
                  (floats + arithmetic + 64) * sizeof(float) + 4096};
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

// Adds n logits; returns their maximum.
static float lse_add(const dgm_kernels *k, lse *s, const float *x, int n)
{
    float max = k->max_f32(x, n);
    if (max == -INFINITY) return max;
    if (!(max <= s->max)) { // the sums so far are rescaled: seldom, after the first chunks
        if (s->max != -INFINITY) s->sum *= exp_of(k, s->max - max);
        s->max = max;
    }
    s->sum += k->sum_exp_f32(x, n, s->max);
    return max;
}

static float lse_value(const lse *s)
{
    return s->max == -INFINITY ? -INFINITY : s->max + logf(s->sum);
}

// ---- projection -------------------------------------------------------------------------------

static void project(const ranker *q, const dgm_linear *w, int part, int row, int rows, int begin,
                    int end, float *out, int ldc)
{
    cpu_product p = {
        .c = out, .ldc = ldc, .first = row, .m = rows, .n_begin = begin, .n_end = end};
    cpu_multiply(q->x->backend, w, &q->inputs[part], &p);
}

static int multiply_rows(const ranker *q, int part, int row, int rows, const columns *c, float *out)
{
    const int32_t *ids = c->ids;
    for (int i = 0; !ids && i < c->count; i++) q->span[i] = c->first + i;
    const cpu_product p = {.c = out, .ldc = CHUNK, .first = row, .m = rows};
    cpu_multiply_listed(q->x->backend, q->r->parts[part].out, &q->inputs[part], &p,
                        ids ? ids : q->span, c->count);
    return c->count;
}

// Returns how many columns were multiplied.
static int multiply_columns(const ranker *q, int part, int row, int rows, const columns *c,
                            float *out)
{
    const dgm_linear *w = q->r->parts[part].out;
    int walked = 0;
    if (!c->gathered && w->by_rows && (c->ids || !w->packed))
        return multiply_rows(q, part, row, rows, c, out);
    if (!c->ids || c->gathered) {
        if (c->gathered) w = &c->gathered[part]->columns;
        project(q, w, part, row, rows, c->first, c->first + c->count, out, CHUNK);
        return c->count;
    }
    for (int i = 0; i < c->count;) {
        int begin = c->ids[i] / PANEL * PANEL, next = i;
        int end = begin + PANEL < q->vocabulary ? begin + PANEL : q->vocabulary;
        while (next < c->count && c->ids[next] < end) next++;
        project(q, w, part, row, rows, begin, end, q->panel, PANEL);
        walked += end - begin;
        for (int r = 0; r < rows; r++)
            for (int j = i; j < next; j++)
                out[(size_t)r * CHUNK + (size_t)j] = q->panel[r * PANEL + c->ids[j] - begin];
        i = next;
    }
    return walked;
}

// Logits of the columns for `rows` rows into out [rows, CHUNK].
static void project_columns(ranker *q, int part, int row, int rows, const columns *c, float *out)
{
    double begin = cpu_begin(q->x);
    int walked = multiply_columns(q, part, row, rows, c, out);
    if (!q->x->meter) return;
    cpu_count_product(q->x, q->r->parts[part].out, rows, c->count, walked, begin);
    q->products += dgm_thread_time() - begin;
}

// ---- terms ------------------------------------------------------------------------------------

static int32_t column_token(const columns *c, int i)
{
    return c->ids ? c->ids[i] : c->first + i;
}

// Column of a token, or -1.
static int find_column(const columns *c, int32_t token)
{
    if (!c->ids) return token >= c->first && token < c->first + c->count ? token - c->first : -1;
    return dgm_find_id(c->ids, c->count, token);
}

// The same for tokens that are asked for in ascending order; *from moves along.
static int find_column_from(const columns *c, int32_t token, int *from)
{
    if (!c->ids) return find_column(c, token);
    while (*from < c->count && c->ids[*from] < token) ++*from;
    return *from < c->count && c->ids[*from] == token ? *from : -1;
}

// What is below the chunk is passed over at once: lists are short, the chunks many.
static void mask_list(float *v, const columns *c, const int32_t *list, int count)
{
    int32_t last = column_token(c, c->count - 1);
    for (int i = dgm_lower_id(list, count, column_token(c, 0)); i < count && list[i] <= last; i++) {
        int at = find_column(c, list[i]);
        if (at >= 0) v[at] = -INFINITY;
    }
}

static void add_list(const columns *c, const dgm_addition *a, float *v)
{
    int32_t last = column_token(c, c->count - 1);
    for (int i = dgm_lower_id(a->ids, a->count, column_token(c, 0));
         i < a->count && a->ids[i] <= last; i++) {
        int at = find_column(c, a->ids[i]);
        if (at >= 0) v[at] += a->values[i];
    }
}

// False: nothing was added.
static bool add_terms(const dgm_kernels *k, const dgm_terms *t, const columns *c, float *v)
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
static void offer(const ranker *q, int row, const columns *c, float *v, float bound)
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

// Consumes the logits of one chunk for one row.
static void consume_row(ranker *q, int row, int in_block, const columns *c)
{
    const dgm_rank *r = q->r;
    float *first = q->logits + (size_t)in_block * CHUNK;
    float bound = INFINITY;
    for (int p = 0; r->normalise && p < r->part_count; p++)
        bound = lse_add(q->k, &q->sums[row * r->part_count + p], first + (size_t)p * ROWS * CHUNK,
                        c->count);
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

static void rank_chunk(ranker *q, int row, int rows, const columns *c)
{
    for (int from = row; from < row + rows; from += ROWS) {
        int n = row + rows - from < ROWS ? row + rows - from : ROWS;
        for (int p = 0; p < q->r->part_count; p++)
            project_columns(q, p, from, n, c, q->logits + (size_t)p * ROWS * CHUNK);
        for (int i = 0; i < n; i++) consume_row(q, from + i, i, c);
    }
}

static columns chunk_of(const ranker *q, const dgm_candidates *list, int at)
{
    int total = list ? list->count : q->vocabulary;
    columns c = {.first = at, .count = total - at < CHUNK ? total - at : CHUNK};
    if (list) {
        c.ids = list->ids + at;
        c.gathered = list->gathered;
    }
    return c;
}

// Candidates of a row beside its list; NULL: none.
static const dgm_candidates *more_of(const ranker *q, const dgm_candidates *list, int row)
{
    const dgm_candidates *more = list && q->r->more ? q->r->more[row] : NULL;
    return more && more->count ? more : NULL;
}

// The same as a chunk, its columns of one part gathered; the caller resets the arena.
static columns chunk_of_more(const ranker *q, const dgm_candidates *more, int part)
{
    columns c = {.first = 0, .count = more->count, .ids = more->ids, .late = true};
    dgm_gathered *g = cpu_gathered_open(q->x, q->r->parts[part].out, DGM_MORE_MAX);
    dgm_gathered **of_parts = DGM_ARENA_ARRAY(&q->x->device, dgm_gathered *, (size_t)part + 1);
    cpu_gather_columns(q->x, g, more->ids, more->count);
    of_parts[part] = g;
    c.gathered = of_parts;
    return c;
}

static void rank_more(ranker *q, const dgm_candidates *more, int row)
{
    columns c = {0};
    for (int p = 0; p < q->r->part_count; p++) {
        size_t mark = dgm_arena_mark(&q->x->device);
        c = chunk_of_more(q, more, p);
        project_columns(q, p, row, 1, &c, q->logits + (size_t)p * ROWS * CHUNK);
        dgm_arena_reset(&q->x->device, mark);
    }
    consume_row(q, row, 0, &c);
}

static void rank_all_more(ranker *q, const dgm_candidates *list, int row, int rows)
{
    for (int i = row; i < row + rows; i++) {
        const dgm_candidates *more = more_of(q, list, i);
        if (more) rank_more(q, more, i);
    }
}

static void rank_log_linear(ranker *q, const dgm_candidates *list, int row, int rows)
{
    int total = list ? list->count : q->vocabulary;
    for (int at = 0; at < total; at += CHUNK) {
        columns c = chunk_of(q, list, at);
        rank_chunk(q, row, rows, &c);
    }
    rank_all_more(q, list, row, rows);
}

static bool listed_by_rows(const dgm_rank *r, const dgm_candidates *list)
{
    if (!list || list->gathered) return false;
    for (int p = 0; p < r->part_count; p++)
        if (!r->parts[p].out->by_rows) return false;
    return true;
}

// The group's next entries below `limit`, as a chunk; none: count 0.
static columns next_chunk(const group *g, int32_t limit)
{
    const dgm_candidates *list = g->list;
    int n = 0;
    while (n < CHUNK && g->at + n < list->count && list->ids[g->at + n] < limit) n++;
    return (columns){.first = g->at, .count = n, .ids = list->ids + g->at};
}

// The group's entries below `limit`.
static void rank_span(ranker *q, group *g, int32_t limit)
{
    for (columns c; (c = next_chunk(g, limit)).count; g->at += c.count)
        rank_chunk(q, g->row, g->rows, &c);
}

// The same out of q->wide, where the group's rows begin at row `at` and the span at token `first`.
static void rank_wide(ranker *q, group *g, int at, int32_t first, int32_t limit)
{
    for (columns c; (c = next_chunk(g, limit)).count; g->at += c.count)
        for (int r = 0; r < g->rows; r++) {
            const float *from = q->wide + (size_t)(at + r) * SPAN;
            float *to = q->logits + (size_t)r * CHUNK;
            for (int i = 0; i < c.count; i++) to[i] = from[c.ids[i] - first];
            consume_row(q, g->row + r, r, &c);
        }
}

static bool dense(const ranker *q, const group *groups, int count, int32_t first, int32_t limit)
{
    const int end = limit < q->vocabulary ? limit : q->vocabulary;
    const dgm_linear *w = q->r->parts[0].out;
    if (q->r->part_count > 1 || !w->packed || w->precision == DGM_PRECISION_F32) return false;
    int64_t listed = 0, rows = 0;
    for (int i = 0; i < count; i++) {
        const group *g = &groups[i];
        listed += (int64_t)g->rows *
                  dgm_lower_id(g->list->ids + g->at, g->list->count - g->at, limit);
        rows += g->rows;
    }
    return rows >= DENSE_ROWS && listed * DENSE > rows * (end - first);
}

// Groups side by side, up to DENSE_ROWS rows at a time.
static void rank_dense(ranker *q, group *groups, int count, int32_t first, int32_t limit)
{
    const dgm_linear *w = q->r->parts[0].out;
    const int end = limit < q->vocabulary ? limit : q->vocabulary;
    for (int i = 0, next; i < count; i = next) {
        const int row = groups[i].row;
        int rows = groups[i].rows;
        for (next = i + 1; next < count && groups[next].row == row + rows &&
                           rows + groups[next].rows <= DENSE_ROWS;
             next++)
            rows += groups[next].rows;
        if (rows > DENSE_ROWS) { // one group alone
            rank_span(q, &groups[i], limit);
            continue;
        }
        const double begin = cpu_begin(q->x);
        project(q, w, 0, row, rows, first, end, q->wide, SPAN);
        if (q->x->meter) {
            cpu_count_product(q->x, w, rows, end - first, end - first, begin);
            q->products += dgm_thread_time() - begin;
        }
        for (int g = i; g < next; g++) rank_wide(q, &groups[g], groups[g].row - row, first, limit);
    }
}

static void rank_groups(ranker *q, group *groups, int count)
{
    if (!count) return;
    for (int64_t first = 0; first < q->vocabulary; first += SPAN) {
        const int32_t limit = first + SPAN > INT32_MAX ? INT32_MAX : (int32_t)(first + SPAN);
        if (dense(q, groups, count, (int32_t)first, limit)) {
            rank_dense(q, groups, count, (int32_t)first, limit);
            continue;
        }
        for (int i = 0; i < count; i++) rank_span(q, &groups[i], limit);
    }
    for (int i = 0; i < count; i++)
        rank_all_more(q, groups[i].list, groups[i].row, groups[i].rows);
}

// Adds the logits of one part's chunk to the row's store.
static void store_chunk(ranker *q, int part, int row, const columns *c, float *store)
{
    project_columns(q, part, row, 1, c, q->logits);
    memcpy(store, q->logits, (size_t)c->count * sizeof(float));
    if (q->r->normalise)
        lse_add(q->k, &q->sums[row * q->r->part_count + part], q->logits, c->count);
}

// Mixes the stored logits of one chunk, which begin at `at` in the store of each part.
static void mix_chunk(ranker *q, int row, const columns *c, const float *store, int total, int at)
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
static void rank_arithmetic(ranker *q, const dgm_candidates *list, int row, float *store)
{
    const dgm_candidates *more = more_of(q, list, row);
    const int listed = list ? list->count : q->vocabulary;
    const int total = listed + (more ? more->count : 0);
    columns c = {0};
    for (int p = 0; p < q->r->part_count; p++) {
        float *logits = store + (size_t)p * (size_t)total;
        for (int at = 0; at < listed; at += CHUNK) {
            c = chunk_of(q, list, at);
            store_chunk(q, p, row, &c, logits + at);
        }
        if (!more) continue;
        size_t mark = dgm_arena_mark(&q->x->device);
        c = chunk_of_more(q, more, p);
        store_chunk(q, p, row, &c, logits + listed);
        dgm_arena_reset(&q->x->device, mark);
    }
    for (int at = 0; at < listed; at += CHUNK) {
        c = chunk_of(q, list, at);
        mix_chunk(q, row, &c, store, total, at);
    }
    if (!more) return;
    c = (columns){.first = 0, .count = more->count, .ids = more->ids};
    mix_chunk(q, row, &c, store, total, listed);
}

// An arithmetic mix of one part is that part.
static bool arithmetic(const dgm_rank *r)
{
    return r->mix == DGM_MIX_ARITHMETIC && r->part_count > 1;
}

// Adds what all tokens of a row share.
static void finish_row(const ranker *q, int row)
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
    for (int w = 0; w < r->watch_count; w++)
        r->watch_score[(size_t)row * (size_t)r->watch_count + (size_t)w] += shift;
}

static void clear_results(const dgm_rank *r, lse *sums)
{
    for (int i = 0; i < r->rows * r->k; i++) {
        r->score[i] = -INFINITY;
        r->token[i] = -1;
    }
    for (int i = 0; i < r->rows * r->watch_count; i++) r->watch_score[i] = -INFINITY;
    for (int i = 0; i < r->rows * r->part_count; i++) sums[i] = (lse){-INFINITY, 0};
}

void cpu_rank(dgm_exec *x, const dgm_rank *r)
{
    size_t mark = dgm_arena_mark(&x->device);
    dgm_exec_phase(x, DGM_PHASE_RANK);
    ranker q = {.x = x, .k = &x->backend->k, .r = r, .vocabulary = r->parts[0].out->rows};
    dgm_arena *a = &x->device;
    q.sums = DGM_ARENA_ARRAY(a, lse, (size_t)r->rows * (size_t)r->part_count);
    q.logits = DGM_ARENA_ARRAY(a, float, (size_t)r->part_count * ROWS * CHUNK);
    q.panel = DGM_ARENA_ARRAY(a, float, ROWS * PANEL);
    q.values = DGM_ARENA_ARRAY(a, float, CHUNK);
    q.span = DGM_ARENA_ARRAY(a, int32_t, CHUNK);
    q.wide = DGM_ARENA_ARRAY(a, float, DENSE_ROWS * SPAN);
    group *groups = DGM_ARENA_ARRAY(a, group, (size_t)r->rows);
    int group_count = 0;
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
            groups[group_count++] = (group){list, row, end - row, 0};
        } else {
            rank_log_linear(&q, list, row, end - row);
        }
    }
    rank_groups(&q, groups, group_count);
    for (int row = 0; row < r->rows; row++) finish_row(&q, row);
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
