// SPDX-License-Identifier: MIT
// libFuzzer target: sentence splitting, cutting and joining of any bytes. Checks that pieces are in
// order, hold everything but white space, and fit. First byte: language; second: limit.
// Parsers: src/text/sentences.c src/text/split.c src/text/sentence_words.c src/text/headlines.c
#include <stdlib.h>

#include "base/mem.h"
#include "text/split.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) abort();                                                                      \
    } while (0)

// One token a character, white space not counted.
static dgm_status count_letters(void *arg, dgm_text text, size_t *tokens, dgm_error *err)
{
    (void)arg;
    (void)err;
    *tokens = 0;
    for (size_t pos = 0; pos < text.size;) {
        uint32_t code;
        pos += dgm_utf8_next(text.data + pos, text.size - pos, &code);
        *tokens += !dgm_char_is_space(code);
    }
    return DGM_OK;
}

static void check_pieces(dgm_text text, const dgm_pieces *p)
{
    size_t at = 0;
    for (size_t i = 0; i < p->count; i++) {
        dgm_piece x = p->items[i];
        REQUIRE(x.begin >= at && x.begin < x.end && x.end <= text.size);
        REQUIRE(dgm_text_trim((dgm_text){text.data + at, x.begin - at}).size == 0);
        REQUIRE((x.cut == DGM_CUT_END) == (i + 1 == p->count));
        at = x.end;
    }
    REQUIRE(dgm_text_trim((dgm_text){text.data + at, text.size - at}).size == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t live = dgm_mem_live();
    if (size < 2) return 0;
    dgm_split_limits limits = {.max_tokens = DGM_SPLIT_MIN + data[1] % 32u,
                               .lang = (dgm_language)(data[0] % 6),
                               .count = count_letters};
    dgm_text text = {(const char *)data + 2, size - 2};
    dgm_pieces p = {0};
    REQUIRE(dgm_split_sentences(text, limits.lang, &p, NULL) == DGM_OK);
    check_pieces(text, &p);
    REQUIRE(dgm_split_line(text, &limits, &p, NULL) == DGM_OK);
    check_pieces(text, &p);
    dgm_text *parts = dgm_calloc(p.count + 1, sizeof *parts);
    REQUIRE(parts);
    for (size_t i = 0; i < p.count; i++) {
        parts[i] = (dgm_text){text.data + p.items[i].begin, p.items[i].end - p.items[i].begin};
        size_t tokens;
        (void)count_letters(NULL, parts[i], &tokens, NULL);
        REQUIRE(tokens <= limits.max_tokens);
    }
    dgm_writer out = {0};
    REQUIRE(dgm_split_join(text, &p, parts, &out, NULL) == DGM_OK);
    dgm_writer_free(&out);
    dgm_free(parts);
    dgm_pieces_free(&p);
    REQUIRE(dgm_mem_live() == live);
    return 0;
}
