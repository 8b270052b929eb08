// SPDX-License-Identifier: MIT
// Fuzz target: safetensors files and, from the same bytes, SentencePiece models: lists of pieces, and copies without
// names of files, which never grow and have nothing more to lose. Every accepted tensor is read whole.
// Parsers: src/import/safetensors.c src/import/spm_list.c src/import/spm_paths.c src/base/protobuf.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "import/safetensors.h"
#include "import/spm_list.h"
#include "import/spm_paths.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void read_tensors(dgm_store *s)
{
    for (size_t i = 0; i < dgm_store_count(s); i++) {
        const dgm_stored *t = dgm_store_get(s, i);
        sink += (uint64_t)dgm_store_find(s, t->name);
        for (size_t b = 0; b < t->bytes; b++) sink += t->data[b];
        const dgm_view v = dgm_view_whole(s, t);
        float *real = dgm_malloc((size_t)t->rows * (size_t)t->cols * sizeof *real + 1);
        if (real) (void)dgm_view_read(&v, 0, v.rows, real, NULL);
        dgm_free(real);
    }
}

static void take_paths(const uint8_t *data, size_t size)
{
    dgm_writer once = {0}, twice = {0};
    if (dgm_spm_without_paths(&once, data, size, NULL) == DGM_OK) {
        if (once.size > size || dgm_spm_without_paths(&twice, once.data, once.size, NULL) != DGM_OK) abort();
        if (twice.size != once.size || (once.size && memcmp(once.data, twice.data, once.size) != 0)) abort();
    }
    dgm_writer_free(&once);
    dgm_writer_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_error err;
    dgm_store *s;
    dgm_spm_list list;
    if (dgm_safetensors_open_memory(&s, data, size, &err) == DGM_OK) read_tensors(s);
    dgm_store_close(&s);
    if (dgm_spm_list_read(&list, data, size, &err) == DGM_OK)
        for (size_t i = 0; i < list.count; i++)
            for (size_t b = 0; b < list.items[i].size; b++) sink += (uint8_t)list.items[i].piece[b];
    dgm_spm_list_free(&list);
    take_paths(data, size);
    return 0;
}
