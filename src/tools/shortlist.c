// SPDX-License-Identifier: MIT
// `dragoman shortlist` behind its command line: makes the shortlist of a model from a parallel
// text or a lexical table, takes and gives Marian's files. Measuring is in tool_shortlist_text.c.
#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/textfile.h"
#include "tools/align_job.h"
#include "engine/engine_private.h"
#include "tools/shortlist.h"
#include "format/modelfile.h"
#include "format/rewrite.h"
#include "format/shortlist.h"

void dgm_shortlist_init(dgm_shortlist_options *out, size_t size)
{
    dgm_shortlist_options own, *const o = &own;
    *o = (dgm_shortlist_options){.best = 20, .threshold = 0.001, .frequent = 100};
    dgm_sized_give(out, size, &own, sizeof own);
}

void dgm_shortlist_work_close(dgm_shortlist_work *w)
{
    dgm_lexicon_close(&w->lex);
    dgm_free(w->row_of);
    dgm_free(w->target_id);
    dgm_shortlist_close(&w->list);
    dgm_vocab_close(&w->vocab[0]);
    dgm_vocab_close(&w->vocab[1]);
    dgm_gguf_close(&w->file);
}

dgm_status dgm_shortlist_work_open(dgm_shortlist_work *w, const char *path, dgm_error *err)
{
    DGM_TRY(dgm_modelfile_open(&w->file, path, err));
    bool shared = false;
    dgm_status st = DGM_OK;
    for (int side = 0; st == DGM_OK && side < 2; side++)
        st = dgm_modelfile_vocab(w->file, (dgm_side)side, &w->spec[side], err);
    if (st == DGM_OK) st = dgm_vocabulary_load(w->file, DGM_SOURCE, &w->vocab[0], NULL, err);
    if (st == DGM_OK) st = dgm_vocabulary_load(w->file, DGM_TARGET, &w->vocab[1], &shared, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", path);
    return st;
}

// ---- the table --------------------------------------------------------------------------------

static dgm_status make_maps(dgm_shortlist_work *w, dgm_error *err)
{
    size_t sources = (size_t)w->spec[0].size;
    w->row_of = dgm_malloc(sources * sizeof *w->row_of);
    w->target_id = dgm_malloc((size_t)w->lex->targets * sizeof *w->target_id);
    if (!w->row_of || !w->target_id) return dgm_no_memory(err);
    for (size_t i = 0; i < sources; i++) w->row_of[i] = -1;
    return DGM_OK;
}

static dgm_status table_from_file(dgm_shortlist_work *w, dgm_error *err)
{
    DGM_TRY(dgm_lexicon_read(&w->lex, w->o->lexicon, err));
    DGM_TRY(make_maps(w, err));
    for (uint32_t t = 0; t < w->lex->targets; t++)
        w->target_id[t] =
            dgm_vocab_id(dgm_shortlist_target(w), dgm_words_spell(&w->lex->target, t));
    for (uint32_t s = 0; s < w->lex->sources; s++) {
        int32_t id = dgm_vocab_id(w->vocab[0], dgm_words_spell(&w->lex->source, s));
        if (id >= 0) w->row_of[id] = (int32_t)s;
        for (uint64_t k = w->lex->at[s]; k < w->lex->at[s + 1]; k++)
            w->report.unknown += id < 0 || w->target_id[w->lex->entry[k].target] < 0;
    }
    DGM_FAIL_IF(w->lex->at[w->lex->sources] <= w->report.unknown, err, DGM_ERR_TEXT,
                "'%s' has no pair of tokens that the model knows", w->o->lexicon);
    return DGM_OK;
}

// The most frequent target tokens of the text, not yet sorted.
static void take_frequent(const dgm_shortlist_work *w, const dgm_bitext *b, int32_t *frequent,
                          int *count)
{
    for (uint32_t t = 0; t < b->side[1].types && *count < w->o->frequent; t++) {
        int32_t id = (int32_t)dgm_bitext_name(b, 1, t);
        if (!dgm_vocab_is_control(dgm_shortlist_target(w), id)) frequent[(*count)++] = id;
    }
}

static dgm_status table_from_text(dgm_shortlist_work *w, const char *model, int32_t *frequent,
                                  int *count, dgm_error *err)
{
    dgm_align_options a;
    dgm_align_default(&a);
    DGM_TRY(
        dgm_sized_take(&a, sizeof a, w->o->align, "dgm_align_options", "dgm_align_default", err));
    a.subwords = model;
    a.lex_s2t = a.lex_t2s = a.gold = NULL;
    a.progress = w->o->progress;
    dgm_align_job job;
    DGM_TRY(dgm_align_job_run(&job, w->o->source, w->o->target, &a, err));
    const dgm_bitext *b = job.b;
    dgm_link_counts counts = {.sources = b->side[0].types, .targets = b->side[1].types};
    dgm_links links = dgm_align_job_links(&job);
    dgm_status st = dgm_links_write(&links, job.pool, NULL, NULL, &counts, err);
    if (st == DGM_OK) st = dgm_lexicon_count(&w->lex, &counts, false, err);
    dgm_link_counts_free(&counts);
    if (st == DGM_OK) st = make_maps(w, err);
    if (st == DGM_OK) {
        for (uint32_t s = 0; s < b->side[0].types; s++)
            w->row_of[dgm_bitext_name(b, 0, s)] = (int32_t)s;
        for (uint32_t t = 0; t < b->side[1].types; t++)
            w->target_id[t] = (int32_t)dgm_bitext_name(b, 1, t);
        take_frequent(w, b, frequent, count);
    }
    dgm_align_job_close(&job);
    return st;
}

// ---- the list ---------------------------------------------------------------------------------

static void sort_ids(int32_t *ids, int count)
{
    for (int i = 1; i < count; i++) {
        int32_t id = ids[i];
        int at = i;
        DGM_INSERT(ids, at, id, ids[at - 1] > id);
    }
}

int dgm_shortlist_best(const dgm_shortlist_work *w, int32_t row, uint64_t *kept)
{
    int n = 0;
    if (row < 0) return 0;
    for (uint64_t k = w->lex->at[row]; k < w->lex->at[row + 1] && n < w->o->best; k++) {
        const dgm_lexicon_entry *e = &w->lex->entry[k];
        if ((double)e->prob < w->threshold) break;
        if (e->target == w->lex->targets) continue; // NULL
        int32_t id = w->target_id[e->target];
        if (id >= 0 && !dgm_vocab_is_control(dgm_shortlist_target(w), id)) kept[n++] = k;
    }
    return n;
}

static dgm_status list_from_table(dgm_shortlist_work *w, const int32_t *frequent, int count,
                                  dgm_error *err)
{
    uint64_t kept[DGM_SHORTLIST_BEST_MAX], entries = 0;
    for (int s = 0; s < w->spec[0].size; s++)
        entries += (uint64_t)dgm_shortlist_best(w, w->row_of[s], kept);
    DGM_TRY(dgm_shortlist_open(&w->list, w->spec[0].size, w->spec[1].size, entries, count, err));
    dgm_shortlist *l = w->list;
    for (int s = 0; s < l->sources; s++) {
        int n = dgm_shortlist_best(w, w->row_of[s], kept);
        int32_t *ids = l->ids + l->at[s];
        for (int k = 0; k < n; k++) ids[k] = w->target_id[w->lex->entry[kept[k]].target];
        sort_ids(ids, n);
        l->at[s + 1] = l->at[s] + (uint64_t)n;
    }
    if (count) memcpy(l->frequent, frequent, (size_t)count * sizeof *frequent);
    sort_ids(l->frequent, count);
    l->frequent_count = count;
    l->copy = w->spec[1].shared;
    return DGM_OK;
}

static dgm_status list_from_binary(dgm_shortlist_work *w, dgm_error *err)
{
    dgm_mapfile f = {0};
    DGM_TRY(dgm_mapfile_open(&f, w->o->binary, err));
    dgm_status st =
        dgm_shortlist_marian_read(&w->list, f.data, f.size, w->spec[0].size, w->spec[1].size, err);
    dgm_mapfile_close(&f);
    if (st != DGM_OK)
        dgm_error_prefix(err, "'%s'", w->o->binary);
    else
        w->list->copy = w->spec[1].shared;
    return st;
}

static dgm_status make_list(dgm_shortlist_work *w, const char *model, dgm_error *err)
{
    const dgm_shortlist_options *o = w->o;
    if (o->binary) return list_from_binary(w, err);
    if (!o->lexicon && !o->source) {
        DGM_FAIL_IF(!dgm_shortlist_present(w->file), err, DGM_ERR_UNSUPPORTED,
                    "'%s' has no shortlist", model);
        return dgm_shortlist_load(&w->list, w->file, err);
    }
    int32_t *frequent = dgm_malloc((size_t)o->frequent * sizeof *frequent);
    if (!frequent) return dgm_no_memory(err);
    int count = 0;
    dgm_status st = DGM_OK;
    if (!o->lexicon) {
        st = table_from_text(w, model, frequent, &count, err);
    } else {
        st = table_from_file(w, err);
        if (st == DGM_OK && o->frequent_text) {
            st = dgm_shortlist_frequent(w, frequent, &count, err);
        } else {
            for (int32_t id = 0; id < w->spec[1].size && count < o->frequent; id++)
                if (!dgm_vocab_is_control(dgm_shortlist_target(w), id)) frequent[count++] = id;
        }
    }
    if (st == DGM_OK && o->candidates) st = dgm_shortlist_tune(w, frequent, count, err);
    if (st == DGM_OK) st = list_from_table(w, frequent, count, err);
    if (st == DGM_OK && o->next > 0) st = dgm_shortlist_next(w, err);
    dgm_free(frequent);
    return st;
}

// ---- files ------------------------------------------------------------------------------------

// Probability of an entry: the table's, or the same for all entries of a row where only the list
// is known.
static double probability(const dgm_shortlist_work *w, int source, int32_t id, uint64_t row_size)
{
    if (!w->lex) return 1.0 / (double)row_size;
    int32_t row = w->row_of[source];
    for (uint64_t k = w->lex->at[row]; k < w->lex->at[row + 1]; k++) {
        uint32_t t = w->lex->entry[k].target;
        if (t < w->lex->targets && w->target_id[t] == id) return (double)w->lex->entry[k].prob;
    }
    return 0;
}

static dgm_status write_lexicon(const dgm_shortlist_work *w, const char *path, dgm_error *err)
{
    dgm_textout *out = NULL;
    DGM_TRY(dgm_textout_open(&out, path, err));
    dgm_writer line = {0};
    const dgm_shortlist *l = w->list;
    for (int s = 0; s < l->sources; s++) {
        dgm_text source = dgm_vocab_piece(w->vocab[0], s);
        uint64_t n = l->at[s + 1] - l->at[s];
        for (uint64_t k = l->at[s]; k < l->at[s + 1] && source.size; k++) {
            dgm_text target = dgm_vocab_piece(dgm_shortlist_target(w), l->ids[k]);
            if (target.size == 0) continue;
            line.size = 0;
            dgm_write_bytes(&line, target.data, target.size);
            dgm_write_u8(&line, ' ');
            dgm_write_bytes(&line, source.data, source.size);
            dgm_write_format(&line, " %.7g\n", probability(w, s, l->ids[k], n));
            if (!line.failed) dgm_textout_write(out, line.data, line.size);
        }
    }
    dgm_status st = line.failed ? dgm_no_memory(err) : dgm_textout_commit(&out, err);
    dgm_textout_discard(&out);
    dgm_writer_free(&line);
    return st;
}

static dgm_status write_binary(const dgm_shortlist_work *w, const char *path, dgm_error *err)
{
    dgm_writer out = {0};
    dgm_status st = dgm_shortlist_marian_write(w->list, w->spec[0].eos, &out, err);
    if (st == DGM_OK) st = dgm_file_write(path, out.data, out.size, err);
    dgm_writer_free(&out);
    return st;
}

static dgm_status write_model(dgm_shortlist_work *w, const char *path, dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    DGM_TRY(dgm_rewrite_check(w->file, err));
    DGM_TRY(dgm_rewrite_open(&out, w->file, NULL, err));
    dgm_shortlist_drop(out);
    const dgm_status st = w->list ? dgm_shortlist_store(w->list, w->file, out, err) : DGM_OK;
    for (int i = 0; i < dgm_gguf_tensor_count(w->file); i++)
        dgm_rewrite_copy(out, dgm_gguf_tensor(w->file, i));
    return dgm_rewrite_finish(&out, path, st, err);
}

static dgm_status check_options(const dgm_shortlist_options *o, const char *output, dgm_error *err)
{
    DGM_FAIL_IF(!o, err, DGM_ERR_ARGUMENT, "shortlist: options are missing");
    int inputs = (o->source || o->target) + (o->lexicon != NULL) + (o->binary != NULL);
    DGM_FAIL_IF(
        inputs > 1, err, DGM_ERR_ARGUMENT,
        "a shortlist comes from a parallel text, a lexical table or a binary file, not from "
        "several of them");
    DGM_FAIL_IF((o->source != NULL) != (o->target != NULL), err, DGM_ERR_ARGUMENT,
                "a parallel text has two files");
    DGM_FAIL_IF(o->remove && (inputs || o->write_lexicon || o->write_binary), err, DGM_ERR_ARGUMENT,
                "a shortlist cannot be removed and made or written at once");
    DGM_FAIL_IF(!output && !o->write_lexicon && !o->write_binary, err, DGM_ERR_ARGUMENT,
                "no output file is given");
    DGM_FAIL_IF(o->best < 1 || o->best > DGM_SHORTLIST_BEST_MAX, err, DGM_ERR_ARGUMENT,
                "the number of translations per token must be between 1 and %d, not %d",
                DGM_SHORTLIST_BEST_MAX, o->best);
    DGM_FAIL_IF(o->frequent < 0 || o->frequent > 1000000, err, DGM_ERR_ARGUMENT,
                "the number of frequent tokens must be between 0 and 1000000, not %d", o->frequent);
    DGM_FAIL_IF(o->candidates < 0, err, DGM_ERR_ARGUMENT,
                "the number of candidates must not be negative");
    DGM_FAIL_IF((o->candidates > 0) != (o->tune != NULL), err, DGM_ERR_ARGUMENT,
                "a number of candidates needs a text to count them on, and such a text a number");
    DGM_FAIL_IF((o->candidates && !o->lexicon && !o->source) || (o->frequent_text && !o->lexicon),
                err, DGM_ERR_ARGUMENT,
                "there is nothing to choose candidates from: a lexical table is missing");
    DGM_FAIL_IF(!(o->next >= 0 && o->next <= 1), err, DGM_ERR_ARGUMENT,
                "the probability of a continuation must be between 0 and 1, not %g", o->next);
    DGM_FAIL_IF(o->next > 0 && !o->target && !o->frequent_text, err, DGM_ERR_ARGUMENT,
                "continuations are counted on a target text, which is missing");
    DGM_FAIL_IF(!(o->threshold >= 0 && o->threshold <= 1), err, DGM_ERR_ARGUMENT,
                "the threshold must be between 0 and 1, not %g", o->threshold);
    return DGM_OK;
}

static dgm_status make_and_write(dgm_shortlist_work *w, const char *model, const char *output,
                                 dgm_error *err)
{
    const dgm_shortlist_options *o = w->o;
    DGM_TRY(dgm_shortlist_work_open(w, model, err));
    if (!o->remove) DGM_TRY(make_list(w, model, err));
    if (w->list) {
        for (int s = 0; s < w->list->sources; s++)
            w->report.sources += w->list->at[s + 1] > w->list->at[s];
        w->report.entries = w->list->at[w->list->sources];
        w->report.frequent = (uint64_t)w->list->frequent_count;
        w->report.threshold = w->threshold;
        w->report.next = w->list->next_at ? w->list->next_at[w->list->targets] : 0;
    }
    if (o->write_lexicon) DGM_TRY(write_lexicon(w, o->write_lexicon, err));
    if (o->write_binary) DGM_TRY(write_binary(w, o->write_binary, err));
    if (!output) return DGM_OK;
    DGM_TRY(write_model(w, output, err));
    dgm_gguf *written = NULL;
    DGM_TRY(dgm_gguf_open(&written, output, err));
    const uint8_t *data;
    size_t size = 0;
    dgm_status st =
        dgm_gguf_get_bytes(written, "dragoman.shortlist.data", DGM_OPTIONAL, &data, &size, err);
    w->report.bytes = size + 4 * w->report.frequent;
    if (st == DGM_OK)
        st =
            dgm_gguf_get_bytes(written, "dragoman.shortlist.next", DGM_OPTIONAL, &data, &size, err);
    if (st == DGM_OK && w->report.next) w->report.bytes += size;
    dgm_gguf_close(&written);
    return st;
}

dgm_status dgm_shortlist_make(const char *model, const char *output,
                              const dgm_shortlist_options *given, dgm_shortlist_report *report,
                              dgm_error *err)
{
    dgm_shortlist_options own;
    dgm_shortlist_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, given, "dgm_shortlist_options",
                           "dgm_shortlist_default", err));
    DGM_TRY(dgm_sized_room(report, "dgm_shortlist_report", err));
    const dgm_shortlist_options *options = given ? &own : NULL;
    DGM_TRY(check_options(options, output, err));
    if (output) DGM_TRY(dgm_outfile_probe(output, err));
    DGM_TRY(dgm_textout_probe(options->write_lexicon, err));
    if (options->write_binary) DGM_TRY(dgm_outfile_probe(options->write_binary, err));
    dgm_shortlist_work w = {.o = options, .threshold = options->threshold};
    dgm_status st = make_and_write(&w, model, output, err);
    if (st == DGM_OK) dgm_sized_fill(report, &w.report, sizeof w.report);
    dgm_shortlist_work_close(&w);
    return st;
}
