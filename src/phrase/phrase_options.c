// SPDX-License-Identifier: MIT
// What the phrase table has for every span of a sentence, scored as far as it can be without a
// context, and the cost of what is still to be covered; see phrase_decode_private.h.
//
// A future cost is the sum over the best way to cut the words into phrases, each at its best
// estimate: what the language model thinks of the phrase alone stands for what it will think of it
// behind others. Jumps and orientations are left out.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "phrase/phrase_decode_private.h"

static dgm_status option_words(dgm_pb_decoder *d, dgm_pb_option *o, const dgm_table_option *t,
                               dgm_error *err)
{
    const dgm_pb_model *m = d->m;
    dgm_text *words = DGM_ARENA_ARRAY(&d->arena, dgm_text, (size_t)t->length);
    uint32_t *ids = DGM_ARENA_ARRAY(&d->arena, uint32_t, (size_t)t->length);
    if (!words || !ids) return dgm_pb_full(err);
    for (int i = 0; i < t->length; i++) {
        uint32_t w = t->target[i];
        words[i] = dgm_phrase_table_spell(m->table, 1, w);
        ids[i] = w < m->table->words[1].count ? m->lm_word[w] : m->lm->unk;
    }
    o->words = words;
    o->lm_words = ids;
    o->count = t->length;
    return DGM_OK;
}

// Static score of an option whose features are there, and the estimate with the language model.
static void weigh(dgm_pb_decoder *d, dgm_pb_option *o)
{
    const double *w = d->m->p.weights.w;
    double score = w[DGM_PB_PHRASES] - o->count * w[DGM_PB_WORDS];
    for (int k = 0; k < DGM_PHRASE_SCORES; k++) score += w[DGM_PB_TABLE + k] * o->table[k];
    if (o->unknown) score += DGM_PB_LOG_FLOOR * w[DGM_PB_UNKNOWN];
    for (int k = 0; k < 3; k++)
        o->next[k] = d->m->oriented ? w[DGM_PB_REORDERING + 3 + k] * o->turn[3 + k] : 0;
    o->score = score;
    dgm_lm_state s;
    dgm_lm_empty(&s);
    double lm = 0;
    for (int i = 0; i < o->count; i++) lm += dgm_pb_lm_step(d, &s, o->lm_words[i], &s);
    o->estimate = score + w[DGM_PB_LM] * lm;
}

