// SPDX-License-Identifier: MIT
// See random_id.h.
#include "server/random_id.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

enum { MOST = 32 };

static void fill(unsigned char *bytes, size_t size)
{
    memset(bytes, 0, size);
    if (getrandom(bytes, size, 0) != (ssize_t)size) memcpy(bytes, &(double){dgm_now()}, sizeof(double));
}

void dgm_random_uuid(char out[DGM_UUID + 1])
{
    unsigned char b[16];
    fill(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 15) | 64);
    b[8] = (unsigned char)((b[8] & 63) | 128);
    for (int i = 0, n = 0; i < 16; i++)
        n += snprintf(out + n, (size_t)(DGM_UUID + 1 - n), "%s%02x",
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

void dgm_random_hex(char *out, size_t digits)
{
    unsigned char b[MOST];
    if (digits > 2 * MOST) digits = 2 * MOST;
    fill(b, sizeof b);
    for (size_t i = 0; i < digits / 2; i++) snprintf(out + 2 * i, 3, "%02X", b[i]);
}
