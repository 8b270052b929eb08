// SPDX-License-Identifier: MIT
// SHA-256; see sha256.h. Names of variables are those of the standard.
#include "base/sha256.h"

#include <string.h>

enum { BLOCK = 64 };

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

// One round: d and h are what changes.
static inline void mix(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f, uint32_t g, uint32_t *h,
                       uint32_t word)
{
    const uint32_t t1 = *h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + word;
    *d += t1;
    *h = t1 + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void add_block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    // Names go round instead of values: eight rounds, and each is back in its place.
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
    for (int i = 0; i < 64; i += 8) {
        mix(a, b, c, &d, e, f, g, &last, K[i] + w[i]);
        mix(last, a, b, &c, d, e, f, &g, K[i + 1] + w[i + 1]);
        mix(g, last, a, &b, c, d, e, &f, K[i + 2] + w[i + 2]);
        mix(f, g, last, &a, b, c, d, &e, K[i + 3] + w[i + 3]);
        mix(e, f, g, &last, a, b, c, &d, K[i + 4] + w[i + 4]);
        mix(d, e, f, &g, last, a, b, &c, K[i + 5] + w[i + 5]);
        mix(c, d, e, &f, g, last, a, &b, K[i + 6] + w[i + 6]);
        mix(b, c, d, &e, f, g, last, &a, K[i + 7] + w[i + 7]);
    }
    const uint32_t v[8] = {a, b, c, d, e, f, g, last};
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

void dgm_sha256(const void *data, size_t size, uint8_t out[DGM_SHA256_BYTES])
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *p = data;
    size_t left = size;
    for (; left >= BLOCK; left -= BLOCK, p += BLOCK) add_block(h, p);
    // What is left, a bit, zeros, and the length in bits: one block, or two.
    uint8_t end[2 * BLOCK] = {0};
    const size_t blocks = left + 9 > BLOCK ? 2 : 1;
    if (left) memcpy(end, p, left);
    end[left] = 0x80;
    for (int i = 0; i < 8; i++)
        end[blocks * BLOCK - 1 - (size_t)i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    for (size_t i = 0; i < blocks; i++) add_block(h, end + i * BLOCK);
    for (int i = 0; i < DGM_SHA256_BYTES; i++) out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

void dgm_sha256_base64(const void *data, size_t size, char out[DGM_SHA256_BASE64 + 1])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t sum[DGM_SHA256_BYTES + 1] = {
        0}; // 33 bytes are eleven groups of three; the last digit stands for none
    dgm_sha256(data, size, sum);
    for (int i = 0, n = 0; i < DGM_SHA256_BYTES; i += 3) {
        const uint32_t three = (uint32_t)sum[i] << 16 | (uint32_t)sum[i + 1] << 8 | sum[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) out[n++] = digits[three >> shift & 63];
    }
    out[DGM_SHA256_BASE64 - 1] = '=';
    out[DGM_SHA256_BASE64] = 0;
}
