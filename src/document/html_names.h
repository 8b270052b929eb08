// SPDX-License-Identifier: MIT
// What the elements of HTML are to a translator, by name.
#ifndef DGM_DOCUMENT_HTML_NAMES_H
#define DGM_DOCUMENT_HTML_NAMES_H

#include <stdbool.h>

#include "base/bytes.h"

bool dgm_html_is_inline(dgm_text name);            // part of a sentence: <b>, <a>, <span>
bool dgm_html_is_void(dgm_text name);              // without an end: <img>, <br>
bool dgm_html_is_code(dgm_text name);              // inline, not translated: <code>, <kbd>
bool dgm_html_is_raw(dgm_text name);               // a block that is not translated: <pre>, <script>
bool dgm_html_closes_itself(dgm_text name);        // its end may be left out: <p>, <li>
bool dgm_html_same(dgm_text a, const char *lower); // names have no case

#endif
