// SPDX-License-Identifier: MIT
// See directed.h.
#define _GNU_SOURCE
#include "format/directed.h"

#include <string.h>
#include <unistd.h>

#include "format/languages.h"

static bool in_direction(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// Bytes before the "=" of a direction; 0: the text does not begin with one.
static size_t direction_size(const char *text)
{
    size_t n = 0;
    bool cut = false;
    for (; in_direction(text[n]); n++) cut = cut || (text[n] == '-' && n > 0 && text[n + 1] != '=');
    return cut && text[n] == '=' ? n : 0;
}

dgm_directed dgm_directed_read(const char *text)
{
    const size_t n = direction_size(text);
    const bool directed = n && access(text, F_OK) != 0;
    return (dgm_directed){{text, directed ? n : 0}, directed ? text + n + 1 : text};
}

bool dgm_directed_fits(const char *text, const char *source, const char *target)
{
    const dgm_directed d = dgm_directed_read(text);
    return d.direction.size == 0 || dgm_direction_means(d.direction, source, target);
}

bool dgm_direction_means(dgm_text direction, const char *source, const char *target)
{
    char sides[128];
    if (!source || !source[0] || !target || !target[0] || direction.size >= sizeof sides) return false;
    for (size_t i = 1; i + 1 < direction.size; i++) {
        if (direction.data[i] != '-') continue;
        memcpy(sides, direction.data, direction.size);
        sides[i] = sides[direction.size] = 0;
        if (dgm_language_matches(sides, source) && dgm_language_matches(sides + i + 1, target)) return true;
    }
    return false;
}

dgm_text dgm_directed_next(const char **list)
{
    const char *at = *list;
    size_t n = strlen(at);
    for (const char *comma = strchr(at, ','); comma; comma = strchr(comma + 1, ','))
        if (direction_size(comma + 1)) {
            n = (size_t)(comma - at);
            break;
        }
    *list = at + n + (at[n] == ',');
    return (dgm_text){at, n};
}
