// SPDX-License-Identifier: MIT
// Moses' text phrase tables and reordering tables, read and written; see phrase_table.h.
//
//     das haus ||| the house ||| 0.5 0.25 0.75 0.125 ||| 0-0 1-1 ||| 4 3 2
//
// Numbers are written with as few digits as keep the float, so that what was written here is read
// and written again byte by byte; counts (the fifth column) are not kept.
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/textfile.h"
#include "phrase/phrase_table.h"

struct dgm_phrase_parser {
    dgm_phrase_builder *builder;
    uint32_t word[2][DGM_PHRASE_LENGTH_MAX];
};

dgm_status dgm_phrase_parser_open(dgm_phrase_parser **out, dgm_error *err)
{
    *out = NULL;
    dgm_phrase_parser *p = dgm_calloc(1, sizeof *p);
    if (!p) return dgm_no_memory(err);
    dgm_status st = dgm_phrase_builder_open(&p->builder, err);
    if (st != DGM_OK) dgm_phrase_parser_close(&p);
    *out = p;
    return st;
}

void dgm_phrase_parser_close(dgm_phrase_parser **p)
{
    if (!*p) return;
    dgm_phrase_builder_close(&(*p)->builder);
    dgm_free(*p);
    *p = NULL;
}

// ---- fields -----------------------------------------------------------------------------------

// Numbers of a column, at most `most`; each must be a probability.
static dgm_status read_numbers(dgm_text column, float *number, int most, int *count, dgm_error *err)
{
    *count = 0;
    for (dgm_text field; (field = dgm_field_next(&column)).size;) {
        float v;
        DGM_FAIL_IF(!dgm_number_f32(field, &v), err, DGM_ERR_FORMAT, "'%.*s' is not a number",
                    DGM_SHOWN(field));
        DGM_FAIL_IF(*count == most, err, DGM_ERR_FORMAT, "more than %d scores", most);
        number[(*count)++] = v;
    }
    return DGM_OK;
}

static dgm_status check_probability(float v, dgm_error *err)
{
    DGM_FAIL_IF(!(v >= 0 && v <= 1), err, DGM_ERR_FORMAT, "%g is not a probability", (double)v);
    return DGM_OK;
}

static dgm_status read_phrase(dgm_phrase_parser *p, int side, dgm_text column, int *length,
                              dgm_error *err)
{
    *length = 0;
    for (dgm_text field; (field = dgm_field_next(&column)).size;) {
        DGM_FAIL_IF(*length == DGM_PHRASE_LENGTH_MAX, err, DGM_ERR_FORMAT,
                    "a phrase of more than %d words", DGM_PHRASE_LENGTH_MAX);
        DGM_TRY(dgm_phrase_builder_word(p->builder, side, field, &p->word[side][(*length)++], err));
    }
    DGM_FAIL_IF(*length == 0, err, DGM_ERR_FORMAT, "the %s phrase is empty",
                side ? "target" : "source");
    return DGM_OK;
}

// "0-0 1-2"
static dgm_status read_links(dgm_text column, const dgm_phrase_row *r, uint64_t *links,
                             dgm_error *err)
{
    for (dgm_text field; (field = dgm_field_next(&column)).size;) {
        uint64_t i = 0, j = 0;
        DGM_FAIL_IF(!dgm_field_link(field, DGM_PHRASE_LENGTH_MAX, &i, &j) ||
                        i >= (uint64_t)r->source_length || j >= (uint64_t)r->target_length,
                    err, DGM_ERR_FORMAT, "'%.*s' is not a link of this phrase pair",
                    DGM_SHOWN(field));
        *links |= DGM_PHRASE_LINK(i, j);
    }
    return DGM_OK;
}

// ---- lines ------------------------------------------------------------------------------------

// Both phrases of a line, into the parser's buffers; the rest of the line is left.
static dgm_status read_phrases(dgm_phrase_parser *p, dgm_text *line, dgm_phrase_row *r,
                               dgm_error *err)
{
    dgm_text source, target = {NULL, 0};
    dgm_field_column(line, &source);
    DGM_FAIL_IF(!dgm_field_column(line, &target) || !line->data, err, DGM_ERR_FORMAT,
                "not 'SOURCE ||| TARGET ||| SCORES'");
    DGM_TRY(read_phrase(p, 0, source, &r->source_length, err));
    DGM_TRY(read_phrase(p, 1, target, &r->target_length, err));
    r->source = p->word[0];
    r->target = p->word[1];
    return DGM_OK;
}

dgm_status dgm_phrase_parser_line(dgm_phrase_parser *p, dgm_text line, dgm_error *err)
{
    dgm_phrase_row r = {0};
    dgm_text column;
    float score[DGM_PHRASE_SCORES + 1];
    int count;
    DGM_TRY(read_phrases(p, &line, &r, err));
    dgm_field_column(&line, &column);
    DGM_TRY(read_numbers(column, score, DGM_PHRASE_SCORES + 1, &count, err));
    DGM_FAIL_IF(count < DGM_PHRASE_SCORES, err, DGM_ERR_FORMAT, "%d scores instead of %d", count,
                DGM_PHRASE_SCORES);
    for (int k = 0; k < DGM_PHRASE_SCORES; k++) {
        DGM_TRY(check_probability(score[k], err));
        r.score[k] = score[k];
    }
    if (dgm_field_column(&line, &column)) DGM_TRY(read_links(column, &r, &r.links, err));
    return dgm_phrase_builder_row(p->builder, &r, false, err);
}

