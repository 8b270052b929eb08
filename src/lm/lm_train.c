// SPDX-License-Identifier: MIT
// Training of n-gram models; see lm_train.h. Everything is a sort, a pass or a merge of sorted
// streams, so that no step needs more memory than it is given:
//
//   text   every position gives one record of N words, the last one first, left padded with <s>
//   adjust one pass over them in that (suffix) order gives the adjusted counts of all orders
//          a(w1..wn) = times seen if n = N or w1 = <s>, else different words seen before it
//   A[n]   w1..wn, a, kept?                     in the order of w1..wn: contexts are neighbours
//   G[n]   context w1..wn, gamma, sum of a      a tape, in the same order
//   S[n]   wn..w1, (a - D(a)) / sum, gamma      in suffix order, meets the tape P[n - 1]
//   P[n]   wn..w1, p = u + gamma p(wn | w2..)   a tape, in suffix order
//   L[n]   w1..wn, p                            in the order of the ARPA file, meets G[n]
#include "lm/lm_train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/extsort.h"

enum { UNK = 0, BOS = 1, EOS = 2, N_MAX = DGM_LM_ORDER_MAX };

typedef struct group { // n-grams of the same suffix, while they pass by
    uint64_t raw, different;
} group;

struct dgm_lm_trainer {
    dgm_lm_params p;
    dgm_words words;
    uint32_t *line; // words of the current line
    size_t line_count, line_cap;
    dgm_extsort *text, *a[N_MAX + 1], *g[N_MAX + 1], *s, *tape, *tape_before, *l[N_MAX + 1];
    dgm_lm_counts counts[N_MAX + 1];
    bool unk_seen;
    uint64_t lines, spilled;
};

static dgm_status open_runs(const dgm_lm_trainer *t, dgm_extsort **r, int keys, int more,
                            size_t part, bool sorted, dgm_error *err)
{
    dgm_extsort_options o = {.keys = keys,
                             .width = keys + more,
                             .memory = t->p.memory / part,
                             .sorted = sorted,
                             .folder = t->p.folder};
    return dgm_extsort_open(r, &o, err);
}

static void close_runs(dgm_lm_trainer *t, dgm_extsort **r)
{
    if (*r) t->spilled += dgm_extsort_spilled(*r);
    dgm_extsort_close(r);
}

dgm_status dgm_lm_trainer_open(dgm_lm_trainer **out, const dgm_lm_params *p, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(p->order < 1 || p->order > N_MAX, err, DGM_ERR_ARGUMENT,
                "the order must be 1 to %d, not %d", N_MAX, p->order);
    DGM_FAIL_IF(p->prune[0] != 0, err, DGM_ERR_ARGUMENT,
                "the pruning threshold of single words must be 0");
    for (int n = 1; n < p->order; n++)
        DGM_FAIL_IF(p->prune[n] < p->prune[n - 1], err, DGM_ERR_ARGUMENT,
                    "a pruning threshold is smaller than that of the order below it");
    dgm_lm_trainer *t = dgm_calloc(1, sizeof *t);
    if (!t) return dgm_no_memory(err);
    t->p = *p;
    dgm_extsort_options o = {.keys = p->order,
                             .width = p->order + 2,
                             .memory = p->memory / 3,
                             .sum = true,
                             .folder = p->folder};
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    dgm_status st = dgm_extsort_open(&t->text, &o, err);
    for (uint32_t i = 0, id; st == DGM_OK && i < 3; i++)
        st = dgm_words_add(&t->words, dgm_text_of(special[i]), &id, err);
    if (st != DGM_OK) dgm_lm_trainer_close(&t);
    *out = t;
    return st;
}

void dgm_lm_trainer_close(dgm_lm_trainer **p)
{
    dgm_lm_trainer *t = *p;
    if (!t) return;
    dgm_words_free(&t->words);
    dgm_free(t->line);
    dgm_extsort_close(&t->text);
    dgm_extsort_close(&t->s);
    dgm_extsort_close(&t->tape);
    dgm_extsort_close(&t->tape_before);
    for (int n = 0; n <= N_MAX; n++) {
        dgm_extsort_close(&t->a[n]);
        dgm_extsort_close(&t->g[n]);
        dgm_extsort_close(&t->l[n]);
    }
    dgm_free(t);
    *p = NULL;
}

