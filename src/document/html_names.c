// SPDX-License-Identifier: MIT
// See html_names.h.
#include "document/html_names.h"

#include <string.h>

bool dgm_html_same(dgm_text a, const char *lower)
{
    if (a.size != strlen(lower)) return false;
    for (size_t i = 0; i < a.size; i++) {
        const char c = a.data[i] >= 'A' && a.data[i] <= 'Z' ? (char)(a.data[i] - 'A' + 'a') : a.data[i];
        if (c != lower[i]) return false;
    }
    return true;
}

static bool is_among(dgm_text name, const char *const *list)
{
    for (; *list; list++)
        if (dgm_html_same(name, *list)) return true;
    return false;
}

bool dgm_html_is_inline(dgm_text name)
{
    static const char *const names[] = {"a",     "abbr", "acronym", "b",      "bdi",  "bdo", "big",  "cite", "code",
                                        "data",  "del",  "dfn",     "em",     "font", "i",   "img",  "ins",  "kbd",
                                        "mark",  "nobr", "q",       "rb",     "rp",   "rt",  "ruby", "s",    "samp",
                                        "small", "span", "strike",  "strong", "sub",  "sup", "time", "tt",   "u",
                                        "var",   "wbr",  "input",   "label",  "br",   NULL};
    return is_among(name, names);
}

bool dgm_html_is_void(dgm_text name)
{
    static const char *const names[] = {"area", "base", "br",    "col",    "embed", "hr",  "img", "input",
                                        "link", "meta", "param", "source", "track", "wbr", NULL};
    return is_among(name, names);
}

bool dgm_html_is_code(dgm_text name)
{
    static const char *const names[] = {"code", "kbd", "samp", "var", "tt", NULL};
    return is_among(name, names);
}

bool dgm_html_is_raw(dgm_text name)
{
    static const char *const names[] = {"pre", "script",  "style",     "svg",    "math",    "template", "textarea",
                                        "xmp", "listing", "plaintext", "iframe", "noembed", "object",   NULL};
    return is_among(name, names);
}

bool dgm_html_closes_itself(dgm_text name)
{
    static const char *const names[] = {"p",      "li",       "td",    "th",    "tr",    "dt",       "dd",
                                        "option", "optgroup", "thead", "tbody", "tfoot", "colgroup", "rp",
                                        "rt",     "rb",       "html",  "head",  "body",  NULL};
    return is_among(name, names);
}
