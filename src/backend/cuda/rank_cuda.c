// SPDX-License-Identifier: MIT
// CUDA backend: rank. Projection into logits, then one kernel for everything else.
//
// Rows are taken ROWS at a time, so that their logits fit a memory of fixed size. Where few sentences
// are inside, the columns of their lists alone are multiplied; else the whole layer is, which costs
// less than many small products, and lists are read off it. Of joint lists (lists_cuda.c) the union of all is
// multiplied with all rows, while these are few: weights that nobody wants are not read, and the others once. With more
// rows arithmetic counts, and the whole layer has the faster kernels. The bits are the same in any case, and
// numbers of rows and lists decide alone.
#include <math.h>
#include <string.h>

#include "backend/cuda/cuda_private.h"

// ROWS: logits of so many rows and 32,000 tokens fit a large device's cache.
enum { ROWS = 256, FEW = 4, KNOWN = 64, LITTLE = 8192, JOINT_ROWS = 64, LARGE = 4096 };

// ---- lists --------------------------------------------------------------------------------------

// Lists that were sent already in this call, by their address.
typedef struct sent_lists {
    const int32_t *host[KNOWN];
    cuda_list list[KNOWN];
    int count;
} sent_lists;

static cuda_list send_list(dgm_exec *x, const int32_t *ids, const float *values, int count)
{
    cuda_list list = {.count = count};
    if (count == 0) return list;
    list.ids = cuda_send(x, ids, (size_t)count * sizeof *ids);
    if (values) list.values = cuda_send(x, values, (size_t)count * sizeof *values);
    return list;
}

static cuda_list send_once(dgm_exec *x, sent_lists *s, const int32_t *ids, int count)
{
    for (int i = 0; i < s->count; i++)
        if (s->host[i] == ids && s->list[i].count == count) return s->list[i];
    const cuda_list list = send_list(x, ids, NULL, count);
    const int at = s->count < KNOWN ? s->count++ : KNOWN - 1;
    s->host[at] = ids;
    s->list[at] = list;
    return list;
}

static cuda_list candidates_of(dgm_exec *x, sent_lists *s, const dgm_candidates *c)
{
    if (!c) return (cuda_list){0};
    if (c->gathered) return (cuda_list){c->gathered[0]->ids, NULL, c->count};
    return send_once(x, s, c->ids, c->count);
}

static void fill_terms(dgm_exec *x, sent_lists *s, cuda_joined *j, const dgm_rank *r, int row, cuda_row_terms *out)
{
    const dgm_terms *t = dgm_rank_terms(r, row);
    const dgm_candidates *list = r->candidates ? r->candidates[row] : NULL;
    const dgm_candidates *more = list && r->more ? r->more[row] : NULL;
    *out = (cuda_row_terms){.base = dgm_rank_base(r, row),
                            .constant = t->constant,
                            .lambda = t->lambda,
                            .add_count = t->add_count,
                            .table = t->table,
                            .allowed = t->allow != NULL,
                            .listed = list != NULL};
    for (int i = 0; i < t->add_count; i++)
        out->add[i] = send_list(x, t->add[i].ids, t->add[i].values, t->add[i].count);
    if (t->allow) out->allow = send_once(x, s, t->allow, t->allow_count);
    out->deny = send_list(x, t->deny, NULL, t->deny_count);
    if (list && list->joint) {
        const cuda_joint *joint = cuda_join(j, list);
        out->list = (cuda_list){joint->ids, NULL, list->count};
        out->found = joint->found;
        out->bits = joint->bits;
    } else {
        out->list = candidates_of(x, s, list);
    }
    out->more = candidates_of(x, s, more);
}

// ---- projection ---------------------------------------------------------------------------------

static int row_stride(int vocabulary)
{
    return (vocabulary + 31) / 32 * 32;
}

static int chunk_rows(int rows)
{
    return rows < ROWS ? rows : ROWS;
}

dgm_bytes cuda_rank_bytes(const dgm_backend *b, int rows, int parts, int vocabulary)
{
    (void)b;
    const size_t n = (size_t)chunk_rows(rows) * (size_t)row_stride(vocabulary);
    return (dgm_bytes){.host = dgm_arena_cost(ROWS * sizeof(cuda_row_terms)) + 4096,
                       .device = (size_t)parts * dgm_arena_cost(n * sizeof(float)) + 4096};
}

dgm_bytes cuda_rank_more_bytes(const dgm_backend *b, const dgm_linear *out)
{
    (void)b;
    (void)out;
    return (dgm_bytes){.device = 64};
}