const dgm_lm_counts *dgm_lm_trainer_counts(const dgm_lm_trainer *t, int order)
{
    return &t->counts[order];
}

uint64_t dgm_lm_trainer_types(const dgm_lm_trainer *t)
{
    return t->words.count;
}

uint64_t dgm_lm_trainer_spilled(const dgm_lm_trainer *t)
{
    return t->spilled;
}

// ---- counting ---------------------------------------------------------------------------------

dgm_status dgm_lm_trainer_word(dgm_lm_trainer *t, dgm_text word, dgm_error *err)
{
    uint32_t id;
    DGM_TRY(dgm_words_add(&t->words, word, &id, err));
    DGM_FAIL_IF(id == BOS || id == EOS, err, DGM_ERR_TEXT,
                "the text has the word '%s', which marks the %s of a line",
                id == BOS ? "<s>" : "</s>", id == BOS ? "beginning" : "end");
    DGM_TRY(dgm_grow(&t->line, &t->line_cap, t->line_count + 2, sizeof *t->line, err));
    t->line[t->line_count++] = id;
    return DGM_OK;
}

dgm_status dgm_lm_trainer_line(dgm_lm_trainer *t, dgm_error *err)
{
    if (t->line_count == 0) return DGM_OK;
    t->line[t->line_count++] = EOS;
    uint32_t record[N_MAX + 2];
    dgm_extsort_put_u64(record + t->p.order, 1);
    dgm_status st = DGM_OK;
    for (size_t i = 0; st == DGM_OK && i < t->line_count; i++) {
        for (size_t k = 0; k < (size_t)t->p.order; k++) record[k] = k <= i ? t->line[i - k] : BOS;
        st = dgm_extsort_push(t->text, record, err);
    }
    t->line_count = 0;
    t->lines++;
    return st;
}

// An n-gram has passed completely; suffix holds its words, the last one first.
static dgm_status emit_count(dgm_lm_trainer *t, int n, const uint32_t *suffix, const group *g,
                             dgm_error *err)
{
    for (int k = 0; k < n - 1; k++)
        if (suffix[k] == BOS) return DGM_OK; // only padding differs
    bool plain = n == t->p.order || suffix[n - 1] == BOS;
    uint64_t adjusted = plain ? g->raw : g->different;
    bool keep = g->raw > t->p.prune[n - 1];
    dgm_lm_counts *c = &t->counts[n];
    c->seen++;
    c->kept += keep;
    if (adjusted <= 4) c->counts[adjusted - 1]++;
    if (n == 1 && suffix[0] == UNK) t->unk_seen = true;
    uint32_t record[N_MAX + 3];
    for (int k = 0; k < n; k++) record[k] = suffix[n - 1 - k];
    dgm_extsort_put_u64(record + n, adjusted);
    record[n + 2] = keep;
    return dgm_extsort_push(t->a[n], record, err);
}

static dgm_status adjust(dgm_lm_trainer *t, dgm_error *err)
{
    int order = t->p.order;
    for (int n = 1; n <= order; n++)
        DGM_TRY(open_runs(t, &t->a[n], n, 3, 3 * (size_t)order, false, err));
    DGM_TRY(dgm_extsort_rewind(t->text, err));
    uint32_t last[N_MAX] = {0};
    group groups[N_MAX + 1] = {{0, 0}};
    for (bool first = true;; first = false) {
        const uint32_t *record;
        DGM_TRY(dgm_extsort_next(t->text, &record, err));
        int same = 0;
        while (record && !first && same < order && record[same] == last[same]) same++;
        for (int n = same + 1; !first && n <= order; n++)
            DGM_TRY(emit_count(t, n, last, &groups[n], err));
        if (!record) break;
        uint64_t count = dgm_extsort_u64(record + order);
        for (int n = 1; n <= order; n++) {
            if (n > same) groups[n] = (group){0, 0};
            groups[n].raw += count;
            groups[n].different += n >= same; // a new word before it
        }
        memcpy(last, record, (size_t)order * sizeof *last);
    }
    if (!t->unk_seen) {
        uint32_t record[4] = {UNK, 0, 0, 1}; // no count, only its share of what is discounted
        DGM_TRY(dgm_extsort_push(t->a[1], record, err));
        t->counts[1].kept++;
    }
    close_runs(t, &t->text);
    return DGM_OK;
}