static int by_estimate(const void *context, uint32_t a, uint32_t b)
{
    const dgm_pb_option *x = context;
    if (x[a].estimate != x[b].estimate) return x[a].estimate > x[b].estimate ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int by_quick(const void *context, uint32_t a, uint32_t b)
{
    const double *x = context;
    if (x[a] != x[b]) return x[a] > x[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Weighted table scores alone, to choose what is looked at closely.
static double quick_score(const dgm_pb_decoder *d, const dgm_table_option *t)
{
    const double *w = d->m->p.weights.w;
    double score = -t->length * w[DGM_PB_WORDS];
    for (int k = 0; k < DGM_PHRASE_SCORES; k++)
        score += w[DGM_PB_TABLE + k] * dgm_pb_log((double)t->score[k]);
    return score;
}

// The options of a span with at most table_limit * 4 of the best by table scores, scored with the
// language model, cut to table_limit.
static dgm_status fill_span(dgm_pb_decoder *d, dgm_pb_span *span, uint32_t first, uint32_t count,
                            uint64_t word_at, int begin, int end, dgm_error *err)
{
    size_t limit = (size_t)d->m->p.table_limit, close = limit * 4 < count ? limit * 4 : count;
    double *quick = DGM_ARENA_ARRAY(&d->arena, double, count);
    uint32_t *order = DGM_ARENA_ARRAY(&d->arena, uint32_t, count);
    uint8_t *wanted = DGM_ARENA_ARRAY(&d->arena, uint8_t, count);
    dgm_pb_option *all = DGM_ARENA_ARRAY(&d->arena, dgm_pb_option, close);
    if (!quick || !order || !wanted || !all) return dgm_pb_full(err);
    memset(wanted, close == count, count);
    dgm_table_option t;
    if (close < count) {
        uint64_t at = word_at;
        for (uint32_t i = 0; i < count; i++) {
            dgm_phrase_table_option(d->m->table, first + i, &at, &t);
            quick[i] = quick_score(d, &t);
        }
        dgm_sort_indices(order, count, by_quick, quick);
        for (size_t k = 0; k < close; k++) wanted[order[k]] = 1;
    }
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        dgm_phrase_table_option(d->m->table, first + i, &word_at, &t);
        if (!wanted[i] || t.length == 0) continue;
        dgm_pb_option *o = &all[n++];
        *o = (dgm_pb_option){.begin = begin, .end = end, .links = t.links};
        DGM_TRY(option_words(d, o, &t, err));
        for (int k = 0; k < DGM_PHRASE_SCORES; k++) o->table[k] = dgm_pb_log((double)t.score[k]);
        for (int k = 0; d->m->oriented && k < DGM_PHRASE_ORIENTATIONS; k++)
            o->turn[k] = dgm_pb_log((double)t.score[DGM_PHRASE_SCORES + k]);
        weigh(d, o);
    }
    dgm_sort_indices(order, n, by_estimate, all);
    size_t kept = n < limit ? n : limit;
    span->options = DGM_ARENA_ARRAY(&d->arena, dgm_pb_option, kept);
    if (!span->options) return dgm_pb_full(err);
    for (size_t k = 0; k < kept; k++) span->options[k] = all[order[k]];
    span->count = (int)kept;
    return DGM_OK;
}

// A word without a translation of its own is copied.
static dgm_status copy_word(dgm_pb_decoder *d, dgm_pb_span *span, int i, dgm_error *err)
{
    dgm_pb_option *o = DGM_ARENA_ARRAY(&d->arena, dgm_pb_option, 1);
    uint32_t *id = DGM_ARENA_ARRAY(&d->arena, uint32_t, 1);
    if (!o || !id) return dgm_pb_full(err);
    *id = dgm_lm_word(d->m->lm, d->source[i]);
    *o = (dgm_pb_option){.begin = i,
                         .end = i + 1,
                         .count = 1,
                         .words = &d->source[i],
                         .lm_words = id,
                         .links = DGM_PHRASE_LINK(0, 0),
                         .unknown = true};
    for (int k = 0; d->m->oriented && k < DGM_PHRASE_ORIENTATIONS; k++) o->turn[k] = log(1.0 / 3);
    weigh(d, o);
    *span = (dgm_pb_span){o, 1};
    d->stats.unknown++;
    return DGM_OK;
}

static void future_costs(dgm_pb_decoder *d)
{
    size_t stride = (size_t)d->width + 1;
    d->tail[d->n] = 0;
    for (int i = d->n; i >= 0; i--) {
        double *row = d->future + (size_t)i * stride;
        if (i < d->n) d->tail[i] = DGM_PB_NEVER;
        row[0] = 0;
        for (int k = 1; k <= d->width; k++) row[k] = DGM_PB_NEVER;
        for (int l = 1; l <= d->longest && i + l <= d->n; l++) {
            const dgm_pb_span *s = &d->spans[i * d->longest + l - 1];
            if (s->count == 0) continue;
            double best = s->options[0].estimate;
            const double *rest = d->future + (size_t)(i + l) * stride;
            for (int k = l; k <= d->width && i + k <= d->n; k++)
                if (best + rest[k - l] > row[k]) row[k] = best + rest[k - l];
            if (best + d->tail[i + l] > d->tail[i]) d->tail[i] = best + d->tail[i + l];
        }
    }
}

dgm_status dgm_pb_collect(dgm_pb_decoder *d, dgm_error *err)
{
    const dgm_phrase_table *t = d->m->table;
    int n = d->n;
    d->longest = t->max_length > 1 ? t->max_length : 1;
    d->width = n < 64 ? n : 64;
    uint32_t *ids = DGM_ARENA_ARRAY(&d->arena, uint32_t, (size_t)n);
    d->spans = DGM_ARENA_ARRAY(&d->arena, dgm_pb_span, (size_t)n * (size_t)d->longest);
    d->future = DGM_ARENA_ARRAY(&d->arena, double, ((size_t)n + 1) * ((size_t)d->width + 1));
    d->tail = DGM_ARENA_ARRAY(&d->arena, double, (size_t)n + 1);
    if (!ids || !d->spans || !d->future || !d->tail) return dgm_pb_full(err);
    for (int i = 0; i < n; i++) ids[i] = dgm_phrase_table_word(t, 0, d->source[i]);
    for (int i = 0; i < n; i++)
        for (int l = 1; l <= d->longest; l++) {
            dgm_pb_span *span = &d->spans[i * d->longest + l - 1];
            *span = (dgm_pb_span){0};
            if (i + l > n || ids[i + l - 1] == DGM_TABLE_NO_WORD) {
                for (int k = l; k <= d->longest; k++)
                    d->spans[i * d->longest + k - 1] = (dgm_pb_span){0};
                break;
            }
            uint32_t first;
            uint64_t word_at;
            uint32_t count = dgm_phrase_table_find(t, ids + i, l, &first, &word_at);
            if (count) DGM_TRY(fill_span(d, span, first, count, word_at, i, i + l, err));
        }
    for (int i = 0; i < n; i++)
        if (d->spans[i * d->longest].count == 0)
            DGM_TRY(copy_word(d, &d->spans[i * d->longest], i, err));
    future_costs(d);
    return DGM_OK;
}
