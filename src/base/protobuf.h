// SPDX-License-Identifier: MIT
// Fields of a Protocol Buffers message, one after the other: what SentencePiece models are made of.
#ifndef DGM_BASE_PROTOBUF_H
#define DGM_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DGM_WIRE_VARINT = 0, DGM_WIRE_64 = 1, DGM_WIRE_BYTES = 2, DGM_WIRE_32 = 5 };

typedef struct dgm_proto_field {
    uint32_t number, wire;
    uint64_t value;   // of a number
    dgm_text payload; // of bytes, borrowed; else data NULL
} dgm_proto_field;

// The next field. False at the end of the message or when it is damaged (r->bad).
bool dgm_proto_next(dgm_reader *r, dgm_proto_field *f);

#endif
