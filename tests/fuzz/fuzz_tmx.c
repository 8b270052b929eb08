// SPDX-License-Identifier: MIT
// Fuzz target: translation memories in TMX. What is accepted can be written, and reading that gives as many units; what
// is refused has a message of one line.
// Parsers: src/text/memory_tmx.c src/text/memory.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/memory.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void through_files(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH];
    dgm_memory *m = NULL, *again = NULL;
    size_t found = 0;
    dgm_error err = {""};
    const int fd = fuzz_file(data, size, path);
    require(dgm_memory_open(&m, "en", "de", NULL) == DGM_OK && dgm_memory_open(&again, "en", "de", NULL) == DGM_OK);
    if (dgm_memory_read(m, path, &err) == DGM_OK) {
        require(dgm_memory_add(m, "a", 1, "bc", 2, NULL) == DGM_OK);
        require(dgm_memory_find(m, "a", 1, &found) && found == 2 && !dgm_memory_find(m, "\x01", 1, &found));
        require(dgm_memory_write(m, fuzz_written("tmx"), &err) == DGM_OK);
        require(dgm_memory_read(again, fuzz_written("tmx"), &err) == DGM_OK);
        require(dgm_memory_count(again) == dgm_memory_count(m));
        unlink(fuzz_written("tmx"));
    } else {
        require(err.text[0] && !strchr(err.text, '\n'));
    }
    dgm_memory_close(&m);
    dgm_memory_close(&again);
    close(fd);
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
    if (size % 16 == 0) through_files(data, size);
    return 0;
}