dgm_bytes cuda_rank_joint_bytes(const dgm_backend *b, int rows, int vocabulary)
{
    (void)b;
    return cuda_joined_bytes(chunk_rows(rows), vocabulary);
}

// Rows from `row` on with the same list as it.
static int same_list(const dgm_rank *r, int row, int end)
{
    int n = 1;
    while (row + n < end && r->candidates[row + n] == r->candidates[row]) n++;
    return n;
}

static bool few_lists(const dgm_rank *r, int row, int rows)
{
    if (!r->candidates) return false;
    int groups = 0;
    for (int i = row; i < row + rows; i += same_list(r, i, row + rows))
        if (!r->candidates[i] || r->candidates[i]->joint || ++groups > FEW) return false;
    return true;
}

// Whether the union of all lists is what the rows are multiplied with.
static bool all_joint(const dgm_rank *r, int row, int rows)
{
    if (!r->candidates || rows > JOINT_ROWS) return false;
    for (int i = row; i < row + rows; i++)
        if (!r->candidates[i] || !r->candidates[i]->joint) return false;
    return true;
}

// Halves of rows that nobody left beside them: of a large layer every block would round them.
static void round_rows(dgm_exec *x, const dgm_linear *w, dgm_mat in, cuda_product *p)
{
    if (p->rounded || (p->type != CUDA_F16 && p->type != CUDA_BF16) || w->rows < LARGE) return;
    in.cols = w->cols;
    uint16_t *data = dgm_arena_array(&x->device, (size_t)in.rows * (size_t)w->stride, sizeof *data);
    if (!data) return;
    cuda_run_round(cuda_tape_of(x), (cuda_halves){data, w->stride, p->type == CUDA_BF16}, cuda_view(in));
    cuda_tape_made_none(cuda_tape_of(x));
    p->rounded = 1;
    p->a = data;
    p->lda = w->stride;
}

static void project_rows(dgm_exec *x, cuda_product p, int first, int rows, cuda_list list)
{
    if (list.count == 0) return;
    const size_t elem = p.type == CUDA_I8 ? 1 : p.rounded ? sizeof(uint16_t) : sizeof(float);
    p.a = (const char *)p.a + (size_t)first * (size_t)p.lda * elem;
    if (p.a_scale) p.a_scale += first;
    p.c += (size_t)first * (size_t)p.ldc;
    p.m = rows;
    p.w_rows = list.ids;
    p.n = list.count;
    p.scatter = 1;
    cuda_run_product(cuda_tape_of(x), &p);
    cuda_tape_made_none(cuda_tape_of(x)); // logits
}

// What the rows are multiplied with, if it is a union of joint lists.
typedef struct together {
    const cuda_joint *list; // NULL: it is not
    int most;
} together;

static void project(dgm_exec *x, const dgm_rank *r, int part, int row, int rows, float *logits,
                    const cuda_row_terms *terms, together all)
{
    const dgm_linear *w = r->parts[part].out;
    cuda_product p = cuda_prepare(x, w, dgm_mat_rows(r->parts[part].hidden, row, rows));
    p.c = logits;
    p.ldc = row_stride(w->rows);
    round_rows(x, w, dgm_mat_rows(r->parts[part].hidden, row, rows), &p);
    if (all.list) {
        cuda_product q = p;
        q.w_rows = all.list->ids;
        q.n = all.most;
        q.n_found = all.list->found;
        q.scatter = 1;
        cuda_run_product(cuda_tape_of(x), &q);
        cuda_tape_made_none(cuda_tape_of(x));
        for (int i = 0; i < rows; i++) project_rows(x, p, i, 1, terms[i].more);
        return;
    }
    if (!few_lists(r, row, rows)) {
        cuda_run_product(cuda_tape_of(x), &p);
        cuda_tape_made_none(cuda_tape_of(x));
        return;
    }
    for (int i = 0, n; i < rows; i += n) {
        n = same_list(r, row + i, row + rows);
        project_rows(x, p, i, n, terms[i].list);
        for (int j = i; j < i + n; j++) project_rows(x, p, j, 1, terms[j].more);
    }
}

// ---- the operation ------------------------------------------------------------------------------

// Results of rows first .. first + rows - 1, one array behind the other, in memory that the device and
// the host have alike.
typedef struct results {
    int first, rows;
    char *base; // device
    size_t token, watch, log_z, sizes, bytes; // offsets; scores come first
} results;

static size_t result_bytes(const dgm_rank *r)
{
    return (2 * (size_t)r->k + (size_t)r->watch_count + (size_t)r->part_count + 1) * sizeof(float);
}

