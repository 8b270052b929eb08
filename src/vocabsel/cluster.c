// SPDX-License-Identifier: MIT
// Candidates from clusters of hidden vectors (paper: vocabulary projection by clustering), alone or
// together with the lexical shortlist.
//
//     look      nearest centroid of every row of the step, one product for all sentences; where
//               they have clusters of different directions, select looks for its sentence alone
//     select    per sentence: bits of the centroids' sets, united over its rows
//                   alone      the set
//                   union      or the bits of the sentence's lexical shortlist
//                   intersect  and these bits
//               then what is always allowed (the end, UNK, what the sentence needs), without what never
//               is; read off in ascending order. One row alone (beam 1, the usual case where time
//               matters) has no use for bits: its list is decoded into place, and the few tokens
//               that the sentence needs are merged
//
// A device that keeps the lists (dgm_centroids_lists) is told the centroids and the few tokens that the sentence needs,
// and makes the union itself: select then touches no list at all. That is for clusters alone.
//
// Where both sides have one vocabulary, a sentence also needs its source's own tokens: a name is
// copied subword by subword, and no cluster knows the subwords of a name that it has not seen. That is half
// a percent more candidates and a third fewer misses (docs/results/CLUSTERS.md).
//
// The union is over one sentence, not over the batch as in the paper: a translation does not depend
// on its neighbours. What several sentences want is still read once (backend/cpu/rank_cpu.c).
// Sets change from step to step, so columns are not gathered: the output layers keep their weights
// by rows. Lists of a step lie side by side in one pool, of which only what is used is touched.
#include <string.h>

#include "base/mem.h"
#include "format/modelfile.h"
#include "vocabsel/cluster_private.h"
#include "vocabsel/vocabsel.h"

enum { FEW = 256 };

typedef struct cluster {
    dgm_cluster_set *const *sets; // [set_count]
    int set_count;
    int *set_of;   // [sentences]
    int *first_of; // [set_count + 1]: its first centroid among all
    dgm_exec *exec;
    dgm_cluster_mode mode;
    dgm_vocabsel lexical; // ops NULL: none
    dgm_vocabsel_limits limits;
    int targets;
    size_t words;
    bool copies; // source tokens are candidates
    uint64_t *always, *never;    // [words]
    uint64_t *bits;              // [sentences, words]: candidates of this step
    uint64_t *needed, *listed;   // [sentences, words]: by the sentence; by its shortlist
    uint64_t *allowed;           // [sentences, words], intersect: what the clusters alone allow
    int32_t *few;   // [sentences, FEW]: needed and allowed, ascending, while they are few
    int *few_count; // [sentences]; -1: more than FEW
    int32_t *nearest;            // [rows]: centroids
    uint64_t *used;              // [centroids of all sets]: a bit each
    dgm_candidates *candidates;  // [sentences]
    int32_t *pool;               // lists of a step
    size_t pool_size, pool_used; // in ids
    dgm_joint *joints;           // [sentences]: what a device makes of its own lists; NULL: lists are made here
    int32_t *which;              // [rows]: their centroids
    int which_used;
    dgm_candidates *more;        // [rows]
    int32_t *more_ids;           // [rows, DGM_MORE_MAX]
} cluster;

static void set_bit(uint64_t *bits, int32_t id)
{
    bits[id >> 6] |= (uint64_t)1 << (id & 63);
}

static bool has_bit(const uint64_t *bits, int32_t id)
{
    return bits[id >> 6] >> (id & 63) & 1;
}

static uint64_t *of_active(const cluster *x, uint64_t *bits, int active)
{
    return bits + (size_t)active * x->words;
}

// Tokens that a sentence brings along, into its bits.
static dgm_status bring(const cluster *x, uint64_t *bits, const int32_t *ids, int count,
                        dgm_error *err)
{
    for (int i = 0; i < count; i++) {
        DGM_FAIL_IF(ids[i] < 0 || ids[i] >= x->targets, err, DGM_ERR_ARGUMENT,
                    "clusters: target token %d is not in the vocabulary", (int)ids[i]);
        set_bit(bits, ids[i]);
    }
    return DGM_OK;
}

