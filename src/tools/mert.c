// SPDX-License-Identifier: MIT
// `dragoman mert` behind its command line: decoding a development set and tuning weights on the
// lists or search graphs, in turn, or tuning on lists that somebody else made.
//
// Lists or graphs of all rounds are kept together, so that weights which were bad before stay bad.
// What a search promises is true only for hypotheses that were decoded: graphs offer many paths
// but all of them near the best one, so that somewhere in the space of weights a better score can
// always be had, by weights that decode to nonsense (2 BLEU where 12 were promised, round after
// round). So weights of graphs stay within a radius of the best ones decoded, which grows and
// shrinks with what decoding says.
// BLEU is that of `dragoman eval`: 13a tokens of the text that the decoder would print. The weights
// that count in the end are those whose decoded translations were the best, not those that promised
// it.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "tools/phrasal.h"
#include "phrase/mert.h"
#include "lattice/nbest.h"

#define RADIUS 0.1 // of graphs

void dgm_mert_init(dgm_mert_options *out, size_t size)
{
    dgm_mert_options own, *const o = &own;
    *o = (dgm_mert_options){
        .rounds = 8, .restarts = 3, .directions = 10, .seed = 1, .threads = 1, .radius = -1};
    dgm_sized_give(out, size, &own, sizeof own);
}

typedef struct text_lines {
    dgm_writer bytes;
    size_t *end; // [count]
    size_t count, cap;
    dgm_line *line; // [count]
} text_lines;

typedef struct tuning {
    const dgm_mert_options *o;
    dgm_phrasal_options how; // the system's
    text_lines source;
    text_lines *refs; // [ref_count]
    size_t ref_count;
    dgm_phrasal *system;
    dgm_metric **metrics; // [threads]: they own scratch memory
    int threads;
    dgm_text **ref_of; // [threads]: references of a line
    dgm_mert_set *set;
    dgm_pool *pool;
    int64_t *best_rows;           // [lines][width] of the best translations
    dgm_pb_weights weights, best; // to be decoded; those that decoded best
    double best_bleu;
    double radius;
} tuning;

// ---- files ------------------------------------------------------------------------------------

static void lines_free(text_lines *t)
{
    dgm_writer_free(&t->bytes);
    dgm_free(t->end);
    dgm_free(t->line);
}

static dgm_status keep_text(void *cookie, dgm_text line, dgm_error *err)
{
    text_lines *t = cookie;
    dgm_write_bytes(&t->bytes, line.data, line.size);
    if (t->bytes.failed) return dgm_no_memory(err);
    DGM_TRY(dgm_grow(&t->end, &t->cap, t->count + 1, sizeof *t->end, err));
    t->end[t->count++] = t->bytes.size;
    return DGM_OK;
}

static dgm_status read_lines(text_lines *t, const char *path, dgm_error *err)
{
    DGM_TRY(dgm_lines_each(path, keep_text, t, err));
    t->line = dgm_calloc(t->count + 1, sizeof *t->line);
    if (!t->line) return dgm_no_memory(err);
    const char *data = t->bytes.data ? (const char *)t->bytes.data : "";
    for (size_t i = 0; i < t->count; i++) {
        size_t begin = i ? t->end[i - 1] : 0;
        t->line[i] = (dgm_line){data + begin, t->end[i] - begin};
    }
    return DGM_OK;
}

static dgm_status read_texts(tuning *t, const char *source, const char *const *refs, dgm_error *err)
{
    if (source) DGM_TRY(read_lines(&t->source, source, err));
    t->refs = dgm_calloc(t->ref_count, sizeof *t->refs);
    if (!t->refs) return dgm_no_memory(err);
    for (size_t r = 0; r < t->ref_count; r++) {
        DGM_TRY(read_lines(&t->refs[r], refs[r], err));
        size_t want = source ? t->source.count : t->refs[0].count;
        DGM_FAIL_IF(t->refs[r].count != want, err, DGM_ERR_TEXT, "'%s' has %zu lines, '%s' has %zu",
                    refs[r], t->refs[r].count, source ? source : refs[0], want);
    }
    DGM_FAIL_IF(t->refs[0].count == 0, err, DGM_ERR_TEXT, "'%s' is empty", refs[0]);
    return DGM_OK;
}