// ---- discounts --------------------------------------------------------------------------------

static dgm_status estimate_discounts(dgm_lm_trainer *t, int n, dgm_error *err)
{
    dgm_lm_counts *c = &t->counts[n];
    if (c->seen == 0) return DGM_OK;
    const uint64_t *k = c->counts;
    bool good = k[0] && k[1] && k[2];
    double y = good ? (double)k[0] / ((double)k[0] + 2 * (double)k[1]) : 0;
    for (int i = 1; good && i <= 3; i++) {
        c->discount[i] = i - (i + 1) * y * (double)k[i] / (double)k[i - 1];
        good = c->discount[i] > 0;
    }
    if (good) return DGM_OK;
    DGM_FAIL_IF(!t->p.fallback, err, DGM_ERR_TEXT,
                "the text is too small or too regular to estimate discounts of order %d (%llu, "
                "%llu, %llu, %llu n-grams with counts 1 to 4); a lower order or fixed discounts "
                "(--discount-fallback) may do",
                n, (unsigned long long)k[0], (unsigned long long)k[1], (unsigned long long)k[2],
                (unsigned long long)k[3]);
    for (int i = 1; i <= 3; i++) c->discount[i] = 0.5 * i;
    c->fell_back = true;
    return DGM_OK;
}

static double discount(const dgm_lm_counts *c, uint64_t adjusted)
{
    return adjusted == 0 ? 0 : c->discount[adjusted < 3 ? adjusted : 3];
}

// ---- probabilities ----------------------------------------------------------------------------

// The contexts of order n's n-grams: gamma and the sum of counts, onto the tape G[n - 1].
static dgm_status sum_contexts(dgm_lm_trainer *t, int n, dgm_error *err)
{
    DGM_TRY(open_runs(t, &t->g[n - 1], n - 1, 4, 12 * (size_t)t->p.order, true, err));
    DGM_TRY(dgm_extsort_rewind(t->a[n], err));
    uint32_t out[N_MAX + 4];
    double sum = 0, rest = 0;
    for (bool first = true;; first = false) {
        const uint32_t *record;
        DGM_TRY(dgm_extsort_next(t->a[n], &record, err));
        if (!first && (!record || dgm_extsort_compare(record, out, n - 1) != 0)) {
            dgm_extsort_put_f64(out + n - 1, rest / sum);
            dgm_extsort_put_f64(out + n + 1, sum);
            DGM_TRY(dgm_extsort_push(t->g[n - 1], out, err));
            sum = rest = 0;
        }
        if (!record) return DGM_OK;
        uint64_t adjusted = dgm_extsort_u64(record + n);
        sum += (double)adjusted;
        rest += record[n + 2] ? discount(&t->counts[n], adjusted) : (double)adjusted;
        memcpy(out, record, (size_t)(n - 1) * sizeof *out);
    }
}

