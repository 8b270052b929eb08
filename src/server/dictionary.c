// SPDX-License-Identifier: MIT
// Terms of one direction, read from TSV and CSV and written again; see glossary_store.h.
#include <string.h>

#include "base/mem.h"
#include "dragoman/common.h"
#include "server/glossary_store.h"
#include "text/unicode.h"

// What a term takes beside its letters: the block of its target, and its places in arrays that grow by doubling. Short
// terms take many times their letters, which the limit of all glossaries is to count.
enum { TERM_BYTES = 192 };

// Of memory, with its place in the book.
static size_t bytes_of(size_t source, size_t target)
{
    return source + target + TERM_BYTES + dgm_termbook_bytes(1, source + target);
}

void dgm_dictionary_free(dgm_dictionary *d)
{
    for (size_t i = 0; i < d->sources.count && d->targets; i++) dgm_free(d->targets[i]);
    dgm_words_free(&d->sources);
    dgm_free(d->targets);
    dgm_termbook_drop(&d->book);
    *d = (dgm_dictionary){.source = ""};
}

// Adds a term, or gives one another target.
static dgm_status put(dgm_dictionary *d, dgm_text source, dgm_text target, bool *known, dgm_error *err)
{
    uint32_t number = 0;
    char *own = dgm_malloc(target.size + 1);
    if (!own) return dgm_no_memory(err);
    memcpy(own, target.data, target.size);
    own[target.size] = 0;
    *known = dgm_words_find(&d->sources, source) >= 0;
    dgm_status st = dgm_grow(&d->targets, &d->cap, d->sources.count + 1, sizeof *d->targets, err);
    if (st == DGM_OK) st = dgm_words_add(&d->sources, source, &number, err);
    if (st != DGM_OK) {
        dgm_free(own);
        return st;
    }
    if (*known) {
        d->bytes -= bytes_of(source.size, strlen(d->targets[number]));
        dgm_free(d->targets[number]);
    }
    d->targets[number] = own;
    d->bytes += bytes_of(source.size, target.size);
    dgm_termbook_drop(&d->book);
    return DGM_OK;
}

dgm_status dgm_dictionary_put(dgm_dictionary *d, dgm_text source, const char *target, dgm_error *err)
{
    bool known;
    return put(d, source, dgm_text_of(target), &known, err);
}

// The next field of a row of CSV, quotes taken away in place; *at behind it, at a comma, a line break or the end.
static dgm_status csv_field(char *text, size_t size, size_t *at, size_t row, dgm_text *out, dgm_error *err)
{
    char *to = text + *at, *const begin = to;
    size_t i = *at;
    const bool quoted = i < size && text[i] == '"';
    for (i += quoted; i < size; i++) {
        if (quoted && text[i] == '"' && (i + 1 >= size || text[i + 1] != '"')) break;
        if (!quoted && (text[i] == ',' || text[i] == '\n')) break;
        if (quoted && text[i] == '"') i++;
        *to++ = text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
    }
    DGM_FAIL_IF(quoted && i >= size, err, DGM_ERR_FORMAT, "entry %zu: a quote is never closed", row);
    i += quoted;
    while (i < size && (text[i] == '\r' || text[i] == ' ')) i++;
    DGM_FAIL_IF(i < size && text[i] != ',' && text[i] != '\n', err, DGM_ERR_FORMAT,
                "entry %zu: text behind a closing quote", row);
    *at = i;
    *out = dgm_text_trim((dgm_text){begin, (size_t)(to - begin)});
    return DGM_OK;
}

static dgm_status csv_row(char *text, size_t size, size_t *at, size_t row, dgm_text fields[2], size_t *count,
                          dgm_error *err)
{
    for (*count = 0;; ++*at) {
        dgm_text field;
        DGM_TRY(csv_field(text, size, at, row, &field, err));
        if (*count < 2) fields[*count] = field;
        ++*count;
        if (*at >= size || text[*at] != ',') break;
    }
    ++*at;
    return DGM_OK;
}

static dgm_status tsv_row(const char *text, size_t size, size_t *at, dgm_text fields[2], size_t *count)
{
    const char *end = memchr(text + *at, '\n', size - *at);
    dgm_text line = {text + *at, end ? (size_t)(end - text) - *at : size - *at};
    *at += line.size + 1;
    line = dgm_text_trim(line);
    const char *tab = memchr(line.data, '\t', line.size);
    const size_t n = tab ? (size_t)(tab - line.data) : line.size;
    fields[0] = dgm_text_trim((dgm_text){line.data, n});
    fields[1] = tab ? dgm_text_trim((dgm_text){tab + 1, line.size - n - 1}) : (dgm_text){"", 0};
    *count = tab ? 2 + (memchr(fields[1].data, '\t', fields[1].size) != NULL) : 1;
    return DGM_OK;
}

dgm_status dgm_dictionary_read(dgm_dictionary *d, const char *text, size_t size, bool csv, dgm_error *err)
{
    DGM_FAIL_IF(size > DGM_GLOSSARY_BYTES, err, DGM_ERR_FORMAT, "entries have more than %zu bytes",
                DGM_GLOSSARY_BYTES);
    DGM_FAIL_IF(size && memchr(text, 0, size), err, DGM_ERR_FORMAT, "entries have a zero byte"); // terms end there
    char *own = dgm_malloc(size + 1); // quotes are taken away in place
    if (!own) return dgm_no_memory(err);
    if (size) memcpy(own, text, size);
    dgm_status st = DGM_OK;
    for (size_t at = 0, row = 1; at < size && st == DGM_OK; row++) {
        dgm_text fields[2] = {{"", 0}, {"", 0}};
        size_t count = 0;
        bool known = false;
        st = csv ? csv_row(own, size, &at, row, fields, &count, err) : tsv_row(own, size, &at, fields, &count);
        if (st != DGM_OK || (count == 1 && !fields[0].size)) continue; // an empty line
        if (count < 2 || (!csv && count > 2))
            st = dgm_fail(err, DGM_ERR_FORMAT, "entry %zu has %s separator", row, count < 2 ? "no" : "more than one");
        else if (!fields[0].size || !fields[1].size)
            st = dgm_fail(err, DGM_ERR_FORMAT, "entry %zu: a term is empty", row);
        else
            st = put(d, fields[0], fields[1], &known, err);
        if (st == DGM_OK && known) st = dgm_fail(err, DGM_ERR_FORMAT, "entry %zu: its source came before", row);
    }
    dgm_free(own);
    if (st == DGM_OK && d->sources.count == 0) st = dgm_fail(err, DGM_ERR_FORMAT, "there are no entries");
    return st;
}

void dgm_dictionary_write(const dgm_dictionary *d, dgm_writer *out)
{
    for (size_t i = 0; i < d->sources.count; i++) {
        const dgm_text source = dgm_words_spell(&d->sources, (uint32_t)i);
        if (i) dgm_write_u8(out, '\n');
        dgm_write_bytes(out, source.data, source.size);
        dgm_write_u8(out, '\t');
        dgm_write_text(out, d->targets[i]);
    }
}
