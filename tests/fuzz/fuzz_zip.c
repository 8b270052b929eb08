// SPDX-License-Identifier: MIT
// Fuzz target: zip archives. Every member of what is accepted and not too large is read; with another content in its
// first member it can be written and opened again, with as many members.
// Parsers: src/base/zip.c src/base/zip_write.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/zip.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

FUZZ_MUTATOR(fuzz_zip)

static volatile uint64_t sink;

static void require(bool what)
{
    if (!what) abort();
}

static dgm_status look(void *arg, const void *data, size_t size, dgm_error *err)
{
    (void)arg;
    (void)err;
    for (size_t i = 0; i < size; i++) sink += ((const uint8_t *)data)[i];
    return DGM_OK;
}

static void rewrite(dgm_text archive, size_t count)
{
    dgm_writer out = {0};
    dgm_zip *again;
    const dgm_zip_part part = {0, {"other", 5}};
    if (dgm_zip_rewrite(archive, &part, 1, &out, NULL) == DGM_OK) {
        require(dgm_zip_open_memory(&again, out.data, out.size, NULL) == DGM_OK);
        require(dgm_zip_count(again) == count);
        char content[5];
        require(dgm_zip_read(again, 0, 0, content, 5, NULL) == DGM_OK && memcmp(content, "other", 5) == 0);
        dgm_zip_close(&again);
    }
    dgm_writer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_zip *z;
    dgm_error err;
    if (dgm_zip_open_memory(&z, data, size, &err) != DGM_OK) {
        require(strlen(err.text) > 0 && !strchr(err.text, '\n'));
        return 0;
    }
    bool fine = dgm_zip_check_unpacked(z, 1 << 24, 200, NULL) == DGM_OK;
    const size_t count = dgm_zip_count(z);
    for (size_t i = 0; i < count && fine; i++) fine = dgm_zip_stream(z, i, look, NULL, NULL) == DGM_OK;
    dgm_zip_close(&z);
    if (fine && count > 0) rewrite((dgm_text){(const char *)data, size}, count);
    return 0;
}
