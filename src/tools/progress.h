// SPDX-License-Identifier: MIT
// Telling a caller how far long work has come; see dgm_progress in dragoman/common.h.
#ifndef DGM_TOOLS_PROGRESS_H
#define DGM_TOOLS_PROGRESS_H

#include "base/status.h"
#include "dragoman/common.h"

// DGM_ERR_CANCELLED if the caller has had enough.
static inline dgm_status dgm_progress_tick(const dgm_progress *p, const char *stage, double share,
                                           dgm_error *err)
{
    DGM_FAIL_IF(p->tick && p->tick(p->cookie, stage, share) != 0, err, DGM_ERR_CANCELLED,
                "stopped on request");
    return DGM_OK;
}

#endif
