/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math/student.h"

#include <math.h>

/* Tabulated for degrees where the expansion below is too coarse. */
enum { TABULATED = 20 };
static const double tabulated_95[TABULATED] = {
    6.313752, 2.919986, 2.353363, 2.131847, 2.015048, 1.943180, 1.894579, 1.859548, 1.833113, 1.812461,
    1.795885, 1.782288, 1.770933, 1.761310, 1.753050, 1.745884, 1.739607, 1.734064, 1.729133, 1.724718};
static const double tabulated_975[TABULATED] = {
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
    2.200985,  2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963};

/* Returns a quantile from its table, or from the normal one, `z`. */
static double quantile(const double *tabulated, double z, double degrees)
{
    const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
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

double student_95(double degrees)
{
    return quantile(tabulated_95, 1.644853626951473, degrees);
}

double student_975(double degrees)
{
    return quantile(tabulated_975, 1.959963984540054, degrees);
}
