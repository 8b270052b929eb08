// SPDX-License-Identifier: MIT
// All fuzz targets, for programs that hold more than one.
#ifndef DGM_TESTS_FUZZ_TABLE_H
#define DGM_TESTS_FUZZ_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define TARGET(name)                                                                                                   \
    int fuzz_one_##name(const uint8_t *data, size_t size);                                                             \
    size_t fuzz_mutate_##name(uint8_t *data, size_t size, size_t max, unsigned seed) __attribute__((weak));
#include "fuzz_targets.h" // made by the Makefile, or by scripts/fuzz: TARGET(argos) ...
#undef TARGET

static const struct target {
    const char *name;
    int (*one)(const uint8_t *data, size_t size);
    size_t (*mutate)(uint8_t *data, size_t size, size_t max, unsigned seed);
} targets[] = {
#define TARGET(name) {#name, fuzz_one_##name, fuzz_mutate_##name},
#include "fuzz_targets.h"
    {NULL, NULL, NULL},
};

#endif
