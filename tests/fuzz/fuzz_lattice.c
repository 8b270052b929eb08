// SPDX-License-Identifier: MIT
// Fuzz target: lattices as text, ours and OpenFst's, with numbers of a symbol table, and n-best
// lists as lattices. What is accepted must be written and read again as the same lattice in both
// formats, and everything that can be done with it must end. The first byte chooses how to read; as a file there
// may be several, behind a table of symbols and a NUL.
// Parsers: src/lattice/lattice_text.c src/lattice/lattice_file.c src/lattice/lattice.c
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lattice/lattice.h"
#include "lattice/nbest.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void again(const dgm_lattice *l, dgm_lattice_format format)
{
    dgm_writer w = {0};
    dgm_lattice *m = NULL;
    dgm_error err;
    require(dgm_lattice_write(l, format, &w, &err) == DGM_OK);
    require(dgm_lattice_parse(&m, (dgm_text){(const char *)w.data, w.size}, 1, NULL, &err) ==
            DGM_OK);
    require(m->node_count == l->node_count && m->arc_count == l->arc_count);
    for (size_t i = 0; i < l->arc_count; i++) {
        const dgm_lattice_arc *a = &l->arcs[i], *b = &m->arcs[i];
        require(a->from == b->from && a->to == b->to && a->score == b->score &&
                a->glue == b->glue && (a->word < 0) == (b->word < 0));
        require(a->word < 0 ||
                dgm_text_equal(dgm_words_spell(&l->words, (uint32_t)a->word),
                               dgm_words_spell(&m->words, (uint32_t)b->word)));
    }
    dgm_lattice_close(&m);
    dgm_writer_free(&w);
}

typedef struct last {
    double score;
    size_t count;
} last;

static bool falls(void *cookie, const dgm_lattice_path *p)
{
    last *s = cookie;
    require(s->count++ == 0 || p->score <= s->score + 1e-6 * (1 + fabs(s->score)));
    s->score = p->score;
    return true;
}

static void use(const dgm_lattice *l)
{
    const dgm_lattice_pruning how = {.behind = 2, .max_arcs = 8};
    dgm_lattice *pruned = NULL, *joined = NULL, *one = NULL;
    dgm_error err;
    last s = {0};
    require(dgm_lattice_prune(l, &how, &pruned, &err) == DGM_OK);
    const dgm_lattice *const both[2] = {l, pruned};
    require(dgm_lattice_union(both, 2, &joined, &err) == DGM_OK);
    dgm_lattice_nbest(joined, 20, false, falls, &s, &err);
    s = (last){0};
    if (l->arc_count < 200) dgm_lattice_nbest(joined, 20, true, falls, &s, &err);
    if (l->arc_count < 200) dgm_lattice_determine(pruned, true, 1000, &one, &err);
    require(dgm_lattice_longest(l) < (size_t)l->node_count);
    dgm_lattice_close(&one);
    dgm_lattice_close(&pruned);
    dgm_lattice_close(&joined);
}

static dgm_status read_list(const uint8_t *data, size_t size, dgm_lattice **l, dgm_error *err)
{
    dgm_lattice_list *list = NULL;
    DGM_TRY(dgm_lattice_list_open(&list, err));
    dgm_status st = DGM_OK;
    while (size > 0 && st == DGM_OK) {
        const uint8_t *end = memchr(data, '\n', size);
        const size_t n = end ? (size_t)(end - data) : size;
        dgm_nbest_entry e;
        st = dgm_nbest_parse((dgm_text){(const char *)data, n}, &e, err);
        if (st == DGM_OK && !dgm_utf8_valid(e.text)) st = dgm_fail(err, DGM_ERR_TEXT, "not UTF-8");
        if (st == DGM_OK) st = dgm_lattice_list_add(list, e.text, (float)e.score, err);
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    if (st == DGM_OK) return dgm_lattice_list_finish(&list, l, err);
    dgm_lattice_list_close(&list);
    return st;
}

static void read_file(const char *data, size_t size, uint8_t how)
{
    char path[FUZZ_PATH], symbols[FUZZ_PATH];
    const char *nul = memchr(data, 0, size);
    const size_t n = nul ? (size_t)(nul - data) : 0, behind = nul ? n + 1 : 0;
    const int table = fuzz_file(data, n, symbols), file = fuzz_file(data + behind, size - behind, path);
    dgm_lattice_file *f = NULL;
    dgm_lattice *l = NULL;
    dgm_error err = {{0}};
    dgm_status st = dgm_lattice_file_open(&f, path, nul ? symbols : NULL, how & 1, how & 2, &err);
    for (int i = 0; i < 100 && st == DGM_OK; i++) {
        if ((st = dgm_lattice_file_next(f, &l, &err)) != DGM_OK || !l) break;
        again(l, DGM_LATTICE_NATIVE);
        dgm_lattice_close(&l);
    }
    require(st == DGM_OK || (err.text[0] && !strchr(err.text, '\n')));
    dgm_lattice_close(&l);
    dgm_lattice_file_close(&f);
    close(table);
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t ids[] = {3, 1, 7};
    static const uint32_t order[] = {1, 0, 2};
    if (size == 0) return 0;
    if (data[0] & 16) {
        read_file((const char *)data + 1, size - 1, data[0]);
        return 0;
    }
    dgm_words words = {0};
    dgm_lattice *l = NULL;
    dgm_error err = {{0}};
    uint32_t number;
    static const char *const spelled[] = {"Haus", "~.", "das"};
    for (int i = 0; i < 3; i++) dgm_words_add(&words, dgm_text_of(spelled[i]), &number, NULL);
    dgm_lattice_syntax syntax = {.transducer = data[0] & 1, .trim = data[0] & 2};
    if (data[0] & 4) syntax.symbols = &words, syntax.ids = ids, syntax.order = order;
    const dgm_text text = {(const char *)data + 1, size - 1};
    const dgm_status st = data[0] & 8 ? read_list(data + 1, size - 1, &l, &err)
                                      : dgm_lattice_parse(&l, text, 1, &syntax, &err);
    require((st == DGM_OK) == (l != NULL));
    if (l) {
        again(l, DGM_LATTICE_NATIVE);
        again(l, DGM_LATTICE_OPENFST);
        use(l);
    } else {
        require(strlen(err.text) > 0 && !strchr(err.text, '\n'));
    }
    dgm_lattice_close(&l);
    dgm_words_free(&words);
    return 0;
}
