// SPDX-License-Identifier: MIT
// checkbackend: rank with everything that can be asked of it, and gathered columns.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkbackend/checkbackend.h"

enum { ROUNDS = 10, USUAL = 40, MOST = 80, K = 7, WATCH = 2, PARTS = 2, WIDEST = 9001, LISTS = 5 };

#define EACH_PRECISION(c, p)                                                                       \
    for (int p = 0; p < DGM_PRECISION_COUNT; p++)                                                  \
        if ((c)->precisions & 1u << p)

// What one round ranks: the same for both sides.
typedef struct question {
    int rows, vocabulary, cols, parts;
    cb_tensor w[PARTS];
    const float *bias[PARTS], *hidden[PARTS];
    dgm_candidates lists[LISTS];
    int union_size[LISTS]; // of joint lists
    const dgm_candidates *of[MOST], *more[MOST];
    dgm_candidates one_more;
    dgm_terms terms[MOST];
    const float *table; // of rows 0, 3, 6, ...
    const int32_t *listed;
    int listed_count;
    uint64_t name;
    const int32_t *never, *watch;
    int never_count;
    dgm_mix mix;
    bool normalise, by_rows;
} question;

// About one in `of` of the vocabulary, ascending, never empty; none of `without`.
static int32_t *some_tokens(cb *c, int vocabulary, int of, const dgm_candidates *without, int *count)
{
    int32_t *ids = cb_ints(c, (size_t)vocabulary, 1);
    int n = 0, skip = 0;
    for (int i = 0; i < vocabulary; i++) {
        while (without && skip < without->count && without->ids[skip] < i) skip++;
        if (without && skip < without->count && without->ids[skip] == i) continue;
        if (cb_below(c, of) == 0 || (n == 0 && i == vocabulary - 1)) ids[n++] = i;
    }
    *count = n;
    return ids;
}

static void make_terms(cb *c, question *q)
{
    q->table = cb_floats(c, (size_t)q->vocabulary, 1);
    q->listed = some_tokens(c, q->vocabulary, 5, NULL, &q->listed_count);
    for (int r = 0; r < q->rows; r++) {
        dgm_terms *t = &q->terms[r];
        *t = (dgm_terms){.base = -(float)r, .constant = 0.25f, .lambda = r % 2 ? 1 : 0.6f};
        for (int a = 0, n; a < r % (DGM_ADDITIONS_MAX + 1); a++) {
            const int32_t *ids = some_tokens(c, q->vocabulary, 30 + a, NULL, &n);
            dgm_terms_add(t, ids, cb_floats(c, (size_t)n, 2), n);
        }
        if (r % 6 == 3) { // under a name, as if it came again
            t->allow = q->listed;
            t->allow_count = q->listed_count;
            t->allow_name = q->name;
        }
        if (r % 4 == 2) t->deny = some_tokens(c, q->vocabulary, 10, NULL, &t->deny_count);
    }
}

// rows, cols 0: drawn.
static void make_question(cb *c, question *q, dgm_precision p, int round, int rows, int cols)
{
    static uint64_t names;
    memset(q, 0, sizeof *q);
    q->name = ++names;
    q->rows = round == 0 ? 1 : cb_between(c, 2, USUAL);
    if (rows) q->rows = rows;
    q->vocabulary = round == 1 ? WIDEST : cb_between(c, 20, 900);
    q->cols = cb_between(c, 1, 130);
    if (cols) q->cols = cols;
    q->parts = round % 4 == 3 ? PARTS : 1;
    q->mix = round % 8 == 7 ? DGM_MIX_ARITHMETIC : DGM_MIX_LOG_LINEAR;
    q->normalise = round % 5 != 4;
    q->by_rows = round % 3 == 2;
    cb_begin(c, "%s, %d rows, vocabulary %d, width %d, parts %d, mix %d, by rows %d",
             dgm_precision_names[p], q->rows, q->vocabulary, q->cols, q->parts, (int)q->mix,
             q->by_rows);
    for (int i = 0; i < q->parts; i++) {
        cb_matrix(c, &q->w[i], round % 2 ? DGM_TYPE_I8 : DGM_TYPE_F32, q->vocabulary, q->cols);
        q->bias[i] = round % 3 ? cb_floats(c, (size_t)q->vocabulary, 1) : NULL;
        q->hidden[i] = cb_floats(c, (size_t)q->rows * (size_t)q->cols, 1);
    }
    for (int i = 0; i < 3; i++)
        q->lists[i].ids = some_tokens(c, q->vocabulary, 2 + 4 * i, NULL, &q->lists[i].count);
    q->one_more.ids = some_tokens(c, q->vocabulary, 20, &q->lists[0], &q->one_more.count);
    for (int r = 0; r < q->rows; r++) {
        q->of[r] = round % 2 ? &q->lists[r * 3 / q->rows] : NULL;
        q->more[r] = q->of[r] == &q->lists[0] && r % 2 && q->one_more.count <= DGM_MORE_MAX &&
                             q->one_more.count + q->lists[0].count < q->vocabulary
                         ? &q->one_more
                         : NULL;
    }
    q->never = some_tokens(c, q->vocabulary, 50, NULL, &q->never_count);
    q->watch = cb_ints(c, MOST * WATCH, q->vocabulary);
    make_terms(c, q);
}

