// SPDX-License-Identifier: MIT
// Fuzz target: the clusters of a model file. The input is the lists' data, behind one byte for the
// number of centroids. What is accepted must hold what format/clusters.h promises (lists ascend,
// ids in range, lengths as indexed) and give bits that agree with the lists.
// Parsers: src/format/clusters.c src/format/idlists.c
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "format/clusters.h"
#include "format/idlists.h"
#include "format/modelfile.h"
#include "words_model.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE = 150, WIDTH = 2, MOST = 16 };

static char path[64];

static void require(bool what)
{
    if (!what) abort();
}

static void remove_file(void)
{
    unlink(path);
}

static dgm_gguf *write_and_open(dgm_gguf_writer *w)
{
    dgm_gguf *g = NULL;
    require(dgm_gguf_write(w, path, NULL) == DGM_OK);
    dgm_gguf_writer_close(&w);
    require(dgm_gguf_open(&g, path, NULL) == DGM_OK);
    return g;
}

// A model of words, opened once; its hash in `hash`.
static const dgm_gguf *model(char hash[17])
{
    static dgm_gguf *g;
    int sources, targets;
    if (!g) {
        dgm_gguf_writer *w = NULL;
        snprintf(path, sizeof path, "%s/fuzz-clusters-%d.gguf", fuzz_scratch(), (int)getpid());
        atexit(remove_file);
        require(dgm_gguf_writer_open(&w, NULL) == DGM_OK);
        words_model_put(w, SIZE, NULL);
        g = write_and_open(w);
    }
    require(dgm_vocabulary_hash(g, &sources, &targets, hash, NULL) == DGM_OK);
    return g;
}

// The block again, as a tool has it: put into a copy of the file, instead of the one that is there or beside it.
static void store(const dgm_gguf *g, const dgm_clusters_view *v, const uint16_t *centroids, const char *target)
{
    int32_t ids[MOST * SIZE];
    uint64_t at[MOST + 1] = {0};
    for (int c = 0; c < v->count; c++)
        at[c + 1] = at[c] + (uint64_t)dgm_idlists_decode(v->lists + v->at[c], ids + at[c]);
    uint16_t own[MOST * WIDTH];
    memcpy(own, centroids, sizeof own);
    const dgm_clusters block = {"", target, v->count, WIDTH, SIZE, 1, own, at, ids};
    const dgm_clusters *const list[] = {&block};
    dgm_gguf_writer *w = NULL;
    dgm_clusters_view again;
    require(dgm_gguf_writer_open(&w, NULL) == DGM_OK);
    dgm_gguf_set_copies(w, g);
    require(dgm_clusters_store(list, 1, g, w, NULL) == DGM_OK);
    dgm_gguf *copy = write_and_open(w);
    const int found = dgm_clusters_find(copy, "en", target);
    require(dgm_clusters_blocks(copy) == (*target ? 2 : 1) && found == (*target ? 1 : 0));
    require(dgm_clusters_view_open(&again, copy, found, NULL) == DGM_OK && again.entries == v->entries);
    dgm_clusters_view_close(&again);
    dgm_gguf_close(&copy);
}

static void check_view(const dgm_clusters_view *v)
{
    int32_t row[SIZE];
    uint64_t entries = 0;
    for (int c = 0; c < v->count; c++) {
        uint64_t bits[(SIZE + 63) / 64] = {0};
        const int n = dgm_idlists_decode(v->lists + v->at[c], row);
        require(n <= v->longest && n == dgm_idlists_length(v->lists + v->at[c]));
        dgm_idlists_mark(v->lists + v->at[c], bits);
        int marked = 0;
        for (int i = 0; i < SIZE; i++) marked += bits[i >> 6] >> (i & 63) & 1;
        require(marked == n);
        for (int k = 0; k < n; k++)
            require(row[k] >= 0 && row[k] < SIZE && (k == 0 || row[k] > row[k - 1]) &&
                    (bits[row[k] >> 6] >> (row[k] & 63) & 1));
        entries += (uint64_t)n;
    }
    require(entries == v->entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint16_t centroids[MOST * WIDTH];
    char hash[17];
    const dgm_gguf *base = model(hash);
    if (size == 0) return 0;
    const int count = 1 + data[0] % MOST, shape[2] = {count, WIDTH};
    dgm_gguf_writer *w = NULL;
    if (dgm_gguf_writer_open(&w, NULL) != DGM_OK) return 0;
    dgm_gguf_set_copies(w, base);
    dgm_gguf_set_u32(w, "dragoman.clusters.version", 1);
    dgm_gguf_set_u32(w, "dragoman.clusters.blocks", 1);
    dgm_gguf_set_string(w, "dragoman.clusters.0.source", "");
    dgm_gguf_set_string(w, "dragoman.clusters.0.target", "");
    dgm_gguf_set_u32(w, "dragoman.clusters.0.count", (uint32_t)count);
    dgm_gguf_set_u32(w, "dragoman.clusters.0.width", WIDTH);
    dgm_gguf_set_u32(w, "dragoman.clusters.0.targets", SIZE);
    dgm_gguf_set_string(w, "dragoman.clusters.0.vocabulary", hash);
    dgm_gguf_set_array(w, "dragoman.clusters.0.lists", DGM_META_U8, data + 1, size - 1);
    dgm_gguf_add_tensor(w, "clusters.0.centroids", DGM_TYPE_F16, 2, shape, centroids);
    dgm_gguf *g = write_and_open(w);
    dgm_clusters_view v;
    require(dgm_clusters_find(g, "en", "de") == 0);
    if (dgm_clusters_view_open(&v, g, 0, NULL) == DGM_OK) {
        check_view(&v);
        store(g, &v, centroids, size % 2 ? "de" : "");
        dgm_clusters_view_close(&v);
    }
    dgm_gguf_close(&g);
    return 0;
}