static results lay_out(dgm_exec *x, const dgm_rank *r, int first, int rows)
{
    const size_t n = (size_t)rows, best = n * (size_t)r->k * sizeof(float);
    results out = {.first = first, .rows = rows, .token = best};
    out.watch = 2 * best;
    out.log_z = out.watch + n * (size_t)r->watch_count * sizeof(float);
    out.sizes = out.log_z + n * (size_t)r->part_count * sizeof(float);
    out.bytes = n * result_bytes(r);
    // A kernel can write the host's page-locked memory, but only in small portions.
    out.base = out.bytes <= LITTLE ? cuda_own(x)->back : cuda_own(x)->device_back;
    return out;
}

static void take_results(dgm_exec *x, const dgm_rank *r, const results *in)
{
    cuda_exec_own *o = x->own;
    const size_t first = (size_t)in->first, n = (size_t)in->rows;
    if (in->base != o->back)
        cuda_tape_copy(cuda_tape_of(x), o->back, in->base, in->bytes, cudaMemcpyDeviceToHost);
    if (!cuda_wait(x, "rank")) return;
    o->ring.at = o->ring.sent = 0; // everything was read
    const size_t k = (size_t)r->k, watch = (size_t)r->watch_count, parts = (size_t)r->part_count;
    memcpy(r->score + first * k, o->back, n * k * sizeof(float));
    memcpy(r->token + first * k, o->back + in->token, n * k * sizeof(int32_t));
    if (watch)
        memcpy(r->watch_score + first * watch, o->back + in->watch, n * watch * sizeof(float));
    if (r->log_z) memcpy(r->log_z + first * parts, o->back + in->log_z, n * parts * sizeof(float));
    if (r->sizes) memcpy(r->sizes + first, o->back + in->sizes, n * sizeof(int32_t));
}

// Bytes that the row's lists take on their way, at most.
static size_t lists_bytes(const dgm_rank *r, int row)
{
    const dgm_terms *t = dgm_rank_terms(r, row);
    size_t tokens = (size_t)t->allow_count + (size_t)t->deny_count, lists = 4;
    for (int i = 0; i < t->add_count; i++, lists += 2) tokens += 2 * (size_t)t->add[i].count;
    const dgm_candidates *c = r->candidates ? r->candidates[row] : NULL;
    const dgm_candidates *more = c && r->more ? r->more[row] : NULL;
    size_t joint = 0;
    if (c && c->joint)
        joint = (size_t)c->joint->which_count * sizeof(void *) + (size_t)c->joint->add_count * sizeof(int32_t) +
                sizeof(cuda_joint);
    else if (c && !c->gathered)
        tokens += (size_t)c->count;
    if (more) tokens += (size_t)more->count;
    return joint + tokens * sizeof(int32_t) + lists * 64 + sizeof(cuda_row_terms) +
           (size_t)r->watch_count * sizeof(int32_t);
}

// Rows that differ in their sums alone: what they ask for is sent once, and beside it these.
static bool alike(const dgm_rank *r)
{
    return r->base && !r->candidates;
}

// Sends the lists of up to `most` rows, as many as there is room for; returns how many, at least one.
static int send_rows(dgm_exec *x, cuda_joined *j, const dgm_rank *r, int row, int most, cuda_row_terms *terms)
{
    const cuda_exec_own *o = x->own;
    sent_lists sent = {.count = 0};
    const size_t each = sizeof *terms + (size_t)r->watch_count * sizeof(int32_t);
    size_t joints = 0; // sent later, when all are known
    int n = 0;
    if (alike(r)) {
        fill_terms(x, &sent, j, r, row, terms);
        return most;
    }
    while (n < most) {
        const size_t rest = 256 + (size_t)n * each; // what follows the lists
        const dgm_candidates *list = r->candidates ? r->candidates[row + n] : NULL;
        joints += lists_bytes(r, row + n);
        if (n > 0 && o->ring.at + rest + joints > o->ring.size) break;
        if (n > 0 && list && list->joint && !cuda_joined_fits(j, list)) break;
        fill_terms(x, &sent, j, r, row + n, &terms[n]);
        if (!list || !list->joint) joints -= lists_bytes(r, row + n); // it is in the ring now
        n++;
    }
    return n;
}

