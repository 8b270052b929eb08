// SPDX-License-Identifier: MIT
// Fuzz target: translation memories in TMX. What is accepted can be written, and reading that gives as many units; what
// is refused has a message of one line.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_memory *m, *again;
    dgm_error err;
    char *text;
    size_t length;
    if (dgm_memory_open(&m, "en", "de", &err) != DGM_OK) return 0;
    const dgm_status st = dgm_memory_read_text(m, (const char *)data, size, &err);
    if (st != DGM_OK) require(strlen(err.text) > 0 && !strchr(err.text, '\n'));
    if (st == DGM_OK && dgm_memory_text(m, &text, &length, &err) == DGM_OK) {
        require(dgm_memory_open(&again, "en", "de", &err) == DGM_OK);
        require(dgm_memory_read_text(again, text, length, &err) == DGM_OK);
        require(dgm_memory_count(again) == dgm_memory_count(m));
        dgm_memory_close(&again);
        dgm_string_free(&text);
    }
    dgm_memory_close(&m);
    return 0;
}
