// SPDX-License-Identifier: MIT
// `dragoman phrase extract` and `convert` behind their command line: phrase pairs of aligned texts
// into a table, tables from one form into another.
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "dragoman/tools.h"
#include "tools/progress.h"
#include "tools/splitter.h"
#include "phrase/phrase_count.h"
#include "phrase/phrase_table.h"

#define SHARE_READ 0.5 // of the progress bar
#define SHARE_SCORE 0.3

void dgm_phrase_init(dgm_phrase_options *out, size_t size)
{
    dgm_phrase_options own, *const o = &own;
    *o = (dgm_phrase_options){
        .max_length = 5, .max_sentence = 100, .limit = 50, .memory = (uint64_t)1 << 30};
    dgm_sized_give(out, size, &own, sizeof own);
}

typedef struct extraction {
    const dgm_phrase_options *o;
    dgm_phrase_report report;
    dgm_splitter split[2];
    dgm_phrase_counter *counter;
    dgm_phrase_builder *builder;
    dgm_phrase_table *table;
    dgm_align_link *links;
    size_t link_cap;
    dgm_text *words; // of a line of the filter or of the text
    size_t word_count, word_cap;
    dgm_writer bytes;    // their spellings
    uint32_t *number[2]; // [types] of a counter's word in the builder, + 1; 0: not there yet
    uint64_t rows;
} extraction;

// ---- reading ----------------------------------------------------------------------------------

// "0-0 1-2 ..."
static dgm_status read_links(extraction *x, dgm_text t, size_t *count, dgm_error *err)
{
    *count = 0;
    for (dgm_text field; (field = dgm_field_next(&t)).size;) {
        uint64_t i, j;
        DGM_FAIL_IF(!dgm_field_link(field, UINT16_MAX, &i, &j), err, DGM_ERR_FORMAT,
                    "'%.*s' is not a link", DGM_SHOWN(field));
        DGM_TRY(dgm_grow(&x->links, &x->link_cap, *count + 1, sizeof *x->links, err));
        x->links[(*count)++] = (dgm_align_link){(uint16_t)i, (uint16_t)j};
    }
    return DGM_OK;
}

// Words of a line are kept: how many there are decides whether the pair counts.
static dgm_status keep_word(void *cookie, dgm_text word, dgm_error *err)
{
    extraction *x = cookie;
    DGM_TRY(dgm_grow(&x->words, &x->word_cap, x->word_count + 1, sizeof *x->words, err));
    // Spellings move while the buffer grows: data holds where they begin until the line is done.
    x->words[x->word_count++] = (dgm_text){(const char *)(uintptr_t)x->bytes.size, word.size};
    dgm_write_bytes(&x->bytes, word.data, word.size);
    return x->bytes.failed ? dgm_no_memory(err) : DGM_OK;
}

static dgm_status split_line(extraction *x, int side, dgm_text line, dgm_error *err)
{
    return dgm_wording_split(&x->split[side].wording, line, keep_word, x, err);
}

static void settle_words(extraction *x)
{
    for (size_t i = 0; i < x->word_count; i++)
        x->words[i].data = (const char *)x->bytes.data + (uintptr_t)x->words[i].data;
}

static dgm_status add_pair(extraction *x, const dgm_text line[3], dgm_error *err)
{
    x->word_count = x->bytes.size = 0;
    DGM_TRY(split_line(x, 0, line[0], err));
    size_t n[2] = {x->word_count, 0}, links;
    DGM_TRY(split_line(x, 1, line[1], err));
    n[1] = x->word_count - n[0];
    settle_words(x);
    DGM_TRY(read_links(x, line[2], &links, err));
    x->report.lines++;
    size_t most = (size_t)x->o->max_sentence;
    if (n[0] == 0 || n[1] == 0 || links == 0) {
        x->report.empty++;
        return DGM_OK;
    }
    if (n[0] > most || n[1] > most) {
        x->report.too_long++;
        return DGM_OK;
    }
    for (size_t i = 0; i < n[0] + n[1]; i++)
        DGM_TRY(dgm_phrase_counter_word(x->counter, i >= n[0], x->words[i], err));
    return dgm_phrase_counter_pair(x->counter, x->links, links, err);
}

