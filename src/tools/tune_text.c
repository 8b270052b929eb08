// SPDX-License-Identifier: MIT
// The text that settings are tried on: source and references line by line, in an order of the seed's, so that the first
// lines are a fair part of all.
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/textfile.h"
#include "tools/tune_private.h"

enum { LEAST_LINES = 10 };

typedef struct column {
    dgm_writer *bytes;
    size_t *end; // of every line in the bytes
    size_t count, cap;
} column;

static dgm_status keep_line(void *cookie, dgm_text line, dgm_error *err)
{
    column *c = cookie;
    dgm_write_bytes(c->bytes, line.data, line.size);
    if (c->bytes->failed) return dgm_no_memory(err);
    DGM_TRY(dgm_grow(&c->end, &c->cap, c->count + 1, sizeof *c->end, err));
    c->end[c->count++] = c->bytes->size;
    return DGM_OK;
}

static bool is_blank(dgm_line l)
{
    for (size_t i = 0; i < l.size; i++)
        if (!strchr(" \t\r\n", l.data[i])) return false;
    return true;
}

static dgm_status read_columns(dgm_tune_text *t, const dgm_tune_options *o, column *columns, dgm_error *err)
{
    for (size_t k = 0; k <= o->reference_count; k++) {
        const char *path = k ? o->references[k - 1] : o->input;
        columns[k].bytes = &t->bytes;
        DGM_TRY(dgm_lines_each(path, keep_line, &columns[k], err));
        DGM_FAIL_IF(columns[k].count == 0, err, DGM_ERR_TEXT, "'%s' is empty", path);
        DGM_FAIL_IF(columns[k].count != columns[0].count, err, DGM_ERR_TEXT, "'%s' has %zu lines, '%s' has %zu", path,
                    columns[k].count, o->input, columns[0].count);
    }
    return DGM_OK;
}

static dgm_line line_of(const dgm_tune_text *t, const column *columns, size_t k, size_t i)
{
    const size_t begin = i ? columns[k].end[i - 1] : k ? columns[k - 1].end[columns[k - 1].count - 1] : 0;
    const char *data = t->bytes.data ? (const char *)t->bytes.data : "";
    return (dgm_line){data + begin, columns[k].end[i] - begin};
}

// Lines that say something, and that some reference says something about.
static dgm_status pick_lines(dgm_tune_text *t, const dgm_tune_options *o, const column *columns, dgm_error *err)
{
    const size_t all = columns[0].count;
    t->ref_count = o->reference_count;
    t->source = dgm_calloc(all + 1, sizeof *t->source);
    t->number = dgm_calloc(all + 1, sizeof *t->number);
    t->refs = dgm_calloc(t->ref_count + 1, sizeof *t->refs);
    if (!t->source || !t->number || !t->refs) return dgm_no_memory(err);
    for (size_t k = 0; k < t->ref_count; k++)
        if (!(t->refs[k] = dgm_calloc(all + 1, sizeof **t->refs))) return dgm_no_memory(err);
    for (size_t i = 0; i < all; i++) {
        bool said = t->ref_count == 0;
        for (size_t k = 0; k < t->ref_count; k++) {
            t->refs[k][t->count] = line_of(t, columns, k + 1, i);
            said |= !is_blank(t->refs[k][t->count]);
        }
        t->source[t->count] = line_of(t, columns, 0, i);
        if (is_blank(t->source[t->count])) continue;
        t->number[t->count] = i + 1;
        t->skipped += !said;
        t->count += said;
    }
    DGM_FAIL_IF(t->count == 0 && t->skipped, err, DGM_ERR_TEXT, "'%s' has nothing but empty lines", o->references[0]);
    DGM_FAIL_IF(t->count < LEAST_LINES, err, DGM_ERR_TEXT,
                "'%s' has %zu line%s with words%s: too few to compare settings by, which takes at least %d", o->input,
                t->count, t->count == 1 ? "" : "s", t->ref_count ? " and a reference" : "", LEAST_LINES);
    return DGM_OK;
}

static void shuffle(dgm_tune_text *t, uint64_t seed)
{
    dgm_rng rng = {seed};
    for (size_t i = t->count; i > 1; i--) {
        const size_t k = (size_t)dgm_rng_below(&rng, i);
        const dgm_line line = t->source[k];
        const uint64_t number = t->number[k];
        t->source[k] = t->source[i - 1];
        t->source[i - 1] = line;
        t->number[k] = t->number[i - 1];
        t->number[i - 1] = number;
        for (size_t r = 0; r < t->ref_count; r++) {
            const dgm_line ref = t->refs[r][k];
            t->refs[r][k] = t->refs[r][i - 1];
            t->refs[r][i - 1] = ref;
        }
    }
}

dgm_status dgm_tune_text_read(dgm_tune_text *t, const dgm_tune_options *o, dgm_error *err)
{
    column *columns = dgm_calloc(o->reference_count + 1, sizeof *columns);
    if (!columns) return dgm_no_memory(err);
    dgm_status st = read_columns(t, o, columns, err);
    if (st == DGM_OK) st = pick_lines(t, o, columns, err);
    if (st == DGM_OK) shuffle(t, o->seed);
    for (size_t k = 0; k <= o->reference_count; k++) dgm_free(columns[k].end);
    dgm_free(columns);
    return st;
}

void dgm_tune_text_free(dgm_tune_text *t)
{
    for (size_t k = 0; t->refs && k < t->ref_count; k++) dgm_free(t->refs[k]);
    dgm_free(t->refs);
    dgm_free(t->source);
    dgm_free(t->number);
    dgm_writer_free(&t->bytes);
    *t = (dgm_tune_text){0};
}
