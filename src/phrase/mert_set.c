// SPDX-License-Identifier: MIT
// Hypotheses and graphs that weights are tuned on; see mert.h and mert_private.h.
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "phrase/mert_private.h"

dgm_status dgm_mert_set_open(dgm_mert_set **out, size_t sentences, int features,
                             const dgm_metric *metric, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(features < 1 || features > DGM_MERT_FEATURES_MAX, err, DGM_ERR_ARGUMENT,
                "between 1 and %d features can be tuned, not %d", DGM_MERT_FEATURES_MAX, features);
    dgm_mert_set *s = dgm_calloc(1, sizeof *s);
    if (!s) return dgm_no_memory(err);
    pthread_mutex_init(&s->lock, NULL);
    s->offers = dgm_calloc(sentences + 1, sizeof *s->offers);
    s->sentences = sentences;
    s->features = features;
    s->width = dgm_metric_width(metric);
    s->metric = metric;
    dgm_status st = s->offers ? DGM_OK : dgm_no_memory(err);
    if (st != DGM_OK) dgm_mert_set_close(&s);
    *out = s;
    return st;
}

void dgm_mert_set_close(dgm_mert_set **out)
{
    dgm_mert_set *s = *out;
    if (!s) return;
    for (size_t i = 0; s->offers && i < s->sentences; i++) {
        dgm_mert_offer *h = &s->offers[i];
        dgm_free(h->feature);
        dgm_free(h->row);
        dgm_free(h->slot);
        dgm_free(h->edge);
        dgm_free(h->word);
        dgm_free(h->end);
        dgm_free(h->seen);
        dgm_words_free(&h->words);
        dgm_words_free(&h->texts);
    }
    dgm_free(s->offers);
    pthread_mutex_destroy(&s->lock);
    dgm_free(s);
    *out = NULL;
}

void dgm_mert_set_rate(dgm_mert_set *s, dgm_mert_rate rate, void *cookie)
{
    s->rate = rate;
    s->cookie = cookie;
}

uint64_t dgm_mert_set_count(const dgm_mert_set *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->sentences; i++)
        n += s->offers[i].end_count ? s->offers[i].edge_count : s->offers[i].count;
    return n;
}

// ---- lists ------------------------------------------------------------------------------------

static size_t slot_of(const dgm_mert_set *s, const dgm_mert_offer *h, const float *feature,
                      const int32_t *row)
{
    size_t f = (size_t)s->features * sizeof *feature, w = (size_t)s->width * sizeof *row;
    uint64_t v = dgm_hash_bytes(DGM_HASH_START, feature, f);
    size_t mask = h->slots - 1, i = (size_t)(v ^ v >> 29) & mask;
    for (; h->slot[i]; i = (i + 1) & mask) {
        size_t k = h->slot[i] - 1;
        if (memcmp(h->feature + k * (size_t)s->features, feature, f) == 0 &&
            memcmp(h->row + k * (size_t)s->width, row, w) == 0)
            break;
    }
    return i;
}

static dgm_status widen(const dgm_mert_set *s, dgm_mert_offer *h, dgm_error *err)
{
    if ((h->count + 1) * 2 <= h->slots) return DGM_OK;
    size_t slots = h->slots ? h->slots * 2 : 64;
    uint32_t *slot = dgm_calloc(slots, sizeof *slot);
    if (!slot) return dgm_no_memory(err);
    dgm_free(h->slot);
    h->slot = slot;
    h->slots = slots;
    for (size_t k = 0; k < h->count; k++)
        slot[slot_of(s, h, h->feature + k * (size_t)s->features, h->row + k * (size_t)s->width)] =
            (uint32_t)k + 1;
    return DGM_OK;
}

dgm_status dgm_mert_set_add(dgm_mert_set *s, size_t sentence, const double *features,
                            const int64_t *row, dgm_error *err)
{
    dgm_mert_offer *h = &s->offers[sentence];
    size_t f = (size_t)s->features, w = (size_t)s->width;
    DGM_FAIL_IF(h->end_count, err, DGM_ERR_ARGUMENT, "a sentence has a list or a graph, not both");
    DGM_TRY(widen(s, h, err));
    DGM_TRY(dgm_grow(&h->feature, &h->feature_cap, (h->count + 1) * f, sizeof *h->feature, err));
    DGM_TRY(dgm_grow(&h->row, &h->row_cap, (h->count + 1) * w, sizeof *h->row, err));
    float *feature = h->feature + h->count * f;
    int32_t *counts = h->row + h->count * w;
    for (size_t k = 0; k < f; k++) feature[k] = (float)features[k] + 0.0f; // no -0
    for (size_t k = 0; k < w; k++) counts[k] = (int32_t)row[k];
    size_t i = slot_of(s, h, feature, counts);
    if (!h->slot[i]) h->slot[i] = (uint32_t)++h->count;
    return DGM_OK;
}

// ---- graphs -----------------------------------------------------------------------------------

static dgm_status check_graph(const dgm_mert_arc *arcs, size_t count, int nodes, dgm_error *err)
{
    bool good = nodes > 1 && count > 0 && arcs[count - 1].to == nodes - 1;
    for (size_t i = 0; good && i < count; i++)
        good = arcs[i].from >= 0 && arcs[i].from < arcs[i].to && arcs[i].to < nodes &&
               (i == 0 || arcs[i].to >= arcs[i - 1].to);
    DGM_FAIL_IF(!good, err, DGM_ERR_ARGUMENT,
                "arcs must lead from lower to higher nodes, sorted by these, the last to the end");
    return DGM_OK;
}

