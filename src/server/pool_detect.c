// SPDX-License-Identifier: MIT
// Which language a text is in, of those that can be translated; see model_pool.h.
#include "server/pool_private.h"

dgm_status dgm_pool_detect(const dgm_pool_listing *listing, const char *text, size_t size, dgm_pool_detected *found,
                           size_t most, size_t *count, dgm_error *err)
{
    (void)listing, (void)text, (void)size, (void)found, (void)most;
    *count = 0;
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "auto is not supported");
}
