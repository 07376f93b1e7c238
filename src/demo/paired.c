/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/paired.h"

#include <math.h>

double paired_student(size_t degrees)
{
    /* Tabulated where the expansion below is too coarse. */
    static const double tabulated[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624,
                                       2.306004,  2.262157, 2.228139, 2.200985, 2.178813, 2.160369, 2.144787,
                                       2.131450,  2.119905, 2.109816, 2.100922, 2.093024, 2.085963};
    enum { TABULATED = sizeof tabulated / sizeof tabulated[0] };
    const double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    const double n = (double)degrees;

    if (degrees <= TABULATED)
        return tabulated[degrees - 1];
    /* Cornish and Fisher's expansion about the normal quantile (Abramowitz and Stegun, 26.7.5). */
    return z + (z3 + z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n) +
           (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n);
}

struct paired paired_of(const double *ours, const double *theirs, size_t count)
{
    struct paired paired = {.count = count, .low = NAN, .high = NAN};
    double ratio, squares = 0.0, half;

    for (size_t i = 0; i < count; i++) {
        paired.ours += ours[i];
        paired.theirs += theirs[i];
    }
    ratio = paired.ours / paired.theirs;
    paired.change = ratio - 1.0;
    if (count < 2)
        return paired;
    /* The differences sum to 0, so their mean needs no taking off. */
    for (size_t i = 0; i < count; i++) {
        double difference = ours[i] - ratio * theirs[i];

        squares += difference * difference;
    }
    half = paired_student(count - 1) * sqrt(squares / (double)(count - 1)) / sqrt((double)count) /
           (paired.theirs / (double)count);
    paired.low = paired.change - half;
    paired.high = paired.change + half;
    return paired;
}

bool paired_saves(const struct paired *paired)
{
    return paired->high < 0.0;
}
