// SPDX-License-Identifier: MIT
// `dragoman lm` behind its command line: training from files, conversion, scores of lines. Words
// stand between blanks, or are the target subwords of a model file; the model itself is lm/lm.h.
#include <math.h>
#include <string.h>

#include "dragoman/tools.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "tools/progress.h"
#include "tools/splitter.h"
#include "lm/lm.h"
#include "lm/lm_train.h"

_Static_assert((int)DGM_NGRAM_MAX == DGM_LM_ORDER_MAX, "the public order is the model's");

#define SHARE_READ 0.4 // of the progress bar

// ---- training ---------------------------------------------------------------------------------

void dgm_ngram_init(dgm_ngram_options *out, size_t size)
{
    dgm_ngram_options own, *const o = &own;
    *o = (dgm_ngram_options){.order = 5, .memory = (uint64_t)1 << 30};
    dgm_sized_give(out, size, &own, sizeof own);
}

typedef struct training {
    const dgm_ngram_options *o;
    dgm_ngram_report report;
    dgm_splitter split;
    dgm_lm_trainer *trainer;
    dgm_textout *out;
} training;

static dgm_status take_word(void *cookie, dgm_text word, dgm_error *err)
{
    training *t = cookie;
    t->report.tokens++;
    return dgm_lm_trainer_word(t->trainer, word, err);
}

static dgm_status put_arpa(void *cookie, const void *data, size_t size, dgm_error *err)
{
    training *t = cookie;
    if (t->out)
        dgm_textout_write(t->out, data, size);
    else if (t->o->write && t->o->write(t->o->write_cookie, data, size) != 0)
        return dgm_fail(err, DGM_ERR_CANCELLED, "stopped on request");
    return DGM_OK;
}

static dgm_status tick(void *cookie, double share, dgm_error *err)
{
    training *t = cookie;
    return dgm_progress_tick(&t->o->progress, "estimating", SHARE_READ + (1 - SHARE_READ) * share,
                             err);
}

static dgm_status read_text(training *t, const char *path, double done, double share,
                            dgm_error *err)
{
    dgm_lines *in = NULL;
    DGM_TRY(dgm_lines_open(&in, path, err));
    dgm_status st = DGM_OK;
    for (bool more = true; st == DGM_OK;) {
        const char *line;
        size_t size;
        st = dgm_lines_next(in, &line, &size, &more, err);
        if (st != DGM_OK || !more) break;
        uint64_t before = t->report.tokens;
        st = dgm_wording_split(&t->split.wording, (dgm_text){line, size}, take_word, t, err);
        if (st == DGM_OK) st = dgm_lm_trainer_line(t->trainer, err);
        if (st == DGM_ERR_TEXT) dgm_lines_blame(in, err);
        t->report.empty += t->report.tokens == before;
        if (st == DGM_OK && (++t->report.lines & 1023) == 0)
            st = dgm_progress_tick(&t->o->progress, "counting",
                                   SHARE_READ * (done + share * dgm_lines_share(in)), err);
    }
    dgm_lines_close(&in);
    return st;
}

static dgm_status train(training *t, const char *const *texts, size_t count, const char *output,
                        dgm_error *err)
{
    const dgm_ngram_options *o = t->o;
    dgm_lm_params p = {.order = o->order,
                       .fallback = o->discount_fallback != 0,
                       .memory = (size_t)o->memory,
                       .folder = o->folder};
    memcpy(p.prune, o->prune, sizeof p.prune);
    DGM_TRY(dgm_textout_probe(output, err));
    DGM_TRY(dgm_splitter_open(&t->split, o->subwords, DGM_TARGET, err));
    DGM_TRY(dgm_lm_trainer_open(&t->trainer, &p, err));
    for (size_t i = 0; i < count; i++)
        DGM_TRY(read_text(t, texts[i], (double)i / (double)count, 1 / (double)count, err));
    t->report.types = dgm_lm_trainer_types(t->trainer);
    if (output) DGM_TRY(dgm_textout_open(&t->out, output, err));
    dgm_lm_sink sink = {put_arpa, t};
    DGM_TRY(dgm_lm_trainer_write(t->trainer, &sink, tick, t, err));
    if (output) DGM_TRY(dgm_textout_commit(&t->out, err));
    for (int n = 1; n <= o->order; n++) {
        const dgm_lm_counts *c = dgm_lm_trainer_counts(t->trainer, n);
        t->report.seen[n] = c->seen;
        t->report.kept[n] = c->kept;
        t->report.fell_back[n] = c->fell_back;
        memcpy(t->report.discount[n], c->discount, sizeof c->discount);
    }
    t->report.spilled = dgm_lm_trainer_spilled(t->trainer);
    return dgm_progress_tick(&o->progress, "done", 1, err);
}

dgm_status dgm_ngram_train(const char *const *texts, size_t count, const char *output,
                           const dgm_ngram_options *options, dgm_ngram_report *report,
                           dgm_error *err)
{
    dgm_ngram_options own;
    dgm_ngram_default(&own);
    DGM_TRY(
        dgm_sized_take(&own, sizeof own, options, "dgm_ngram_options", "dgm_ngram_default", err));
    DGM_TRY(dgm_sized_room(report, "dgm_ngram_report", err));
    training t = {.o = &own};
    DGM_FAIL_IF(count == 0, err, DGM_ERR_ARGUMENT, "no text to count");
    dgm_status st = train(&t, texts, count, output, err);
    if (st == DGM_OK) dgm_sized_fill(report, &t.report, sizeof t.report);
    dgm_textout_discard(&t.out);
    dgm_lm_trainer_close(&t.trainer);
    dgm_splitter_close(&t.split);
    return st;
}

