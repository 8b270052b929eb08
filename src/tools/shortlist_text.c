// SPDX-License-Identifier: MIT
// Texts for the shortlist tool: the most frequent tokens of one, the threshold that gives its lines
// a wanted number of candidates, and what a model's list gives for it.
#include <string.h>

#include "base/lower_bound.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/textfile.h"
#include "tools/shortlist.h"
#include "vocabsel/vocabsel.h"

// ---- lines ------------------------------------------------------------------------------------

enum { LINE_TOKENS = 4096 }; // longest line that is measured

typedef struct line_reader {
    dgm_lines *in;
    const dgm_vocab *vocab;
    dgm_tokens tokens;
    int32_t framed[LINE_TOKENS];
    int count;
} line_reader;

static dgm_status reader_open(line_reader **r, const char *path, const dgm_vocab *vocab,
                              dgm_error *err)
{
    *r = dgm_calloc(1, sizeof **r);
    if (!*r) return dgm_no_memory(err);
    (*r)->vocab = vocab;
    return dgm_lines_open(&(*r)->in, path, err);
}

static void reader_close(line_reader **r)
{
    if (!*r) return;
    dgm_lines_close(&(*r)->in);
    dgm_tokens_free(&(*r)->tokens);
    dgm_free(*r);
    *r = NULL;
}

// The next line in tokens; *more is false at the end.
static dgm_status reader_next(line_reader *r, bool *more, dgm_error *err)
{
    dgm_text line;
    DGM_TRY(dgm_lines_next(r->in, &line.data, &line.size, more, err));
    if (!*more) return DGM_OK;
    dgm_status st = dgm_vocab_encode(r->vocab, line, &r->tokens, err);
    if (st == DGM_OK) return DGM_OK;
    dgm_lines_blame(r->in, err);
    return st;
}

// The line as the encoder reads it: prefix, text, end symbol.
static dgm_status reader_frame(line_reader *r, const dgm_vocab_spec *s, dgm_error *err)
{
    size_t n = s->prefix_count + r->tokens.count + 1;
    DGM_FAIL_IF(n > LINE_TOKENS, err, DGM_ERR_TEXT, "%s:%llu: line is longer than %d tokens",
                dgm_lines_name(r->in), (unsigned long long)dgm_lines_number(r->in), LINE_TOKENS);
    n = 0;
    for (size_t i = 0; i < s->prefix_count; i++) r->framed[n++] = s->prefix[i];
    for (size_t i = 0; i < r->tokens.count; i++) r->framed[n++] = r->tokens.ids[i];
    if (s->append_eos && s->eos >= 0) r->framed[n++] = s->eos;
    r->count = (int)n;
    return DGM_OK;
}

