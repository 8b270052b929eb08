// SPDX-License-Identifier: MIT
// Reading and aligning two files; see align_job.h.
//
// Lines are read in batches. Splitting at spaces is done while they are added; subwords are
// encoded by the pool, a few hundred lines an item, and added in order afterwards.
#include "tools/align_job.h"

#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "engine/engine_private.h"
#include "format/modelfile.h"
#include "tools/progress.h"

enum { BATCH = 8192, ITEM = 256, ITEMS = BATCH / ITEM };

// Shares of the progress bar: reading, then the two directions, then the output.
#define SHARE_READ 0.15
#define SHARE_TRAIN 0.4

void dgm_align_init(dgm_align_options *out, size_t size)
{
    dgm_align_options own, *const o = &own;
    dgm_align_params p;
    dgm_align_params_default(&p);
    *o = (dgm_align_options){.model = p.model,
                             .iterations = 5,
                             .max_length = 200,
                             .symmetrize = "grow-diag-final-and",
                             .p0 = p.p0,
                             .alpha = p.alpha,
                             .tension = p.tension};
    dgm_sized_give(out, size, &own, sizeof own);
}

// ---- reading ----------------------------------------------------------------------------------

typedef struct line_batch {
    dgm_writer bytes[2];  // lines behind each other
    size_t end[2][BATCH]; // where line i ends
    int count;
    dgm_tokens tokens[2][ITEMS]; // of an item's lines, behind each other; subwords only
    dgm_tokens one[2][ITEMS];    // of one line
    size_t token_end[2][BATCH];  // within the item
    size_t caps[2][ITEMS];
    dgm_status status[ITEMS];
    dgm_error error[ITEMS];
    const dgm_vocab *vocab[2];
} line_batch;

static dgm_text batch_line(const line_batch *x, int side, int i)
{
    size_t begin = i ? x->end[side][i - 1] : 0;
    const char *data = x->bytes[side].data ? (const char *)x->bytes[side].data : "";
    return (dgm_text){data + begin, x->end[side][i] - begin};
}

// Encodes the lines of one item on both sides.
static void encode_item(void *arg, int worker, int item)
{
    line_batch *x = arg;
    (void)worker;
    x->status[item] = DGM_OK;
    for (int side = 0; side < 2; side++) {
        dgm_tokens *all = &x->tokens[side][item], *one = &x->one[side][item];
        all->count = 0;
        for (int i = item * ITEM; i < (item + 1) * ITEM && i < x->count; i++) {
            dgm_status st =
                dgm_vocab_encode(x->vocab[side], batch_line(x, side, i), one, &x->error[item]);
            if (st == DGM_OK)
                st = dgm_grow(&all->ids, &x->caps[side][item], all->count + one->count,
                              sizeof *all->ids, &x->error[item]);
            if (st != DGM_OK) {
                x->status[item] = st;
                return;
            }
            if (one->count) memcpy(all->ids + all->count, one->ids, one->count * sizeof *one->ids);
            all->count += one->count;
            x->token_end[side][i] = all->count;
        }
    }
}

static dgm_status add_batch(dgm_align_job *job, line_batch *x, dgm_error *err)
{
    if (!x->vocab[0]) {
        for (int i = 0; i < x->count; i++)
            DGM_TRY(dgm_bitext_add_words(job->b, batch_line(x, 0, i), batch_line(x, 1, i), err));
        return DGM_OK;
    }
    dgm_pool_run(job->pool, encode_item, x, (x->count + ITEM - 1) / ITEM);
    for (int i = 0; i < x->count; i++) {
        int item = i / ITEM;
        if (x->status[item] != DGM_OK)
            return dgm_fail(err, x->status[item], "%s", x->error[item].text);
        const int32_t *ids[2];
        size_t n[2];
        for (int side = 0; side < 2; side++) {
            size_t begin = i % ITEM ? x->token_end[side][i - 1] : 0;
            ids[side] = x->tokens[side][item].ids + begin;
            n[side] = x->token_end[side][i] - begin;
        }
        DGM_TRY(dgm_bitext_add_ids(job->b, ids[0], n[0], ids[1], n[1], err));
    }
    return DGM_OK;
}

