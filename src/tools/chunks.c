// SPDX-License-Identifier: MIT
// Translating a text in chunks; see chunks.h.
#include "tools/chunks.h"

#include <string.h>

#include "base/mem.h"
#include "base/textfile.h"
#include "tools/progress.h"

typedef struct chunk {
    dgm_input inputs[DGM_CHUNK_LINES];
    size_t count;
    char *text; // of all lines
    size_t size, cap;
    uint64_t lines; // translated so far
} chunk;

static dgm_status add_line(chunk *k, const char *line, size_t size, const dgm_direction *direction,
                           dgm_error *err)
{
    DGM_TRY(dgm_grow(&k->text, &k->cap, k->size + size + 1, 1, err));
    if (size) memcpy(k->text + k->size, line, size);
    k->inputs[k->count++] = (dgm_input){
        .size = sizeof(dgm_input), .text_size = size, .direction = direction};
    k->size += size;
    return DGM_OK;
}

static dgm_status translate(chunk *k, const dgm_chunks *c, dgm_translator *t, dgm_error *err)
{
    const char *at = k->text; // which does not move any more
    for (size_t i = 0; i < k->count; at += k->inputs[i++].text_size) k->inputs[i].text = at;
    dgm_results *results = NULL;
    dgm_status st = dgm_translate_inputs(t, k->inputs, k->count, &results, err);
    if (st == DGM_OK && c->done) st = c->done(c->cookie, results, err);
    dgm_results_free(&results);
    k->lines += k->count;
    k->count = k->size = 0;
    return st;
}

static double share_done(const chunk *k, const dgm_chunks *c, const dgm_lines *in)
{
    const uint64_t all = c->skip + c->lines;
    return c->lines ? (double)(c->skip + k->lines) / (double)all : dgm_lines_share(in);
}

static dgm_status translate_lines(chunk *k, const dgm_chunks *c, dgm_translator *t, dgm_lines *in,
                                  dgm_error *err)
{
    uint64_t skip = c->skip, number = 0;
    for (bool more = true; more;) {
        const char *line;
        size_t size;
        const dgm_direction *direction = NULL;
        DGM_TRY(dgm_lines_next(in, &line, &size, &more, err));
        if (more && c->directions) {
            if (number == c->directions->lines) more = false;
            else if (!(direction = dgm_text_directions_line(c->directions, number++, c->block)))
                continue;
        }
        if (more && skip && skip--) continue;
        if (more && c->lines && k->lines + k->count >= c->lines) more = false;
        if (more) DGM_TRY(add_line(k, line, size, direction, err));
        const bool full = k->count == DGM_CHUNK_LINES || k->size >= DGM_CHUNK_BYTES;
        if (k->count && (full || !more)) DGM_TRY(translate(k, c, t, err));
        if (full) DGM_TRY(dgm_progress_tick(&c->progress, c->stage, share_done(k, c, in), err));
    }
    return DGM_OK;
}

dgm_status dgm_chunks_translate(const dgm_chunks *c, dgm_translator *t, dgm_error *err)
{
    chunk *k = dgm_calloc(1, sizeof *k);
    dgm_lines *in = NULL;
    if (!k) return dgm_no_memory(err);
    dgm_status st = dgm_lines_open(&in, c->text, err);
    if (st == DGM_OK) st = translate_lines(k, c, t, in, err);
    dgm_lines_close(&in);
    dgm_free(k->text);
    dgm_free(k);
    return st;
}
