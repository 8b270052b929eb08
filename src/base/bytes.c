// SPDX-License-Identifier: MIT
// Checked reads, growing writes, half-precision conversion; see bytes.h.
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

dgm_text dgm_text_of(const char *terminated)
{
    return (dgm_text){terminated, terminated ? strlen(terminated) : 0};
}

bool dgm_text_equal(dgm_text a, dgm_text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

dgm_reader dgm_reader_over(const void *data, size_t size)
{
    dgm_reader r = {data, size, 0, false};
    return r;
}

size_t dgm_reader_left(const dgm_reader *r)
{
    return r->size - r->pos;
}

const void *dgm_read_bytes(dgm_reader *r, uint64_t n)
{
    if (r->bad || n > dgm_reader_left(r)) {
        r->bad = true;
        r->pos = r->size;
        return NULL;
    }
    const uint8_t *p = r->data + r->pos;
    r->pos += (size_t)n;
    return p;
}

// Assembles n little-endian bytes, whatever the host's order.
static uint64_t read_le(dgm_reader *r, int n)
{
    const uint8_t *p = dgm_read_bytes(r, (uint64_t)n);
    uint64_t v = 0;
    for (int i = 0; p && i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t dgm_read_u8(dgm_reader *r)
{
    return (uint8_t)read_le(r, 1);
}

uint16_t dgm_read_u16(dgm_reader *r)
{
    return (uint16_t)read_le(r, 2);
}

uint32_t dgm_read_u32(dgm_reader *r)
{
    return (uint32_t)read_le(r, 4);
}

uint64_t dgm_read_u64(dgm_reader *r)
{
    return read_le(r, 8);
}

float dgm_read_f32(dgm_reader *r)
{
    uint32_t bits = dgm_read_u32(r);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

double dgm_read_f64(dgm_reader *r)
{
    uint64_t bits = dgm_read_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

bool dgm_mul_size(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b && a > UINT64_MAX / b) return false;
    *out = a * b;
    return true;
}

bool dgm_add_size(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b) return false;
    *out = a + b;
    return true;
}

static bool reserve(dgm_writer *w, size_t n)
{
    if (!w->failed && dgm_grow(&w->data, &w->cap, w->size + n, 1, NULL) != DGM_OK) w->failed = true;
    return !w->failed;
}

void dgm_write_bytes(dgm_writer *w, const void *data, size_t n)
{
    if (n == 0 || !reserve(w, n)) return;
    memcpy(w->data + w->size, data, n);
    w->size += n;
}

void dgm_write_zeros(dgm_writer *w, size_t n)
{
    if (n == 0 || !reserve(w, n)) return;
    memset(w->data + w->size, 0, n);
    w->size += n;
}

static void write_le(dgm_writer *w, uint64_t v, int n)
{
    uint8_t b[8];
    for (int i = 0; i < n; i++) b[i] = (uint8_t)(v >> (8 * i));
    dgm_write_bytes(w, b, (size_t)n);
}

void dgm_write_u8(dgm_writer *w, uint8_t v)
{
    write_le(w, v, 1);
}

void dgm_write_u16(dgm_writer *w, uint16_t v)
{
    write_le(w, v, 2);
}

void dgm_write_u32(dgm_writer *w, uint32_t v)
{
    write_le(w, v, 4);
}

void dgm_write_u64(dgm_writer *w, uint64_t v)
{
    write_le(w, v, 8);
}

void dgm_write_f32(dgm_writer *w, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    write_le(w, bits, 4);
}

void dgm_write_f64(dgm_writer *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    write_le(w, bits, 8);
}

void dgm_write_text(dgm_writer *w, const char *text)
{
    dgm_write_bytes(w, text, strlen(text));
}

void dgm_write_format(dgm_writer *w, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n >= 0 && reserve(w, (size_t)n + 1)) {
        vsnprintf((char *)w->data + w->size, (size_t)n + 1, fmt, again);
        w->size += (size_t)n;
    }
    va_end(again);
}

char *dgm_writer_take(dgm_writer *w, size_t *size)
{
    if (!reserve(w, 1)) {
        dgm_writer_free(w);
        return NULL;
    }
    w->data[w->size] = 0;
    char *text = (char *)w->data;
    if (size) *size = w->size;
    memset(w, 0, sizeof *w);
    return text;
}

void dgm_writer_free(dgm_writer *w)
{
    dgm_free(w->data);
    memset(w, 0, sizeof *w);
}

float dgm_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 0x1f, man = h & 0x3ffu, bits;
    if (exp == 31) {
        bits = sign | 0x7f800000u | man << 13;
    } else if (exp) {
        bits = sign | (exp + 112) << 23 | man << 13;
    } else if (man) {
        int shift = 0;
        while (!(man & 0x400u)) {
            man <<= 1;
            shift++;
        }
        bits = sign | (uint32_t)(113 - shift) << 23 | (man & 0x3ffu) << 13;
    } else {
        bits = sign;
    }
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

uint16_t dgm_float_to_half(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t man = bits & 0x7fffffu;
    int exp = (int)(bits >> 23 & 0xff) - 127;
    if (exp == 128) return (uint16_t)(sign | 0x7c00u | (man ? 0x200u : 0)); // inf, nan
    if (exp > 15) return (uint16_t)(sign | 0x7c00u);
    if (exp < -25) return sign;
    int drop = exp < -14 ? 13 + (-14 - exp) : 13; // subnormal halves lose more bits
    man |= 0x800000u;
    uint32_t kept = man >> drop, rest = man & ((1u << drop) - 1), half = 1u << (drop - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    // kept holds the hidden bit of normal numbers: adding it to the exponent field carries right.
    uint32_t base = exp < -14 ? 0 : (uint32_t)(exp + 14) << 10;
    return (uint16_t)(sign | (base + kept));
}