static dgm_status read_pairs(extraction *x, dgm_lines *const in[3], dgm_error *err)
{
    static const char *const what[] = {"source", "target", "alignment"};
    for (;;) {
        dgm_text line[3];
        bool more[3];
        for (int k = 0; k < 3; k++)
            DGM_TRY(dgm_lines_next(in[k], &line[k].data, &line[k].size, &more[k], err));
        if (!more[0] && !more[1] && !more[2]) return DGM_OK;
        for (int k = 0; k < 3; k++)
            DGM_FAIL_IF(!more[k], err, DGM_ERR_TEXT,
                        "the %s '%s' ends after line %llu, the other files go on", what[k],
                        dgm_lines_name(in[k]), (unsigned long long)dgm_lines_number(in[k]));
        dgm_status st = add_pair(x, line, err);
        if (st == DGM_ERR_TEXT || st == DGM_ERR_FORMAT)
            dgm_lines_blame(in[st == DGM_ERR_FORMAT ? 2 : 0], err);
        DGM_TRY(st);
        if ((x->report.lines & 1023) == 0)
            DGM_TRY(dgm_progress_tick(&x->o->progress, "extracting",
                                      SHARE_READ * dgm_lines_share(in[0]), err));
    }
}

static dgm_status read_files(extraction *x, const char *source, const char *target,
                             const char *links, dgm_error *err)
{
    const char *path[3] = {source, target, links};
    dgm_lines *in[3] = {NULL, NULL, NULL};
    dgm_status st = DGM_OK;
    for (int k = 0; st == DGM_OK && k < 3; k++) st = dgm_lines_open(&in[k], path[k], err);
    if (st == DGM_OK) st = read_pairs(x, in, err);
    for (int k = 0; k < 3; k++) dgm_lines_close(&in[k]);
    return st;
}

static dgm_status want_line(void *cookie, dgm_text line, dgm_error *err)
{
    extraction *x = cookie;
    x->word_count = x->bytes.size = 0;
    DGM_TRY(split_line(x, 0, line, err));
    settle_words(x);
    return dgm_phrase_counter_want(x->counter, x->words, x->word_count, err);
}

static dgm_status read_filter(extraction *x, const char *path, dgm_error *err)
{
    return path ? dgm_lines_each(path, want_line, x, err) : DGM_OK;
}

// ---- the table --------------------------------------------------------------------------------

static dgm_status builder_words(extraction *x, int side, const uint32_t *from, int length,
                                uint32_t *to, dgm_error *err)
{
    for (int i = 0; i < length; i++) {
        uint32_t *known = &x->number[side][from[i]];
        if (!*known) {
            DGM_TRY(dgm_phrase_builder_word(
                x->builder, side, dgm_phrase_counter_spell(x->counter, side, from[i]), known, err));
            ++*known;
        }
        to[i] = *known - 1;
    }
    return DGM_OK;
}

static dgm_status take_row(void *cookie, const dgm_phrase_row *row, dgm_error *err)
{
    extraction *x = cookie;
    uint32_t words[2][DGM_PHRASE_LENGTH_MAX];
    dgm_phrase_row r = *row;
    DGM_TRY(builder_words(x, 0, row->source, row->source_length, words[0], err));
    DGM_TRY(builder_words(x, 1, row->target, row->target_length, words[1], err));
    r.source = words[0];
    r.target = words[1];
    if ((++x->rows & 0xffff) == 0)
        DGM_TRY(dgm_progress_tick(&x->o->progress, "scoring", SHARE_READ + SHARE_SCORE / 2, err));
    return dgm_phrase_builder_row(x->builder, &r, true, err);
}

