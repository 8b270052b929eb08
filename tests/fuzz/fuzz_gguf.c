// SPDX-License-Identifier: MIT
// Fuzz target: model files. Whatever opens must be readable to its last byte, and the keys that
// every model has must be read or refused without harm, and so must its languages.
//
//     clang -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_gguf.c ...
//     ./fuzz_gguf CORPUS tests/data/format
// Parsers: src/format/gguf_read.c src/format/gguf_get.c src/format/modelfile.c src/format/languages.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/languages.h"
#include "format/modelfile.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

FUZZ_MUTATOR(fuzz_gguf)

static volatile uint64_t sink;

static void read_metadata(const dgm_gguf *g)
{
    for (int i = 0; i < dgm_gguf_meta_count(g); i++) {
        const dgm_meta *m = dgm_gguf_meta(g, i);
        const int32_t *ints;
        const uint32_t *numbers;
        const float *reals;
        const char *text;
        size_t n;
        for (size_t b = 0; b < m->raw_size; b++) sink += m->raw[b];
        if (dgm_gguf_get_string(g, m->key, DGM_OPTIONAL, &text, NULL) == DGM_OK &&
            m->type == DGM_META_STRING)
            sink += strlen(text);
        dgm_gguf_get_i32s(g, m->key, DGM_OPTIONAL, 0, 9, &ints, &n, NULL);
        dgm_gguf_get_f32s(g, m->key, DGM_OPTIONAL, &reals, &n, NULL);
        dgm_gguf_get_u32s(g, m->key, DGM_OPTIONAL, 0, 9, &numbers, &n, NULL);
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
        const int32_t *table;
        int n = 0;
        if (dgm_gguf_table(g, t->name, -1, 0, 1 << 20, DGM_OPTIONAL, &table, &n, NULL) == DGM_OK && n > 0)
            sink += (uint64_t)table[n - 1];
        for (size_t b = 0; b < t->bytes; b++) sink += ((const uint8_t *)t->data)[b];
        if (dgm_gguf_vector(g, t->name, -1, DGM_REQUIRED, &v, NULL) == DGM_OK)
            sink += v[t->cols - 1] > 0;
        if (dgm_gguf_matrix(g, t->name, -1, -1, DGM_REQUIRED, &m, NULL) != DGM_OK) continue;
        float *row = dgm_malloc((size_t)m->cols * sizeof *row);
        if (row) dgm_tensor_row_f32(m, m->rows - 1, row);
        dgm_free(row);
    }
}

// Every direction that is offered can be asked for by its codes; tokens lie in the vocabularies.
static void read_languages(const dgm_gguf *g)
{
    static const int vocabulary[2] = {100, 90};
    static const char *const names[] = {NULL, "", "de", "German", "en-US", "deu_Latn", "fr_Latn", "x"};
    dgm_languages l = {0};
    dgm_error err = {""};
    int d[2];
    int32_t tokens[DGM_TAGS_MAX];
    if (dgm_languages_read(g, vocabulary, &l, &err) != DGM_OK && !err.text[0]) abort();
    for (int s = 0; s < l.count[0] && s < 8; s++)
        for (int t = 0; t < l.count[1] && t < 8; t++) {
            dgm_direction_spec spec = {.length_penalty = 1};
            if (!dgm_languages_offers(&l, s, t)) continue;
            sink += dgm_languages_choose(&l, l.code[0][s], l.code[1][t], d, &err) == DGM_OK;
            sink += dgm_languages_defaults(g, &l, (const int[2]){s, t}, &spec, &err) == DGM_OK;
            for (int side = 0; side < 2; side++)
                for (int k = dgm_languages_tokens(&l, (dgm_side)side, (const int[2]){s, t}, tokens); k > 0; k--)
                    if (tokens[k - 1] < 0 || tokens[k - 1] >= vocabulary[side]) abort();
        }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        err.text[0] = 0;
        if (dgm_languages_choose(&l, names[i], names[(i * 3 + 2) % 8], d, &err) != DGM_OK &&
            (!err.text[0] || strchr(err.text, '\n')))
            abort();
    }
    sink += dgm_languages_directions(&l);
    dgm_languages_free(&l);
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
        read_languages(g);
        sink += dgm_gguf_size(g) + dgm_gguf_alignment(g);
    }
    dgm_gguf_close(&g);
    dgm_free(copy);
    return 0;
}
