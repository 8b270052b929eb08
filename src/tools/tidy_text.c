// SPDX-License-Identifier: MIT
// Tidy text, for programs; see dragoman/text.h.
#include "base/mem.h"
#include "dragoman/text.h"
#include "text/tidy.h"

dgm_status dgm_tidy(const char *text, size_t size, char **tidy, size_t *tidy_size, dgm_error *err)
{
    DGM_FAIL_IF(!tidy || !tidy_size || (!text && size), err, DGM_ERR_ARGUMENT,
                "dgm_tidy needs a text and where to put the tidy one");
    *tidy = NULL;
    *tidy_size = 0;
    const dgm_text in = {text ? text : "", size};
    const size_t bad = dgm_utf8_first_bad(in);
    DGM_FAIL_IF(bad < size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    dgm_tidied made = {0};
    bool changed = false;
    dgm_status st = dgm_tidy_text(in, &made, &changed, err);
    if (st == DGM_OK) {
        *tidy_size = changed ? made.text.size : size;
        *tidy = dgm_strndup(changed && made.text.size ? (const char *)made.text.data : in.data, *tidy_size);
        if (!*tidy) st = dgm_no_memory(err);
    }
    if (st != DGM_OK) *tidy_size = 0;
    dgm_tidied_free(&made);
    return st;
}
