// SPDX-License-Identifier: MIT
// Dragoman tools: what the headers of the tools share: texts, lines, progress.
// Conventions as in tools.h.
#ifndef DRAGOMAN_COMMON_H
#define DRAGOMAN_COMMON_H

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

// "cpu avx2: gemm_f32_avx2 ...", what dgm_open would use. cpu as in dgm_settings.
DGM_API dgm_status dgm_device(const char *cpu, char *buffer, size_t size, dgm_error *error);

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