static dgm_status write_weights(const char *output, const dgm_pb_weights *w, double bleu,
                                dgm_error *err)
{
    dgm_writer text = {0};
    dgm_write_format(&text, "# BLEU %.2f\n", bleu);
    dgm_pb_weights_write(w, &text);
    dgm_status st =
        text.failed ? dgm_no_memory(err) : dgm_file_write(output, text.data, text.size, err);
    dgm_writer_free(&text);
    return st;
}

// ---- lists ------------------------------------------------------------------------------------

static dgm_status row_of(tuning *t, int worker, size_t line, dgm_text text, int64_t *row,
                         dgm_error *err)
{
    dgm_text *refs = t->ref_of[worker];
    for (size_t r = 0; r < t->ref_count; r++)
        refs[r] = (dgm_text){t->refs[r].line[line].data, t->refs[r].line[line].size};
    return dgm_metric_segment(t->metrics[worker], text, refs, t->ref_count, row, err);
}

static dgm_status add_graph(tuning *t, int worker, size_t line, dgm_error *err);

static dgm_status add_line(void *cookie, int worker, size_t line, const dgm_pb_translation *list,
                           int count, dgm_error *err)
{
    tuning *t = cookie;
    dgm_writer w = {0};
    size_t width = (size_t)dgm_metric_width(t->metrics[0]);
    dgm_status st = DGM_OK;
    for (int i = 0; st == DGM_OK && i < count; i++) {
        int64_t row[DGM_METRIC_WIDTH_MAX];
        w.size = 0;
        st = dgm_phrasal_text(t->system, list[i].words, list[i].count, &w, err);
        dgm_text text = {w.data ? (const char *)w.data : "", w.size};
        if (st == DGM_OK) st = row_of(t, worker, line, text, row, err);
        if (st == DGM_OK && !t->o->lattice)
            st = dgm_mert_set_add(t->set, line, list[i].features, row, err);
        if (st == DGM_OK && i == 0) memcpy(t->best_rows + line * width, row, width * sizeof *row);
    }
    dgm_writer_free(&w);
    return st == DGM_OK && t->o->lattice ? add_graph(t, worker, line, err) : st;
}

// ---- graphs -----------------------------------------------------------------------------------

// What is left of a search graph: arcs whose best path is not too far behind the best of all.
// They all lie on paths of such arcs, so no dead ends are left.
typedef struct graph_job {
    double *before, *behind; // [nodes] best scores from the start, to the end
    int *number;             // [nodes] of those that are left, -1 of the others
    double *features;        // [count][DGM_PB_FEATURES]
    dgm_mert_arc *kept;      // [count]
    size_t count;
    int nodes;
} graph_job;

static void graph_free(graph_job *g)
{
    dgm_free(g->before);
    dgm_free(g->behind);
    dgm_free(g->number);
    dgm_free(g->features);
    dgm_free(g->kept);
}

static dgm_status graph_open(graph_job *g, size_t arcs, int nodes, dgm_error *err)
{
    size_t n = (size_t)nodes;
    g->before = dgm_calloc(n, sizeof *g->before);
    g->behind = dgm_calloc(n, sizeof *g->behind);
    g->number = dgm_calloc(n, sizeof *g->number);
    g->features = dgm_calloc(arcs, DGM_PB_FEATURES * sizeof *g->features);
    g->kept = dgm_calloc(arcs, sizeof *g->kept);
    bool good = g->before && g->behind && g->number && g->features && g->kept;
    return good ? DGM_OK : dgm_no_memory(err);
}

