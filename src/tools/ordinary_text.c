// SPDX-License-Identifier: MIT
// Text in other encodings, tidy text and text in ordinary case, for programs; see dragoman/text.h.
#include <string.h>

#include "base/encoding.h"
#include "base/mem.h"
#include "dragoman/text.h"
#include "engine/engine_private.h"
#include "text/capitals.h"
#include "text/tidy.h"
#include "text/titles.h"

// What the functions of this file ask for.
static dgm_status check(const char *name, const char *text, size_t size, char **out, size_t *out_size, dgm_error *err)
{
    DGM_FAIL_IF(!out || !out_size || (!text && size), err, DGM_ERR_ARGUMENT,
                "%s needs a text and where to put the new one", name);
    *out = NULL;
    *out_size = 0;
    const size_t bad = dgm_utf8_first_bad((dgm_text){text, size});
    DGM_FAIL_IF(bad < size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    return DGM_OK;
}

static dgm_status hand_over(dgm_text made, char **out, size_t *out_size, dgm_error *err)
{
    *out = dgm_strndup(made.size ? made.data : "", made.size);
    if (!*out) return dgm_no_memory(err);
    *out_size = made.size;
    return DGM_OK;
}

static size_t line_of(const char *text, size_t size)
{
    size_t line = 1;
    for (size_t i = 0; i < size; i++) line += text[i] == '\n';
    return line;
}

// Appends the text in UTF-8; *wrong says what is wrong with it behind what was appended.
static void convert_all(const char *text, size_t size, dgm_encoding encoding, dgm_writer *out, const char **wrong)
{
    enum { PART = 4096 };
    char made[PART * DGM_ENCODING_GROWTH];
    encoding = dgm_encoding_order(encoding, text, size, wrong);
    for (size_t pos = 0; pos < size && !*wrong;) {
        const size_t part = size - pos < PART ? size - pos : PART;
        const dgm_converted c = dgm_encoding_convert(encoding, text + pos, part, part == size - pos, made);
        dgm_write_bytes(out, made, c.made);
        *wrong = c.wrong;
        pos += c.used;
    }
}

dgm_status dgm_decode(const char *text, size_t size, dgm_encoding encoding, char **out, size_t *out_size,
                      dgm_error *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    DGM_FAIL_IF(!out || !out_size || (!text && size) || (unsigned)encoding > DGM_ENCODING_WINDOWS1252, err,
                DGM_ERR_ARGUMENT, "dgm_decode needs a text, an encoding and where to put the new text");
    *out = NULL;
    *out_size = 0;
    dgm_writer made = {0};
    const char *wrong = NULL;
    if (encoding == DGM_ENCODING_UTF8) {
        const size_t good = dgm_utf8_first_bad((dgm_text){text, size});
        if (good < size) wrong = "invalid bytes";
        dgm_write_bytes(&made, text, good);
    } else {
        convert_all(text, size, encoding, &made, &wrong);
    }
    dgm_text result = {(const char *)made.data, made.size};
    dgm_status st = made.failed ? dgm_no_memory(err) : DGM_OK;
    if (st == DGM_OK && wrong)
        st = dgm_fail(err, DGM_ERR_TEXT, "line %zu: not %s: %s", line_of(result.data, result.size),
                      dgm_encoding_name(encoding), wrong);
    if (result.size >= 3 && memcmp(result.data, mark, 3) == 0) result.data += 3, result.size -= 3;
    if (st == DGM_OK) st = hand_over(result, out, out_size, err);
    dgm_writer_free(&made);
    return st;
}

dgm_status dgm_tidy(const char *text, size_t size, char **tidy, size_t *tidy_size, dgm_error *err)
{
    DGM_TRY(check("dgm_tidy", text, size, tidy, tidy_size, err));
    dgm_tidied made = {0};
    bool changed = false;
    dgm_status st = dgm_tidy_text((dgm_text){text, size}, &made, &changed, err);
    const dgm_text result = {changed ? (const char *)made.text.data : text, changed ? made.text.size : size};
    if (st == DGM_OK) st = hand_over(result, tidy, tidy_size, err);
    dgm_tidied_free(&made);
    return st;
}

dgm_status dgm_ordinary_case(const dgm_translator *t, const char *text, size_t size, char **out, size_t *out_size,
                             dgm_error *err)
{
    DGM_FAIL_IF(!t, err, DGM_ERR_ARGUMENT, "dgm_ordinary_case needs a translator");
    DGM_TRY(check("dgm_ordinary_case", text, size, out, out_size, err));
    dgm_text in = {text, size};
    dgm_tokens scratch = {0};
    dgm_writer made = {0};
    bool lowered = false;
    dgm_status st = dgm_capitals_lower(t->source, in, &scratch, &made, &lowered, err);
    if (st == DGM_OK && !lowered) st = dgm_titles_lower(t->source, in, t->source_language, &made, &lowered, err);
    if (lowered) in.data = (const char *)made.data;
    if (st == DGM_OK) st = hand_over(in, out, out_size, err);
    dgm_tokens_free(&scratch);
    dgm_writer_free(&made);
    return st;
}
