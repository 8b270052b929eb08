// SPDX-License-Identifier: MIT
// Checked little-endian reads from a buffer, and a growing buffer to write the same.
//
// A reader never moves past its end: a read that does not fit sets `bad`, returns zero and leaves
// the position at the end, so a parser may read a whole record and test `bad` once.
#ifndef DGM_BASE_BYTES_H
#define DGM_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

// Bytes that belong to somebody else; not terminated by NUL.
typedef struct dgm_text {
    const char *data;
    size_t size;
} dgm_text;

dgm_text dgm_text_of(const char *terminated); // NULL gives an empty text
bool dgm_text_equal(dgm_text a, dgm_text b);

typedef struct dgm_reader {
    const uint8_t *data;
    size_t size, pos;
    bool bad;
} dgm_reader;

dgm_reader dgm_reader_over(const void *data, size_t size);
uint8_t dgm_read_u8(dgm_reader *r);
uint16_t dgm_read_u16(dgm_reader *r);
uint32_t dgm_read_u32(dgm_reader *r);
uint64_t dgm_read_u64(dgm_reader *r);
float dgm_read_f32(dgm_reader *r);
double dgm_read_f64(dgm_reader *r);
const void *dgm_read_bytes(dgm_reader *r, uint64_t n); // NULL when they do not fit
size_t dgm_reader_left(const dgm_reader *r);

// Overflow-safe arithmetic on sizes that a file controls. False on overflow.
bool dgm_mul_size(uint64_t a, uint64_t b, uint64_t *out);
bool dgm_add_size(uint64_t a, uint64_t b, uint64_t *out);

// Growing output buffer. After a failed allocation `failed` is set and writes do nothing.
typedef struct dgm_writer {
    uint8_t *data;
    size_t size, cap;
    bool failed;
} dgm_writer;

void dgm_write_bytes(dgm_writer *w, const void *data, size_t n);
void dgm_write_u8(dgm_writer *w, uint8_t v);
void dgm_write_u16(dgm_writer *w, uint16_t v);
void dgm_write_u32(dgm_writer *w, uint32_t v);
void dgm_write_u64(dgm_writer *w, uint64_t v);
void dgm_write_f32(dgm_writer *w, float v);
void dgm_write_f64(dgm_writer *w, double v);
void dgm_write_zeros(dgm_writer *w, size_t n);
void dgm_write_text(dgm_writer *w, const char *text); // without its NUL
void dgm_write_format(dgm_writer *w, const char *fmt, ...) DGM_PRINTF(2, 3);
// Terminates with NUL (not counted in size) and hands the text over; NULL if anything failed.
char *dgm_writer_take(dgm_writer *w, size_t *size);
void dgm_writer_free(dgm_writer *w);

// IEEE half and bfloat16, exact both ways (round to nearest even).
float dgm_half_to_float(uint16_t h);
uint16_t dgm_float_to_half(float f);
static inline float dgm_bf16_to_float(uint16_t b) // in loops over whole rows
{
    const uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// Too large becomes infinity; NaN stays NaN.
static inline uint16_t dgm_float_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : nearest);
}

#endif
