// SPDX-License-Identifier: MIT
// Fuzz target: language models as ARPA text, and as compact files. An accepted ARPA text must make a
// model that can be asked anything; a compact file whose header is accepted must stay inside its
// bytes whatever its nodes say. The first byte chooses the kind and the bits.
// Parsers: src/lm/lm_arpa.c src/lm/lm_check.c src/lm/lm_build.c src/lm/lm.c src/base/compact.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lm/lm.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
    if (!what) abort();
}

static void ask(const dgm_lm *lm)
{
    dgm_lm_state s;
    dgm_lm_begin(lm, &s);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t word = i * 7919u % lm->words;
        int matched = 0;
        dgm_text spelling = dgm_lm_spell(lm, word);
        require(dgm_lm_word(lm, spelling) < lm->words);
        dgm_lm_step(lm, &s, word, &s, &matched);
        require(matched >= 1 && matched <= lm->order && s.length < lm->order);
    }
}

// From a file; what is written is read again as the same.
static void through_files(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH];
    dgm_lm *lm = NULL, *again = NULL;
    dgm_error err = {""};
    const int fd = fuzz_file(data, size, path);
    if (dgm_lm_read_arpa(&lm, path, 0, &err) == DGM_OK) {
        require(dgm_lm_write_arpa(lm, fuzz_written("arpa"), &err) == DGM_OK);
        require(dgm_lm_read_arpa(&again, fuzz_written("arpa"), 0, &err) == DGM_OK);
        require(again->words == lm->words && again->order == lm->order);
        unlink(fuzz_written("arpa"));
    } else {
        require(!lm && err.text[0] && !strchr(err.text, '\n'));
    }
    dgm_lm_close(&lm);
    dgm_lm_close(&again);
    close(fd);
}

static void arpa(const uint8_t *data, size_t size, int bits)
{
    dgm_arpa *a;
    dgm_lm *lm = NULL, *again = NULL;
    dgm_error err;
    dgm_status st = dgm_arpa_open(&a, &err);
    while (size > 0 && st == DGM_OK) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end - data) : size;
        st = dgm_arpa_line(a, (dgm_text){(const char *)data, n}, &err);
        n += end != NULL;
        data += n;
        size -= n;
    }
    if (st == DGM_OK) st = dgm_arpa_finish(a, bits, &lm, &err);
    dgm_arpa_close(&a);
    if (st != DGM_OK) {
        require(lm == NULL && strlen(err.text) > 0 && !strchr(err.text, '\n'));
        return;
    }
    ask(lm);
    require(dgm_lm_open_bytes(&again, lm->bytes.data, lm->bytes.size, &err) == DGM_OK);
    require(again->words == lm->words && again->order == lm->order);
    dgm_lm_close(&again);
    dgm_lm_close(&lm);
}

static void compact(const uint8_t *data, size_t size)
{
    dgm_lm *lm;
    dgm_error err;
    uint8_t *copy = dgm_malloc(size + 1); // aligned, as a mapped file is
    if (!copy) return;
    memcpy(copy, data, size);
    if (dgm_lm_open_bytes(&lm, copy, size, &err) == DGM_OK) {
        ask(lm);
        dgm_lm_close(&lm);
    }
    dgm_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    if (data[0] & 1)
        compact(data + 1, size - 1);
    else
        arpa(data + 1, size - 1, data[0] & 2 ? 2 + (data[0] >> 2 & 7) : 0);
    if (size % 16 == 1) through_files(data + 1, size - 1);
    return 0;
}