typedef struct answer {
    float score[MOST * K], watch[MOST * WATCH], log_z[MOST * PARTS];
    int32_t token[MOST * K], sizes[MOST];
} answer;

// The table of every third row; of row 0 without the tokens of the list.
static void send_tables(cb *c, cb_side *s, question *q)
{
    dgm_mat tables = dgm_tables_open(s->x, 2, q->vocabulary);
    int32_t *all = cb_ints(c, (size_t)q->vocabulary, 1);
    for (int i = 0; i < q->vocabulary; i++) all[i] = i;
    for (int row = 0; row < 2; row++)
        dgm_op_set(s->x, tables, row, all, q->table, q->vocabulary);
    dgm_op_set(s->x, tables, 0, q->listed, NULL, q->listed_count);
    for (int r = 0; r < q->rows; r += 3) q->terms[r].table = dgm_mat_rows(tables, r > 0, 1).data;
}

// The last row by itself gets the numbers that it has among others.
static void ask_alone(cb *c, cb_side *s, const dgm_rank *all)
{
    const size_t row = (size_t)all->rows - 1;
    dgm_rank_part parts[PARTS];
    answer out;
    for (int i = 0; i < all->part_count; i++) {
        parts[i] = all->parts[i];
        parts[i].hidden = dgm_mat_rows(parts[i].hidden, (int)row, 1);
    }
    dgm_rank r = *all;
    r.parts = parts;
    r.rows = 1;
    r.candidates += row;
    r.more += row;
    r.terms += row;
    r.watch += row * WATCH;
    r.score = out.score;
    r.token = out.token;
    r.watch_score = out.watch;
    r.log_z = out.log_z;
    r.sizes = NULL;
    dgm_op_rank(s->x, &r);
    const size_t n = (size_t)all->part_count;
    if (memcmp(out.score, all->score + row * K, K * sizeof *out.score) != 0 ||
        memcmp(out.token, all->token + row * K, K * sizeof *out.token) != 0 ||
        memcmp(out.watch, all->watch_score + row * WATCH, WATCH * sizeof *out.watch) != 0 ||
        memcmp(out.log_z, all->log_z + row * n, n * sizeof *out.log_z) != 0)
        cb_fail(c, "side %d: the last row alone gives other bits", (int)(s - c->sides));
}

// One set of terms for all rows and their sums beside it gives what the same terms of every row do.
static void ask_alike(cb *c, cb_side *s, const dgm_rank *all)
{
    dgm_terms terms[MOST];
    float base[MOST];
    answer each, once;
    for (int i = 0; i < all->rows; i++) {
        terms[i] = all->terms[0];
        terms[i].base = base[i] = -0.3f * (float)i;
    }
    dgm_rank r = *all;
    if (!r.candidates[0]) r.candidates = r.more = NULL;
    r.terms = terms;
    r.score = each.score;
    r.token = each.token;
    r.watch_score = each.watch;
    r.log_z = each.log_z;
    r.sizes = NULL;
    dgm_op_rank(s->x, &r);
    r.terms = all->terms;
    r.base = base;
    r.score = once.score;
    r.token = once.token;
    r.watch_score = once.watch;
    r.log_z = once.log_z;
    dgm_op_rank(s->x, &r);
    const size_t rows = (size_t)all->rows;
    if (memcmp(each.score, once.score, rows * K * sizeof *once.score) != 0 ||
        memcmp(each.token, once.token, rows * K * sizeof *once.token) != 0 ||
        memcmp(each.watch, once.watch, rows * WATCH * sizeof *once.watch) != 0)
        cb_fail(c, "side %d: terms of all rows give other bits than those of each", (int)(s - c->sides));
}