static int more_frequent(const void *context, uint32_t a, uint32_t b)
{
    const uint64_t *count = context;
    if (count[a] != count[b]) return count[a] > count[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static dgm_status count_tokens(const dgm_shortlist_work *w, uint64_t *counts, dgm_error *err)
{
    line_reader *r = NULL;
    dgm_status st = reader_open(&r, w->o->frequent_text, dgm_shortlist_target(w), err);
    for (bool more = true; st == DGM_OK && more;) {
        st = reader_next(r, &more, err);
        for (size_t i = 0; st == DGM_OK && more && i < r->tokens.count; i++)
            counts[r->tokens.ids[i]]++;
    }
    reader_close(&r);
    return st;
}

dgm_status dgm_shortlist_frequent(const dgm_shortlist_work *w, int32_t *frequent, int *count,
                                  dgm_error *err)
{
    size_t size = (size_t)w->spec[1].size;
    uint64_t *counts = dgm_calloc(size, sizeof *counts);
    uint32_t *order = dgm_malloc(size * sizeof *order);
    dgm_status st = counts && order ? count_tokens(w, counts, err) : dgm_no_memory(err);
    if (st == DGM_OK) {
        dgm_sort_indices(order, size, more_frequent, counts);
        for (size_t i = 0; i < size && *count < w->o->frequent && counts[order[i]]; i++)
            if (!dgm_vocab_is_control(dgm_shortlist_target(w), (int32_t)order[i]))
                frequent[(*count)++] = (int32_t)order[i];
    }
    dgm_free(counts);
    dgm_free(order);
    return st;
}

// ---- continuations ----------------------------------------------------------------------------

static dgm_status count_pairs(const dgm_shortlist_work *w, dgm_link_counts *counts, uint64_t *first,
                              dgm_error *err)
{
    line_reader *r = NULL;
    const char *path = w->o->target ? w->o->target : w->o->frequent_text;
    dgm_status st = reader_open(&r, path, dgm_shortlist_target(w), err);
    for (bool more = true; st == DGM_OK && more;) {
        st = reader_next(r, &more, err);
        for (size_t i = 1; st == DGM_OK && more && i < r->tokens.count; i++) {
            const int32_t *pair = r->tokens.ids + i - 1;
            first[pair[0]]++;
            st = dgm_link_counts_add(counts, (uint32_t)pair[0], (uint32_t)pair[1], err);
        }
    }
    reader_close(&r);
    return st;
}

// The most probable continuations of one token, ascending. What was seen once is chance.
static int best_next(const dgm_shortlist_work *w, const dgm_lexicon *pairs, const uint64_t *first,
                     int token, const bool *listed, int32_t *out)
{
    int n = 0;
    for (uint64_t k = pairs->at[token]; k < pairs->at[token + 1] && n < DGM_SHORTLIST_NEXT_MAX;
         k++) {
        const dgm_lexicon_entry *e = &pairs->entry[k];
        const double prob = (double)e->prob;
        if (prob < w->o->next || prob * (double)first[token] < 1.5) break;
        if (e->target == pairs->targets || listed[e->target]) continue;
        n = dgm_insert_id(out, n, (int32_t)e->target);
    }
    return n;
}

static dgm_status fill_next(const dgm_shortlist_work *w, const dgm_lexicon *pairs,
                            const uint64_t *first, dgm_error *err)
{
    dgm_shortlist *l = w->list;
    int32_t out[DGM_SHORTLIST_NEXT_MAX];
    bool *listed = dgm_calloc((size_t)l->targets, sizeof *listed);
    if (!listed) return dgm_no_memory(err);
    for (int i = 0; i < l->frequent_count; i++) listed[l->frequent[i]] = true;
    for (int i = 0; i < l->targets; i++)
        if (dgm_vocab_is_control(dgm_shortlist_target(w), i)) listed[i] = true;
    uint64_t entries = 0;
    for (int y = 0; y < l->targets; y++)
        entries += (uint64_t)best_next(w, pairs, first, y, listed, out);
    dgm_status st = dgm_shortlist_open_next(l, entries, err);
    for (int y = 0; st == DGM_OK && y < l->targets; y++)
        l->next_at[y + 1] = l->next_at[y] + (uint64_t)best_next(w, pairs, first, y, listed,
                                                                l->next_ids + l->next_at[y]);
    dgm_free(listed);
    return st;
}

dgm_status dgm_shortlist_next(const dgm_shortlist_work *w, dgm_error *err)
{
    const uint32_t size = (uint32_t)w->spec[1].size;
    dgm_link_counts counts = {.sources = size, .targets = size};
    dgm_lexicon *pairs = NULL;
    uint64_t *first = dgm_calloc(size, sizeof *first);
    dgm_status st = first ? count_pairs(w, &counts, first, err) : dgm_no_memory(err);
    if (st == DGM_OK) st = dgm_lexicon_count(&pairs, &counts, false, err);
    if (st == DGM_OK) st = fill_next(w, pairs, first, err);
    dgm_lexicon_close(&pairs);
    dgm_link_counts_free(&counts);
    dgm_free(first);
    return st;
}

// ---- how many candidates ----------------------------------------------------------------------

// Candidates of all lines by the threshold that lets them in: a token by the largest of its
// probabilities, in buckets of float bits, which order as the numbers do.
enum { BUCKET_SHIFT = 14, BUCKETS = 1 << 17 };

typedef struct tuner {
    float *best;       // [targets] of the line; 2: a candidate whatever the threshold
    bool *never;       // [targets] no candidate whatever the line (vocabsel/lexical.c)
    int32_t *touched;  // [targets]
    uint64_t *buckets; // [BUCKETS]
    uint64_t lines, always;
} tuner;

static void offer(tuner *x, int *n, int32_t id, float prob)
{
    if (x->never[id]) return;
    if (x->best[id] == 0) x->touched[(*n)++] = id;
    if (prob > x->best[id]) x->best[id] = prob;
}

static void tune_line(const dgm_shortlist_work *w, tuner *x, const line_reader *r,
                      const int32_t *frequent, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) offer(x, &n, frequent[i], 2);
    const int end = dgm_modelfile_end(&w->spec[1]);
    if (end >= 0) offer(x, &n, end, 2);
    if (w->spec[1].unk >= 0) offer(x, &n, w->spec[1].unk, 2);
    for (int i = 0; i < r->count; i++) {
        uint64_t kept[DGM_SHORTLIST_BEST_MAX];
        if (w->spec[1].shared) offer(x, &n, r->framed[i], 2);
        int entries = dgm_shortlist_best(w, w->row_of[r->framed[i]], kept);
        for (int k = 0; k < entries; k++) {
            const dgm_lexicon_entry *e = &w->lex->entry[kept[k]];
            if (e->prob > 0) offer(x, &n, w->target_id[e->target], e->prob);
        }
    }
    x->lines++;
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        float *best = &x->best[x->touched[i]];
        memcpy(&bits, best, sizeof bits);
        if (*best > 1)
            x->always++;
        else
            x->buckets[bits >> BUCKET_SHIFT]++;
        *best = 0;
    }
}