static void list_few(cluster *x, int active)
{
    const uint64_t *needed = of_active(x, x->needed, active);
    int32_t *few = x->few + (size_t)active * FEW;
    int n = 0;
    for (size_t w = 0; w < x->words && n >= 0; w++)
        for (uint64_t left = needed[w] & ~x->never[w]; left && n >= 0; left &= left - 1) {
            if (n < FEW) few[n] = (int32_t)(w * 64) + __builtin_ctzll(left);
            n = n < FEW ? n + 1 : -1;
        }
    x->few_count[active] = n;
}

static dgm_status admit(dgm_vocabsel *v, int active, const dgm_vocabsel_sentence *s, dgm_error *err)
{
    cluster *x = v->data;
    DGM_FAIL_IF(active < 0 || active >= x->limits.sentences || s->needed_count < 0 ||
                    s->needed_count > x->limits.max_needed,
                err, DGM_ERR_ARGUMENT, "clusters: sentence %d or %d needed tokens are out of range",
                active, s->needed_count);
    DGM_FAIL_IF(s->clusters < 0 || s->clusters >= x->set_count, err, DGM_ERR_ARGUMENT,
                "clusters: set %d of %d", s->clusters, x->set_count);
    x->set_of[active] = s->clusters;
    DGM_FAIL_IF((s->evidence_count > 0 || s->allowed_count > 0) && !x->limits.evidence, err,
                DGM_ERR_ARGUMENT, "clusters: there is no room for the words of evidence");
    uint64_t *needed = of_active(x, x->needed, active);
    memcpy(needed, x->always, x->words * sizeof *needed);
    DGM_TRY(bring(x, needed, s->needed, s->needed_count, err));
    DGM_TRY(bring(x, needed, s->evidence, s->evidence_count, err));
    DGM_TRY(bring(x, needed, s->allowed, s->allowed_count, err));
    if (x->copies) DGM_TRY(bring(x, needed, s->source, s->source_count, err));
    list_few(x, active);
    if (!x->lexical.ops) return DGM_OK;
    DGM_TRY(x->lexical.ops->admit(&x->lexical, active, s, err));
    const dgm_candidates *c = x->lexical.ops->select(&x->lexical, active, 0, (dgm_mat){0});
    uint64_t *listed = of_active(x, x->listed, active);
    memset(listed, 0, x->words * sizeof *listed);
    for (int i = 0; i < c->count; i++) set_bit(listed, c->ids[i]);
    return DGM_OK;
}

static void look(dgm_vocabsel *v, dgm_mat hidden)
{
    cluster *x = v->data;
    if (x->set_count == 1)
        dgm_op_closest(x->exec, dgm_cluster_set_centroids(x->sets[0]), hidden, x->nearest);
    x->pool_used = 0;
    x->which_used = 0;
}

// The nearest centroids of a sentence's rows, in its own set. A row's answer does not depend on the
// rows beside it.
static const int32_t *nearest_of(cluster *x, int active, int first, dgm_mat hidden)
{
    if (x->set_count == 1) return x->nearest + first;
    const dgm_cluster_set *own = x->sets[x->set_of[active]];
    dgm_op_closest(x->exec, dgm_cluster_set_centroids(own), hidden, x->nearest);
    return x->nearest;
}

static bool seen_before(const int32_t *nearest, int count)
{
    for (int i = 0; i < count; i++)
        if (nearest[i] == nearest[count]) return true;
    return false;
}

// The list of one centroid with the few tokens that the sentence needs, without what is never
// chosen. Returns its length.
static int merge(const cluster *x, int active, int32_t centroid, int32_t *ids)
{
    const int32_t *few = x->few + (size_t)active * FEW;
    const int few_count = x->few_count[active];
    const int count = dgm_cluster_set_decode(x->sets[x->set_of[active]], centroid, ids + few_count);
    const int32_t *from = ids + few_count; // behind what merging writes, or where it writes
    int n = 0, f = 0;
    for (int i = 0; i < count; i++) {
        const int32_t id = from[i];
        while (f < few_count && few[f] < id) ids[n++] = few[f++];
        f += f < few_count && few[f] == id;
        ids[n] = id;
        n += !has_bit(x->never, id);
    }
    while (f < few_count) ids[n++] = few[f++];
    return n;
}

