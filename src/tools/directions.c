// SPDX-License-Identifier: MIT
// The directions of a text's lines; see directions.h.
#include "tools/directions.h"

#include <string.h>

#include "base/fields.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/textfile.h"
#include "engine/engine_private.h"
#include "format/clusters.h"

// While the files are read.
typedef struct reading {
    dgm_text_directions *d;
    const dgm_translator *t;
    const dgm_languages *languages;
    const bool *any;
    uint16_t *number; // [sources, targets]: of the direction among the items, from 1; 0: not seen yet
    size_t line_cap, item_cap, block_cap;
    dgm_writer names; // of the line at hand
} reading;

// Two fields are source and target, one is the target; more are no language, which the model will say.
static dgm_status cut(reading *r, dgm_text line, dgm_direction *asked, dgm_error *err)
{
    while (line.size && (dgm_is_blank(line.data[line.size - 1]) || line.data[line.size - 1] == '\r'))
        line.size--;
    dgm_text rest = line;
    dgm_text first = dgm_field_next(&rest), second = dgm_field_next(&rest);
    if (rest.size) {
        first = line;
        second = (dgm_text){line.data, 0};
    }
    *asked = (dgm_direction){0};
    r->names.size = 0;
    dgm_write_bytes(&r->names, first.data, first.size);
    dgm_write_u8(&r->names, 0);
    const size_t at = r->names.size;
    dgm_write_bytes(&r->names, second.data, second.size);
    dgm_write_u8(&r->names, 0);
    if (r->names.failed) return dgm_no_memory(err);
    const char *names = (const char *)r->names.data;
    if (second.size || rest.size) {
        asked->source = names;
        asked->target = names + at;
    } else {
        asked->target = names;
    }
    return DGM_OK;
}

static dgm_status find_block(reading *r, const dgm_direction *codes, int *block, dgm_error *err)
{
    dgm_text_directions *d = r->d;
    const dgm_direction own = {r->any[0] ? "" : codes->source, r->any[1] ? "" : codes->target};
    for (*block = 0; *block < d->block_count; ++*block)
        if (strcmp(d->blocks[*block].source, own.source) == 0 &&
            strcmp(d->blocks[*block].target, own.target) == 0)
            return DGM_OK;
    DGM_FAIL_IF(d->block_count == DGM_CLUSTERS_BLOCKS_MAX, err, DGM_ERR_TEXT,
                "a model file holds clusters of at most %d directions", DGM_CLUSTERS_BLOCKS_MAX);
    DGM_TRY(dgm_grow(&d->blocks, &r->block_cap, (size_t)d->block_count + 1, sizeof *d->blocks, err));
    d->blocks[d->block_count++] = own;
    return DGM_OK;
}

static dgm_status add_line(reading *r, const char *line, size_t size, dgm_error *err)
{
    dgm_text_directions *d = r->d;
    const dgm_languages *l = r->languages;
    dgm_direction asked;
    int direction[2];
    bool other;
    DGM_TRY(cut(r, (dgm_text){line, size}, &asked, err));
    DGM_TRY(dgm_direction_line(r->t, &asked, direction, &other, err));
    uint16_t *number = &r->number[direction[0] * l->count[1] + direction[1]];
    if (!*number) {
        const dgm_direction codes = {l->code[0][direction[0]], l->code[1][direction[1]]};
        DGM_FAIL_IF(d->count == UINT16_MAX, err, DGM_ERR_TEXT, "there are more than %d directions",
                    UINT16_MAX);
        DGM_TRY(dgm_grow(&d->items, &r->item_cap, d->count + 1, sizeof *d->items, err));
        d->items[d->count].codes = codes;
        DGM_TRY(find_block(r, &codes, &d->items[d->count].block, err));
        *number = (uint16_t)++d->count;
    }
    DGM_TRY(dgm_grow(&d->of, &r->line_cap, (size_t)d->lines + 1, sizeof *d->of, err));
    d->of[d->lines++] = (uint16_t)(*number - 1);
    return DGM_OK;
}

static dgm_status read_both(reading *r, dgm_lines *text, dgm_lines *beside, uint64_t lines,
                            dgm_error *err)
{
    const char *line;
    size_t size;
    bool more = true, said = true;
    while (!lines || r->d->lines < lines) {
        DGM_TRY(dgm_lines_next(text, &line, &size, &more, err));
        DGM_TRY(dgm_lines_next(beside, &line, &size, &said, err));
        DGM_FAIL_IF(more != said, err, DGM_ERR_TEXT, "%s has %s lines than %s",
                    dgm_lines_name(beside), more ? "fewer" : "more", dgm_lines_name(text));
        if (!more) return DGM_OK;
        const dgm_status st = add_line(r, line, size, err);
        if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_lines_blame(beside, err);
        if (st != DGM_OK) return st;
    }
    return DGM_OK;
}

static dgm_status read_files(reading *r, const char *path, const char *text, uint64_t lines,
                             dgm_error *err)
{
    const dgm_languages *l = r->languages;
    DGM_FAIL_IF(l->count[0] == 0 || l->count[1] == 0, err, DGM_ERR_UNSUPPORTED,
                "%s: the model does not say its languages, so lines cannot have directions",
                dgm_gguf_path(r->t->members[0].file));
    r->number = dgm_calloc((size_t)l->count[0] * (size_t)l->count[1], sizeof *r->number);
    if (!r->number) return dgm_no_memory(err);
    dgm_lines *in = NULL, *beside = NULL;
    dgm_status st = dgm_lines_open(&in, text, err);
    if (st == DGM_OK) st = dgm_lines_open(&beside, path, err);
    if (st == DGM_OK) st = read_both(r, in, beside, lines, err);
    dgm_lines_close(&beside);
    dgm_lines_close(&in);
    return st;
}

dgm_status dgm_text_directions_read(dgm_text_directions *d, const dgm_translator *t,
                                    const char *path, const char *text, uint64_t lines,
                                    const bool any[2], dgm_error *err)
{
    *d = (dgm_text_directions){0};
    reading r = {.d = d,
                 .t = t,
                 .languages = dgm_model_describe(t->members[0].model)->languages,
                 .any = any};
    const dgm_status st = read_files(&r, path, text, lines, err);
    dgm_free(r.number);
    dgm_writer_free(&r.names);
    if (st != DGM_OK) dgm_text_directions_free(d);
    return st;
}

void dgm_text_directions_free(dgm_text_directions *d)
{
    dgm_free(d->of);
    dgm_free(d->items);
    dgm_free(d->blocks);
    *d = (dgm_text_directions){0};
}

const dgm_direction *dgm_text_directions_line(const dgm_text_directions *d, uint64_t number,
                                              int block)
{
    const dgm_text_direction *item = &d->items[d->of[number]];
    return item->block == block ? &item->codes : NULL;
}

uint64_t dgm_text_directions_hash(const dgm_text_directions *d, int block)
{
    uint64_t h = DGM_HASH_START;
    for (uint64_t i = 0; i < d->lines; i++) {
        if (d->items[d->of[i]].block != block) continue;
        h = dgm_hash_number(h, i);
        h = dgm_hash_number(h, d->of[i]);
    }
    return h;
}