// What ends a sentence is always a candidate.
static void mark_never(tuner *x, const dgm_vocab_spec *target)
{
    for (size_t i = 0; i < target->never_count; i++)
        x->never[target->never[i]] = target->never[i] != dgm_modelfile_end(target);
}

// The smallest threshold whose candidates are still within the number that was asked for.
static void choose_threshold(dgm_shortlist_work *w, const tuner *x)
{
    double room = (double)w->o->candidates * (double)x->lines - (double)x->always;
    uint32_t b = BUCKETS;
    while (b > 0 && room >= (double)x->buckets[b - 1]) room -= (double)x->buckets[--b];
    const uint32_t bits = b << BUCKET_SHIFT;
    float threshold = 1;
    if (b < BUCKETS) memcpy(&threshold, &bits, sizeof threshold);
    w->threshold = threshold < 1 ? (double)threshold : 1;
}

dgm_status dgm_shortlist_tune(dgm_shortlist_work *w, const int32_t *frequent, int count,
                              dgm_error *err)
{
    size_t size = (size_t)w->spec[1].size;
    tuner x = {.best = dgm_calloc(size, sizeof *x.best),
               .never = dgm_calloc(size, sizeof *x.never),
               .touched = dgm_malloc(size * sizeof *x.touched),
               .buckets = dgm_calloc(BUCKETS, sizeof *x.buckets)};
    line_reader *r = NULL;
    const bool room = x.best && x.never && x.touched && x.buckets;
    dgm_status st = room ? DGM_OK : dgm_no_memory(err);
    if (room) mark_never(&x, &w->spec[1]);
    if (st == DGM_OK) st = reader_open(&r, w->o->tune, w->vocab[0], err);
    w->threshold = 0;
    for (bool more = true; st == DGM_OK && more;) {
        st = reader_next(r, &more, err);
        if (st == DGM_OK && more) st = reader_frame(r, &w->spec[0], err);
        if (st == DGM_OK && more) tune_line(w, &x, r, frequent, count);
    }
    if (st == DGM_OK && x.lines == 0)
        st = dgm_fail(err, DGM_ERR_TEXT, "'%s' has no lines", w->o->tune);
    if (st == DGM_OK) choose_threshold(w, &x);
    reader_close(&r);
    dgm_free(x.best);
    dgm_free(x.never);
    dgm_free(x.touched);
    dgm_free(x.buckets);
    return st;
}

