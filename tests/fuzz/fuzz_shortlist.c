// SPDX-License-Identifier: MIT
// Fuzz target: the shortlist of a model file. The input is the list's data, behind a byte that says
// how many bytes of it are frequent tokens. What is accepted must hold what format/shortlist.h
// promises (rows ascending, ids in range, the whole list the same as its rows) and give a sentence
// candidates that ascend and stay in the vocabulary.
// Parsers: src/format/shortlist.c src/format/idlists.c src/vocabsel/lexical.c
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "format/modelfile.h"
#include "format/shortlist.h"
#include "vocabsel/vocabsel.h"
#include "words_model.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE = 24, FREQUENT = 8 };

static char path[64];

static void require(bool what)
{
    if (!what) abort();
}

// A model of words; eos 0, unk 1, the last one is never chosen.
static void put_model(dgm_gguf_writer *w)
{
    words_model_put(w, SIZE, NULL);
    words_model_never_last(w, SIZE);
}

static dgm_gguf *write_and_open(dgm_gguf_writer *w)
{
    dgm_gguf *g = NULL;
    require(dgm_gguf_write(w, path, NULL) == DGM_OK);
    dgm_gguf_writer_close(&w);
    require(dgm_gguf_open(&g, path, NULL) == DGM_OK);
    return g;
}

static void remove_file(void)
{
    unlink(path);
}

// The model with an empty list, opened once.
static const dgm_gguf *model(void)
{
    static dgm_gguf *g;
    if (g) return g;
    snprintf(path, sizeof path, "%s/fuzz-shortlist-%d.gguf", fuzz_scratch(), (int)getpid());
    atexit(remove_file);
    dgm_gguf_writer *w = NULL;
    dgm_shortlist *empty = NULL;
    require(dgm_gguf_writer_open(&w, NULL) == DGM_OK);
    put_model(w);
    dgm_gguf *plain = write_and_open(w);
    require(dgm_gguf_writer_open(&w, NULL) == DGM_OK);
    dgm_gguf_set_copies(w, plain);
    require(dgm_shortlist_open(&empty, SIZE, SIZE, 0, 0, NULL) == DGM_OK);
    require(dgm_shortlist_store(empty, plain, w, NULL) == DGM_OK);
    dgm_shortlist_close(&empty);
    g = write_and_open(w);
    dgm_gguf_close(&plain);
    return g;
}

static void check_rows(const dgm_gguf *g)
{
    dgm_shortlist_view v;
    dgm_shortlist *whole = NULL;
    if (dgm_shortlist_view_open(&v, g, NULL) != DGM_OK) {
        require(dgm_shortlist_load(&whole, g, NULL) != DGM_OK && !whole);
        return;
    }
    require(dgm_shortlist_load(&whole, g, NULL) == DGM_OK);
    int32_t *row = dgm_malloc((size_t)v.longest * sizeof *row);
    for (int s = 0; row && s < SIZE; s++) {
        int n = dgm_shortlist_view_row(&v, s, row);
        require(n <= v.longest && (uint64_t)n == whole->at[s + 1] - whole->at[s]);
        for (int k = 0; k < n; k++)
            require(row[k] >= 0 && row[k] < SIZE && (k == 0 || row[k] > row[k - 1]) &&
                    row[k] == whole->ids[whole->at[s] + (uint64_t)k]);
    }
    dgm_free(row);
    dgm_shortlist_close(&whole);
    dgm_shortlist_view_close(&v);
}

static void check_candidates(const dgm_gguf *g)
{
    static const int32_t source[] = {3, 7, 7, SIZE - 1, 0}, needed[] = {9};
    const dgm_vocabsel_limits limits = {.sentences = 2, .max_source = 5, .max_needed = 1};
    const dgm_vocabsel_sentence s = {
        .source = source, .source_count = 5, .needed = needed, .needed_count = 1};
    dgm_vocabsel v;
    if (dgm_vocabsel_lexical_open(&v, g, &limits, NULL) != DGM_OK) return;
    require(v.ops->admit(&v, 1, &s, NULL) == DGM_OK);
    const dgm_candidates *c = v.ops->select(&v, 1, 0, (dgm_mat){0});
    bool end = false, need = false;
    for (int i = 0; i < c->count; i++) {
        require(c->ids[i] >= 0 && c->ids[i] < SIZE - 1 && (i == 0 || c->ids[i] > c->ids[i - 1]));
        end |= c->ids[i] == 0;
        need |= c->ids[i] == 9;
    }
    require(end && need);
    v.ops->close(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const dgm_gguf *base = model();
    int32_t frequent[FREQUENT] = {0};
    if (size == 0) return 0;
    size_t words = data[0] % (FREQUENT + 1);
    if (size < 1 + words) return 0;
    for (size_t i = 0; i < words; i++) frequent[i] = (int8_t)data[1 + i];
    dgm_gguf_writer *w = NULL;
    if (dgm_gguf_writer_open(&w, NULL) != DGM_OK) return 0;
    dgm_gguf_set_copies(w, base);
    dgm_gguf_set_array(w, "dragoman.shortlist.frequent", DGM_META_I32, frequent, words);
    dgm_gguf_set_array(w, "dragoman.shortlist.data", DGM_META_U8, data + 1 + words,
                       size - 1 - words);
    dgm_gguf *g = write_and_open(w);
    check_rows(g);
    check_candidates(g);
    dgm_gguf_close(&g);
    return 0;
}
