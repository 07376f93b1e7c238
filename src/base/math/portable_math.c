/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp: x = k ln 2 + r with |r| <= ln 2 / 2, then the Taylor series of e^r, for two numbers at once. Its
 * terms are scaled by r / n; where n has a factor of 2, that is taken out of the division, which leaves
 * the bits.
 * log: x = m 2^k with m in [sqrt(1/2), sqrt(2)), then the series of
 * 2 artanh((m - 1) / (m + 1)). Both series end where the next term is below
 * half a unit in the last place. ln 2 is split in two so that k times its upper
 * part is exact (Cody and Waite, "Software Manual for the Elementary
 * Functions", 1980).
 */
#include "base/math/portable_math.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

static const double ln2_high = 0x1.62e42feep-1;
static const double ln2_low = 0x1.a39ef35793c76p-33;

enum { LANES = 2 };

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef uint64_t lane_bits __attribute__((vector_size(LANES * sizeof(uint64_t))));

static lanes all_lanes(double number)
{
    return (lanes){number, number};
}

/* Rounds to the nearest whole number, from -2^51 to 2^51. */
static lanes rounded(lanes x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

/* 2^exponent, whole numbers, for a normal result. */
static lanes powers_of_two(lanes exponent)
{
    return (lanes)(((lane_bits)(exponent + 0x1.8p52) + 1023) << 52);
}

/* e^r for small r. */
static lanes exp_series(lanes r)
{
    lanes third = r / 3.0, fifth = r / 5.0, seventh = r / 7.0, ninth = r / 9.0, eleventh = r / 11.0;
    lanes sum = 1.0 + r / 13.0;

    sum = 1.0 + 0.25 * third * sum;
    sum = 1.0 + eleventh * sum;
    sum = 1.0 + 0.5 * fifth * sum;
    sum = 1.0 + ninth * sum;
    sum = 1.0 + 0.125 * r * sum;
    sum = 1.0 + seventh * sum;
    sum = 1.0 + 0.5 * third * sum;
    sum = 1.0 + fifth * sum;
    sum = 1.0 + 0.25 * r * sum;
    sum = 1.0 + third * sum;
    sum = 1.0 + 0.5 * r * sum;
    return 1.0 + r * sum;
}

/* e^x where that is neither 0 nor infinite. */
static lanes exp_within(lanes x)
{
    lanes quotient = x / 0x1.62e42fefa39efp-1 + 0.5, k = rounded(quotient), halves;

    k -= (lanes)((lane_bits)all_lanes(1.0) & (lane_bits)(k > quotient));
    halves = rounded(0.5 * k);
    /* In two steps, since 2^k alone may exceed the range of a double. */
    return exp_series((x - k * ln2_high) - k * ln2_low) * powers_of_two(halves) * powers_of_two(k - halves);
}

/* Returns whether e^x is 0, infinite or no number; gives it then. */
static bool exp_is_extreme(double x, double *out)
{
    if (x >= -745.2 && x <= 709.782712893384)
        return false;
    if (!isnan(x))
        *out = x < 0.0 ? 0.0 : INFINITY;
    else
        *out = x;
    return true;
}

double portable_exp(double x)
{
    double extreme;

    return exp_is_extreme(x, &extreme) ? extreme : exp_within(all_lanes(x))[0];
}

void portable_exp_all(double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i += LANES) {
        size_t last = i + 1 < count ? i + 1 : i;
        lanes power = exp_within((lanes){numbers[i], numbers[last]});

        if (!exp_is_extreme(numbers[last], &numbers[last]))
            numbers[last] = power[1];
        if (last != i && !exp_is_extreme(numbers[i], &numbers[i]))
            numbers[i] = power[0];
    }
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
