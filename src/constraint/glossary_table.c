// SPDX-License-Identifier: MIT
// Glossaries as tables: TSV (a row a line, columns between tabs) and CSV (RFC 4180: quotes around
// fields with commas, quotes and line breaks).
//
// The first column is the source term, the others are target variants, each possibly several
// between "|". Where the first row names a source and a target column ("source", "target", or the
// model's language codes), it is a header and says which columns count. Empty rows are skipped, in
// TSV also rows that begin with '#'.
#include <string.h>

#include "base/mem.h"
#include "constraint/glossary.h"
#include "text/language_code.h"

typedef struct field {
    size_t begin, size; // in cells
} field;

typedef struct table {
    dgm_glossary *g;
    dgm_text data;
    char comma;
    const char *source, *target;
    size_t at;
    size_t line;      // of data[at], from 1
    size_t row_line;  // where the row began
    dgm_writer cells; // the row's fields, quotes removed
    field *fields;
    size_t count, cap;
    int source_column;
    uint64_t target_columns; // bits; all 1: every column but the source's
} table;

static dgm_text field_text(const table *t, size_t i)
{
    return dgm_text_trim((dgm_text){
        t->cells.data ? (const char *)t->cells.data + t->fields[i].begin : "", t->fields[i].size});
}

static dgm_status end_field(table *t, size_t begin, dgm_error *err)
{
    if (t->cells.failed) return dgm_no_memory(err);
    DGM_TRY(dgm_grow(&t->fields, &t->cap, t->count + 1, sizeof *t->fields, err));
    t->fields[t->count++] = (field){begin, t->cells.size - begin};
    return DGM_OK;
}

// A quoted field, t->at behind its first quote.
static dgm_status read_quoted(table *t, dgm_error *err)
{
    const size_t line = t->line;
    for (;;) {
        DGM_FAIL_IF(t->at >= t->data.size, err, DGM_ERR_FORMAT,
                    "line %zu: a quote is never closed", line);
        char c = t->data.data[t->at++];
        if (c == '"') {
            if (t->at >= t->data.size || t->data.data[t->at] != '"') break;
            t->at++;
        }
        if (c == '\n') {
            t->line++;
            c = ' ';
        }
        dgm_write_u8(&t->cells, (uint8_t)(c == '\r' ? ' ' : c));
    }
    const char next = t->at < t->data.size ? t->data.data[t->at] : '\n';
    DGM_FAIL_IF(next != t->comma && next != '\n' && next != '\r', err, DGM_ERR_FORMAT,
                "line %zu: text behind a closing quote", t->line);
    return DGM_OK;
}

// The fields of the next row. False in *more: there is none.
static dgm_status read_row(table *t, bool *more, dgm_error *err)
{
    t->cells.size = t->count = 0;
    t->row_line = t->line;
    *more = t->at < t->data.size;
    while (*more) {
        const size_t begin = t->cells.size;
        if (t->comma == ',' && t->at < t->data.size && t->data.data[t->at] == '"') {
            t->at++;
            DGM_TRY(read_quoted(t, err));
        }
        while (t->at < t->data.size && t->data.data[t->at] != t->comma &&
               t->data.data[t->at] != '\n')
            dgm_write_u8(&t->cells, (uint8_t)t->data.data[t->at++]);
        DGM_TRY(end_field(t, begin, err));
        if (t->at < t->data.size && t->data.data[t->at] == t->comma) {
            t->at++;
            continue;
        }
        t->at += t->at < t->data.size; // the line break
        t->line++;
        break;
    }
    return DGM_OK;
}

static bool same(dgm_text a, const char *b)
{
    const size_t n = strlen(b);
    if (a.size != n) return false;
    for (size_t i = 0; i < n; i++)
        if ((a.data[i] | 32) != b[i]) return false;
    return true;
}

static bool names(dgm_text cell, const char *word, const char *language)
{
    return same(cell, word) || (language[0] && cell.size <= 12 && cell.size >= 2 &&
                                dgm_language_agrees(cell, dgm_text_of(language)));
}

static bool read_header(table *t)
{
    int source = -1;
    uint64_t targets = 0;
    for (size_t i = 0; i < t->count && i < 64; i++) {
        const dgm_text cell = field_text(t, i);
        if (source < 0 && names(cell, "source", t->source))
            source = (int)i;
        else if (names(cell, "target", t->target))
            targets |= (uint64_t)1 << i;
    }
    if (source < 0 || targets == 0) return false;
    t->source_column = source;
    t->target_columns = targets;
    return true;
}

