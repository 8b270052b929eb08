// SPDX-License-Identifier: MIT
// Fields of a Protocol Buffers message; see protobuf.h.
#include "base/protobuf.h"

static inline uint64_t read_varint(dgm_reader *r)
{
    if (r->pos < r->size && !(r->data[r->pos] & 0x80)) return r->data[r->pos++]; // nearly all are small
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = dgm_read_u8(r);
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) return value;
    }
    r->bad = true;
    return 0;
}

bool dgm_proto_next(dgm_reader *r, dgm_proto_field *f)
{
    if (r->bad || dgm_reader_left(r) == 0) return false;
    const uint64_t tag = read_varint(r);
    *f = (dgm_proto_field){.number = (uint32_t)(tag >> 3), .wire = (uint32_t)(tag & 7)};
    if (tag > UINT32_MAX || f->number == 0) r->bad = true;
    switch (f->wire) {
    case DGM_WIRE_VARINT:
        f->value = read_varint(r);
        break;
    case DGM_WIRE_64:
        f->value = dgm_read_u64(r);
        break;
    case DGM_WIRE_BYTES:
        f->payload.size = (size_t)read_varint(r);
        if (!r->bad && f->payload.size <= r->size - r->pos) {
            f->payload.data = (const char *)r->data + r->pos;
            r->pos += f->payload.size;
        } else {
            f->payload.data = dgm_read_bytes(r, f->payload.size); // says what is wrong
        }
        break;
    case DGM_WIRE_32:
        f->value = dgm_read_u32(r);
        break;
    default: // groups, which nobody writes any more
        r->bad = true;
    }
    return !r->bad;
}
