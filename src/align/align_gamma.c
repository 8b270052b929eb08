// SPDX-License-Identifier: MIT
// Digamma and log-gamma together: the recurrences psi(x) = psi(x+1) - 1/x and
// lnG(x) = lnG(x+1) - ln x up to x >= 10, then the asymptotic series. libm's lgamma writes a global
// sign and there is no digamma in C; the two share most of their work.
#include <math.h>

#include "align/align_private.h"

void dgm_gamma_pair(double x, double *digamma, double *lgamma)
{
    double product = 1, reciprocals = 0;
    while (x < 10) {
        product *= x;
        reciprocals += 1 / x;
        x += 1;
    }
    double l = log(x), v = 1 / x, v2 = v * v;
    // Bernoulli numbers B2 .. B10
    double psi =
        l - v / 2 -
        v2 * (1.0 / 12 - v2 * (1.0 / 120 - v2 * (1.0 / 252 - v2 * (1.0 / 240 - v2 * (1.0 / 132)))));
    double ln = (x - 0.5) * l - x + 0.91893853320467274178 +
                v * (1.0 / 12 -
                     v2 * (1.0 / 360 - v2 * (1.0 / 1260 - v2 * (1.0 / 1680 - v2 * (1.0 / 1188)))));
    *digamma = psi - reciprocals;
    *lgamma = ln - log(product);
}
