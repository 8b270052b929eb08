// SPDX-License-Identifier: MIT
// Text in other encodings than UTF-8, for readers; dgm_encoding is in dragoman/common.h.
#ifndef DGM_BASE_ENCODING_H
#define DGM_BASE_ENCODING_H

#include <stdbool.h>
#include <stddef.h>

#include "dragoman/common.h"

enum { DGM_ENCODING_GROWTH = 3 }; // bytes of UTF-8 for one of another encoding, at most

typedef struct dgm_converted {
    size_t used, made; // bytes of the input, of the output
    const char *wrong; // what is wrong with the input behind `used`; NULL: nothing
} dgm_converted;

// As much of the input as makes whole characters; last: nothing comes behind it. out has room for
// DGM_ENCODING_GROWTH * size bytes. The byte order of UTF-16 must be known: dgm_encoding_order.
dgm_converted dgm_encoding_convert(dgm_encoding encoding, const char *in, size_t size, bool last, char *out);

// UTF-16 with the byte order that the beginning of the text has, little-endian where it cannot be told; other
// encodings as they are. NULL in *wrong: it may be what it is said to be.
dgm_encoding dgm_encoding_order(dgm_encoding encoding, const char *in, size_t size, const char **wrong);

const char *dgm_encoding_name(dgm_encoding encoding); // as dgm_encoding_named takes it

#endif
