// SPDX-License-Identifier: MIT
// Goldens that are kept compressed: a whole file, packed by gzip or not.
#ifndef DGM_TESTS_UNIT_PACKED_H
#define DGM_TESTS_UNIT_PACKED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"

// With a NUL behind the last byte, which size does not count. To be closed with dgm_mapfile_close.
static inline dgm_mapfile packed_file(const char *path)
{
    uint8_t *data = NULL;
    size_t size = 0, cap = 0;
    gzFile in = gzopen(path, "rb");
    if (!in) fail_msg("cannot open '%s'", path);
    for (int n = 1; n > 0; size += (size_t)n) {
        assert_int_equal(dgm_grow(&data, &cap, size + (1 << 16) + 1, 1, NULL), DGM_OK);
        n = gzread(in, data + size, 1 << 16);
        if (n < 0) fail_msg("'%s' is damaged", path);
    }
    gzclose(in);
    data[size] = 0;
    return (dgm_mapfile){.data = data, .size = size};
}

#endif
