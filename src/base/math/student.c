/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math/student.h"

#include <math.h>

/* Tabulated for degrees where the expansion below is too coarse. */
static const double tabulated[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624,
                                   2.306004,  2.262157, 2.228139, 2.200985, 2.178813, 2.160369, 2.144787,
                                   2.131450,  2.119905, 2.109816, 2.100922, 2.093024, 2.085963};
enum { TABULATED = sizeof tabulated / sizeof tabulated[0] };

double student_975(double degrees)
{
    const double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    const double n = degrees;

    if (n < TABULATED) {
        double below = floor(n), share;

        if (below < 1.0)
            return tabulated[0];
        /* Nearly linear in 1/n. */
        share = (1.0 / below - 1.0 / n) / (1.0 / below - 1.0 / (below + 1.0));
        return tabulated[(int)below - 1] + share * (tabulated[(int)below] - tabulated[(int)below - 1]);
    }
    if (n == TABULATED)
        return tabulated[TABULATED - 1];
    /* Cornish and Fisher's expansion about the normal quantile (Abramowitz and Stegun, 26.7.5). */
    return z + (z3 + z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n) +
           (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n);
}
