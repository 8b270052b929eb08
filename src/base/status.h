// SPDX-License-Identifier: MIT
// Status codes and error messages, shared by the whole library.
//
// Every function that can fail on something from outside (a file, a text, an option, an
// allocation) returns dgm_status and takes a dgm_error * as its last argument. The first failing
// function formats the message, callers only pass it on:
//
//     DGM_TRY(read_header(&r, &h, err));                        // forward
//     DGM_FAIL_IF(n > r.size, err, DGM_ERR_FORMAT, "truncated header");
//     return dgm_fail(err, DGM_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
//
// The message is one line without a final period; it names the file or option it is about.
// err may be NULL where the caller wants the code alone.
#ifndef DGM_BASE_STATUS_H
#define DGM_BASE_STATUS_H

#include "base/attr.h"
#include "dragoman/status.h"

// Formats the message into err (NULL allowed) and returns code.
dgm_status dgm_fail(dgm_error *err, dgm_status code, const char *fmt, ...) DGM_PRINTF(3, 4);

// Puts "prefix: " before the message already in err, e.g. the file name.
void dgm_error_prefix(dgm_error *err, const char *fmt, ...) DGM_PRINTF(2, 3);

#define DGM_TRY(expr)                                                                              \
    do {                                                                                           \
        dgm_status dgm_try_status_ = (expr);                                                       \
        if (dgm_try_status_ != DGM_OK) return dgm_try_status_;                                     \
    } while (0)

// For functions with a common exit: sets st and jumps.
#define DGM_TRY_GOTO(st, expr, label)                                                              \
    do {                                                                                           \
        (st) = (expr);                                                                             \
        if ((st) != DGM_OK) goto label;                                                            \
    } while (0)

#define DGM_FAIL_IF(cond, err, code, ...)                                                          \
    do {                                                                                           \
        if (cond) return dgm_fail((err), (code), __VA_ARGS__);                                     \
    } while (0)

#endif
