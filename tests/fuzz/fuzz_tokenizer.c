// SPDX-License-Identifier: MIT
// Fuzz target: vocabularies of other systems. The first byte says what the input is: a tokenizer.json, codes of
// a byte-pair encoding, a dictionary of fairseq. What can be read becomes a model file in memory, is opened as
// a vocabulary, and encodes and decodes a line.
// Parsers: src/import/tokenizer_json.c src/import/tokenizer_steps.c src/import/bpe_codes.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine_private.h"
#include "import/bpe_codes.h"
#include "import/tokenizer_json.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    return size < 2 ? LLVMFuzzerMutate(data, size, max) : 1 + fuzz_json(data + 1, size - 1, max - 1, r);
}
FUZZ_MUTATOR(mutate)

#define REQUIRE(x)                                                                                 \
    if (!(x)) abort()

static const char line[] = "Hello  low lower aaab \xe2\x96\x81 \xf0\x9f\x98\x80 it's caf\xc3\xa9 \xe2\x82\xac";

static void use(dgm_gguf_writer *w)
{
    char path[64];
    snprintf(path, sizeof path, "%s/fuzz-tokenizer-%d.gguf", fuzz_scratch(), (int)getpid());
    dgm_gguf *g = NULL;
    dgm_vocab *v = NULL;
    dgm_tokens t = {0};
    dgm_writer out = {0};
    dgm_error err;
    if (dgm_gguf_write(w, path, &err) == DGM_OK && dgm_gguf_open(&g, path, &err) == DGM_OK &&
        dgm_vocabulary_load(g, DGM_SOURCE, &v, NULL, &err) == DGM_OK) {
        dgm_span spans[4096];
        REQUIRE(dgm_vocab_encode(v, dgm_text_of(line), &t, &err) == DGM_OK);
        for (size_t i = 0; i < t.count; i++) REQUIRE(t.spans[i].end < sizeof line);
        if (t.count < 4096) REQUIRE(dgm_vocab_decode(v, t.ids, t.count, &out, spans, &err) == DGM_OK);
        for (size_t i = 0; i < t.count && t.count < 4096; i++) REQUIRE(spans[i].end <= out.size);
    }
    unlink(path);
    dgm_writer_free(&out);
    dgm_tokens_free(&t);
    dgm_vocab_close(&v);
    dgm_gguf_close(&g);
}

static void use_codes(dgm_gguf_writer *w, dgm_text text)
{
    static const char *const tokens[] = {"<s>", "<pad>", "</s>", "<unk>", "l@@", "o@@", "low", "er", "a@@"};
    dgm_bpe_codes c;
    dgm_error err;
    if (dgm_bpe_codes_parse(&c, text, &err) != DGM_OK) return;
    dgm_bpe_keys k = {.tokens = tokens, .size = 9, .eos = 2, .unk = 3, .pad = 1, .bos = 0,
                      .merges = c.merges.items, .merge_count = c.merges.count,
                      .flags = DGM_SPEC_BPE_RESTRICTED | (c.end_apart ? DGM_SPEC_BPE_END_APART : 0u),
                      .tokenizer = DGM_SPEC_TOKENIZER_SACREMOSES, .moses = 15, .language = "en"};
    dgm_bpe_keys_set(w, DGM_SOURCE, &k);
    use(w);
    dgm_bpe_codes_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const dgm_text text = {(const char *)data + 1, size - 1};
    dgm_gguf_writer *w = NULL;
    dgm_error err;
    REQUIRE(dgm_gguf_writer_open(&w, &err) == DGM_OK);
    json_t *json = NULL;
    dgm_string_list dict;
    if (data[0] == 'd') {
        if (dgm_fairseq_dict_parse(&dict, text, &err) == DGM_OK) dgm_string_list_free(&dict);
    } else if (data[0] == 'c') {
        use_codes(w, text);
    } else if (dgm_json_parse(&json, text.data, text.size, &err) == DGM_OK) {
        if (dgm_vocab_from_tokenizer_json(w, DGM_SOURCE, json, 0, NULL, &err) == DGM_OK) use(w);
    }
    json_decref(json);
    dgm_gguf_writer_close(&w);
    return 0;
}