// The sentence's centroids, each once.
static const dgm_candidates *select_joint(cluster *x, int active, const int32_t *nearest, int rows)
{
    const dgm_cluster_set *own = x->sets[x->set_of[active]];
    const int before = x->first_of[x->set_of[active]];
    dgm_joint *joint = &x->joints[active];
    int32_t *which = x->which + x->which_used;
    int64_t most = x->few_count[active];
    int n = 0;
    for (int i = 0; i < rows; i++) {
        if (seen_before(nearest, i)) continue;
        which[n++] = nearest[i];
        most += dgm_cluster_set_length(own, nearest[i]);
        set_bit(x->used, before + nearest[i]);
    }
    x->which_used += n;
    *joint = (dgm_joint){.centroids = dgm_cluster_set_centroids(own),
                         .which = which,
                         .which_count = n,
                         .add = x->few + (size_t)active * FEW,
                         .add_count = x->few_count[active]};
    x->candidates[active] =
        (dgm_candidates){.joint = joint, .count = most < x->targets ? (int)most : x->targets};
    return &x->candidates[active];
}

static int size(dgm_vocabsel *v, int active)
{
    cluster *x = v->data;
    const dgm_candidates *c = &x->candidates[active];
    if (!c->joint) return c->count;
    uint64_t *bits = of_active(x, x->bits, active);
    memset(bits, 0, x->words * sizeof *bits);
    for (int i = 0; i < c->joint->which_count; i++)
        dgm_cluster_set_mark(x->sets[x->set_of[active]], c->joint->which[i], bits);
    int n = 0;
    const uint64_t *needed = of_active(x, x->needed, active);
    for (size_t w = 0; w < x->words; w++) n += __builtin_popcountll((bits[w] | needed[w]) & ~x->never[w]);
    return n;
}

static const dgm_candidates *select_cluster(dgm_vocabsel *v, int active, int first, dgm_mat hidden)
{
    cluster *x = v->data;
    const int32_t *nearest = nearest_of(x, active, first, hidden);
    const int before = x->first_of[x->set_of[active]];
    if (x->joints && x->few_count[active] >= 0) return select_joint(x, active, nearest, hidden.rows);
    if (hidden.rows == 1 && x->mode == DGM_CLUSTER_ALONE && x->few_count[active] >= 0) {
        int32_t *ids = x->pool + x->pool_used;
        set_bit(x->used, before + nearest[0]);
        x->candidates[active] =
            (dgm_candidates){.ids = ids, .count = merge(x, active, nearest[0], ids)};
        x->pool_used += (size_t)x->candidates[active].count;
        return &x->candidates[active];
    }
    uint64_t *bits = of_active(x, x->bits, active);
    const uint64_t *listed = x->listed ? of_active(x, x->listed, active) : NULL;
    const uint64_t *needed = of_active(x, x->needed, active);
    memset(bits, 0, x->words * sizeof *bits);
    for (int i = 0; i < hidden.rows; i++) {
        if (seen_before(nearest, i)) continue;
        dgm_cluster_set_mark(x->sets[x->set_of[active]], nearest[i], bits);
        set_bit(x->used, before + nearest[i]);
    }
    if (x->allowed) memcpy(of_active(x, x->allowed, active), bits, x->words * sizeof *bits);
    int32_t *ids = x->pool + x->pool_used;
    int n = 0;
    for (size_t w = 0; w < x->words; w++) {
        if (x->mode == DGM_CLUSTER_UNION) bits[w] |= listed[w];
        if (x->mode == DGM_CLUSTER_INTERSECT) bits[w] &= listed[w];
        bits[w] = (bits[w] | needed[w]) & ~x->never[w];
        for (uint64_t left = bits[w]; left; left &= left - 1)
            ids[n++] = (int32_t)(w * 64) + __builtin_ctzll(left);
    }
    x->pool_used += (size_t)n;
    x->candidates[active] = (dgm_candidates){.ids = ids, .count = n};
    return &x->candidates[active];
}