dgm_status dgm_phrase_parser_reordering(dgm_phrase_parser *p, dgm_text line, dgm_error *err)
{
    dgm_phrase_row r = {0};
    dgm_text column;
    int count;
    DGM_TRY(read_phrases(p, &line, &r, err));
    dgm_field_column(&line, &column);
    DGM_TRY(read_numbers(column, r.orientation, DGM_PHRASE_ORIENTATIONS, &count, err));
    DGM_FAIL_IF(count < DGM_PHRASE_ORIENTATIONS, err, DGM_ERR_FORMAT,
                "%d scores instead of %d (msd-bidirectional-fe)", count, DGM_PHRASE_ORIENTATIONS);
    for (int k = 0; k < count; k++) DGM_TRY(check_probability(r.orientation[k], err));
    return dgm_phrase_builder_orient(p->builder, &r, err);
}

dgm_status dgm_phrase_parser_finish(dgm_phrase_parser *p, int bits, dgm_phrase_table **t,
                                    dgm_error *err)
{
    return dgm_phrase_builder_finish(p->builder, bits, t, err);
}

static dgm_status check_text(dgm_text line, dgm_error *err)
{
    const size_t bad = dgm_utf8_first_bad(line);
    DGM_FAIL_IF(bad < line.size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    return DGM_OK;
}

static dgm_status take_line(void *cookie, dgm_text line, dgm_error *err)
{
    DGM_TRY(check_text(line, err));
    return dgm_phrase_parser_line(cookie, line, err);
}

static dgm_status take_reordering(void *cookie, dgm_text line, dgm_error *err)
{
    DGM_TRY(check_text(line, err));
    return dgm_phrase_parser_reordering(cookie, line, err);
}

dgm_status dgm_phrase_table_read(dgm_phrase_table **t, const char *path, const char *reordering,
                                 int bits, dgm_error *err)
{
    dgm_phrase_parser *p = NULL;
    *t = NULL;
    DGM_TRY(dgm_phrase_parser_open(&p, err));
    dgm_status st = dgm_lines_each(path, take_line, p, err);
    if (st == DGM_OK && reordering) st = dgm_lines_each(reordering, take_reordering, p, err);
    if (st == DGM_OK) st = dgm_phrase_parser_finish(p, bits, t, err);
    dgm_phrase_parser_close(&p);
    return st;
}

// ---- writing ----------------------------------------------------------------------------------

static void put_phrase(const dgm_phrase_table *t, int side, const uint32_t *words, int length,
                       dgm_writer *w)
{
    for (int i = 0; i < length; i++) {
        dgm_text s = dgm_phrase_table_spell(t, side, words[i]);
        dgm_write_bytes(w, s.data, s.size);
        dgm_write_u8(w, ' ');
    }
    dgm_write_text(w, "|||");
}

static void put_number(float v, dgm_writer *w)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, " %.*g", digits, (double)v);
        float back = 0;
        if (dgm_number_f32(dgm_text_of(text + 1), &back) && back == v) break;
    }
    dgm_write_text(w, text);
}

static void put_option(const dgm_phrase_table *t, const dgm_table_option *o, int source_length,
                       bool reordering, dgm_writer *w)
{
    put_phrase(t, 1, o->target, o->length, w);
    int first = reordering ? DGM_PHRASE_SCORES : 0;
    int end = reordering ? DGM_TABLE_FEATURES : DGM_PHRASE_SCORES;
    for (int k = first; k < end; k++) put_number(o->score[k], w);
    if (!reordering && t->has_links) {
        dgm_write_text(w, " |||");
        for (int i = 0; i < source_length; i++)
            for (int j = 0; j < o->length; j++)
                if (o->links & DGM_PHRASE_LINK(i, j)) dgm_write_format(w, " %d-%d", i, j);
    }
    dgm_write_u8(w, '\n');
}

static dgm_status write_file(const dgm_phrase_table *t, const char *path, bool reordering,
                             dgm_error *err)
{
    dgm_textout *out = NULL;
    dgm_writer w = {0};
    DGM_TRY(dgm_textout_open(&out, path, err));
    for (uint32_t s = 0; s < t->sources; s++) {
        uint32_t begin = t->source_at[s], end = t->source_at[s + 1];
        if (end > t->source_words || begin > end) continue; // a damaged file
        int length = (int)(end - begin);
        uint32_t option = t->option_at[s], last = t->option_at[s + 1];
        uint64_t word_at = t->word_at[s];
        for (; option < last && option < t->options; option++) {
            dgm_table_option o;
            dgm_phrase_table_option(t, option, &word_at, &o);
            w.size = 0;
            put_phrase(t, 0, t->source_word + begin, length, &w);
            dgm_write_u8(&w, ' ');
            put_option(t, &o, length, reordering, &w);
            if (!w.failed) dgm_textout_write(out, w.data, w.size);
        }
    }
    dgm_status st = w.failed ? dgm_no_memory(err) : dgm_textout_commit(&out, err);
    dgm_textout_discard(&out);
    dgm_writer_free(&w);
    return st;
}

dgm_status dgm_phrase_table_write(const dgm_phrase_table *t, const char *path,
                                  const char *reordering, dgm_error *err)
{
    DGM_FAIL_IF(reordering && t->features == DGM_PHRASE_SCORES, err, DGM_ERR_ARGUMENT,
                "the table has no orientations to write to '%s'", reordering);
    DGM_TRY(write_file(t, path, false, err));
    return reordering ? write_file(t, reordering, true, err) : DGM_OK;
}