// What the n-grams of order n have of their own, into S.
static dgm_status own_parts(dgm_lm_trainer *t, int n, dgm_error *err)
{
    DGM_TRY(open_runs(t, &t->s, n, 4, 6, false, err));
    DGM_TRY(dgm_extsort_rewind(t->a[n], err));
    DGM_TRY(dgm_extsort_rewind(t->g[n - 1], err));
    const uint32_t *record, *context = NULL;
    for (;;) {
        DGM_TRY(dgm_extsort_next(t->a[n], &record, err));
        if (!record) break;
        while (!context || dgm_extsort_compare(context, record, n - 1) != 0) {
            DGM_TRY(dgm_extsort_next(t->g[n - 1], &context, err));
            DGM_FAIL_IF(!context, err, DGM_ERR_IO, "a temporary file is not what was written");
        }
        if (!record[n + 2]) continue;
        uint64_t adjusted = dgm_extsort_u64(record + n);
        double gamma = dgm_extsort_f64(context + n - 1), sum = dgm_extsort_f64(context + n + 1);
        uint32_t out[N_MAX + 4];
        for (int k = 0; k < n; k++) out[k] = record[n - 1 - k];
        dgm_extsort_put_f64(out + n, ((double)adjusted - discount(&t->counts[n], adjusted)) / sum);
        dgm_extsort_put_f64(out + n + 2, gamma);
        DGM_TRY(dgm_extsort_push(t->s, out, err));
    }
    close_runs(t, &t->a[n]);
    return DGM_OK;
}

// Interpolates with the order below: S and the tape before become the tape and L[n].
static dgm_status interpolate(dgm_lm_trainer *t, int n, dgm_error *err)
{
    DGM_TRY(open_runs(t, &t->tape, n, 2, 24, true, err));
    DGM_TRY(open_runs(t, &t->l[n], n, 2, 6 * (size_t)t->p.order, false, err));
    DGM_TRY(dgm_extsort_rewind(t->s, err));
    if (n > 1) DGM_TRY(dgm_extsort_rewind(t->tape_before, err));
    double uniform = 1 / (double)(t->words.count - 1); // of all words but <s>
    const uint32_t *record, *lower = NULL;
    for (;;) {
        DGM_TRY(dgm_extsort_next(t->s, &record, err));
        if (!record) break;
        // Every suffix was seen and kept as often as the whole, so it is on the tape.
        while (n > 1 && (!lower || dgm_extsort_compare(lower, record, n - 1) != 0)) {
            DGM_TRY(dgm_extsort_next(t->tape_before, &lower, err));
            DGM_FAIL_IF(!lower, err, DGM_ERR_IO, "a temporary file is not what was written");
        }
        double below = n > 1 ? dgm_extsort_f64(lower + n - 1) : uniform;
        double p = dgm_extsort_f64(record + n) + dgm_extsort_f64(record + n + 2) * below;
        uint32_t out[N_MAX + 2], turned[N_MAX + 2];
        memcpy(out, record, (size_t)n * sizeof *out);
        for (int k = 0; k < n; k++) turned[k] = record[n - 1 - k];
        dgm_extsort_put_f64(out + n, p);
        dgm_extsort_put_f64(turned + n, p);
        DGM_TRY(dgm_extsort_push(t->tape, out, err));
        DGM_TRY(dgm_extsort_push(t->l[n], turned, err));
    }
    close_runs(t, &t->s);
    close_runs(t, &t->tape_before);
    t->tape_before = t->tape;
    t->tape = NULL;
    if (n == 1) {
        uint32_t bos[3] = {BOS, 0, 0};
        dgm_extsort_put_f64(bos + 1, 0);
        t->counts[1].kept++;
        DGM_TRY(dgm_extsort_push(t->l[1], bos, err));
    }
    return DGM_OK;
}

// ---- the ARPA file ----------------------------------------------------------------------------

int dgm_arpa_number(char *text, size_t size, float value)
{
    return snprintf(text, size, "%.9g", (double)value);
}

// One line "LOG10\tWORDS[\tBACKOFF]\n".
static void put_gram(dgm_writer *w, float prob, const dgm_words *words, const uint32_t *ids, int n,
                     const float *backoff)
{
    char number[32];
    dgm_write_bytes(w, number, (size_t)dgm_arpa_number(number, sizeof number, prob));
    for (int k = 0; k < n; k++) {
        dgm_text s = dgm_words_spell(words, ids[k]);
        dgm_write_u8(w, k ? ' ' : '\t');
        dgm_write_bytes(w, s.data, s.size);
    }
    if (backoff) {
        dgm_write_u8(w, '\t');
        dgm_write_bytes(w, number, (size_t)dgm_arpa_number(number, sizeof number, *backoff));
    }
    dgm_write_u8(w, '\n');
}

