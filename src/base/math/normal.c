/* SPDX-License-Identifier: Apache-2.0 */
/* Three ranges with a rational function each: the middle, the flanks, and the tails. */
#include "base/math/normal.h"

#include <math.h>
#include <stdbool.h>

#include "base/math/portable_math.h"

enum { AT_ONCE = 32 };

static const double one_by_root_two_pi = 0.398942280401432677939946;
static const double middle = 0.67448975, root_32 = 5.656854249492380195206754896838;

double normal_density(double z)
{
    return one_by_root_two_pi * portable_exp(-0.5 * z * z);
}

/* Returns normal_below(z) - 0.5 for |z| up to `middle`. */
static double around_zero(double z)
{
    static const double a[] = {2.2352520354606839287, 161.02823106855587881, 1067.6894854603709582,
                               18154.981253343561249, .065682337918207449113};
    static const double b[] = {47.20258190468824187, 976.09855173777669322, 10260.932208618978205,
                               45507.789335026729956};
    double square = z * z, above = a[4] * square, below = square;

    for (size_t i = 0; i < 3; i++) {
        above = (above + a[i]) * square;
        below = (below + b[i]) * square;
    }
    return z * (above + a[3]) / (below + b[3]);
}

/* Returns what to multiply with exp(-z^2 / 2) for the probability beyond z, for z from `middle` to `root_32`.
 */
static double flank(double z)
{
    static const double c[] = {.39894151208813466764, 8.8831497943883759412, 93.506656132177855979,
                               597.27027639480026226, 2494.5375852903726711, 6848.1904505362823326,
                               11602.651437647350124, 9842.7148383839780218, 1.0765576773720192317e-8};
    static const double d[] = {22.266688044328115691, 235.38790178262499861, 1519.377599407554805,
                               6485.558298266760755,  18615.571640885098091, 34900.952721145977266,
                               38912.003286093271411, 19685.429676859990727};
    double above = c[8] * z, below = z;

    for (size_t i = 0; i < 7; i++) {
        above = (above + c[i]) * z;
        below = (below + d[i]) * z;
    }
    return (above + c[7]) / (below + d[7]);
}

/* The same beyond `root_32`. */
static double tail(double z)
{
    static const double p[] = {.21589853405795699,     .1274011611602473639,  .022235277870649807,
                               .001421619193227893466, 2.9112874951168792e-5, .02307344176494017303};
    static const double q[] = {1.28426009614491121, .468238212480865118, .0659881378689285515,
                               .00378239633202758244, 7.29751555083966205e-5};
    double inverse = 1.0 / (z * z), above = p[5] * inverse, below = inverse;

    for (size_t i = 0; i < 4; i++) {
        above = (above + p[i]) * inverse;
        below = (below + q[i]) * inverse;
    }
    return (one_by_root_two_pi - inverse * (above + p[4]) / (below + q[4])) / z;
}

static double beyond_factor(double z)
{
    return z <= root_32 ? flank(z) : tail(z);
}

/* Returns the probability of a value below z, which is beyond `middle`; `beyond` is exp(-z^2 / 2). */
static double below_outside(double z, double beyond)
{
    if (beyond > 0.0)
        beyond *= beyond_factor(fabs(z));
    return z < 0.0 ? beyond : 1.0 - beyond;
}

static bool is_outside(double z)
{
    return fabs(z) > middle;
}

static double below_inside(double z)
{
    return isnan(z) ? z : 0.5 + around_zero(z);
}

double normal_below(double z)
{
    return is_outside(z) ? below_outside(z, portable_exp(-0.5 * z * z)) : below_inside(z);
}

void normal_below_all(double *numbers, size_t count)
{
    double beyond[AT_ONCE];

    for (size_t first = 0; first < count; first += AT_ONCE) {
        size_t end = first + AT_ONCE < count ? first + AT_ONCE : count, outside = 0;

        for (size_t i = first; i < end; i++) {
            beyond[outside] = -0.5 * numbers[i] * numbers[i];
            outside += is_outside(numbers[i]);
        }
        portable_exp_all(beyond, outside);
        outside = 0;
        for (size_t i = first; i < end; i++)
            numbers[i] = is_outside(numbers[i]) ? below_outside(numbers[i], beyond[outside++])
                                                : below_inside(numbers[i]);
    }
}

double normal_slope(double z)
{
    if (z < -middle) /* exp(-z^2 / 2) cancels */
        return one_by_root_two_pi / beyond_factor(-z);
    return normal_density(z) / normal_below(z);
}