static void graph_prune(graph_job *g, dgm_pb_decoder *d, const dgm_pb_arc *arcs, size_t count,
                        int nodes, double beam)
{
    for (int i = 1; i < nodes; i++) g->before[i] = -INFINITY;
    for (int i = 0; i < nodes - 1; i++) g->behind[i] = -INFINITY;
    for (int i = 0; i < nodes; i++) g->number[i] = -1;
    for (size_t i = 0; i < count; i++)
        g->before[arcs[i].to] =
            fmax(g->before[arcs[i].to], g->before[arcs[i].from] + arcs[i].score);
    for (size_t i = count; i-- > 0;)
        g->behind[arcs[i].from] =
            fmax(g->behind[arcs[i].from], g->behind[arcs[i].to] + arcs[i].score);
    double least = g->behind[0] - beam;
    least -= 1e-9 * fabs(least) + 1e-9; // sums from both sides are rounded; the best path stays
    g->number[g->nodes++] = 0;
    for (size_t i = 0; i < count; i++) {
        const dgm_pb_arc *a = &arcs[i];
        if (g->before[a->from] + a->score + g->behind[a->to] < least) continue;
        if (g->number[a->from] < 0) continue; // only by rounding
        if (g->number[a->to] < 0) g->number[a->to] = g->nodes++;
        double *f = g->features + g->count * DGM_PB_FEATURES;
        dgm_pb_arc_features(d, a, f);
        g->kept[g->count++] = (dgm_mert_arc){.from = g->number[a->from],
                                             .to = g->number[a->to],
                                             .words = a->words,
                                             .count = a->count,
                                             .features = f};
    }
}

static dgm_status add_graph(tuning *t, int worker, size_t line, dgm_error *err)
{
    dgm_pb_decoder *d = t->system->workers[worker]->decoder;
    const dgm_pb_arc *arcs;
    size_t count;
    int nodes;
    graph_job g = {0};
    double weights = 0; // scores scale with them
    for (int k = 0; k < DGM_PB_UNKNOWN; k++) weights += fabs(t->weights.w[k]);
    DGM_TRY(dgm_pb_graph(d, &arcs, &count, &nodes, err));
    dgm_status st = graph_open(&g, count, nodes, err);
    if (st == DGM_OK) {
        graph_prune(&g, d, arcs, count, nodes, t->how.lattice_beam * weights);
        st = dgm_mert_set_add_graph(t->set, line, g.kept, g.count, g.nodes, err);
    }
    graph_free(&g);
    return st;
}

// The counts of a path's text.
static dgm_status rate_path(void *cookie, size_t line, const dgm_text *words, int count,
                            int64_t *row, dgm_error *err)
{
    tuning *t = cookie;
    dgm_writer w = {0};
    dgm_status st = dgm_phrasal_text(t->system, words, count, &w, err);
    dgm_text text = {w.data ? (const char *)w.data : "", w.size};
    if (st == DGM_OK) st = row_of(t, 0, line, text, row, err);
    dgm_writer_free(&w);
    return st;
}

// ---- lists of others --------------------------------------------------------------------------

static dgm_status add_entry(void *cookie, dgm_text line, dgm_error *err)
{
    tuning *t = cookie;
    dgm_nbest_entry e;
    double features[DGM_PB_FEATURES];
    int64_t row[DGM_METRIC_WIDTH_MAX];
    DGM_TRY(dgm_nbest_parse(line, &e, err));
    DGM_FAIL_IF(e.line >= t->refs[0].count, err, DGM_ERR_FORMAT, "line %llu of a text that has %zu",
                (unsigned long long)e.line, t->refs[0].count);
    DGM_TRY(dgm_pb_features_parse(e.features, features, err));
    DGM_TRY(row_of(t, 0, (size_t)e.line, e.text, row, err));
    return dgm_mert_set_add(t->set, (size_t)e.line, features, row, err);
}

// ---- rounds -----------------------------------------------------------------------------------

