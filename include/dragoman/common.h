// SPDX-License-Identifier: MIT
// Dragoman tools: what the headers of the tools share: texts, lines, numbers, progress.
// Conventions as in tools.h.
#ifndef DRAGOMAN_COMMON_H
#define DRAGOMAN_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dragoman/dragoman.h"

#ifdef __cplusplus
extern "C" {
#endif

// Texts that functions below return belong to the caller.
DGM_API void dgm_string_free(char **text);

// A line of a file: bytes without its line break, not terminated by NUL.
typedef struct dgm_line {
    const char *data;
    size_t size;
} dgm_line;

// Numbers as text, read strictly: the whole text, in decimal, without blanks, "inf", "nan" or
// hexadecimal digits, with '.' as the decimal point in every locale. `what` names the number in the
// message ("--beam must be 1 to 512, not 600"). Otherwise DGM_ERR_ARGUMENT, and *value is unchanged.
DGM_API dgm_status dgm_number_integer(const char *what, const char *text, int64_t min, int64_t max,
                                      int64_t *value, dgm_error *error);
DGM_API dgm_status dgm_number_real(const char *what, const char *text, double min, double max,
                                   double *value, dgm_error *error);
// "64k", "512M", "1.5G", "2T"; without a unit MiB are meant.
DGM_API dgm_status dgm_number_size(const char *what, const char *text, int64_t min, int64_t max,
                                   int64_t *bytes, dgm_error *error);
// Real numbers separated by commas, at most `most`; none in an empty text.
DGM_API dgm_status dgm_number_list(const char *what, const char *text, double *values, int most,
                                   int *count, dgm_error *error);

// How the bytes of a text stand for characters. UTF16: in the byte order that its mark or its zero bytes show.
typedef enum dgm_encoding {
    DGM_ENCODING_UTF8 = 0,
    DGM_ENCODING_UTF16,
    DGM_ENCODING_UTF16LE,
    DGM_ENCODING_UTF16BE,
    DGM_ENCODING_LATIN1,
    DGM_ENCODING_WINDOWS1252
} dgm_encoding;

// From a name: utf-8, utf-16, utf-16le, utf-16be, latin-1, windows-1252, and what else these are called.
DGM_API dgm_status dgm_encoding_named(const char *name, dgm_encoding *encoding, dgm_error *error);
// UTF16LE or UTF16BE where the beginning of a text has their byte order mark, or the zero bytes of European text in
// UTF-16; else UTF8.
DGM_API dgm_encoding dgm_encoding_guess(const char *text, size_t size);

// A file that is written whole or not at all: what is written to its descriptor is no file of that name before
// dgm_output_commit, and until then an old one stays as it is. A pipe or a device is written to as it is.
typedef struct dgm_output dgm_output;
DGM_API dgm_status dgm_output_open(dgm_output **output, const char *path, dgm_error *error);
DGM_API int dgm_output_descriptor(const dgm_output *output);
// Both set *output to NULL; dgm_output_discard accepts NULL inside.
DGM_API dgm_status dgm_output_commit(dgm_output **output, dgm_error *error);
DGM_API void dgm_output_discard(dgm_output **output);

// Lines of a text, plain or gzip (known by its first bytes): a file, a pipe or standard input. A
// line ends with "\n" or "\r\n", the last one with the text if need be; NUL bytes are bytes like
// others, and a byte order mark before the first line is left out. Text in UTF-16 is refused unless it is
// asked for; lines are always UTF-8. Messages name the file and, from the first line on, the line.
typedef struct dgm_lines dgm_lines;
#define DGM_LINE_MAX ((size_t)16 << 20) // bytes; longer lines are an error

DGM_API dgm_status dgm_lines_open(dgm_lines **lines, const char *path, // NULL: standard input
                                  dgm_error *error);
// Of a text in another encoding; what it cannot mean is an error that names the line.
DGM_API dgm_status dgm_lines_open_as(dgm_lines **lines, const char *path, dgm_encoding encoding,
                                     dgm_error *error);
DGM_API void dgm_lines_close(dgm_lines **lines); // sets *lines to NULL; accepts NULL inside
// The next line without its line break, borrowed until the next call; a NUL follows it. *more is
// false, and nothing else set, at the end.
DGM_API dgm_status dgm_lines_next(dgm_lines *lines, const char **line, size_t *size, bool *more,
                                  dgm_error *error);
DGM_API uint64_t dgm_lines_number(const dgm_lines *lines);  // of the line last read, from 1
DGM_API const char *dgm_lines_name(const dgm_lines *lines); // path or "standard input"
DGM_API bool dgm_lines_crlf(const dgm_lines *lines);   // did the line last read end with "\r\n"?
DGM_API bool dgm_lines_marked(const dgm_lines *lines); // did a byte order mark in UTF-8 stand before the first?
DGM_API double dgm_lines_share(const dgm_lines *lines); // of the file that was read, 0: not known
// Would dgm_lines_next answer without waiting for somebody to type or send?
DGM_API bool dgm_lines_ready(const dgm_lines *lines);
// From now on, once *stop is not 0 (a signal handler may set it), the text ends where waiting for
// more of it would begin, even in the middle of a line, which is left out. NULL: never.
DGM_API void dgm_lines_stop(dgm_lines *lines, const volatile int *stop);

// Called now and then during long work: what is being done ("reading", "training", ...) and the
// share of the whole that is done, 0 to 1. A result other than 0 stops it: DGM_ERR_CANCELLED.
typedef struct dgm_progress {
    int (*tick)(void *cookie, const char *stage, double share); // NULL: nobody wants to know
    void *cookie;
} dgm_progress;

#ifdef __cplusplus
}
#endif
#endif
