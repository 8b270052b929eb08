// SPDX-License-Identifier: MIT
// Element-wise activation functions, by name and number.
#ifndef DGM_KERNEL_ACT_H
#define DGM_KERNEL_ACT_H

typedef enum dgm_act {
    DGM_ACT_NONE = 0,
    DGM_ACT_RELU,
    DGM_ACT_RELU10, // clipped to [0, 10]
    DGM_ACT_SWISH,  // x * sigmoid(x)
    DGM_ACT_GELU,   // exact (erf) form
    DGM_ACT_GELU_TANH,
    DGM_ACT_TANH,
    DGM_ACT_SIGMOID,
    DGM_ACT_GELU_SIGMOID, // x * sigmoid(1.702 x)
    DGM_ACT_COUNT
} dgm_act;

#endif
