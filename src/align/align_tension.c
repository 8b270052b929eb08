// SPDX-License-Identifier: MIT
// The M-step of the diagonal's tension. With W_j the posterior mass of links at target position j
// and D the expected sum of distances, the expected log-likelihood as a function of the tension x
// is
//
//     Q(x) = -x D - sum_j W_j log Z_j(x),      Q'(x) = sum_j W_j E_x[distance | j] - D
//
// Q is concave (an exponential family), so Q' falls, and every point between the old tension and
// the root of Q' is at least as good as the old one. The root is bracketed and approached by false
// position (Illinois); the answer is the end of the bracket on the old tension's side, so that the
// likelihood cannot fall.
#include <math.h>

#include "align/align_private.h"

enum { STEPS = 12 };

// Sum over the target positions of some groups of W_j E[distance | j].
static void expect(void *arg, int worker, int item)
{
    dgm_aligner *a = arg;
    (void)worker;
    double total = 0;
    for (uint32_t g = a->block[item]; g < a->block[item + 1]; g++) {
        const dgm_bitext_group *group = &a->b->group[g];
        int m = group->length[a->from_side], n = group->length[1 - a->from_side];
        const double *mass = a->mass + a->mass_at[g];
        double step = 1.0 / m, ratio = exp(-a->probe * step);
        for (int j = 0; j < n; j++) {
            // Along i the weights fall geometrically on both sides of the diagonal.
            int at = (j + 1) * m, whole = at / n;
            double part = (double)(at % n) / n, z = 0, zd = 0;
            double d = (1 - part) * step, w = exp(-a->probe * d);
            for (int i = whole; i < m; i++) {
                z += w;
                zd += w * d;
                w *= ratio;
                d += step;
            }
            d = part * step;
            w = exp(-a->probe * d);
            for (int i = whole - 1; i >= 0; i--) {
                z += w;
                zd += w * d;
                w *= ratio;
                d += step;
            }
            total += mass[j] * zd / z;
        }
    }
    a->block_value[item] = total;
}

static double slope(dgm_aligner *a, double tension, double distance)
{
    double total = 0;
    a->probe = tension;
    dgm_pool_run(a->pool, expect, a, a->blocks);
    for (int i = 0; i < a->blocks; i++) total += a->block_value[i];
    return total - distance;
}

void dgm_align_optimise(dgm_aligner *a, double distance)
{
    double near = a->tension, at_near = slope(a, near, distance);
    if (at_near == 0) return;
    double far = at_near > 0 ? DGM_ALIGN_TENSION_MAX : DGM_ALIGN_TENSION_MIN;
    double at_far = slope(a, far, distance);
    if ((at_near > 0) == (at_far > 0)) { // no root inside: the limit is the best
        dgm_align_set_tension(a, far);
        return;
    }
    double weight_far = at_far, weight_near = at_near;
    int side = 0;
    for (int k = 0; k < STEPS && fabs(far - near) > 1e-4; k++) {
        double x = (near * weight_far - far * weight_near) / (weight_far - weight_near);
        if (!(x > fmin(near, far) && x < fmax(near, far))) x = (near + far) / 2;
        double y = slope(a, x, distance);
        if (y == 0) {
            near = x;
            break;
        }
        if ((y > 0) == (at_near > 0)) {
            near = x;
            weight_near = y;
            if (side == 1) weight_far /= 2;
            side = 1;
        } else {
            far = x;
            weight_far = y;
            if (side == -1) weight_near /= 2;
            side = -1;
        }
    }
    dgm_align_set_tension(a, near);
}
