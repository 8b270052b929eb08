// SPDX-License-Identifier: MIT
// `dragoman align` behind its command line: links as text, lexical tables, error rate.
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "tools/align_job.h"
#include "tools/progress.h"

// Where the text goes: a file or the caller; and how many links it has.
typedef struct sink {
    const dgm_align_options *o;
    dgm_textout *out;
    dgm_writer kept; // the last lines, for the comparison with gold links
    bool keep;
    uint64_t skip; // lines that come before them
    uint64_t links;
} sink;

static dgm_status take_text(void *cookie, const char *text, size_t size, dgm_error *err)
{
    sink *s = cookie;
    for (size_t i = 0; i < size; i++) s->links += text[i] == '-';
    if (s->keep) {
        size_t at = 0;
        for (; s->skip > 0 && at < size; s->skip--)
            at = (size_t)((const char *)memchr(text + at, '\n', size - at) - text) + 1;
        dgm_write_bytes(&s->kept, text + at, size - at);
        if (s->kept.failed) return dgm_no_memory(err);
    }
    if (s->out)
        dgm_textout_write(s->out, text, size);
    else if (s->o->write && s->o->write(s->o->write_cookie, text, size) != 0)
        return dgm_fail(err, DGM_ERR_CANCELLED, "stopped on request");
    return DGM_OK;
}

// ---- gold links -------------------------------------------------------------------------------

typedef struct gold_file {
    dgm_writer bytes; // lines with their breaks
    size_t lines;
} gold_file;

static dgm_status read_gold(gold_file *g, const char *path, dgm_error *err)
{
    DGM_TRY(dgm_lines_collect(path, &g->bytes, err));
    for (size_t i = 0; i < g->bytes.size; i++) g->lines += g->bytes.data[i] == '\n';
    return DGM_OK;
}

// Finds the lines that the gold links are for: the last ones.
static dgm_status place_gold(sink *s, const gold_file *g, const dgm_align_report *r,
                             const char *path, dgm_error *err)
{
    DGM_FAIL_IF(g->lines == 0 || g->lines > r->lines, err, DGM_ERR_TEXT,
                "'%s' has %zu lines, the text %llu", path, g->lines, (unsigned long long)r->lines);
    s->skip = r->lines - g->lines;
    return DGM_OK;
}

// Compares the kept lines with the gold links.
static dgm_status compare(const sink *s, const gold_file *g, dgm_align_report *r, const char *path,
                          dgm_error *err)
{
    dgm_text all_links = {(const char *)s->kept.data, s->kept.size};
    dgm_text all_gold = {(const char *)g->bytes.data, g->bytes.size};
    dgm_aer aer = {0};
    for (size_t i = 0; i < g->lines; i++) {
        const dgm_text links = dgm_line_cut(&all_links), gold = dgm_line_cut(&all_gold);
        dgm_status st = dgm_aer_add(&aer, gold, links, err);
        if (st != DGM_OK) {
            dgm_error_prefix(err, "%s:%zu", path, i + 1);
            return st;
        }
    }
    r->has_gold = 1;
    r->error_rate = dgm_aer_rate(&aer);
    r->precision = aer.links ? (double)aer.right_found / (double)aer.links : 0;
    r->recall = aer.sure ? (double)aer.sure_found / (double)aer.sure : 0;
    return DGM_OK;
}

// ---- tables -----------------------------------------------------------------------------------

typedef struct speller {
    const dgm_align_job *job;
    bool reverse;
} speller;

static dgm_text spell(const void *context, bool target, uint32_t word)
{
    const speller *s = context;
    return dgm_align_job_spell(s->job, target != s->reverse, word);
}

static dgm_status write_table(const dgm_align_job *job, dgm_link_counts *counts, bool reverse,
                              const char *path, dgm_error *err)
{
    if (!path) return DGM_OK;
    dgm_lexicon *lex = NULL;
    speller s = {job, reverse};
    DGM_TRY(dgm_progress_tick(&job->o.progress, "writing tables", 0.98, err));
    DGM_TRY(dgm_lexicon_count(&lex, counts, reverse, err));
    dgm_status st = dgm_lexicon_write(lex, spell, &s, path, err);
    dgm_lexicon_close(&lex);
    return st;
}

static dgm_status write_all(dgm_align_job *job, sink *s, const char *output, dgm_error *err)
{
    const dgm_align_options *o = &job->o;
    const dgm_bitext *b = job->b;
    dgm_link_counts counts = {.sources = b->side[0].types, .targets = b->side[1].types};
    bool tables = o->lex_s2t || o->lex_t2s;
    dgm_links links = dgm_align_job_links(job);
    DGM_TRY(dgm_progress_tick(&o->progress, "writing", 0.95, err));
    if (output) DGM_TRY(dgm_textout_open(&s->out, output, err));
    dgm_status st = dgm_links_write(&links, job->pool, take_text, s, tables ? &counts : NULL, err);
    job->report.links = s->links;
    if (st == DGM_OK) st = write_table(job, &counts, false, o->lex_s2t, err);
    if (st == DGM_OK) st = write_table(job, &counts, true, o->lex_t2s, err);
    dgm_link_counts_free(&counts);
    if (st == DGM_OK && s->out) st = dgm_textout_commit(&s->out, err);
    dgm_textout_discard(&s->out);
    return st;
}

dgm_status dgm_align(const char *source, const char *target, const char *output,
                     const dgm_align_options *options, dgm_align_report *report, dgm_error *err)
{
    dgm_align_job job;
    gold_file gold = {0};
    dgm_align_options own;
    dgm_align_default(&own);
    DGM_TRY(
        dgm_sized_take(&own, sizeof own, options, "dgm_align_options", "dgm_align_default", err));
    DGM_TRY(dgm_sized_room(report, "dgm_align_report", err));
    const char *gold_path = own.gold;
    sink s = {.keep = gold_path != NULL};
    dgm_status st = dgm_textout_probe(output, err);
    if (st == DGM_OK) st = dgm_textout_probe(own.lex_s2t, err);
    if (st == DGM_OK) st = dgm_textout_probe(own.lex_t2s, err);
    if (st == DGM_OK && gold_path) st = read_gold(&gold, gold_path, err);
    if (st == DGM_OK) st = dgm_align_job_run(&job, source, target, &own, err);
    if (st == DGM_OK) {
        s.o = &job.o;
        if (gold_path) st = place_gold(&s, &gold, &job.report, gold_path, err);
        if (st == DGM_OK) st = write_all(&job, &s, output, err);
        if (st == DGM_OK && gold_path) st = compare(&s, &gold, &job.report, gold_path, err);
        if (st == DGM_OK) st = dgm_progress_tick(&job.o.progress, "done", 1, err);
        if (st == DGM_OK) dgm_sized_fill(report, &job.report, sizeof job.report);
        dgm_align_job_close(&job);
    }
    dgm_writer_free(&s.kept);
    dgm_writer_free(&gold.bytes);
    return st;
}
