// SPDX-License-Identifier: MIT
// A launch is written onto the worker's tape, with a copy of its arguments, and played later (tape_cuda.c).
#ifndef DGM_BACKEND_CUDA_LAUNCH_CUH
#define DGM_BACKEND_CUDA_LAUNCH_CUH

#include <tuple>

#include "backend/cuda/kernels_cuda.h"

template <typename... P, typename... A>
static void cuda_launch(cuda_tape *t, void (*kernel)(P...), dim3 grid, unsigned block, size_t shared, A... given)
{
    const std::tuple<P...> own(static_cast<P>(given)...); // of the types that the kernel takes
    std::apply(
        [&](const auto &...a) {
            const void *const arguments[] = {&a...};
            const size_t sizes[] = {sizeof a...};
            cuda_tape_launch(t, (const void *)kernel, grid.x, grid.y, block, shared, arguments, sizes,
                             (int)sizeof...(a));
        },
        own);
}

#endif
