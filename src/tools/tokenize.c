// SPDX-License-Identifier: MIT
// `dragoman tokenize` behind its command line: words for alignment and phrase tables.
#include "dragoman/tools.h"
#include "text/tokenize.h"

dgm_status dgm_tokenize(const char *language, int undo, dgm_line line, char **text, dgm_error *err)
{
    *text = NULL;
    dgm_text in = {line.data, line.size};
    size_t bad = dgm_utf8_first_bad(in);
    DGM_FAIL_IF(bad < in.size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    dgm_language code = dgm_language_of(dgm_text_of(language));
    dgm_writer out = {0};
    dgm_status st = undo ? dgm_moses_detokenize_line(in, code, false, &out, err)
                         : dgm_moses_tokenize_line(in, code, false, &out, err);
    if (st == DGM_OK) {
        *text = dgm_writer_take(&out, NULL);
        if (!*text) st = dgm_fail(err, DGM_ERR_MEMORY, "out of memory");
    }
    dgm_writer_free(&out);
    return st;
}