// How many candidates the row has; of joint ones, what the list of ids before was.
static int size_of(const question *q, int row)
{
    const dgm_candidates *list = q->of[row];
    if (!list) return q->vocabulary;
    return (list->joint ? q->union_size[list - q->lists] : list->count) + (q->more[row] ? q->more[row]->count : 0);
}

static void ask(cb *c, cb_side *s, question *q, dgm_precision p, answer *out)
{
    dgm_linear *layer[PARTS] = {NULL};
    dgm_rank_part parts[PARTS];
    dgm_error err;
    for (int i = 0; i < q->parts; i++) {
        const dgm_linear_part part = {.weight = &q->w[i].t, .bias = q->bias[i]};
        cb_load(c, s, &part, 1, p, &layer[i]);
        if (q->by_rows && dgm_linear_by_rows(s->backend, layer[i], &err) != DGM_OK)
            cb_fail(c, "%s", err.text);
        parts[i] = (dgm_rank_part){layer[i], cb_put(s, q->hidden[i], q->rows, q->cols),
                                   1.0f / (float)q->parts};
    }
    if (dgm_rank_bytes(s->backend, q->rows, q->parts, q->vocabulary).device == 0) cb_fail(c, "no scratch");
    send_tables(c, s, q);
    const dgm_rank r = {.parts = parts, .part_count = q->parts, .mix = q->mix,
                        .normalise = q->normalise, .rows = q->rows, .k = K, .watch_count = WATCH,
                        .candidates = q->of, .more = q->more, .terms = q->terms, .never = q->never,
                        .never_count = q->never_count, .watch = q->watch, .score = out->score,
                        .token = out->token, .watch_score = out->watch, .log_z = out->log_z,
                        .sizes = out->sizes};
    dgm_op_rank(s->x, &r);
    for (int i = 0; i < q->rows; i++) {
        const int size = size_of(q, i);
        if (out->sizes[i] != size) cb_fail(c, "row %d has %d candidates, not %d", i, (int)out->sizes[i], size);
    }
    ask_alone(c, s, &r);
    ask_alike(c, s, &r);
    const size_t rows = (size_t)q->rows;
    cb_keep_floats(c, s, out->score, rows * K);
    cb_keep_floats(c, s, out->watch, rows * WATCH);
    cb_keep_floats(c, s, out->log_z, rows * (size_t)q->parts);
    for (int i = 0; i < q->parts; i++) dgm_linear_free(s->backend, &layer[i]);
}

// Tokens agree wherever the scores around them are further apart than the bound.
static void compare_tokens(cb *c, const answer *a, const answer *b, int rows, double bound)
{
    for (int i = 0; i < rows * K; i++) {
        if (a->token[i] == b->token[i]) continue;
        const bool first = i % K == 0, last = i % K == K - 1;
        const bool near = (!first && a->score[i - 1] - a->score[i] <= bound) ||
                          (!last && a->score[i] - a->score[i + 1] <= bound) || last;
        if (bound > 0 && near) continue;
        cb_fail(c, "row %d, place %d: token %d and %d", i / K, i % K, (int)a->token[i],
                (int)b->token[i]);
        return;
    }
}

void check_rank(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < ROUNDS; round++) {
        static question q;
        static answer answers[2];
        make_question(c, &q, (dgm_precision)p, round, 0, 0);
        memset(answers, 0, sizeof answers);
        CB_BOTH(c, s) ask(c, s, &q, (dgm_precision)p, &answers[s - c->sides]);
        const cb_class of = cb_product_class((dgm_precision)p);
        const double bound = 4 * cb_product_bound((dgm_precision)p, q.cols) * sqrt(q.cols);
        cb_compare(c, of, bound);
        compare_tokens(c, &answers[0], &answers[1], q.rows,
                       of == CB_ROUNDED && c->one_kind ? 0 : 100 * bound);
    }
}