static uint64_t identify(const dgm_mert_set *s, const dgm_mert_arc *arcs, size_t count)
{
    uint64_t v = DGM_HASH_START;
    for (size_t i = 0; i < count; i++) {
        int32_t ends[3] = {arcs[i].from, arcs[i].to, arcs[i].count};
        v = dgm_hash_bytes(v, ends, sizeof ends);
        for (int k = 0; k < arcs[i].count; k++)
            v = dgm_hash_bytes(v ^ 0x20, arcs[i].words[k].data, arcs[i].words[k].size);
        v = dgm_hash_bytes(v, arcs[i].features, (size_t)s->features * sizeof *arcs[i].features);
    }
    return v;
}

static dgm_status add_edge(dgm_mert_set *s, dgm_mert_offer *h, const dgm_mert_arc *a, int32_t base,
                           dgm_error *err)
{
    size_t f = (size_t)s->features, n = h->edge_count, words = (size_t)a->count;
    DGM_TRY(dgm_grow(&h->edge, &h->edge_cap, n + 1, sizeof *h->edge, err));
    DGM_TRY(dgm_grow(&h->feature, &h->feature_cap, (n + 1) * f, sizeof *h->feature, err));
    DGM_TRY(dgm_grow(&h->word, &h->word_cap, h->word_count + words, sizeof *h->word, err));
    h->edge[n] = (dgm_mert_edge){.from = a->from ? base + a->from : 0,
                                 .to = base + a->to,
                                 .word = (uint32_t)h->word_count,
                                 .count = (uint32_t)words};
    for (size_t k = 0; k < f; k++) h->feature[n * f + k] = (float)a->features[k];
    for (size_t k = 0; k < words; k++)
        DGM_TRY(dgm_words_add(&h->words, a->words[k], &h->word[h->word_count + k], err));
    h->word_count += words;
    h->edge_count++;
    return DGM_OK;
}

dgm_status dgm_mert_set_add_graph(dgm_mert_set *s, size_t sentence, const dgm_mert_arc *arcs,
                                  size_t count, int nodes, dgm_error *err)
{
    dgm_mert_offer *h = &s->offers[sentence];
    DGM_FAIL_IF(h->count && !h->end_count, err, DGM_ERR_ARGUMENT,
                "a sentence has a list or a graph, not both");
    DGM_FAIL_IF(!s->rate, err, DGM_ERR_ARGUMENT, "graphs need dgm_mert_set_rate");
    DGM_TRY(check_graph(arcs, count, nodes, err));
    uint64_t id = identify(s, arcs, count);
    for (size_t i = 0; i < h->end_count; i++)
        if (h->seen[i] == id) return DGM_OK;
    DGM_TRY(dgm_grow(&h->end, &h->end_cap, h->end_count + 1, sizeof *h->end, err));
    DGM_TRY(dgm_grow(&h->seen, &h->seen_cap, h->end_count + 1, sizeof *h->seen, err));
    int32_t base = h->nodes ? h->nodes - 1 : 0; // all but the start are new
    for (size_t i = 0; i < count; i++) DGM_TRY(add_edge(s, h, &arcs[i], base, err));
    h->nodes = base + nodes;
    h->end[h->end_count] = h->nodes - 1;
    h->seen[h->end_count++] = id;
    return DGM_OK;
}

static dgm_status rate_text(const dgm_mert_set *s, size_t sentence, const uint32_t *words,
                            size_t count, dgm_error *err)
{
    dgm_mert_offer *h = &s->offers[sentence];
    size_t width = (size_t)s->width;
    dgm_text *text = dgm_calloc(count + 1, sizeof *text);
    if (!text) return dgm_no_memory(err);
    int64_t row[DGM_METRIC_WIDTH_MAX];
    for (size_t i = 0; i < count; i++) text[i] = dgm_words_spell(&h->words, words[i]);
    dgm_status st = s->rate(s->cookie, sentence, text, (int)count, row, err);
    dgm_free(text);
    DGM_TRY(st);
    DGM_TRY(dgm_grow(&h->row, &h->row_cap, (h->count + 1) * width, sizeof *h->row, err));
    for (size_t k = 0; k < width; k++) h->row[h->count * width + k] = (int32_t)row[k];
    uint32_t number;
    dgm_text key = {(const char *)words, count * sizeof *words};
    DGM_TRY(dgm_words_add(&h->texts, key, &number, err));
    h->count++;
    return DGM_OK;
}

dgm_status dgm_mert_row_of(const dgm_mert_set *s, size_t sentence, const uint32_t *words,
                           size_t count, int32_t *row, dgm_error *err)
{
    dgm_mert_offer *h = &s->offers[sentence];
    size_t width = (size_t)s->width;
    dgm_text key = {(const char *)words, count * sizeof *words};
    pthread_mutex_t *lock = (pthread_mutex_t *)&s->lock; // texts are remembered, nothing changes
    dgm_status st = DGM_OK;
    pthread_mutex_lock(lock);
    int64_t at = dgm_words_find(&h->texts, key);
    if (at < 0) {
        at = (int64_t)h->count;
        st = rate_text(s, sentence, words, count, err);
    }
    if (st == DGM_OK) memcpy(row, h->row + (size_t)at * width, width * sizeof *row);
    pthread_mutex_unlock(lock);
    return st;
}
