// SPDX-License-Identifier: MIT
// Tables: CSV (RFC 4180) and TSV. Cells of the columns that were asked for, by number or by the names in the first
// row, which then stays. A cell that needs quotes for its translation gets them.
#include <string.h>

#include "document/document.h"

enum { COLUMNS_MAX = 256 };

typedef struct table {
    dgm_document *d;
    dgm_text t;
    char separator;
    bool wanted[COLUMNS_MAX];
    bool named;
} table;

typedef struct cell {
    size_t begin, end; // of its text, without quotes
    bool quoted;
    size_t next; // where the next one begins
    bool last;   // of its row
} cell;

// ---- escaping -------------------------------------------------------------------------------------

// Quotes are doubled between quotes.
static dgm_status decode_cell(dgm_text raw, dgm_writer *text, dgm_writer *map, dgm_error *err)
{
    (void)err;
    for (size_t i = 0; i < raw.size; i++) {
        const uint32_t offset = (uint32_t)i;
        dgm_write_u8(text, (uint8_t)raw.data[i]);
        if (map) dgm_write_bytes(map, &offset, sizeof offset);
        if (raw.data[i] == '"' && i + 1 < raw.size && raw.data[i + 1] == '"') i++;
    }
    return DGM_OK;
}

static void encode_cell(dgm_text text, dgm_writer *raw)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"') dgm_write_u8(raw, '"');
        dgm_write_u8(raw, (uint8_t)text.data[i]);
    }
}

static const dgm_escape cell_escape = {"cell", decode_cell, encode_cell};

static dgm_status write_bare(const dgm_document *d, size_t index, dgm_text encoded, dgm_writer *out, dgm_error *err)
{
    const char separator = *(const char *)dgm_segment_user(d, index);
    const bool quotes = separator == ',' || separator == ';'
                            ? memchr(encoded.data, separator, encoded.size) || memchr(encoded.data, '"', encoded.size)
                            : false;
    (void)err;
    if (quotes) dgm_write_u8(out, '"');
    for (size_t i = 0; i < encoded.size; i++) {
        if (quotes && encoded.data[i] == '"') dgm_write_u8(out, '"');
        dgm_write_u8(out, (uint8_t)(encoded.data[i] == '\t' && separator == '\t' ? ' ' : encoded.data[i]));
    }
    if (quotes) dgm_write_u8(out, '"');
    return DGM_OK;
}

// ---- cells ----------------------------------------------------------------------------------------

static dgm_status read_cell(const table *x, size_t pos, cell *c, dgm_error *err)
{
    const dgm_text t = x->t;
    *c = (cell){.begin = pos, .quoted = x->separator != '\t' && pos < t.size && t.data[pos] == '"'};
    size_t i = pos;
    if (c->quoted) {
        for (i = c->begin = pos + 1; i < t.size; i++) {
            if (t.data[i] != '"') continue;
            if (i + 1 < t.size && t.data[i + 1] == '"')
                i++;
            else
                break;
        }
        DGM_FAIL_IF(i >= t.size, err, DGM_ERR_FORMAT, "line %zu: a quote is not closed",
                    dgm_source_line(x->d, 0, pos));
        c->end = i++;
        const bool fine = i >= t.size || t.data[i] == x->separator || t.data[i] == '\n' || t.data[i] == '\r';
        DGM_FAIL_IF(!fine, err, DGM_ERR_FORMAT, "line %zu: something stands behind a closing quote",
                    dgm_source_line(x->d, 0, i));
    } else {
        while (i < t.size && t.data[i] != x->separator && t.data[i] != '\n' && t.data[i] != '\r') i++;
        c->end = i;
    }
    c->last = i >= t.size || t.data[i] != x->separator;
    if (i < t.size && t.data[i] == '\r' && i + 1 < t.size && t.data[i + 1] == '\n') i++;
    c->next = i < t.size ? i + 1 : i;
    return DGM_OK;
}

static dgm_status add_cell(table *x, const cell *c, dgm_error *err)
{
    static const char comma = ',', semicolon = ';', tab = '\t';
    const char *separator = x->separator == ',' ? &comma : x->separator == ';' ? &semicolon : &tab;
    const dgm_segment_spec spec = {.begin = c->begin,
                                   .end = c->end,
                                   .escape = c->quoted ? &cell_escape : &dgm_escape_none,
                                   .flags = DGM_SEGMENT_LINES | DGM_SEGMENT_TAGS,
                                   .write = c->quoted ? NULL : write_bare,
                                   .user = (void *)(uintptr_t)separator};
    DGM_TRY(dgm_segment_begin(x->d, &spec, NULL, err));
    DGM_TRY(dgm_segment_raw(x->d, (dgm_text){x->t.data + c->begin, c->end - c->begin}, err));
    return dgm_segment_end(x->d, err);
}

