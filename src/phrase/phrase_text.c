// SPDX-License-Identifier: MIT
// Moses' text phrase tables and reordering tables, read and written; see phrase_table.h.
//
//     das haus ||| the house ||| 0.5 0.25 0.75 0.125 ||| 0-0 1-1 ||| 4 3 2
//
// Numbers are written with as few digits as keep the float, so that what was written here is read
// and written again byte by byte; counts (the fifth column) are not kept.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// Up to the next "|||" between blanks, which is skipped; false behind the last column.
static bool next_column(dgm_text *line, dgm_text *column)
{
    if (!line->data) return false;
    for (size_t i = 0; i + 3 <= line->size; i++) {
        if (memcmp(line->data + i, "|||", 3) != 0) continue;
        if (i > 0 && !is_blank(line->data[i - 1])) continue;
        if (i + 3 < line->size && !is_blank(line->data[i + 3])) continue;
        *column = (dgm_text){line->data, i};
        line->data += i + 3;
        line->size -= i + 3;
        return true;
    }
    *column = *line;
    *line = (dgm_text){NULL, 0};
    return true;
}

static bool next_field(dgm_text *column, dgm_text *field)
{
    while (column->size && is_blank(column->data[0])) column->data++, column->size--;
    *field = (dgm_text){column->data, 0};
    while (field->size < column->size && !is_blank(field->data[field->size])) field->size++;
    column->data += field->size;
    column->size -= field->size;
    return field->size > 0;
}

static bool to_number(dgm_text t, float *value)
{
    char text[64], *end;
    if (t.size == 0 || t.size >= sizeof text) return false;
    memcpy(text, t.data, t.size);
    text[t.size] = 0;
    if (!strchr("+-.0123456789", text[0])) return false; // no "inf", no "nan"
    *value = strtof(text, &end);
    return *end == 0 && isfinite(*value);
}

// Numbers of a column, at most `most`; each must be a probability.
static dgm_status read_numbers(dgm_text column, float *number, int most, int *count, dgm_error *err)
{
    dgm_text field;
    *count = 0;
    while (next_field(&column, &field)) {
        float v;
        DGM_FAIL_IF(!to_number(field, &v), err, DGM_ERR_FORMAT, "'%.*s' is not a number",
                    (int)(field.size < 40 ? field.size : 40), field.data);
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
    dgm_text field;
    *length = 0;
    while (next_field(&column, &field)) {
        DGM_FAIL_IF(*length == DGM_PHRASE_LENGTH_MAX, err, DGM_ERR_FORMAT,
                    "a phrase of more than %d words", DGM_PHRASE_LENGTH_MAX);
        DGM_TRY(dgm_phrase_builder_word(p->builder, side, field, &p->word[side][(*length)++], err));
    }
    DGM_FAIL_IF(*length == 0, err, DGM_ERR_FORMAT, "the %s phrase is empty",
                side ? "target" : "source");
    return DGM_OK;
}

static bool digit(dgm_text *t, int *value)
{
    if (t->size == 0 || t->data[0] < '0' || t->data[0] > '9') return false;
    *value = t->data[0] - '0';
    t->data++;
    t->size--;
    return true;
}

// "0-0 1-2"; positions have one digit.
static dgm_status read_links(dgm_text column, const dgm_phrase_row *r, uint64_t *links,
                             dgm_error *err)
{
    dgm_text field;
    while (next_field(&column, &field)) {
        dgm_text t = field;
        int i = 0, j = 0;
        bool good = digit(&t, &i) && t.size && t.data[0] == '-';
        if (good) {
            t.data++;
            t.size--;
            good = digit(&t, &j) && t.size == 0;
        }
        DGM_FAIL_IF(!good || i >= r->source_length || j >= r->target_length, err, DGM_ERR_FORMAT,
                    "'%.*s' is not a link of this phrase pair",
                    (int)(field.size < 40 ? field.size : 40), field.data);
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
    next_column(line, &source);
    DGM_FAIL_IF(!next_column(line, &target) || !line->data, err, DGM_ERR_FORMAT,
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
    next_column(&line, &column);
    DGM_TRY(read_numbers(column, score, DGM_PHRASE_SCORES + 1, &count, err));
    DGM_FAIL_IF(count < DGM_PHRASE_SCORES, err, DGM_ERR_FORMAT, "%d scores instead of %d", count,
                DGM_PHRASE_SCORES);
    for (int k = 0; k < DGM_PHRASE_SCORES; k++) {
        DGM_TRY(check_probability(score[k], err));
        r.score[k] = score[k];
    }
    if (next_column(&line, &column)) DGM_TRY(read_links(column, &r, &r.links, err));
    return dgm_phrase_builder_row(p->builder, &r, false, err);
}

dgm_status dgm_phrase_parser_reordering(dgm_phrase_parser *p, dgm_text line, dgm_error *err)
{
    dgm_phrase_row r = {0};
    dgm_text column;
    int count;
    DGM_TRY(read_phrases(p, &line, &r, err));
    next_column(&line, &column);
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

static dgm_status read_file(dgm_phrase_parser *p, const char *path, bool reordering, dgm_error *err)
{
    dgm_textin *in = NULL;
    DGM_TRY(dgm_textin_open(&in, path, err));
    dgm_status st = DGM_OK;
    for (bool more = true; st == DGM_OK;) {
        const char *line;
        size_t size;
        st = dgm_textin_next(in, &line, &size, &more, err);
        if (st != DGM_OK || !more) break;
        dgm_text t = {line, size};
        size_t bad = dgm_utf8_first_bad(t);
        if (bad < size)
            st = dgm_fail(err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
        else
            st = reordering ? dgm_phrase_parser_reordering(p, t, err)
                            : dgm_phrase_parser_line(p, t, err);
        if (st != DGM_OK)
            dgm_error_prefix(err, "%s:%llu", path, (unsigned long long)dgm_textin_line(in));
    }
    dgm_textin_close(&in);
    return st;
}

dgm_status dgm_phrase_table_read(dgm_phrase_table **t, const char *path, const char *reordering,
                                 int bits, dgm_error *err)
{
    dgm_phrase_parser *p = NULL;
    *t = NULL;
    DGM_TRY(dgm_phrase_parser_open(&p, err));
    dgm_status st = read_file(p, path, false, err);
    if (st == DGM_OK && reordering) st = read_file(p, reordering, true, err);
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
        if (strtof(text, NULL) == v) break;
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
