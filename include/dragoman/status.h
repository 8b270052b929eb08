// SPDX-License-Identifier: MIT
// Status codes of the Dragoman library. Values are part of the ABI and never change.
#ifndef DRAGOMAN_STATUS_H
#define DRAGOMAN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dgm_status {
    DGM_OK = 0,
    DGM_ERR_ARGUMENT = -1,    // an option or argument is out of range or makes no sense
    DGM_ERR_MEMORY = -2,      // an allocation failed
    DGM_ERR_IO = -3,          // a file cannot be opened, read or written
    DGM_ERR_FORMAT = -4,      // a file is damaged or not what it claims to be
    DGM_ERR_VERSION = -5,     // a model file is newer than this program
    DGM_ERR_UNSUPPORTED = -6, // valid, but this program or model cannot do it
    DGM_ERR_TEXT = -7,        // the input text is not valid (encoding, length)
    DGM_ERR_CANCELLED = -8    // stopped on request of the caller
} dgm_status;

// Longest error message, with its terminating NUL.
#define DGM_ERROR_MAX 512

// What went wrong, in one line without a final period. The caller's; any thread may own one.
typedef struct dgm_error {
    char text[DGM_ERROR_MAX];
} dgm_error;

#ifdef __cplusplus
}
#endif
#endif
