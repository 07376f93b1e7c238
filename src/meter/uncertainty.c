/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/uncertainty.h"

#include <math.h>

double uncertainty_edges_j(double a_j, double b_j)
{
    double less = fmin(a_j, b_j), more = fmax(a_j, b_j);
    double both = 0.2 * less * more - (more - less) * (more - less);
    double half;

    /* The distribution is a trapezoid; which of its parts the percentile lies in gives three cases. */
    if (less < 0.1 * more)
        return 0.95 * more - 0.5 * less;
    if (both >= 0.0) {
        half = 0.5 * (more + less - sqrt(both));
        if (half <= less)
            return half;
    }
    return more - sqrt(0.1 * less * more);
}