// The next line of one file, checked. *more is false at the end.
static dgm_status take_line(dgm_lines *in, line_batch *x, int side, bool *more, dgm_error *err)
{
    const char *line;
    size_t size;
    DGM_TRY(dgm_lines_next(in, &line, &size, more, err));
    if (!*more) return DGM_OK;
    size_t bad = dgm_utf8_first_bad((dgm_text){line, size});
    DGM_FAIL_IF(bad < size, err, DGM_ERR_TEXT, "%s:%llu: invalid UTF-8 at byte %zu",
                dgm_lines_name(in), (unsigned long long)dgm_lines_number(in), bad + 1);
    dgm_write_bytes(&x->bytes[side], line, size);
    if (x->bytes[side].failed) return dgm_no_memory(err);
    x->end[side][x->count] = x->bytes[side].size;
    return DGM_OK;
}

static dgm_status read_pairs(dgm_align_job *job, dgm_lines *in[2], line_batch *x, dgm_error *err)
{
    for (bool more = true; more;) {
        x->count = 0;
        x->bytes[0].size = x->bytes[1].size = 0;
        while (x->count < BATCH) {
            bool other = false;
            DGM_TRY(take_line(in[0], x, 0, &more, err));
            DGM_TRY(take_line(in[1], x, 1, &other, err));
            DGM_FAIL_IF(more != other, err, DGM_ERR_TEXT, "'%s' ends after line %llu, '%s' goes on",
                        dgm_lines_name(in[more]), (unsigned long long)dgm_lines_number(in[more]),
                        dgm_lines_name(in[!more]));
            if (!more) break;
            x->count++;
        }
        DGM_TRY(add_batch(job, x, err));
        DGM_TRY(dgm_progress_tick(&job->o.progress, "reading", SHARE_READ * dgm_lines_share(in[0]),
                                  err));
    }
    return DGM_OK;
}

static dgm_status read_text(dgm_align_job *job, const char *source, const char *target,
                            dgm_error *err)
{
    dgm_lines *in[2] = {NULL, NULL};
    line_batch *x = NULL;
    dgm_status st = dgm_lines_open(&in[0], source, err);
    if (st == DGM_OK) st = dgm_lines_open(&in[1], target, err);
    if (st == DGM_OK) st = (x = dgm_calloc(1, sizeof *x)) ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        x->vocab[0] = job->vocab[0];
        x->vocab[1] = job->vocab[1] ? job->vocab[1] : job->vocab[0];
        st = read_pairs(job, in, x, err);
    }
    if (x) {
        for (int side = 0; side < 2; side++) {
            dgm_writer_free(&x->bytes[side]);
            for (int i = 0; i < ITEMS; i++) {
                dgm_free(x->tokens[side][i].ids);
                dgm_tokens_free(&x->one[side][i]);
            }
        }
        dgm_free(x);
    }
    dgm_lines_close(&in[0]);
    dgm_lines_close(&in[1]);
    return st;
}

// ---- the job ----------------------------------------------------------------------------------

static dgm_status check_options(dgm_align_job *job, const dgm_align_options *o, dgm_error *err)
{
    job->o = *o;
    DGM_FAIL_IF(job->o.iterations < 1 || job->o.iterations > DGM_ALIGN_ITERATIONS_MAX, err,
                DGM_ERR_ARGUMENT, "the number of iterations must be between 1 and %d, not %d",
                DGM_ALIGN_ITERATIONS_MAX, job->o.iterations);
    const char *name = job->o.symmetrize ? job->o.symmetrize : "grow-diag-final-and";
    int method = dgm_symmetrize_find(name);
    DGM_FAIL_IF(method < 0, err, DGM_ERR_ARGUMENT, "there is no symmetrisation '%s'", name);
    job->method = (dgm_symmetrize)method;
    job->params = (dgm_align_params){.model = job->o.model,
                                     .p0 = job->o.p0,
                                     .alpha = job->o.alpha,
                                     .tension = job->o.tension,
                                     .optimise_tension = !job->o.keep_tension};
    DGM_TRY(dgm_align_params_check(&job->params, err));
    int threads = job->o.threads ? job->o.threads : dgm_cpu_count();
    return dgm_pool_open(&job->pool, threads, err);
}

