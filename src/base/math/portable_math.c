/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp: x = k ln 2 + r with |r| <= ln 2 / 2, then the Taylor series of e^r.
 * log: x = m 2^k with m in [sqrt(1/2), sqrt(2)), then the series of
 * 2 artanh((m - 1) / (m + 1)). Both series end where the next term is below
 * half a unit in the last place. ln 2 is split in two so that k times its upper
 * part is exact (Cody and Waite, "Software Manual for the Elementary
 * Functions", 1980).
 */
#include "base/math/portable_math.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static const double ln2_high = 0x1.62e42feep-1;
static const double ln2_low = 0x1.a39ef35793c76p-33;

/* 2^exponent for a normal result. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

double portable_exp(double x)
{
    double k, r, sum = 1.0;
    int halves;

    if (isnan(x))
        return x;
    if (x > 709.782712893384)
        return INFINITY;
    if (x < -745.2)
        return 0.0;
    k = floor(x / 0x1.62e42fefa39efp-1 + 0.5);
    r = (x - k * ln2_high) - k * ln2_low;
    for (int n = 13; n >= 1; n--)
        sum = 1.0 + r / n * sum;
    /* In two steps, since 2^k alone may exceed the range of a double. */
    halves = (int)k / 2;
    return sum * power_of_two(halves) * power_of_two((int)k - halves);
}

double portable_log(double x)
{
    double m, s, z, sum = 0.0;
    int k;

    if (isnan(x) || x == INFINITY)
        return x;
    if (x <= 0.0)
        return x == 0.0 ? -INFINITY : NAN;
    m = frexp(x, &k);
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2.0;
        k--;
    }
    s = (m - 1.0) / (m + 1.0);
    z = s * s;
    for (int n = 23; n >= 3; n -= 2)
        sum = z * (1.0 / n + sum);
    return k * ln2_high + (2.0 * s + (2.0 * s * sum + k * ln2_low));
}