// ---- measuring --------------------------------------------------------------------------------

typedef struct gauge {
    dgm_shortlist_work w;
    dgm_vocabsel select;
    line_reader *source, *target; // target NULL: no recall
    uint64_t candidates, more;
    dgm_shortlist_measure m;
} gauge;

static dgm_status gauge_line(gauge *x, dgm_error *err)
{
    const line_reader *r = x->source;
    DGM_TRY(reader_frame(x->source, &x->w.spec[0], err));
    const dgm_vocabsel_sentence words = {.source = r->framed, .source_count = r->count};
    DGM_TRY(x->select.ops->admit(&x->select, 0, &words, err));
    const dgm_candidates *c = x->select.ops->select(&x->select, 0, 0, (dgm_mat){0});
    x->m.lines++;
    x->m.source_tokens += r->tokens.count;
    x->candidates += (uint64_t)c->count;
    if ((uint64_t)c->count > x->m.most) x->m.most = (uint64_t)c->count;
    if (x->target) {
        const dgm_tokens *t = &x->target->tokens;
        uint64_t found = 0;
        for (size_t i = 0; i < t->count; i++) {
            const dgm_candidates *more =
                x->select.ops->more(&x->select, 0, 0, i ? t->ids[i - 1] : -1);
            found += dgm_holds_id(c->ids, c->count, t->ids[i]) ||
                     (more && dgm_holds_id(more->ids, more->count, t->ids[i]));
            x->more += more ? (uint64_t)more->count : 0;
        }
        x->m.target_tokens += t->count;
        x->m.recall += (double)found;
        x->m.whole += found == t->count;
    }
    x->select.ops->leave(&x->select, 0);
    return DGM_OK;
}

static dgm_status gauge_files(gauge *x, dgm_error *err)
{
    for (;;) {
        bool more = false, other = false;
        DGM_TRY(reader_next(x->source, &more, err));
        if (x->target) {
            DGM_TRY(reader_next(x->target, &other, err));
            DGM_FAIL_IF(more != other, err, DGM_ERR_TEXT, "'%s' and '%s' differ in length",
                        dgm_lines_name(x->source->in), dgm_lines_name(x->target->in));
        }
        if (!more) return DGM_OK;
        DGM_TRY(gauge_line(x, err));
    }
}

dgm_status dgm_shortlist_test(const char *model, const char *source, const char *target,
                              dgm_shortlist_measure *measure, dgm_error *err)
{
    DGM_TRY(dgm_sized_room(measure, "dgm_shortlist_measure", err));
    gauge *x = dgm_calloc(1, sizeof *x);
    if (!x) return dgm_no_memory(err);
    dgm_status st = dgm_shortlist_work_open(&x->w, model, err);
    if (st == DGM_OK) {
        const dgm_vocabsel_limits limits = {.sentences = 1, .max_source = LINE_TOKENS, .rows = 1};
        st = dgm_vocabsel_lexical_open(&x->select, x->w.file, &limits, err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s'", model);
    }
    if (st == DGM_OK) st = reader_open(&x->source, source, x->w.vocab[0], err);
    if (st == DGM_OK && target)
        st = reader_open(&x->target, target, dgm_shortlist_target(&x->w), err);
    if (st == DGM_OK) st = gauge_files(x, err);
    if (st == DGM_OK) {
        if (x->m.lines) x->m.mean = (double)x->candidates / (double)x->m.lines;
        if (x->m.target_tokens) {
            x->m.recall /= (double)x->m.target_tokens;
            x->m.more = (double)x->more / (double)x->m.target_tokens;
        }
        dgm_sized_fill(measure, &x->m, sizeof x->m);
    }
    reader_close(&x->source);
    reader_close(&x->target);
    if (x->select.ops) x->select.ops->close(&x->select);
    dgm_shortlist_work_close(&x->w);
    dgm_free(x);
    return st;
}