static dgm_status open_vocabularies(dgm_align_job *job, dgm_error *err)
{
    if (!job->o.subwords) return DGM_OK;
    DGM_TRY(dgm_modelfile_open(&job->file, job->o.subwords, err));
    bool shared = false;
    dgm_status st = dgm_vocabulary_load(job->file, DGM_SOURCE, &job->vocab[0], NULL, err);
    if (st == DGM_OK) st = dgm_vocabulary_load(job->file, DGM_TARGET, &job->vocab[1], &shared, err);
    if (st != DGM_OK) dgm_error_prefix(err, "%s", job->o.subwords);
    return st;
}

static dgm_status train(dgm_align_job *job, int from, dgm_error *err)
{
    dgm_align_report *r = &job->report;
    dgm_aligner *a = NULL;
    size_t tokens = job->b->side[1 - from].token_count;
    double done = SHARE_READ + SHARE_TRAIN * from;
    DGM_TRY(dgm_aligner_open(&a, job->b, from, &job->params, job->pool, err));
    dgm_status st = DGM_OK;
    for (int i = 0; st == DGM_OK && i < job->o.iterations; i++) {
        st = dgm_progress_tick(&job->o.progress, from ? "training backward" : "training forward",
                               done + SHARE_TRAIN * (i + 0.5) / (job->o.iterations + 1), err);
        if (st == DGM_OK) r->objective[from][i] = dgm_aligner_iterate(a);
    }
    if (st == DGM_OK) {
        job->link[from] = dgm_malloc(tokens * sizeof *job->link[from]);
        if (!job->link[from]) st = dgm_no_memory(err);
    }
    if (st == DGM_OK) {
        dgm_aligner_viterbi(a, job->link[from]);
        r->tension[from] = dgm_aligner_tension(a);
        r->entries = dgm_aligner_entries(a);
    }
    dgm_aligner_close(&a);
    return st;
}

static dgm_status run(dgm_align_job *job, const char *source, const char *target, dgm_error *err)
{
    DGM_TRY(open_vocabularies(job, err));
    DGM_TRY(dgm_bitext_open(&job->b, job->o.max_length, err));
    DGM_TRY(read_text(job, source, target, err));
    DGM_TRY(dgm_bitext_finish(job->b, err));
    dgm_align_report *r = &job->report;
    const dgm_bitext *b = job->b;
    r->lines = b->lines;
    r->pairs = b->pairs;
    r->empty = b->empty;
    r->too_long = b->too_long;
    r->source_tokens = b->side[0].token_count;
    r->target_tokens = b->side[1].token_count;
    r->source_types = b->side[0].types;
    r->target_types = b->side[1].types;
    r->iterations = job->o.iterations;
    DGM_TRY(train(job, 0, err));
    return train(job, 1, err);
}

dgm_status dgm_align_job_run(dgm_align_job *job, const char *source, const char *target,
                             const dgm_align_options *options, dgm_error *err)
{
    *job = (dgm_align_job){0};
    dgm_status st = check_options(job, options, err);
    if (st == DGM_OK) st = run(job, source, target, err);
    if (st != DGM_OK) dgm_align_job_close(job);
    return st;
}

void dgm_align_job_close(dgm_align_job *job)
{
    dgm_free(job->link[0]);
    dgm_free(job->link[1]);
    dgm_bitext_close(&job->b);
    dgm_vocab_close(&job->vocab[0]);
    dgm_vocab_close(&job->vocab[1]);
    dgm_gguf_close(&job->file);
    dgm_pool_close(&job->pool);
    *job = (dgm_align_job){0};
}

dgm_links dgm_align_job_links(const dgm_align_job *job)
{
    return (dgm_links){job->b, job->link[0], job->link[1], job->method};
}

dgm_text dgm_align_job_spell(const dgm_align_job *job, int side, uint32_t word)
{
    uint32_t name = dgm_bitext_name(job->b, side, word);
    if (!job->vocab[0]) return dgm_words_spell(&job->b->side[side].words, name);
    const dgm_vocab *v = side && job->vocab[1] ? job->vocab[1] : job->vocab[0];
    return dgm_vocab_piece(v, (int32_t)name);
}
