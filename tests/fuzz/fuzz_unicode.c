// SPDX-License-Identifier: MIT
// libFuzzer target: UTF-8 repair, other encodings, NFC, tidying, lower case, tokeniser and detokeniser on any bytes.
// The first byte chooses the language.
// Parsers: src/text/unicode.c src/text/glyphs.c src/text/tokenize.c src/text/detokenize.c
#include <stdlib.h>

#include "base/mem.h"
#include "dragoman/text.h"
#include "text/tidy.h"
#include "text/titles.h"
#include "text/tokenize.h"
#include "text/unicode.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) abort();                                                                      \
    } while (0)

static dgm_text view(const dgm_writer *w)
{
    return (dgm_text){w->data ? (const char *)w->data : "", w->size};
}

static void check_tokens(dgm_text text, dgm_language lang)
{
    dgm_ranges r = {0};
    dgm_writer line = {0}, back = {0};
    REQUIRE(dgm_moses_tokenize(text, lang, &r, NULL) == DGM_OK);
    size_t at = 0;
    for (size_t i = 0; i < r.count; i++) {
        REQUIRE(r.items[i].begin >= at && r.items[i].begin < r.items[i].end);
        at = r.items[i].end;
        REQUIRE(at <= text.size);
    }
    REQUIRE(dgm_moses_tokenize_line(text, lang, true, &line, NULL) == DGM_OK);
    REQUIRE(dgm_moses_detokenize_line(view(&line), lang, true, &back, NULL) == DGM_OK);
    // Nothing is lost but white space and control characters.
    size_t kept = 0, got = 0;
    for (size_t i = 0; i < r.count; i++) kept += r.items[i].end - r.items[i].begin;
    for (size_t i = 0; i < back.size; i++) got += back.data[i] != ' ';
    REQUIRE(kept == got);
    dgm_ranges_free(&r);
    dgm_writer_free(&line);
    dgm_writer_free(&back);
}

// What can be decoded is valid.
static void check_decoding(dgm_text text)
{
    for (int e = DGM_ENCODING_UTF8; e <= DGM_ENCODING_WINDOWS1252; e++) {
        char *out = NULL;
        size_t size = 0;
        const dgm_status st = dgm_decode(text.data, text.size, (dgm_encoding)e, &out, &size, NULL);
        REQUIRE(st == DGM_OK || st == DGM_ERR_TEXT);
        REQUIRE((st == DGM_OK) == (out != NULL) && dgm_utf8_valid((dgm_text){out, size}));
        dgm_string_free(&out);
    }
}

// Tidy text is valid, and its bytes have origins in order.
static void check_tidy(dgm_text text)
{
    dgm_tidied made = {0};
    bool changed;
    REQUIRE(dgm_tidy_text(text, &made, &changed, NULL) == DGM_OK);
    if (changed) {
        REQUIRE(dgm_utf8_valid(view(&made.text)));
        REQUIRE(made.from[made.text.size] == text.size);
        for (size_t i = 0; i < made.text.size; i++) REQUIRE(made.from[i] <= made.from[i + 1]);
    }
    dgm_tidied_free(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t live = dgm_mem_live();
    if (size == 0) return 0;
    dgm_language lang = (dgm_language)(data[0] % 6);
    dgm_text raw = {(const char *)data + 1, size - 1};
    dgm_writer clean = {0}, other = {0};
    size_t replaced;
    REQUIRE(dgm_utf8_repair(raw, &clean, &replaced, NULL) == DGM_OK);
    REQUIRE(dgm_utf8_valid(view(&clean)));
    REQUIRE((replaced == 0) == dgm_utf8_valid(raw));
    REQUIRE(dgm_utf8_count(raw) == dgm_utf8_count(view(&clean)));
    REQUIRE(dgm_utf8_nfc(view(&clean), &other, NULL) == DGM_OK);
    REQUIRE(dgm_utf8_valid(view(&other)));
    dgm_status st = dgm_utf8_nfc(raw, &other, NULL);
    REQUIRE(st == DGM_OK || st == DGM_ERR_TEXT);
    other.size = 0;
    REQUIRE(dgm_utf8_lower(view(&clean), &other, NULL) == DGM_OK);
    REQUIRE(dgm_utf8_valid(view(&other)));
    REQUIRE(dgm_text_trim(raw).size <= raw.size);
    check_decoding(raw);
    check_tokens(view(&clean), lang);
    check_tidy(view(&clean));
    (void)dgm_is_title(view(&clean), lang);
    if (clean.data) dgm_titles_raise((char *)clean.data, clean.size);
    REQUIRE(dgm_utf8_valid(view(&clean)));
    check_tokens(raw, lang);
    dgm_writer_free(&clean);
    dgm_writer_free(&other);
    REQUIRE(dgm_mem_live() == live);
    return 0;
}
