// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4), and the same as base64: what web pages name their scripts by, and what tells versions apart.
#ifndef DGM_BASE_SHA256_H
#define DGM_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { DGM_SHA256_BYTES = 32, DGM_SHA256_BASE64 = 44 }; // 44: characters, without a NUL

void dgm_sha256(const void *data, size_t size, uint8_t out[DGM_SHA256_BYTES]);
void dgm_sha256_base64(const void *data, size_t size, char out[DGM_SHA256_BASE64 + 1]);

#endif
