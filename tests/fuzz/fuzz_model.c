// SPDX-License-Identifier: MIT
// Fuzz target: whole models. The input is the head of a model file, keys and descriptions of tensors; numbers behind it
// are the target's own. What opens translates two lines, however wrong its settings are.
// Parsers: src/format/gguf_read.c src/format/gguf_get.c src/format/modelfile.c src/format/languages.c
// Parsers: src/model/transformer/transformer_settings.c src/model/transformer/transformer_load.c
// Parsers: src/model/rnn/rnn_settings.c src/engine/vocabulary.c
#include "mutate.h"

#include "dragoman/dragoman.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

FUZZ_MUTATOR(fuzz_gguf)

enum { HEAD = 1 << 15, WEIGHTS = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(64) uint8_t file[HEAD + WEIGHTS], numbers[HEAD]; // numbers: what lies behind a head
    static size_t head = HEAD;                                       // of the last input
    static const char *const lines[] = {"a cat", "3 dogs."};
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    if (size > HEAD) return 0;
    if (!file[1 + HEAD]) {
        for (size_t i = 0; i < sizeof file; i++) file[i] = (uint8_t)(i * 31 % 61); // small numbers of every type
        memcpy(numbers, file, sizeof numbers);
    }
    memcpy(file, data, size);
    if (head > size) memcpy(file + size, numbers + size, head - size);
    head = size;
    dgm_settings_default(&s);
    s.workspace = 64 << 20;
    s.max_length = 8;
    s.cpu = "avx2";
    if (dgm_open_memory(&t, file, sizeof file, &s, NULL) == DGM_OK)
        if (dgm_translate(t, lines, 2, &r, NULL) == DGM_OK)
            for (size_t i = 0; i < r->count; i++)
                if (!r->items[i]->message) abort();
    dgm_results_free(&r);
    dgm_close(&t);
    return 0;
}