static double decoded_score(const tuning *t)
{
    int64_t sum[DGM_METRIC_WIDTH_MAX];
    dgm_metric_score score;
    dgm_metric_sum(t->metrics[0], t->best_rows, t->source.count, sum);
    dgm_metric_score_of(t->metrics[0], sum, &score);
    return score.score;
}

static dgm_status search(tuning *t, int round, double *promised, dgm_error *err)
{
    bool fixed[DGM_PB_FEATURES] = {false}, negative[DGM_PB_FEATURES] = {false};
    fixed[DGM_PB_UNKNOWN] = true; // the number of words to copy is seldom a choice
    if (t->system && t->system->system->table->features == DGM_PHRASE_SCORES)
        for (int k = 0; k < DGM_PHRASE_ORIENTATIONS; k++) fixed[DGM_PB_REORDERING + k] = true;
    negative[DGM_PB_WORDS] = negative[DGM_PB_PHRASES] = true;
    dgm_mert_params p = {.fixed = fixed,
                         .negative = negative,
                         .restarts = t->o->restarts,
                         .directions = t->o->directions,
                         .radius = t->radius,
                         .seed = t->o->seed * 1000 + (uint64_t)round,
                         .pool = t->pool};
    return dgm_mert_search(t->set, &p, t->weights.w, promised, err);
}

static dgm_status report(const tuning *t, int round, double bleu, double promised, dgm_error *err)
{
    DGM_FAIL_IF(t->o->report && t->o->report(t->o->cookie, round, bleu, promised,
                                             dgm_mert_set_count(t->set)) != 0,
                err, DGM_ERR_CANCELLED, "stopped on request");
    return DGM_OK;
}

// What a decoded round says about its weights, and where the next search begins.
static dgm_status judge(tuning *t, int round, double bleu, const char *output, dgm_error *err)
{
    bool better = bleu > t->best_bleu;
    if (better) {
        t->best_bleu = bleu;
        t->best = t->weights;
        DGM_TRY(write_weights(output, &t->weights, bleu, err));
    }
    if (t->radius > 0) {
        if (round) t->radius *= better ? 2 : 0.5;
        t->weights = t->best;
    }
    return DGM_OK;
}

static dgm_status decode_rounds(tuning *t, const char *output, dgm_error *err)
{
    uint64_t known = 0;
    t->best_bleu = -1;
    t->radius = t->o->radius >= 0 ? t->o->radius : t->o->lattice ? RADIUS : 0;
    for (int round = 0;; round++) {
        dgm_pb_params p = t->system->system->params;
        p.weights = t->weights;
        if (t->o->lattice) p.nbest = 1;
        DGM_TRY(dgm_pb_model_set(t->system->system->model, &p, err));
        DGM_TRY(dgm_phrasal_run(t->system, t->source.line, t->source.count, add_line, t, err));
        double bleu = decoded_score(t), promised = 0;
        DGM_TRY(judge(t, round, bleu, output, err));
        uint64_t count = dgm_mert_set_count(t->set);
        bool last = round == t->o->rounds || count == known;
        known = count;
        if (!last) DGM_TRY(search(t, round, &promised, err));
        DGM_TRY(report(t, round, bleu, promised, err));
        if (last) return DGM_OK;
    }
}

static dgm_status list_round(tuning *t, const char *output, dgm_error *err)
{
    double promised, before;
    DGM_TRY(dgm_lines_each(t->o->lists, add_entry, t, err));
    DGM_FAIL_IF(dgm_mert_set_count(t->set) == 0, err, DGM_ERR_TEXT, "'%s' is empty", t->o->lists);
    DGM_TRY(dgm_mert_set_score(t->set, t->weights.w, &before, err));
    DGM_TRY(search(t, 0, &promised, err));
    DGM_TRY(write_weights(output, &t->weights, promised, err));
    return report(t, 0, before, promised, err);
}

