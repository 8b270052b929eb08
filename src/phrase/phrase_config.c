// SPDX-License-Identifier: MIT
// Phrase-based systems described in a file: which table, language model and weights belong together,
// how text becomes words, and how the decoder is set.
//
//     # English to German, Europarl
//     source = en            languages, which tokenize and detokenize say otherwise
//     target = de
//     table = en-de.pt       files lie beside this one, or have whole paths
//     lm = de.lm
//     weights = tuned.weights
//     tokenize = en
//     detokenize = de
//     pops = 400
#include <string.h>

#include "base/fields.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "dragoman/phrase.h"
#include "phrase/phrase_decode.h"
#include "text/unicode.h"

enum { KEYS = 15 };

struct dgm_phrasal_file {
    dgm_phrasal_options options;
    char *owned[KEYS]; // strings in it
};

typedef enum kind { TEXT, FILE_NAME, COUNT, REAL } kind;

typedef struct key {
    const char *name; // those of the options of `dragoman phrase translate`
    kind kind;
    size_t offset;
    int min, max; // of numbers
} key;

#define AT(field) offsetof(dgm_phrasal_options, field)

static const key keys[KEYS] = {
    {"table", FILE_NAME, AT(table), 0, 0},
    {"reordering", FILE_NAME, AT(reordering), 0, 0},
    {"lm", FILE_NAME, AT(lm), 0, 0},
    {"weights", FILE_NAME, AT(weights), 0, 0},
    {"subwords", FILE_NAME, AT(subwords), 0, 0},
    {"tokenize", TEXT, AT(tokenize), 0, 0},
    {"detokenize", TEXT, AT(detokenize), 0, 0},
    {"source", TEXT, AT(source), 0, 0},
    {"target", TEXT, AT(target), 0, 0},
    {"uniform", COUNT, AT(uniform), 0, 1},
    {"pops", COUNT, AT(pops), 1, 10000000},
    {"stack", COUNT, AT(stack), 1, 10000000},
    {"distortion-limit", COUNT, AT(jump), 0, DGM_PB_JUMP_MAX},
    {"table-limit", COUNT, AT(table_limit), 1, 1000000},
    {"lattice-beam", REAL, AT(lattice_beam), 0, 1000000000},
};

typedef struct reading {
    dgm_phrasal_file *f;
    const char *path;
    bool seen[KEYS];
} reading;

void dgm_phrasal_init(dgm_phrasal_options *out, size_t size)
{
    dgm_pb_params p;
    dgm_pb_params_default(&p);
    const dgm_phrasal_options own = {.pops = p.pops,
                                     .stack = p.stack,
                                     .jump = p.jump,
                                     .table_limit = p.table_limit,
                                     .nbest = 1,
                                     .lattice_beam = 0.5,
                                     .threads = 1};
    dgm_sized_give(out, size, &own, sizeof own);
}

// What stands behind a '#' at the beginning or after a blank is for people.
static dgm_text without_comment(dgm_text line)
{
    for (size_t i = 0; i < line.size; i++)
        if (line.data[i] == '#' && (i == 0 || dgm_is_blank(line.data[i - 1])))
            return (dgm_text){line.data, i};
    return line;
}

static dgm_status keep_text(reading *r, int k, dgm_text value, dgm_error *err)
{
    const char *slash = strrchr(r->path, '/');
    const bool beside = keys[k].kind == FILE_NAME && value.data[0] != '/' && slash;
    dgm_writer w = {0};
    if (beside) dgm_write_bytes(&w, r->path, (size_t)(slash + 1 - r->path));
    dgm_write_bytes(&w, value.data, value.size);
    const char *text = r->f->owned[k] = dgm_writer_take(&w, NULL);
    dgm_writer_free(&w);
    if (!text) return dgm_no_memory(err);
    memcpy((char *)&r->f->options + keys[k].offset, &text, sizeof text);
    return DGM_OK;
}

static dgm_status keep_number(reading *r, int k, dgm_text value, dgm_error *err)
{
    const int min = keys[k].min, max = keys[k].max;
    char *at = (char *)&r->f->options + keys[k].offset;
    int64_t whole = 0;
    double real = 0;
    const bool good = keys[k].kind == COUNT
                          ? dgm_number_i64(value, min, max, &whole)
                          : dgm_number_f64(value, &real) && real >= min && real <= max;
    DGM_FAIL_IF(!good, err, DGM_ERR_FORMAT, "%s must be %d to %d, not '%.*s'", keys[k].name, min,
                max, DGM_SHOWN(value));
    const int number = (int)whole;
    if (keys[k].kind == COUNT)
        memcpy(at, &number, sizeof number);
    else
        memcpy(at, &real, sizeof real);
    return DGM_OK;
}

static dgm_status read_line(void *cookie, dgm_text line, dgm_error *err)
{
    reading *r = cookie;
    DGM_FAIL_IF(!dgm_utf8_valid(line), err, DGM_ERR_FORMAT, "not text: no phrase system");
    line = dgm_field_trim(without_comment(line));
    if (line.size == 0) return DGM_OK;
    const char *equals = memchr(line.data, '=', line.size);
    DGM_FAIL_IF(!equals, err, DGM_ERR_FORMAT, "not 'name = value': '%.*s'", DGM_SHOWN(line));
    const size_t before = (size_t)(equals - line.data);
    const dgm_text name = dgm_field_trim((dgm_text){line.data, before});
    const dgm_text value = dgm_field_trim((dgm_text){equals + 1, line.size - before - 1});
    int k = 0;
    while (k < KEYS && !dgm_text_is(name, keys[k].name)) k++;
    DGM_FAIL_IF(k == KEYS, err, DGM_ERR_FORMAT,
                "an unknown setting of a phrase system: '%.*s'", DGM_SHOWN(name));
    DGM_FAIL_IF(r->seen[k], err, DGM_ERR_FORMAT, "%s is there twice", keys[k].name);
    DGM_FAIL_IF(value.size == 0, err, DGM_ERR_FORMAT, "%s has no value", keys[k].name);
    r->seen[k] = true;
    if (keys[k].kind == COUNT || keys[k].kind == REAL) return keep_number(r, k, value, err);
    return keep_text(r, k, value, err);
}

dgm_status dgm_phrasal_file_open(dgm_phrasal_file **file, const char *path, dgm_error *err)
{
    dgm_phrasal_file *f = *file = dgm_calloc(1, sizeof *f);
    if (!f) return dgm_no_memory(err);
    dgm_phrasal_default(&f->options);
    reading r = {.f = f, .path = path};
    dgm_status st = dgm_lines_each(path, read_line, &r, err);
    dgm_phrasal_options *o = &f->options;
    if (st == DGM_OK && (!o->table || !o->lm))
        st = dgm_fail(err, DGM_ERR_FORMAT, "%s: the phrase system has no %s", path,
                      o->table ? "lm" : "table");
    if (!o->source) o->source = o->tokenize;
    if (!o->target) o->target = o->detokenize;
    if (st != DGM_OK) dgm_phrasal_file_close(file);
    return st;
}

void dgm_phrasal_file_options_sized(const dgm_phrasal_file *file, dgm_phrasal_options *options,
                                    size_t size)
{
    dgm_sized_give(options, size, &file->options, sizeof file->options);
}

void dgm_phrasal_file_close(dgm_phrasal_file **file)
{
    if (!*file) return;
    for (int k = 0; k < KEYS; k++) dgm_free((*file)->owned[k]);
    dgm_free(*file);
    *file = NULL;
}
