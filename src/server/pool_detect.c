// SPDX-License-Identifier: MIT
// Which language a text is in, of those that can be translated; see model_pool.h.
#include <string.h>

#include "base/mem.h"
#include "dragoman/text.h"
#include "server/pool_private.h"

enum { FOUND = 8, ENOUGH = 8192 }; // languages at most; bytes that are looked at

dgm_status dgm_pool_detect(const dgm_pool_listing *listing, const char *text, size_t size, dgm_pool_detected *found,
                           size_t most, size_t *count, dgm_error *err)
{
    dgm_detected all[FOUND];
    dgm_writer among = {0};
    size_t n = 0;
    *count = 0;
    for (size_t i = 0; listing && i < listing->count; i++) {
        if (among.size) dgm_write_u8(&among, ',');
        dgm_write_text(&among, listing->items[i].code);
    }
    dgm_write_u8(&among, 0);
    size_t part = size < ENOUGH ? size : ENOUGH;
    while (part < size && ((unsigned char)text[part] & 0xc0) == 0x80) part++; // whole characters
    const dgm_status st =
        among.failed ? dgm_no_memory(err)
                     : dgm_detect(text, part, (const char *)among.data, all, most < FOUND ? most : FOUND, &n, err);
    dgm_writer_free(&among);
    for (size_t i = 0; st == DGM_OK && i < n; i++) {
        const dgm_pool_language *l = dgm_pool_find(listing, all[i].language);
        if (l) found[(*count)++] = (dgm_pool_detected){l->code, (double)all[i].confidence};
    }
    return st;
}