static bool ends(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static bool is_text(const char *name)
{
    return ends(name, ".gz") || ends(name, ".txt");
}

static dgm_status save(const dgm_phrase_table *t, const char *output, const char *reordering,
                       dgm_error *err)
{
    if (is_text(output)) return dgm_phrase_table_write(t, output, reordering, err);
    return dgm_phrase_table_save(t, output, err);
}

static dgm_status check_output(const char *output, const char *reordering, int bits, dgm_error *err)
{
    DGM_FAIL_IF(reordering && !is_text(output), err, DGM_ERR_ARGUMENT,
                "a reordering table is written beside a table of text (.gz, .txt); a compact one "
                "has it inside");
    DGM_FAIL_IF(bits && is_text(output), err, DGM_ERR_ARGUMENT,
                "only compact tables have numbers of fewer bits");
    DGM_TRY(dgm_textout_probe(output, err));
    return dgm_textout_probe(reordering, err);
}

static dgm_status extract(extraction *x, const char *source, const char *target, const char *links,
                          const char *output, dgm_error *err)
{
    const dgm_phrase_options *o = x->o;
    DGM_FAIL_IF(o->max_sentence < 1 || o->max_sentence > UINT16_MAX, err, DGM_ERR_ARGUMENT,
                "the longest sentence must have between 1 and %d words", UINT16_MAX);
    dgm_phrase_params p = {.max_length = o->max_length,
                           .prune = o->prune,
                           .limit = (uint32_t)o->limit,
                           .memory = (size_t)o->memory,
                           .folder = o->folder};
    DGM_TRY(check_output(output, o->reordering, o->bits, err));
    DGM_TRY(dgm_splitter_open(&x->split[0], o->subwords, DGM_SOURCE, err));
    DGM_TRY(dgm_splitter_open(&x->split[1], o->subwords, DGM_TARGET, err));
    DGM_TRY(dgm_phrase_counter_open(&x->counter, &p, err));
    DGM_TRY(read_files(x, source, target, links, err));
    DGM_TRY(read_filter(x, o->filter, err));
    DGM_TRY(dgm_progress_tick(&o->progress, "scoring", SHARE_READ, err));
    dgm_phrase_totals t = dgm_phrase_counter_totals(x->counter);
    DGM_FAIL_IF(t.pairs == 0, err, DGM_ERR_TEXT,
                "no sentence pair to work with: of %llu lines %llu are empty or not aligned and "
                "%llu longer than %d words",
                (unsigned long long)x->report.lines, (unsigned long long)x->report.empty,
                (unsigned long long)x->report.too_long, o->max_sentence);
    for (int s = 0; s < 2; s++) {
        x->number[s] = dgm_calloc((size_t)t.types[s] + 1, sizeof *x->number[s]);
        if (!x->number[s]) return dgm_no_memory(err);
    }
    DGM_TRY(dgm_phrase_builder_open(&x->builder, err));
    DGM_TRY(dgm_phrase_counter_rows(x->counter, take_row, x, err));
    t = dgm_phrase_counter_totals(x->counter);
    x->report.pairs = t.pairs;
    x->report.extracted = t.extracted;
    x->report.distinct = t.distinct;
    x->report.kept = t.kept;
    x->report.spilled = t.spilled;
    for (int s = 0; s < 2; s++) {
        x->report.tokens[s] = t.tokens[s];
        x->report.phrases[s] = t.phrases[s];
    }
    dgm_phrase_counter_close(&x->counter); // its memory is needed
    DGM_TRY(dgm_progress_tick(&o->progress, "writing", SHARE_READ + SHARE_SCORE, err));
    DGM_TRY(dgm_phrase_builder_finish(x->builder, o->bits, &x->table, err));
    dgm_phrase_builder_close(&x->builder);
    DGM_TRY(save(x->table, output, o->reordering, err));
    return dgm_progress_tick(&o->progress, "done", 1, err);
}

dgm_status dgm_phrase_extract(const char *source, const char *target, const char *links,
                              const char *output, const dgm_phrase_options *options,
                              dgm_phrase_report *report, dgm_error *err)
{
    dgm_phrase_options own;
    dgm_phrase_default(&own);
    DGM_TRY(
        dgm_sized_take(&own, sizeof own, options, "dgm_phrase_options", "dgm_phrase_default", err));
    DGM_TRY(dgm_sized_room(report, "dgm_phrase_report", err));
    extraction x = {.o = &own};
    dgm_status st = extract(&x, source, target, links, output, err);
    if (st == DGM_OK) dgm_sized_fill(report, &x.report, sizeof x.report);
    for (int s = 0; s < 2; s++) {
        dgm_splitter_close(&x.split[s]);
        dgm_free(x.number[s]);
    }
    dgm_phrase_counter_close(&x.counter);
    dgm_phrase_builder_close(&x.builder);
    dgm_phrase_table_close(&x.table);
    dgm_free(x.links);
    dgm_free(x.words);
    dgm_writer_free(&x.bytes);
    return st;
}

dgm_status dgm_phrase_convert(const char *input, const char *input_reordering, const char *output,
                              const char *output_reordering, int bits, dgm_error *err)
{
    dgm_phrase_table *t = NULL;
    DGM_TRY(check_output(output, output_reordering, bits, err));
    dgm_status st = bits ? dgm_phrase_table_read(&t, input, input_reordering, bits, err)
                         : dgm_phrase_table_open(&t, input, input_reordering, err);
    if (bits && st == DGM_ERR_FORMAT && dgm_phrase_table_open(&t, input, NULL, NULL) == DGM_OK) {
        dgm_phrase_table_close(&t);
        dgm_fail(err, st, "%s: a compact table is not rounded again, only text is", input);
    }
    DGM_TRY(st);
    st = save(t, output, output_reordering, err);
    dgm_phrase_table_close(&t);
    return st;
}