static float log_of(double p)
{
    return p > 1e-99 ? (float)log10(p) : -99.0f;
}

static dgm_status flush(dgm_writer *w, const dgm_lm_sink *sink, size_t above, dgm_error *err)
{
    if (w->failed) return dgm_no_memory(err);
    if (w->size <= above) return DGM_OK;
    dgm_status st = sink->put(sink->cookie, w->data, w->size, err);
    w->size = 0;
    return st;
}

static dgm_status write_order(dgm_lm_trainer *t, int n, dgm_writer *w, const dgm_lm_sink *sink,
                              dgm_error *err)
{
    bool top = n == t->p.order;
    const uint32_t *record, *context = NULL;
    DGM_TRY(dgm_extsort_rewind(t->l[n], err));
    if (!top) {
        DGM_TRY(dgm_extsort_rewind(t->g[n], err));
        DGM_TRY(dgm_extsort_next(t->g[n], &context, err));
    }
    dgm_write_format(w, "\n\\%d-grams:\n", n);
    for (;;) {
        DGM_TRY(dgm_extsort_next(t->l[n], &record, err));
        if (!record) break;
        while (context && dgm_extsort_compare(context, record, n) < 0)
            DGM_TRY(dgm_extsort_next(t->g[n], &context, err));
        float backoff = 0;
        if (context && dgm_extsort_compare(context, record, n) == 0)
            backoff = log_of(dgm_extsort_f64(context + n));
        put_gram(w, log_of(dgm_extsort_f64(record + n)), &t->words, record, n,
                 top ? NULL : &backoff);
        DGM_TRY(flush(w, sink, 1 << 16, err));
    }
    close_runs(t, &t->l[n]);
    close_runs(t, &t->g[n]);
    return DGM_OK;
}

static dgm_status write_arpa(dgm_lm_trainer *t, dgm_writer *w, const dgm_lm_sink *sink,
                             dgm_lm_tick tick, void *cookie, dgm_error *err)
{
    int order = t->p.order;
    dgm_write_text(w, "\\data\\\n");
    for (int n = 1; n <= order; n++)
        dgm_write_format(w, "ngram %d=%llu\n", n, (unsigned long long)t->counts[n].kept);
    for (int n = 1; n <= order; n++) {
        if (tick) DGM_TRY(tick(cookie, 0.7 + 0.3 * (n - 1) / order, err));
        DGM_TRY(write_order(t, n, w, sink, err));
    }
    dgm_write_text(w, "\n\\end\\\n");
    return flush(w, sink, 0, err);
}

dgm_status dgm_lm_trainer_write(dgm_lm_trainer *t, const dgm_lm_sink *sink, dgm_lm_tick tick,
                                void *cookie, dgm_error *err)
{
    DGM_FAIL_IF(t->lines == 0, err, DGM_ERR_TEXT, "the text has no words");
    if (tick) DGM_TRY(tick(cookie, 0, err));
    DGM_TRY(adjust(t, err));
    for (int n = 1; n <= t->p.order; n++) DGM_TRY(estimate_discounts(t, n, err));
    for (int n = 1; n <= t->p.order; n++) {
        if (tick) DGM_TRY(tick(cookie, 0.2 + 0.5 * (n - 1) / t->p.order, err));
        DGM_TRY(sum_contexts(t, n, err));
        DGM_TRY(own_parts(t, n, err));
        DGM_TRY(interpolate(t, n, err));
    }
    close_runs(t, &t->tape_before);
    dgm_writer w = {0};
    dgm_status st = write_arpa(t, &w, sink, tick, cookie, err);
    dgm_writer_free(&w);
    return st;
}
