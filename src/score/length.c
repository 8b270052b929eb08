// SPDX-License-Identifier: MIT
// Length normalisation of finished hypotheses; see score.h.
#include "score/score.h"

#include <math.h>

float dgm_length_normalise(float sum, int length, float penalty)
{
    // 1 and 0 are what people use; both come out exactly whatever pow does.
    if (penalty == 0.0f) return sum;
    const double divisor = penalty == 1.0f ? (double)length : pow((double)length, (double)penalty);
    return sum / (float)divisor;
}
