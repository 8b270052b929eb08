// SPDX-License-Identifier: MIT
// Formatting of error messages; see status.h.
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// One line only: whatever a file name or a token carried, the message stays printable.
static void keep_one_line(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = ' ';
}

dgm_status dgm_fail(dgm_error *err, dgm_status code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        keep_one_line(err->text);
    }
    return code;
}

void dgm_error_prefix(dgm_error *err, const char *fmt, ...)
{
    if (!err) return;
    char old[DGM_ERROR_MAX];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    if (n < 0) n = 0;
    if ((size_t)n < sizeof err->text) {
        size_t room = sizeof err->text - (size_t)n;
        snprintf(err->text + n, room, ": %.*s", (int)(room > 3 ? room - 3 : 0), old);
    }
    keep_one_line(err->text);
}