static dgm_status open_metrics(tuning *t, dgm_error *err)
{
    dgm_metric_options m;
    dgm_metric_options_default(&m, DGM_METRIC_BLEU);
    t->threads = t->system ? t->system->threads : 1;
    t->metrics = dgm_calloc((size_t)t->threads, sizeof *t->metrics);
    t->ref_of = dgm_calloc((size_t)t->threads, sizeof *t->ref_of);
    if (!t->metrics || !t->ref_of) return dgm_no_memory(err);
    for (int i = 0; i < t->threads; i++) {
        DGM_TRY(dgm_metric_open(&t->metrics[i], &m, err));
        t->ref_of[i] = dgm_calloc(t->ref_count, sizeof **t->ref_of);
        if (!t->ref_of[i]) return dgm_no_memory(err);
    }
    size_t width = (size_t)dgm_metric_width(t->metrics[0]);
    t->best_rows = dgm_calloc(t->source.count + 1, width * sizeof *t->best_rows);
    if (!t->best_rows) return dgm_no_memory(err);
    DGM_TRY(dgm_mert_set_open(&t->set, t->refs[0].count, DGM_PB_FEATURES, t->metrics[0], err));
    dgm_mert_set_rate(t->set, rate_path, t);
    return DGM_OK;
}

static dgm_status tune(tuning *t, const char *source, const char *const *refs, const char *output,
                       dgm_error *err)
{
    const dgm_mert_options *o = t->o;
    DGM_FAIL_IF(t->ref_count == 0, err, DGM_ERR_ARGUMENT, "a reference is needed");
    DGM_FAIL_IF(o->rounds < 1 || o->restarts < 0 || o->directions < 0, err, DGM_ERR_ARGUMENT,
                "rounds must be 1 or more, restarts and directions 0 or more");
    DGM_FAIL_IF(o->lists && o->lattice, err, DGM_ERR_ARGUMENT,
                "lists of another decoder have no search graphs");
    DGM_TRY(dgm_textout_probe(output, err));
    DGM_TRY(read_texts(t, o->lists ? NULL : source, refs, err));
    if (o->lists) {
        dgm_pb_weights_default(&t->weights);
        if (t->how.uniform) dgm_pb_weights_uniform(&t->weights);
        if (t->how.weights) DGM_TRY(dgm_pb_weights_read(&t->weights, t->how.weights, err));
    } else {
        DGM_TRY(dgm_phrasal_open(&t->system, &t->how, err));
        t->weights = t->system->system->params.weights;
    }
    DGM_TRY(dgm_pool_open(&t->pool, o->threads ? o->threads : dgm_cpu_count(), err));
    DGM_TRY(open_metrics(t, err));
    return o->lists ? list_round(t, output, err) : decode_rounds(t, output, err);
}

dgm_status dgm_mert(const char *source, const char *const *references, size_t reference_count,
                    const char *output, const dgm_mert_options *options, dgm_error *err)
{
    dgm_mert_options own;
    dgm_mert_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_mert_options", "dgm_mert_default", err));
    tuning t = {.o = &own, .ref_count = reference_count};
    dgm_phrasal_default(&t.how);
    t.how.nbest = 100;
    t.how.distinct = 1;
    DGM_TRY(dgm_sized_take(&t.how, sizeof t.how, own.system, "dgm_phrasal_options",
                           "dgm_phrasal_default", err));
    dgm_status st = tune(&t, source, references, output, err);
    dgm_mert_set_close(&t.set);
    for (int i = 0; i < t.threads; i++) {
        if (t.metrics) dgm_metric_close(&t.metrics[i]);
        if (t.ref_of) dgm_free(t.ref_of[i]);
    }
    dgm_free(t.metrics);
    dgm_free(t.ref_of);
    dgm_free(t.best_rows);
    dgm_pool_close(&t.pool);
    dgm_phrasal_close(&t.system);
    lines_free(&t.source);
    for (size_t r = 0; t.refs && r < t.ref_count; r++) lines_free(&t.refs[r]);
    dgm_free(t.refs);
    return st;
}