// ---- files ------------------------------------------------------------------------------------

static bool ends(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

dgm_status dgm_ngram_convert(const char *input, const char *output, int bits, dgm_error *err)
{
    dgm_lm *lm = NULL;
    bool arpa = ends(output, ".arpa") || ends(output, ".gz");
    DGM_TRY(dgm_textout_probe(output, err));
    dgm_status st = bits ? dgm_lm_read_arpa(&lm, input, bits, err) : dgm_lm_open(&lm, input, err);
    if (bits && st == DGM_ERR_FORMAT && dgm_lm_open(&lm, input, NULL) == DGM_OK) {
        dgm_lm_close(&lm);
        dgm_fail(err, st, "%s: a compact model is not rounded again, only ARPA text is", input);
    }
    DGM_TRY(st);
    st = arpa ? dgm_lm_write_arpa(lm, output, err) : dgm_lm_save(lm, output, err);
    dgm_lm_close(&lm);
    return st;
}

struct dgm_ngram {
    dgm_lm *lm;
    dgm_splitter split;
};

dgm_status dgm_ngram_open(dgm_ngram **out, const char *path, const char *subwords, dgm_error *err)
{
    *out = NULL;
    dgm_ngram *m = dgm_calloc(1, sizeof *m);
    if (!m) return dgm_no_memory(err);
    dgm_status st = dgm_splitter_open(&m->split, subwords, DGM_TARGET, err);
    if (st == DGM_OK) st = dgm_lm_open(&m->lm, path, err);
    if (st != DGM_OK) dgm_ngram_close(&m);
    *out = m;
    return st;
}

void dgm_ngram_close(dgm_ngram **p)
{
    dgm_ngram *m = *p;
    if (!m) return;
    dgm_lm_close(&m->lm);
    dgm_splitter_close(&m->split);
    dgm_free(m);
    *p = NULL;
}

int dgm_ngram_order(const dgm_ngram *m)
{
    return m->lm->order;
}

double dgm_ngram_check(const dgm_ngram *m, uint64_t contexts, uint64_t seed, double *mean)
{
    return dgm_lm_check(m->lm, contexts, seed, mean);
}

// ---- scores -----------------------------------------------------------------------------------

typedef struct scoring {
    const dgm_lm *lm;
    dgm_lm_state state;
    dgm_ngram_score score; // of the line
    int (*each)(void *cookie, const dgm_ngram_word *word);
    void *cookie;
} scoring;

static dgm_status score_id(scoring *s, uint32_t id, dgm_text word, dgm_error *err)
{
    dgm_ngram_word w = {.size = sizeof w, .word = {word.data, word.size}, .unknown = id == s->lm->unk};
    w.log10 = dgm_lm_step(s->lm, &s->state, id, &s->state, &w.matched);
    s->score.tokens++;
    s->score.log10 += w.log10;
    if (w.unknown) {
        s->score.unknown++;
        s->score.log10_unknown += w.log10;
    }
    DGM_FAIL_IF(s->each && s->each(s->cookie, &w) != 0, err, DGM_ERR_CANCELLED,
                "stopped on request");
    return DGM_OK;
}

static dgm_status score_word(void *cookie, dgm_text word, dgm_error *err)
{
    scoring *s = cookie;
    return score_id(s, dgm_lm_word(s->lm, word), word, err);
}

dgm_status dgm_ngram_line(const dgm_ngram *m, dgm_line line, dgm_ngram_score *score,
                          int (*each)(void *cookie, const dgm_ngram_word *word), void *cookie,
                          dgm_error *err)
{
    dgm_ngram_score sum = {0};
    DGM_TRY(dgm_sized_take(&sum, sizeof sum, score, "dgm_ngram_score", NULL, err));
    scoring s = {.lm = m->lm, .each = each, .cookie = cookie};
    dgm_lm_begin(m->lm, &s.state);
    DGM_TRY(dgm_wording_split(&m->split.wording, (dgm_text){line.data, line.size}, score_word, &s,
                              err));
    sum.lines++;
    if (s.score.tokens == 0)
        sum.empty++;
    else
        DGM_TRY(score_id(&s, m->lm->eos, dgm_text_of("</s>"), err));
    sum.tokens += s.score.tokens;
    sum.unknown += s.score.unknown;
    sum.log10 += s.score.log10;
    sum.log10_unknown += s.score.log10_unknown;
    dgm_sized_fill(score, &sum, sizeof sum);
    return DGM_OK;
}

double dgm_ngram_perplexity(const dgm_ngram_score *score, int known)
{
    dgm_ngram_score s = {0};
    if (dgm_sized_take(&s, sizeof s, score, "dgm_ngram_score", NULL, NULL) != DGM_OK) return 0;
    double sum = s.log10 - (known ? s.log10_unknown : 0);
    uint64_t tokens = s.tokens - (known ? s.unknown : 0);
    return tokens ? pow(10, -sum / (double)tokens) : 0;
}