// Continuations of the lexical shortlist that are not candidates yet; with intersect only those that the
// clusters allow, too.
static const dgm_candidates *more(dgm_vocabsel *v, int active, int row, int32_t last)
{
    cluster *x = v->data;
    if (!x->lexical.ops || row >= x->limits.rows) return NULL;
    const dgm_candidates *next = x->lexical.ops->more(&x->lexical, active, row, last);
    if (!next) return NULL;
    const uint64_t *bits = of_active(x, x->bits, active);
    const uint64_t *allowed = x->allowed ? of_active(x, x->allowed, active) : NULL;
    int32_t *ids = x->more_ids + (size_t)row * DGM_MORE_MAX;
    int n = 0;
    for (int i = 0; i < next->count; i++)
        if (!has_bit(bits, next->ids[i]) && (!allowed || has_bit(allowed, next->ids[i])))
            ids[n++] = next->ids[i];
    x->more[row] = (dgm_candidates){.ids = ids, .count = n};
    return n ? &x->more[row] : NULL;
}

static void leave(dgm_vocabsel *v, int active)
{
    cluster *x = v->data;
    if (x->lexical.ops) x->lexical.ops->leave(&x->lexical, active);
    x->candidates[active] = (dgm_candidates){0};
}

static void close_cluster(dgm_vocabsel *v)
{
    cluster *x = v->data;
    if (!x) return;
    if (x->lexical.ops) x->lexical.ops->close(&x->lexical);
    dgm_free(x->always);
    dgm_free(x->never);
    dgm_free(x->bits);
    dgm_free(x->needed);
    dgm_free(x->listed);
    dgm_free(x->allowed);
    dgm_free(x->set_of);
    dgm_free(x->first_of);
    dgm_free(x->few);
    dgm_free(x->few_count);
    dgm_free(x->nearest);
    dgm_free(x->used);
    dgm_free(x->candidates);
    if (x->pool) dgm_pages_release(x->pool, x->pool_size * sizeof *x->pool);
    dgm_free(x->joints);
    dgm_free(x->which);
    dgm_free(x->more);
    dgm_free(x->more_ids);
    dgm_free(x);
    v->data = NULL;
}

static const dgm_vocabsel_ops ops = {.name = "cluster",
                                     .by_step = true,
                                     .admit = admit,
                                     .look = look,
                                     .select = select_cluster,
                                     .more = more,
                                     .size = size,
                                     .leave = leave,
                                     .close = close_cluster};

// The most that the lists of a step can hold together: the longest set of every row and what each
// sentence brings; never more than the vocabulary for every sentence.
static size_t pool_room(const cluster *x)
{
    const uint64_t sentences = (uint64_t)x->limits.sentences, targets = (uint64_t)x->targets;
    const bool any = x->mode == DGM_CLUSTER_UNION || x->limits.evidence;
    const uint64_t copied = x->copies ? (uint64_t)x->limits.max_source : 0;
    const uint64_t brought = any ? targets : (uint64_t)x->limits.max_needed + copied + 3;
    int longest = 0;
    for (int i = 0; i < x->set_count; i++) {
        const int of_set = dgm_cluster_set_longest(x->sets[i]);
        longest = of_set > longest ? of_set : longest;
    }
    const uint64_t room = (uint64_t)x->limits.rows * (uint64_t)longest + sentences * brought;
    // FEW: decoding begins that far behind the end
    return (size_t)(room < sentences * targets ? room : sentences * targets) + FEW;
}

