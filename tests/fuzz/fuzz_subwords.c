// SPDX-License-Identifier: MIT
// Fuzz target: any text through vocabularies of byte-pair encodings and sacremoses' rules. The first two bytes choose
// style, tokeniser, normaliser and language.
// Parsers: src/text/subwords.c src/text/subwords_undo.c src/text/bpe.c src/text/sacremoses.c src/text/normalize.c
// Parsers: src/text/opennmt.c src/text/vocab_subwords.c src/text/sacremoses_chars.c src/text/sacremoses_prefixes.c
// Parsers: src/text/sacremoses_punct.c src/text/sacremoses_undo.c
#include <stdlib.h>

#include "base/mem.h"
#include "text/vocab.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) abort();                                                                      \
    } while (0)

#define T(text) {text, sizeof(text) - 1}

static const dgm_text words[] = {
    T("</s>"), T("<unk>"), T("a"), T("a@@"), T("ab"), T("ab@@"), T("b"), T("\xe2\x96\x81" "a"), T("\xc4\xa0" "a"),
    T("<0xE2>"), T("<0x82>"), T("<0xAC>"), T("a\xef\xbf\xad"), T("\xef\xbf\xad" "a"), T("&apos;"), T("@-@"), T("."),
};
static const dgm_text merges[] = {T("a b"), T("a b</w>"), T("\xe2\x96\x81 a"), T("\xc4\xa0 a"), T("ab a"), T("ab ab")};
static const dgm_text steps[] = {T("nfkc"), T("lowercase"), T("collapse"), T("strip"), T("nfd")};
static const dgm_text protect[] = {T("ba"), T("a")};
static const char *const languages[] = {"en", "de", "fr", "cs", "zh", "ko", "xx", ""};

static dgm_vocab *open_vocabulary(uint8_t how, uint8_t more)
{
    const dgm_bpe_style style = (dgm_bpe_style)(how % 5);
    const bool opennmt = style == DGM_BPE_JOINER || style == DGM_BPE_SPACER;
    const dgm_bpe_options bpe = {.style = style,
                                 .merges = merges,
                                 .merge_count = sizeof merges / sizeof *merges,
                                 .normalize = steps,
                                 .normalize_count = more % 6,
                                 .protect = protect,
                                 .protect_count = how >> 3 & 1 ? 2 : 0,
                                 .restricted = how >> 4 & 1,
                                 .prefix_space = how >> 5 & 1,
                                 .byte_fallback = true,
                                 .fuse_unknown = how >> 6 & 1,
                                 .whole_text = how >> 7};
    dgm_vocab_source s = {.kind = DGM_VOCAB_BPE,
                          .words = words,
                          .word_count = sizeof words / sizeof *words,
                          .bpe = &bpe,
                          .language = dgm_text_of(languages[more >> 3 & 7]),
                          .moses_options = more >> 4,
                          .unk = 1,
                          .pad = -1,
                          .bos = -1};
    if (opennmt && !(more & 2)) s.tokenizer = more & 1 ? DGM_TOKENIZER_AGGRESSIVE : DGM_TOKENIZER_CONSERVATIVE;
    if (style == DGM_BPE_SUBWORD_NMT) s.tokenizer = more & 1 ? DGM_TOKENIZER_SACREMOSES : DGM_TOKENIZER_NONE;
    dgm_vocab *v;
    REQUIRE(dgm_vocab_open(&v, &s, NULL) == DGM_OK);
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const uint64_t live = dgm_mem_live();
    const dgm_text text = {(const char *)data + 2, size - 2};
    dgm_vocab *v = open_vocabulary(data[0], data[1]);
    dgm_tokens t = {0};
    dgm_writer out = {0}, back = {0};
    REQUIRE(dgm_vocab_encode(v, text, &t, NULL) == DGM_OK);
    for (size_t i = 0; i < t.count; i++) REQUIRE(t.spans[i].begin <= t.spans[i].end && t.spans[i].end <= text.size);
    dgm_span *spans = dgm_calloc(t.count + 1, sizeof *spans);
    REQUIRE(dgm_vocab_decode(v, t.ids, t.count, &out, spans, NULL) == DGM_OK);
    REQUIRE(dgm_utf8_valid((dgm_text){(const char *)out.data, out.size}));
    for (size_t i = 0; i < t.count; i++) REQUIRE(spans[i].begin <= spans[i].end && spans[i].end <= out.size);
    REQUIRE(dgm_vocab_settled(v, t.ids, t.count) <= t.count);
    bool inside = false;
    for (int32_t i = 0; i < dgm_vocab_size(v); i++) {
        dgm_vocab_surface(v, i, &back, &inside);
        (void)dgm_vocab_begins_word(v, i);
    }
    back.size = 0;
    dgm_moses_rules rules;
    dgm_moses_rules_init(&rules, dgm_text_of(languages[data[0] & 7]), data[1] & 15);
    out.size = 0;
    REQUIRE(dgm_sacremoses_line(&rules, false, text, &out, NULL) == DGM_OK);
    REQUIRE(dgm_sacremoses_line(&rules, true, (dgm_text){(const char *)out.data, out.size}, &back, NULL) == DGM_OK);
    dgm_free(spans);
    dgm_writer_free(&out);
    dgm_writer_free(&back);
    dgm_tokens_free(&t);
    dgm_vocab_close(&v);
    REQUIRE(dgm_mem_live() == live);
    return 0;
}
