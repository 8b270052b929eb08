// SPDX-License-Identifier: MIT
// Files for one direction, as programs give them; see dragoman/route.h and format/directed.h.
#include "base/mem.h"
#include "dragoman/route.h"
#include "format/directed.h"

const char *dgm_directed_path(const char *text)
{
    return text ? dgm_directed_read(text).name : NULL;
}

dgm_status dgm_directed_item(const char **list, char **item, dgm_error *err)
{
    DGM_FAIL_IF(!list || !*list || !item, err, DGM_ERR_ARGUMENT,
                "dgm_directed_item needs a list and a place for an item");
    const dgm_text found = dgm_directed_next(list);
    *item = found.size ? dgm_strndup(found.data, found.size) : NULL;
    return found.size && !*item ? dgm_no_memory(err) : DGM_OK;
}
