// SPDX-License-Identifier: MIT
// A call whose allocations fail one after the other. Include cmocka.h first.
#ifndef DGM_TESTS_FAILURES_H
#define DGM_TESTS_FAILURES_H

#include "base/mem.h"
#include "base/status.h"

// Calls again and again, with the n-th allocation failing the n-th time, until it succeeds: each
// time it says so and leaves nothing behind. `call` is an expression of type dgm_status.
#define ALLOCATIONS_FAIL(call)                                                                     \
    do {                                                                                           \
        const uint64_t live_ = dgm_mem_live();                                                     \
        dgm_status status_ = DGM_ERR_MEMORY;                                                       \
        for (uint64_t n_ = 1; status_ != DGM_OK; n_++) {                                           \
            dgm_mem_inject(n_, 1);                                                                 \
            status_ = (call);                                                                      \
            dgm_mem_inject(0, 0);                                                                  \
            assert_true(status_ == DGM_OK || status_ == DGM_ERR_MEMORY);                           \
            assert_int_equal(dgm_mem_live(), live_);                                               \
        }                                                                                          \
    } while (0)

#endif
