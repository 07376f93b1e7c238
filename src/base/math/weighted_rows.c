/* SPDX-License-Identifier: Apache-2.0 */
/* Four rows at a time, so that each sum is read and written once for four. */
#include "base/math/weighted_rows.h"

static void add_four(const struct weighted_rows *of, size_t first, double *restrict sums, size_t length)
{
    const double *restrict a = &of->rows[first * of->stride], *restrict b = a + of->stride,
                           *restrict c = b + of->stride, *restrict d = c + of->stride;
    const double *weights = &of->weights[first * of->step];
    double of_a = of->sign * weights[0], of_b = of->sign * weights[of->step],
           of_c = of->sign * weights[2 * of->step], of_d = of->sign * weights[3 * of->step];

    for (size_t i = 0; i < length; i++)
        sums[i] = (((sums[i] + of_a * a[i]) + of_b * b[i]) + of_c * c[i]) + of_d * d[i];
}

void weighted_rows_add(const struct weighted_rows *of, double *sums, size_t length)
{
    size_t row = 0;

    for (; row + 4 <= of->count; row += 4)
        add_four(of, row, sums, length);
    for (; row < of->count; row++) {
        const double *restrict own = &of->rows[row * of->stride];
        double *restrict out = sums, weight = of->sign * of->weights[row * of->step];

        for (size_t i = 0; i < length; i++)
            out[i] += weight * own[i];
    }
}