// Ranks up to `most` rows from `row` on and returns how many.
static int rank_chunk(dgm_exec *x, const dgm_rank *r, int row, int most, const results *out,
                      float *const *logits, cuda_row_terms *terms, cuda_joined *joined)
{
    cuda_begin(x);
    cuda_clear_joined(joined);
    const cuda_list never = send_list(x, r->never, NULL, r->never_count);
    const int rows = send_rows(x, joined, r, row, most, terms), vocabulary = r->parts[0].out->rows;
    const size_t first = (size_t)(row - out->first);
    cuda_ranking k = {.parts = r->part_count,
                      .arithmetic = r->mix == DGM_MIX_ARITHMETIC && r->part_count > 1,
                      .normalise = r->normalise,
                      .rows = rows,
                      .vocabulary = vocabulary,
                      .stride = row_stride(vocabulary),
                      .k = r->k,
                      .watch_count = r->watch_count,
                      .terms = CUDA_SEND(x, cuda_row_terms, terms, alike(r) ? 1 : rows),
                      .base = alike(r) ? CUDA_SEND(x, float, r->base + row, rows) : NULL,
                      .never = never};
    if (r->watch_count)
        k.watch = CUDA_SEND(x, int32_t, r->watch + (size_t)row * (size_t)r->watch_count,
                            rows * r->watch_count);
    k.score = (float *)(void *)out->base + first * (size_t)r->k;
    k.token = (int32_t *)(void *)(out->base + out->token) + first * (size_t)r->k;
    k.watch_score = (float *)(void *)(out->base + out->watch) + first * (size_t)r->watch_count;
    k.log_z = (float *)(void *)(out->base + out->log_z) + first * (size_t)r->part_count;
    k.sizes = r->sizes ? (int32_t *)(void *)(out->base + out->sizes) + first : NULL;
    together all = {.list = NULL};
    if (joined->count) {
        const bool wanted = all_joint(r, row, rows);
        all.list = cuda_make_joined(x, joined, wanted, &all.most);
        if (!wanted) all.list = NULL;
    }
    if (x->failed != DGM_OK) return rows;
    for (int p = 0; p < r->part_count; p++) {
        const size_t mark = dgm_arena_mark(&x->device);
        k.logits[p] = logits[p];
        k.weight[p] = r->parts[p].weight;
        project(x, r, p, row, rows, logits[p], terms, all);
        dgm_arena_reset(&x->device, mark);
    }
    cuda_run_rank(cuda_tape_of(x), &k);
    return rows;
}

static void no_results(const dgm_rank *r)
{
    for (int i = 0; i < r->rows * r->k; i++) {
        r->score[i] = -INFINITY;
        r->token[i] = -1;
    }
    for (int i = 0; i < r->rows * r->watch_count; i++) r->watch_score[i] = -INFINITY;
    for (int i = 0; r->sizes && i < r->rows; i++) r->sizes[i] = 0;
}

static bool any_joint(const dgm_rank *r)
{
    for (int i = 0; r->candidates && i < r->rows; i++)
        if (r->candidates[i] && r->candidates[i]->joint) return true;
    return false;
}

void cuda_rank(dgm_exec *x, const dgm_rank *r)
{
    dgm_exec_phase(x, DGM_PHASE_RANK);
    if (r->part_count > CUDA_PARTS) {
        no_results(r);
        x->failed = dgm_fail(&x->why, DGM_ERR_UNSUPPORTED,
                             "device %s: at most %d models can be combined", x->backend->props.name,
                             CUDA_PARTS);
        return;
    }
    const dgm_mark mark = {dgm_arena_mark(&x->host), dgm_arena_mark(&x->device)};
    const int most = chunk_rows(r->rows);
    const size_t numbers = (size_t)most * (size_t)row_stride(r->parts[0].out->rows);
    float *logits[CUDA_PARTS];
    for (int p = 0; p < r->part_count; p++) logits[p] = DGM_ARENA_ARRAY(&x->device, float, numbers);
    cuda_row_terms *terms = DGM_ARENA_ARRAY(&x->host, cuda_row_terms, (size_t)most);
    cuda_joined joined = {.count = 0};
    if (any_joint(r)) joined = cuda_open_joined(x, most, r->parts[0].out->rows);
    const int fit = (int)(cuda_own(x)->back_size / result_bytes(r));
    for (int first = 0, n; first < r->rows && x->failed == DGM_OK; first += n) {
        n = r->rows - first < fit ? r->rows - first : fit;
        const results out = lay_out(x, r, first, n);
        for (int row = first; row < first + n && x->failed == DGM_OK;)
            row += rank_chunk(x, r, row, first + n - row < most ? first + n - row : most, &out, logits,
                              terms, &joined);
        if (x->failed == DGM_OK) take_results(x, r, &out);
    }
    if (x->failed != DGM_OK) no_results(r);
    dgm_arena_reset(&x->host, mark.host);
    dgm_arena_reset(&x->device, mark.device);
    if (x->observer && x->observer->ranked) x->observer->ranked(x->observer->cookie, x, r);
}
