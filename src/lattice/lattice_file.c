// SPDX-License-Identifier: MIT
// Files of many lattices, and OpenFst's tables of symbols.
//
// A lattice ends at an empty line, at the next "lattice" line, or with the file. The lines of one
// are collected and parsed together (lattice_text.c), so that memory follows the largest lattice,
// not the file.
#include <string.h>

#include "base/fields.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/textfile.h"
#include "lattice/lattice.h"

struct dgm_lattice_file {
    dgm_lines *in;
    dgm_lattice_syntax syntax;
    dgm_words symbols;
    int64_t *ids; // [symbols.count]
    size_t id_cap;
    uint32_t *order; // [symbols.count] by number
    dgm_writer block;
    uint32_t block_line;
    dgm_writer ahead; // a "lattice" line that ended the block before it
    uint32_t ahead_line;
};

void dgm_lattice_file_close(dgm_lattice_file **out)
{
    dgm_lattice_file *f = *out;
    if (!f) return;
    dgm_lines_close(&f->in);
    dgm_words_free(&f->symbols);
    dgm_free(f->ids);
    dgm_free(f->order);
    dgm_writer_free(&f->block);
    dgm_writer_free(&f->ahead);
    dgm_free(f);
    *out = NULL;
}

static bool begins_lattice(dgm_text line)
{
    return dgm_text_is(dgm_field_next(&line), "lattice");
}

// WORD NUMBER
static dgm_status read_symbol(void *cookie, dgm_text line, dgm_error *err)
{
    dgm_lattice_file *f = cookie;
    const dgm_text word = dgm_field_next(&line), number = dgm_field_next(&line);
    if (word.size == 0) return DGM_OK;
    uint64_t id = 0;
    uint32_t found = 0;
    DGM_FAIL_IF(!dgm_number_u64(number, DGM_LATTICE_LABEL_MAX, &id) ||
                    dgm_field_next(&line).size > 0,
                err, DGM_ERR_FORMAT, "a symbol is WORD NUMBER");
    const size_t before = f->symbols.count;
    DGM_TRY(dgm_words_add(&f->symbols, word, &found, err));
    DGM_FAIL_IF(f->symbols.count == before, err, DGM_ERR_FORMAT, "the symbol '%.*s' comes twice",
                DGM_SHOWN(word));
    DGM_TRY(dgm_grow(&f->ids, &f->id_cap, f->symbols.count, sizeof *f->ids, err));
    f->ids[found] = (int64_t)id;
    return DGM_OK;
}

static int by_number(const void *context, uint32_t a, uint32_t b)
{
    const int64_t *ids = context;
    if (ids[a] != ids[b]) return ids[a] < ids[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static dgm_status read_symbols(dgm_lattice_file *f, const char *path, dgm_error *err)
{
    dgm_status st = dgm_lines_each(path, read_symbol, f, err);
    if (st == DGM_OK && f->symbols.count == 0)
        st = dgm_fail(err, DGM_ERR_FORMAT, "%s: a table without symbols", path);
    if (st != DGM_OK) return st;
    f->order = dgm_malloc(f->symbols.count * sizeof *f->order);
    if (!f->order) return dgm_no_memory(err);
    dgm_sort_indices(f->order, f->symbols.count, by_number, f->ids);
    f->syntax.symbols = &f->symbols;
    f->syntax.ids = f->ids;
    f->syntax.order = f->order;
    return DGM_OK;
}

dgm_status dgm_lattice_file_open(dgm_lattice_file **out, const char *path, const char *symbols,
                                 bool transducer, bool trim, dgm_error *err)
{
    *out = NULL;
    dgm_lattice_file *f = dgm_calloc(1, sizeof *f);
    if (!f) return dgm_no_memory(err);
    f->syntax = (dgm_lattice_syntax){.transducer = transducer, .trim = trim};
    dgm_status st = symbols ? read_symbols(f, symbols, err) : DGM_OK;
    if (st == DGM_OK) st = dgm_lines_open(&f->in, path, err);
    if (st != DGM_OK)
        dgm_lattice_file_close(&f);
    else
        *out = f;
    return st;
}

static void take(dgm_lattice_file *f, const char *line, size_t size)
{
    dgm_write_bytes(&f->block, line, size);
    dgm_write_u8(&f->block, '\n');
}

// The next block into f->block; empty at the end of the file. Comments before a block belong to it
// only in so far as they keep the line numbers right.
static dgm_status read_block(dgm_lattice_file *f, dgm_error *err)
{
    const char *line;
    size_t size;
    bool more = true, any = f->ahead.size > 0;
    f->block.size = 0;
    if (any) {
        f->block_line = f->ahead_line;
        take(f, (const char *)f->ahead.data, f->ahead.size);
        f->ahead.size = 0;
    }
    for (;;) {
        DGM_TRY(dgm_lines_next(f->in, &line, &size, &more, err));
        if (!more) break;
        const dgm_text inner = dgm_field_trim((dgm_text){line, size});
        if (inner.size == 0 && any) break;
        if (inner.size == 0 || (!any && inner.data[0] == '#')) continue;
        const uint32_t number = (uint32_t)dgm_lines_number(f->in);
        if (any && begins_lattice(inner)) {
            dgm_write_bytes(&f->ahead, line, size);
            f->ahead_line = number;
            break;
        }
        if (!any) f->block_line = number;
        any = true;
        take(f, line, size);
    }
    return f->block.failed || f->ahead.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_lattice_file_block(dgm_lattice_file *f, dgm_text *block, uint32_t *line,
                                  dgm_error *err)
{
    *block = (dgm_text){0};
    DGM_TRY(read_block(f, err));
    if (f->block.size == 0) return DGM_OK;
    *block = (dgm_text){(const char *)f->block.data, f->block.size};
    *line = f->block_line;
    return DGM_OK;
}

dgm_status dgm_lattice_file_next(dgm_lattice_file *f, dgm_lattice **l, dgm_error *err)
{
    dgm_text block;
    uint32_t line = 0;
    *l = NULL;
    DGM_TRY(dgm_lattice_file_block(f, &block, &line, err));
    if (!block.data) return DGM_OK;
    const dgm_status st = dgm_lattice_parse(l, block, line, &f->syntax, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "%s", dgm_lines_name(f->in));
    return st;
}