// ---- columns --------------------------------------------------------------------------------------

static bool is_number(dgm_text t)
{
    for (size_t i = 0; i < t.size; i++)
        if ((t.data[i] < '0' || t.data[i] > '9') && t.data[i] != '-') return false;
    return t.size > 0;
}

// "3" or "2-4"
static dgm_status want_numbers(table *x, dgm_text item, dgm_error *err)
{
    size_t numbers[2] = {0, 0}, which = 0;
    for (size_t i = 0; i < item.size; i++) {
        if (item.data[i] == '-' && which == 0 && i)
            which = 1;
        else if (item.data[i] == '-' || numbers[which] > COLUMNS_MAX)
            which = 2;
        else if (which < 2)
            numbers[which] = numbers[which] * 10 + (size_t)(item.data[i] - '0');
        if (which == 2) break;
    }
    const size_t last = which == 0 ? numbers[0] : numbers[1];
    DGM_FAIL_IF(which == 2 || numbers[0] < 1 || last < numbers[0] || last > COLUMNS_MAX, err, DGM_ERR_ARGUMENT,
                "--column: '%.*s' is no column: numbers are 1 to %d", (int)item.size, item.data, COLUMNS_MAX);
    for (size_t i = numbers[0]; i <= last; i++) x->wanted[i - 1] = true;
    return DGM_OK;
}

static dgm_status want_name(table *x, dgm_text name, dgm_error *err)
{
    cell c = {.next = 0};
    for (size_t i = 0; i < COLUMNS_MAX; i++) {
        DGM_TRY(read_cell(x, c.next, &c, err));
        if (dgm_text_equal((dgm_text){x->t.data + c.begin, c.end - c.begin}, name)) {
            x->wanted[i] = x->named = true;
            return DGM_OK;
        }
        if (c.last) break;
    }
    return dgm_fail(err, DGM_ERR_ARGUMENT, "--column: the first row has no column '%.*s'", (int)name.size, name.data);
}

static dgm_status choose_columns(table *x, dgm_error *err)
{
    const char *asked = dgm_document_asked(x->d)->columns;
    DGM_FAIL_IF(!asked || !*asked, err, DGM_ERR_ARGUMENT,
                "a table requires --column: numbers from 1, or names in its first row");
    for (const char *p = asked; *p;) {
        const dgm_text item = {p, strcspn(p, ",")};
        DGM_TRY(is_number(item) ? want_numbers(x, item, err) : want_name(x, item, err));
        p += item.size + (p[item.size] == ',');
    }
    return DGM_OK;
}

static dgm_status read_table(dgm_document *d, char separator, dgm_error *err)
{
    table x = {.d = d, .t = dgm_document_source(d, 0), .separator = separator};
    size_t row = 0, column = 0;
    DGM_TRY(choose_columns(&x, err));
    for (size_t at = 0; at < x.t.size;) {
        cell c;
        DGM_TRY(read_cell(&x, at, &c, err));
        const bool wanted = column < COLUMNS_MAX && x.wanted[column] && !(row == 0 && x.named);
        if (wanted && c.end > c.begin) DGM_TRY(add_cell(&x, &c, err));
        column = c.last ? 0 : column + 1;
        row += c.last;
        at = c.next;
    }
    return DGM_OK;
}

// Where the first row has semicolons and no comma, these separate.
static dgm_status read_csv(dgm_document *d, dgm_error *err)
{
    const dgm_text t = dgm_document_source(d, 0);
    const char *stop = memchr(t.data, '\n', t.size);
    const size_t first = stop ? (size_t)(stop - t.data) : t.size;
    const bool commas = memchr(t.data, ',', first), semicolons = memchr(t.data, ';', first);
    return read_table(d, semicolons && !commas ? ';' : ',', err);
}

static dgm_status read_tsv(dgm_document *d, dgm_error *err)
{
    return read_table(d, '\t', err);
}

const dgm_document_reader dgm_csv_reader = {
    .format = DGM_FORMAT("csv", "csv", "columns of a table with commas or semicolons (--column)"),
    .read = read_csv,
};

const dgm_document_reader dgm_tsv_reader = {
    .format = DGM_FORMAT("tsv", "tsv tab", "columns of a table with tabs (--column)"),
    .read = read_tsv,
};
