// SPDX-License-Identifier: MIT
// Codes of languages; see language_code.h.
#include "text/language_code.h"

static char plain(char c)
{
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool dgm_language_agrees(dgm_text a, dgm_text b)
{
    const size_t n = a.size < b.size ? a.size : b.size;
    const dgm_text longer = a.size < b.size ? b : a;
    if (n == 0) return false;
    for (size_t i = 0; i < n; i++)
        if (plain(a.data[i]) != plain(b.data[i])) return false;
    return longer.size == n || plain(longer.data[n]) == '-';
}
