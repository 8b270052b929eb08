// SPDX-License-Identifier: MIT
// Fuzz target: Marian's binary models. Every accepted matrix is read as Marian's, both ways round.
// Parsers: src/import/marian_bin.c
#define _GNU_SOURCE
#include <stdint.h>

#include "base/mem.h"
#include "import/marian_bin.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile float sink;

static void read_view(dgm_view v)
{
    const size_t n = (size_t)v.rows * (size_t)v.cols;
    if (n == 0) return; // rows without columns may be many
    float *real = dgm_malloc(n * sizeof *real);
    if (real && dgm_view_read(&v, 0, v.rows, real, NULL) == DGM_OK) sink += real[n - 1];
    dgm_free(real);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_error err = {""};
    dgm_store *s, *file = NULL;
    char path[FUZZ_PATH];
    const dgm_status st = dgm_marian_bin_open_memory(&s, data, size, &err);
    if (size % 64 == 0) { // as a file it is the same
        const int fd = fuzz_file(data, size, path);
        if (dgm_marian_bin_open(&file, path, &err) != st || (!file && !err.text[0])) abort();
        dgm_store_close(&file);
        close(fd);
    }
    if (st != DGM_OK) return 0;
    for (size_t i = 0; i < dgm_store_count(s); i++) {
        read_view(dgm_marian_weight(s, dgm_store_get(s, i)));
        read_view(dgm_marian_rows(s, dgm_store_get(s, i)));
    }
    dgm_store_close(&s);
    return 0;
}
