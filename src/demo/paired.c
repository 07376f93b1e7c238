/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/paired.h"

#include <math.h>

#include "base/math/student.h"

double paired_student(size_t degrees)
{
    return student_975((double)degrees);
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
    /* The differences sum to 0, so their mean need not be subtracted. */
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
