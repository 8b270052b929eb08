// SPDX-License-Identifier: MIT
// Fuzz target: archives of numpy's arrays and, from the same bytes, the header of one array. Every accepted
// array is unpacked.
// Parsers: src/import/npz.c src/base/zip.c
#include <stdint.h>

#include "import/npz.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

FUZZ_MUTATOR(fuzz_zip)

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_error err;
    dgm_store *s;
    dgm_npy header;
    size_t need;
    if (dgm_npy_header(&header, data, size, &need, &err) == DGM_OK) sink += need;
    if (dgm_npz_open_memory(&s, data, size, &err) != DGM_OK) return 0;
    for (size_t i = 0; i < dgm_store_count(s); i++) {
        const dgm_stored *t = dgm_store_get(s, i);
        const uint8_t *bytes;
        if (dgm_store_data(s, t, &bytes, &err) != DGM_OK) continue;
        for (size_t b = 0; b < t->bytes; b++) sink += bytes[b];
    }
    dgm_store_close(&s);
    return 0;
}
