// SPDX-License-Identifier: MIT
// libFuzzer target: vocabularies from hostile model bytes, and hostile text for a good one.
//
// First byte: 0 - the rest is a SentencePiece model; 1 - the rest are patches (offset u16, byte) to
// the model of the tests; 2 - the rest is text for that model; 3 - lines: first the words of a word
// vocabulary, separated by spaces, then text. Run in the root of the repository.
// Parsers: src/text/spm_model.c src/text/spm_charsmap.c src/text/spm_normalize.c src/text/spm_unigram.c
// Parsers: src/text/spm_bpe.c src/text/spm_encode.c src/text/spm_decode.c src/text/vocab.c
#include <stdlib.h>
#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "text/titles.h"
#include "text/vocab.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) abort();                                                                      \
    } while (0)

static dgm_mapfile model;
static dgm_vocab *good;

static dgm_vocab_source source_of(const void *spm, size_t size)
{
    return (dgm_vocab_source){.kind = DGM_VOCAB_SENTENCEPIECE,
                              .spm = spm,
                              .spm_size = size,
                              .eos = 0,
                              .unk = 1,
                              .pad = -1,
                              .bos = -1};
}

static void use(const dgm_vocab *v, dgm_text text, bool strict)
{
    dgm_tokens t = {0};
    dgm_writer out = {0};
    dgm_error err;
    dgm_status st = dgm_vocab_encode(v, text, &t, &err);
    REQUIRE(!strict || st == DGM_OK);
    for (size_t i = 0; i < t.count; i++) {
        REQUIRE(t.ids[i] >= 0 && t.ids[i] < dgm_vocab_size(v));
        REQUIRE(t.spans[i].begin <= t.spans[i].end && t.spans[i].end <= text.size);
        (void)dgm_vocab_piece(v, t.ids[i]);
        (void)dgm_vocab_begins_word(v, t.ids[i]);
        (void)dgm_vocab_score(v, t.ids[i]);
        REQUIRE(t.ids[i] != dgm_vocab_eos(v) || dgm_vocab_is_control(v, t.ids[i]));
        (void)dgm_vocab_is_unknown(v, t.ids[i]);
    }
    if (st == DGM_OK) {
        dgm_span *spans = dgm_calloc(t.count + 1, sizeof *spans);
        REQUIRE(spans);
        st = dgm_vocab_decode(v, t.ids, t.count, &out, spans, &err);
        REQUIRE(!strict || st == DGM_OK);
        for (size_t i = 0; st == DGM_OK && i < t.count; i++)
            REQUIRE(spans[i].begin <= spans[i].end && spans[i].end <= out.size);
        if (st == DGM_OK)
            REQUIRE(dgm_utf8_valid((dgm_text){(char *)out.data, out.size}) || !strict);
        dgm_free(spans);
    }
    size_t skip = 0;
    REQUIRE(dgm_vocab_settled(v, t.ids, t.count) <= t.count);
    REQUIRE(dgm_vocab_language_prefix(v, text, &skip) < dgm_vocab_size(v) && skip <= text.size);
    const int32_t special[] = {dgm_vocab_unk(v), dgm_vocab_pad(v), dgm_vocab_bos(v)};
    for (int i = 0; i < 3; i++) REQUIRE(special[i] >= -1 && special[i] < dgm_vocab_size(v));
    bool lowered = false;
    out.size = 0;
    st = dgm_titles_lower(v, text, DGM_LANG_EN, &out, &lowered, &err);
    REQUIRE(st == DGM_OK && out.size == (lowered ? text.size : 0));
    dgm_writer_free(&out);
    dgm_tokens_free(&t);
}

static void try_model(const void *bytes, size_t size)
{
    static const char text[] =
        "The \xE6\xBC\xA2 \xE2\x80\x9Chouse\xE2\x80\x9D A\xCC\x8A <sep> \xFF.";
    dgm_vocab_source s = source_of(bytes, size);
    dgm_vocab *v;
    dgm_error err;
    if (dgm_vocab_open(&v, &s, &err) != DGM_OK) return;
    use(v, (dgm_text){text, sizeof text - 1}, false);
    use(v, (dgm_text){text, sizeof text}, false); // with a NUL
    dgm_vocab_close(&v);
}

static void try_patches(const uint8_t *data, size_t size)
{
    uint8_t *copy = dgm_malloc(model.size);
    REQUIRE(copy);
    memcpy(copy, model.data, model.size);
    for (size_t i = 0; i + 3 <= size; i += 3)
        copy[(data[i] | (size_t)data[i + 1] << 8) % model.size] = data[i + 2];
    try_model(copy, model.size);
    dgm_free(copy);
}

static void try_words(dgm_text input)
{
    dgm_text words[64];
    size_t count = 0, end = 0, begin = 0;
    for (; end < input.size && input.data[end] != '\n' && count < 64; end++)
        if (input.data[end] == ' ') {
            words[count++] = (dgm_text){input.data + begin, end - begin};
            begin = end + 1;
        }
    dgm_vocab_source s = {.kind = DGM_VOCAB_WORDS,
                          .words = words,
                          .word_count = count,
                          .tokenizer = (dgm_vocab_tokenizer)(input.size % 2),
                          .language = dgm_text_of("fr"),
                          .eos = -1,
                          .unk = 0,
                          .pad = -1,
                          .bos = -1};
    dgm_vocab *v;
    dgm_error err;
    if (dgm_vocab_open(&v, &s, &err) != DGM_OK) return;
    use(v, (dgm_text){input.data + end, input.size - end}, true);
    dgm_vocab_close(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!good) {
        dgm_error err;
        REQUIRE(dgm_mapfile_open(&model, "tests/data/text/tiny.spm", &err) == DGM_OK);
        dgm_vocab_source s = source_of(model.data, model.size);
        REQUIRE(dgm_vocab_open(&good, &s, &err) == DGM_OK);
    }
    if (size == 0) return 0;
    uint64_t live = dgm_mem_live();
    dgm_text rest = {(const char *)data + 1, size - 1};
    switch (data[0] % 4) {
    case 0:
        try_model(data + 1, size - 1);
        break;
    case 1:
        try_patches(data + 1, size - 1);
        break;
    case 2:
        use(good, rest, true);
        break;
    default:
        try_words(rest);
        break;
    }
    REQUIRE(dgm_mem_live() == live);
    return 0;
}
