// SPDX-License-Identifier: MIT
// Fuzz target: model.bin of CTranslate2. Every accepted variable is read whole, as numbers and by rows.
// Parsers: src/import/ct2_model.c src/import/store.c
#include <stdint.h>

#include "base/mem.h"
#include "import/ct2_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile float sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_error err;
    dgm_store *s = NULL;
    dgm_ct2_head head;
    if (dgm_ct2_open_memory(&s, &head, data, size, &err) != DGM_OK) return 0;
    for (size_t i = 0; i < dgm_store_count(s); i++) {
        const dgm_stored *t = dgm_store_get(s, i);
        const size_t n = (size_t)t->rows * (size_t)t->cols;
        if (dgm_store_find(s, t->name) < 0 || n == 0) continue;
        float *real = dgm_malloc(n * sizeof *real);
        const dgm_view v = dgm_view_whole(s, t);
        if (real && dgm_view_read(&v, 0, v.rows, real, NULL) == DGM_OK) sink += real[n - 1];
        dgm_free(real);
    }
    dgm_store_close(&s);
    return 0;
}