static dgm_status add_cell(table *t, dgm_text source, dgm_text cell, int *added, dgm_error *err)
{
    while (cell.size > 0) {
        const char *bar = memchr(cell.data, '|', cell.size);
        const size_t n = bar ? (size_t)(bar - cell.data) : cell.size;
        const dgm_text word = dgm_text_trim((dgm_text){cell.data, n});
        if (word.size) {
            DGM_TRY(dgm_glossary_add(t->g, source, word, err));
            ++*added;
        }
        cell.data += bar ? n + 1 : n;
        cell.size -= bar ? n + 1 : n;
    }
    return DGM_OK;
}

static bool empty_row(const table *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (field_text(t, i).size) return false;
    return true;
}

// Most likely the columns are separated by something else.
static dgm_status one_column(const table *t, dgm_error *err)
{
    const dgm_text cell = field_text(t, 0);
    const char *hint = "";
    if (t->comma == '\t' && memchr(cell.data, ' ', cell.size))
        hint = ": columns are separated by tabs, not spaces";
    if (t->comma == ',' && memchr(cell.data, ';', cell.size))
        hint = ": columns are separated by commas, not semicolons";
    return dgm_fail(err, DGM_ERR_FORMAT,
                    "line %zu: one column, where a source term and its target were expected%s",
                    t->row_line, hint);
}

static dgm_status add_row(table *t, dgm_error *err)
{
    int added = 0;
    if (empty_row(t)) return DGM_OK;
    for (size_t i = 0; i < t->count; i++)
        DGM_FAIL_IF(!dgm_utf8_valid(field_text(t, i)), err, DGM_ERR_FORMAT,
                    "line %zu: invalid UTF-8", t->row_line);
    if (t->count < 2) return one_column(t, err);
    DGM_FAIL_IF((size_t)t->source_column >= t->count, err, DGM_ERR_FORMAT,
                "line %zu: %zu columns, the source is in column %d", t->row_line, t->count,
                t->source_column + 1);
    const dgm_text source = field_text(t, (size_t)t->source_column);
    DGM_FAIL_IF(source.size == 0, err, DGM_ERR_FORMAT, "line %zu: the source term is empty",
                t->row_line);
    for (size_t i = 0; i < t->count; i++)
        if ((int)i != t->source_column && (i < 64 ? t->target_columns >> i & 1 : 1))
            DGM_TRY(add_cell(t, source, field_text(t, i), &added, err));
    DGM_FAIL_IF(added == 0, err, DGM_ERR_FORMAT, "line %zu: '%.*s' has no target", t->row_line,
                (int)(source.size < 60 ? source.size : 60), source.data);
    return DGM_OK;
}

static dgm_status read_table(table *t, dgm_error *err)
{
    bool first = true;
    for (;;) {
        bool more;
        if (t->comma == '\t' && t->at < t->data.size && t->data.data[t->at] == '#') {
            const char *end = memchr(t->data.data + t->at, '\n', t->data.size - t->at);
            t->at = end ? (size_t)(end - t->data.data) + 1 : t->data.size;
            t->line++;
            continue;
        }
        DGM_TRY(read_row(t, &more, err));
        if (!more) return DGM_OK;
        if (!(first && read_header(t))) DGM_TRY(add_row(t, err));
        first = first && empty_row(t);
    }
}

static dgm_status parse(dgm_glossary *g, dgm_text data, char comma, const char *source,
                        const char *target, dgm_error *err)
{
    table t = {.g = g,
               .data = data,
               .comma = comma,
               .source = source,
               .target = target,
               .line = 1,
               .target_columns = UINT64_MAX};
    const dgm_status st = read_table(&t, err);
    dgm_writer_free(&t.cells);
    dgm_free(t.fields);
    return st;
}

dgm_status dgm_glossary_tsv(dgm_glossary *g, dgm_text data, const char *source, const char *target,
                            dgm_error *err)
{
    return parse(g, data, '\t', source, target, err);
}

dgm_status dgm_glossary_csv(dgm_glossary *g, dgm_text data, const char *source, const char *target,
                            dgm_error *err)
{
    return parse(g, data, ',', source, target, err);
}