static dgm_status allocate(cluster *x, dgm_error *err)
{
    const size_t sentences = (size_t)x->limits.sentences, rows = (size_t)x->limits.rows;
    const bool lexical = x->mode != DGM_CLUSTER_ALONE;
    x->words = ((size_t)x->targets + 63) / 64;
    x->always = dgm_calloc(x->words, sizeof *x->always);
    x->never = dgm_calloc(x->words, sizeof *x->never);
    x->bits = dgm_calloc(sentences * x->words, sizeof *x->bits);
    x->needed = dgm_calloc(sentences * x->words, sizeof *x->needed);
    if (lexical) x->listed = dgm_calloc(sentences * x->words, sizeof *x->listed);
    if (x->mode == DGM_CLUSTER_INTERSECT)
        x->allowed = dgm_calloc(sentences * x->words, sizeof *x->allowed);
    x->set_of = dgm_calloc(sentences, sizeof *x->set_of);
    x->first_of = dgm_calloc((size_t)x->set_count + 1, sizeof *x->first_of);
    for (int i = 0; x->first_of && i < x->set_count; i++)
        x->first_of[i + 1] = x->first_of[i] + dgm_cluster_set_count(x->sets[i]);
    bool joint = x->mode == DGM_CLUSTER_ALONE && !x->limits.ids;
    for (int i = 0; i < x->set_count; i++) joint = joint && dgm_cluster_set_kept(x->sets[i]);
    if (joint) x->joints = dgm_calloc(sentences, sizeof *x->joints);
    x->which = dgm_calloc(rows, sizeof *x->which);
    const size_t centroids = x->first_of ? (size_t)x->first_of[x->set_count] : 0;
    x->few = dgm_malloc(sentences * FEW * sizeof *x->few);
    x->few_count = dgm_calloc(sentences, sizeof *x->few_count);
    x->nearest = dgm_calloc(rows, sizeof *x->nearest);
    x->used = dgm_calloc(centroids / 64 + 1, sizeof *x->used);
    x->candidates = dgm_calloc(sentences, sizeof *x->candidates);
    x->more = dgm_calloc(rows, sizeof *x->more);
    x->more_ids = dgm_malloc((lexical ? rows : 1) * DGM_MORE_MAX * sizeof *x->more_ids);
    x->pool_size = pool_room(x);
    x->pool = dgm_pages_reserve(x->pool_size * sizeof *x->pool);
    const bool good = x->few && x->few_count && x->always && x->never && x->bits && x->needed &&
                      (!lexical || x->listed) && x->set_of && x->first_of &&
                      (x->mode != DGM_CLUSTER_INTERSECT || x->allowed) && x->nearest && x->used && x->candidates &&
                      (!joint || x->joints) && x->which && x->more && x->more_ids && x->pool;
    return good ? DGM_OK : dgm_no_memory(err);
}

static dgm_status prepare(cluster *x, const dgm_gguf *lexical, dgm_error *err)
{
    dgm_vocab_spec target = {0};
    DGM_TRY(dgm_modelfile_vocab(dgm_cluster_set_file(x->sets[0]), DGM_TARGET, &target, err));
    x->copies = target.shared && x->mode != DGM_CLUSTER_INTERSECT && !x->limits.no_source;
    DGM_TRY(allocate(x, err));
    if (target.unk >= 0) set_bit(x->always, target.unk);
    const int end = dgm_modelfile_end(&target);
    if (end >= 0) set_bit(x->always, end);
    for (size_t i = 0; i < target.never_count; i++)
        if (target.never[i] != end) set_bit(x->never, target.never[i]);
    if (x->mode == DGM_CLUSTER_ALONE) return DGM_OK;
    return dgm_vocabsel_lexical_open(&x->lexical, lexical, &x->limits, err);
}

dgm_status dgm_vocabsel_cluster_open(dgm_vocabsel *v, dgm_cluster_set *const *sets, int count,
                                     dgm_exec *exec, dgm_cluster_mode mode, const dgm_gguf *lexical,
                                     const dgm_vocabsel_limits *limits, dgm_error *err)
{
    *v = (dgm_vocabsel){.ops = &ops, .data = NULL};
    DGM_FAIL_IF(limits->sentences < 1 || limits->rows < 1 || count < 1, err, DGM_ERR_ARGUMENT,
                "clusters: %d sentences with %d rows of %d sets", limits->sentences, limits->rows,
                count);
    cluster *x = dgm_calloc(1, sizeof *x);
    if (!x) return dgm_no_memory(err);
    v->data = x;
    x->sets = sets;
    x->set_count = count;
    x->exec = exec;
    x->mode = mode;
    x->limits = *limits;
    x->targets = dgm_cluster_set_targets(sets[0]);
    dgm_status st = prepare(x, lexical, err);
    if (st != DGM_OK) {
        if (!x->lexical.data) x->lexical.ops = NULL;
        close_cluster(v);
    }
    return st;
}

void dgm_vocabsel_cluster_used(const dgm_vocabsel *v, uint64_t *bits)
{
    const cluster *x = v->data;
    const size_t words = ((size_t)x->first_of[x->set_count] + 63) / 64;
    for (size_t i = 0; i < words; i++) bits[i] |= x->used[i];
}
