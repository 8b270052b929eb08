// SPDX-License-Identifier: MIT
// Fuzz target: model files. Whatever opens must be readable to its last byte, and the keys that
// every model has must be read or refused without harm.
//
//     clang -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_gguf.c ...
//     ./fuzz_gguf CORPUS tests/data/format
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "format/modelfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void read_metadata(const dgm_gguf *g)
{
    for (int i = 0; i < dgm_gguf_meta_count(g); i++) {
        const dgm_meta *m = dgm_gguf_meta(g, i);
        const int32_t *ints;
        const float *reals;
        const char *text;
        size_t n;
        for (size_t b = 0; b < m->raw_size; b++) sink += m->raw[b];
        if (dgm_gguf_get_string(g, m->key, DGM_OPTIONAL, &text, NULL) == DGM_OK &&
            m->type == DGM_META_STRING)
            sink += strlen(text);
        dgm_gguf_get_i32s(g, m->key, DGM_OPTIONAL, 0, 9, &ints, &n, NULL);
        dgm_gguf_get_f32s(g, m->key, DGM_OPTIONAL, &reals, &n, NULL);
        dgm_gguf_strings it = {0};
        dgm_gguf_text s;
        dgm_gguf_get_strings(g, m->key, DGM_OPTIONAL, &it, NULL);
        while (dgm_gguf_strings_next(&it, &s))
            if (s.size) sink += (uint8_t)s.data[s.size - 1];
    }
}

static void read_tensors(const dgm_gguf *g)
{
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i), *m;
        const float *v;
        for (size_t b = 0; b < t->bytes; b++) sink += ((const uint8_t *)t->data)[b];
        if (dgm_gguf_vector(g, t->name, -1, DGM_REQUIRED, &v, NULL) == DGM_OK)
            sink += v[t->cols - 1] > 0;
        if (dgm_gguf_matrix(g, t->name, -1, -1, DGM_REQUIRED, &m, NULL) != DGM_OK) continue;
        float *row = dgm_malloc((size_t)m->cols * sizeof *row);
        if (row) dgm_tensor_row_f32(m, m->rows - 1, row);
        dgm_free(row);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = dgm_malloc(size); // aligned, and its end is guarded
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    dgm_gguf *g;
    dgm_error err;
    if (dgm_gguf_open_memory(&g, copy, size, &err) == DGM_OK) {
        dgm_vocab_spec vocab;
        dgm_decode_spec decode;
        read_metadata(g);
        read_tensors(g);
        dgm_modelfile_check(g, &err);
        dgm_modelfile_vocab(g, DGM_SOURCE, &vocab, &err);
        dgm_modelfile_vocab(g, DGM_TARGET, &vocab, &err);
        dgm_modelfile_decode(g, &decode, &err);
    }
    dgm_gguf_close(&g);
    dgm_free(copy);
    return 0;
}