// A product with gathered columns has the bits of the same columns of the layer, on each side alone.
static void run_gathered(cb *c, dgm_precision p, int round)
{
    static question q;
    static answer picked, gathered;
    make_question(c, &q, p, 1 + 2 * round, 0, 0); // with lists
    q.parts = 1;
    q.mix = DGM_MIX_LOG_LINEAR;
    q.by_rows = false;
    CB_BOTH(c, s)
    {
        memset(&picked, 0, sizeof picked);
        memset(&gathered, 0, sizeof gathered);
        ask(c, s, &q, p, &picked);
        dgm_linear *layer = NULL;
        const dgm_linear_part part = {.weight = &q.w[0].t, .bias = q.bias[0]};
        cb_load(c, s, &part, 1, p, &layer);
        if (dgm_gathered_bytes(s->backend, layer, q.vocabulary, 3).device == 0 ||
            dgm_rank_more_bytes(s->backend, layer).device == 0)
            cb_fail(c, "no room");
        dgm_gathered *g[3];
        for (int i = 0; i < 3; i++) {
            g[i] = dgm_gathered_open(s->x, layer, q.vocabulary);
            if (!g[i]) {
                cb_fail(c, "no room for %d columns", q.vocabulary);
                return;
            }
            dgm_op_gather_columns(s->x, g[i], q.lists[i].ids, q.lists[i].count);
            q.lists[i].gathered = &g[i];
        }
        send_tables(c, s, &q);
        const dgm_rank_part rank = {layer, cb_put(s, q.hidden[0], q.rows, q.cols), 1};
        const dgm_rank r = {.parts = &rank, .part_count = 1, .normalise = q.normalise,
                            .rows = q.rows, .k = K, .watch_count = WATCH, .candidates = q.of,
                            .more = q.more, .terms = q.terms, .never = q.never,
                            .never_count = q.never_count, .watch = q.watch, .score = gathered.score,
                            .token = gathered.token, .watch_score = gathered.watch,
                            .log_z = gathered.log_z, .sizes = gathered.sizes};
        dgm_op_rank(s->x, &r);
        if (memcmp(&picked, &gathered, sizeof picked) != 0)
            cb_fail(c, "side %d: gathered columns give other bits", (int)(s - c->sides));
        for (int i = 0; i < 3; i++) q.lists[i].gathered = NULL;
        dgm_linear_free(s->backend, &layer);
    }
    cb_compare(c, cb_product_class(p), 4 * cb_product_bound(p, q.cols) * sqrt(q.cols));
}

void check_gathered(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < 5; round++) run_gathered(c, (dgm_precision)p, round);
}

// ---- joint candidates ---------------------------------------------------------------------------

enum { CENTROIDS = 6, WIDTH = 8 };

// Lists of centroids, and how the question's lists are made of them.
typedef struct joint_lists {
    uint64_t *bits; // [CENTROIDS, words]
    size_t words;
    uint16_t halves[CENTROIDS * WIDTH];
    int32_t which[LISTS][CENTROIDS], *add[LISTS];
    dgm_joint of[LISTS];
} joint_lists;

static void set_bits(uint64_t *bits, const int32_t *ids, int count)
{
    for (int i = 0; i < count; i++) bits[ids[i] >> 6] |= (uint64_t)1 << (ids[i] & 63);
}

// List i of the question, as ids: 0 of three centroids twice and further tokens, 1 one centroid's few, 2 empty, 3 of
// three centroids and further tokens, 4 these alone.
static void make_list(cb *c, question *q, joint_lists *l, int i)
{
    static const int counts[LISTS] = {CENTROIDS, 1, 0, 4, 0}, first[LISTS] = {0, 1, 0, 2, 0};
    dgm_joint *joint = &l->of[i];
    uint64_t *all = (uint64_t *)(void *)cb_ints(c, 2 * l->words, 1);
    memset(all, 0, l->words * sizeof *all);
    *joint = (dgm_joint){.which = l->which[i], .which_count = counts[i]};
    for (int k = 0; k < counts[i]; k++) {
        l->which[i][k] = (first[i] + k % 3) % CENTROIDS;
        for (size_t w = 0; w < l->words; w++) all[w] |= l->bits[(size_t)l->which[i][k] * l->words + w];
    }
    if (i == 0 || i == 3 || i == 4) joint->add = some_tokens(c, q->vocabulary, 40, NULL, &joint->add_count);
    set_bits(all, joint->add, joint->add_count);
    int32_t *ids = cb_ints(c, (size_t)q->vocabulary, 1);
    int n = 0;
    for (int v = 0; v < q->vocabulary; v++)
        if (all[v >> 6] >> (v & 63) & 1) ids[n++] = v;
    q->lists[i] = (dgm_candidates){.ids = ids, .count = n};
    q->union_size[i] = n;
}

