// SPDX-License-Identifier: MIT
// `dragoman tokenize` behind its command line: words for alignment and phrase tables, and those of
// other systems.
#include "dragoman/tools.h"
#include "text/sacremoses.h"
#include "text/tokenize.h"

static dgm_status check_line(dgm_text line, dgm_error *err)
{
    const size_t bad = dgm_utf8_first_bad(line);
    DGM_FAIL_IF(bad < line.size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    return DGM_OK;
}

// Hands the text over where st is good.
static dgm_status finish(dgm_status st, dgm_writer *out, char **text, dgm_error *err)
{
    if (st == DGM_OK) {
        *text = dgm_writer_take(out, NULL);
        if (!*text) st = dgm_fail(err, DGM_ERR_MEMORY, "out of memory");
    }
    dgm_writer_free(out);
    return st;
}

dgm_status dgm_tokenize(const char *language, int undo, dgm_line line, char **text, dgm_error *err)
{
    *text = NULL;
    const dgm_text in = {line.data, line.size};
    DGM_TRY(check_line(in, err));
    const dgm_language code = dgm_language_of(dgm_text_of(language));
    dgm_writer out = {0};
    const dgm_status st = undo ? dgm_moses_detokenize_line(in, code, false, &out, err)
                               : dgm_moses_tokenize_line(in, code, false, &out, err);
    return finish(st, &out, text, err);
}

dgm_status dgm_tokenize_moses(const char *language, unsigned options, int undo, dgm_line line, char **text,
                              dgm_error *err)
{
    *text = NULL;
    const dgm_text in = {line.data, line.size};
    const unsigned known = DGM_MOSES_AGGRESSIVE | DGM_MOSES_ESCAPE | DGM_MOSES_PUNCTUATION | DGM_MOSES_UNICODE;
    DGM_FAIL_IF(options & ~known, err, DGM_ERR_ARGUMENT, "unknown options %u of a tokeniser", options & ~known);
    DGM_TRY(check_line(in, err));
    dgm_moses_rules rules;
    dgm_moses_rules_init(&rules, dgm_text_of(language), options);
    dgm_writer out = {0};
    const dgm_status st = dgm_sacremoses_line(&rules, undo != 0, in, &out, err);
    return finish(st, &out, text, err);
}