static void make_joint(cb *c, question *q, joint_lists *l, int round)
{
    l->words = ((size_t)q->vocabulary + 63) / 64;
    l->bits = (uint64_t *)(void *)cb_ints(c, 2 * CENTROIDS * l->words, 1);
    memset(l->bits, 0, CENTROIDS * l->words * sizeof *l->bits);
    for (int i = 0; i < CENTROIDS; i++) {
        int count;
        const int32_t *ids = some_tokens(c, q->vocabulary, i == 1 ? q->vocabulary / 3 : 4 + 3 * i, NULL, &count);
        set_bits(l->bits + (size_t)i * l->words, ids, count);
    }
    for (int i = 0; i < LISTS; i++) make_list(c, q, l, i);
    q->one_more.ids = some_tokens(c, q->vocabulary, 20, &q->lists[3], &q->one_more.count);
    const bool fits = q->one_more.count <= DGM_MORE_MAX && q->one_more.count + q->lists[3].count < q->vocabulary;
    // Neighbours share a list, and in some rounds rows without one stand between them.
    for (int r = 0; r < q->rows; r++) {
        const int list = q->rows == 1 ? round % 2 * 3 : r * LISTS / q->rows;
        q->of[r] = round % 4 == 3 && r % 7 == 3 ? NULL : &q->lists[list];
        q->more[r] = fits && q->of[r] == &q->lists[3] && r % 2 ? &q->one_more : NULL;
    }
}

// The device's unions give what the same lists do, to the bit.
static void ask_joint(cb *c, cb_side *s, question *q, dgm_precision p, joint_lists *l, const answer *ids)
{
    static answer joint;
    dgm_centroids *centroids = NULL;
    dgm_error err;
    const dgm_tensor t = {.name = "centroids", .type = DGM_TYPE_F16, .n_dims = 2, .shape = {CENTROIDS, WIDTH},
                          .rows = CENTROIDS, .cols = WIDTH, .data = l->halves, .bytes = sizeof l->halves};
    if (dgm_centroids_load(s->backend, &t, &centroids, &err) != DGM_OK) {
        cb_fail(c, "%s", err.text);
        return;
    }
    const size_t before = dgm_centroids_bytes(centroids);
    const dgm_status st = dgm_centroids_lists(s->backend, centroids, l->bits, q->vocabulary, &err);
    const bool keeps = dgm_backend_properties(s->backend)->keeps_lists;
    if ((st == DGM_OK) != keeps)
        cb_fail(c, "side %d: lists are kept, or not, against its properties", (int)(s - c->sides));
    if (keeps && (dgm_centroids_bytes(centroids) < before + CENTROIDS * l->words * sizeof *l->bits ||
                  dgm_rank_joint_bytes(s->backend, q->rows, q->vocabulary).device == 0))
        cb_fail(c, "no memory counted");
    dgm_candidates lists[LISTS];
    memcpy(lists, q->lists, sizeof lists);
    for (int i = 0; keeps && i < LISTS; i++) {
        int most = l->of[i].add_count;
        l->of[i].centroids = centroids;
        for (int k = 0; k < l->of[i].which_count; k++)
            for (size_t w = 0; w < l->words; w++)
                most += __builtin_popcountll(l->bits[(size_t)l->of[i].which[k] * l->words + w]);
        q->lists[i] = (dgm_candidates){.joint = &l->of[i], .count = most};
    }
    memset(&joint, 0, sizeof joint);
    const size_t kept = s->count;
    if (keeps) ask(c, s, q, p, &joint);
    s->count = kept;
    if (keeps && memcmp(&joint, ids, sizeof joint) != 0)
        cb_fail(c, "side %d: joint lists give other bits than their tokens", (int)(s - c->sides));
    memcpy(q->lists, lists, sizeof lists);
    dgm_centroids_free(s->backend, &centroids);
}

void check_joint(cb *c)
{
    static const struct {
        int rows, cols;
    } sizes[] = {{1, 0},   {1, 600}, {5, 0},   {16, 300}, {17, 100}, {32, 290},
                 {33, 0}, {40, 400}, {64, 64}, {65, 32},  {80, 100}};
    EACH_PRECISION(c, p)
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        static question q;
        static joint_lists l;
        static answer answers[2];
        make_question(c, &q, (dgm_precision)p, 1 + 2 * i, sizes[i].rows, sizes[i].cols);
        make_joint(c, &q, &l, i);
        memset(answers, 0, sizeof answers);
        CB_BOTH(c, s)
        {
            answer *out = &answers[s - c->sides];
            ask(c, s, &q, (dgm_precision)p, out);
            ask_joint(c, s, &q, (dgm_precision)p, &l, out);
        }
        // Layers of 8 bits and some size are multiplied as halves where a device likes that better.
        const bool halves = p == DGM_PRECISION_I8 && dgm_backend_properties(c->sides[1].backend)->i8_as_f16;
        const dgm_precision as = halves ? DGM_PRECISION_F16 : (dgm_precision)p;
        cb_compare(c, cb_product_class(as), 4 * cb_product_bound(as, q.cols) * sqrt(q.cols));
    }
}
