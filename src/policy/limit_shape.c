/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/limit_shape.h"

#include <math.h>

enum { NOWHERE = -1 };

/*
 * The usual GPU: how its time and power depend on the limit, as a fraction r of the least limit that does
 * not bind. Time is 1 + share * (r^-exponent - 1), power r^power_exponent. Near the middle of what the
 * published profiles of V100 and A40 show; no choice depends on it, only the order of trying.
 */
static const struct usual {
    double time_share, time_exponent, power_exponent;
} usual_power = {0.06, 4.0, 1.0}, usual_clock = {0.7, 1.0, 2.0};

/* A limit is felt below this multiple of what is drawn without it. */
static const double felt_margin = 1.02;
/* Times or powers that differ by this much show that a limit binds. */
static const double telling = 0.01;
/*
 * How much downwards energy may bend, as a fraction, when a line is drawn on by one tenth of the limit over
 * two tenths: with dynamic power by the cube of the clock, energy goes with the limit's power of 2/3.
 */
static const double bend = 0.15;
/* Two limits nearer to each other than this show no slope: where the higher one begins to bind is not known.
 */
static const double least_lever = 0.06;

/* The next known place from `place` on in direction `by`; NOWHERE for none. */
static int known_from(const struct limit_arms *arms, int place, int by)
{
    for (int i = place; i >= 0 && i < (int)arms->count; i += by) {
        if (limit_arms_known(arms, (size_t)i))
            return i;
    }
    return NOWHERE;
}

/* Whether a known arm differs from the highest known one by more than chance. */
static bool differs(const struct limit_arm *one, const struct limit_arm *highest)
{
    double chance = limit_half_width * hypot(one->time_error, highest->time_error);

    return one->time_s > highest->time_s * (1.0 + fmax(telling, chance));
}

struct limit_shape limit_shape_of(const struct limit_arms *arms, bool is_clock)
{
    const struct limit_arm *highest = &arms->arms[known_from(arms, 0, 1)];
    struct limit_shape shape = {is_clock, highest->limit, highest->limit};

    if (!(highest->felt > 0.0) || highest->felt * felt_margin >= highest->limit)
        return shape;
    /* Power that comes in bursts meets limits above its mean. */
    for (size_t i = 0; i < arms->count; i++) {
        if (limit_arms_known(arms, i) && arms->arms[i].limit >= highest->felt * felt_margin &&
            differs(&arms->arms[i], highest))
            return shape;
    }
    shape.felt = highest->felt;
    shape.binds_at = highest->felt * felt_margin;
    return shape;
}

static double position(const struct limit_shape *shape, double limit)
{
    return fmin(limit, shape->felt);
}

/* What an arm's figures would be, relative to the highest limit's, before any is measured. */
static void guess(const struct limit_shape *shape, const struct limit_arm *arm, double *out_time,
                  double *out_power)
{
    const struct usual *usual = shape->is_clock ? &usual_clock : &usual_power;
    double r = position(shape, arm->limit) / shape->felt;

    *out_time = 1.0 + usual->time_share * (pow(r, -usual->time_exponent) - 1.0);
    *out_power = pow(r, usual->power_exponent);
}

/* By how much a known arm is off the guess, as logarithms. */
static void correction(const struct limit_shape *shape, const struct limit_arm *arm, double *out_time,
                       double *out_power)
{
    double time, power;

    guess(shape, arm, &time, &power);
    *out_time = log(arm->time_s / time);
    *out_power = log(arm->power_w / power);
}

struct limit_estimate limit_shape_estimate(const struct limit_shape *shape, const struct limit_arms *arms,
                                           size_t place)
{
    const struct limit_arm *arm = &arms->arms[place], *one, *other;
    int above = known_from(arms, (int)place, -1), below = known_from(arms, (int)place, 1);
    double time, power, time_one, power_one, time_other, power_other, far = 0.0, apart;
    struct limit_estimate estimate;

    /* Beyond the known arms the two nearest are extended. */
    if (above == NOWHERE)
        above = known_from(arms, below + 1, 1);
    if (below == NOWHERE)
        below = known_from(arms, above - 1, -1);
    one = &arms->arms[above != NOWHERE ? above : below];
    other = &arms->arms[below != NOWHERE ? below : above];
    correction(shape, one, &time_one, &power_one);
    correction(shape, other, &time_other, &power_other);
    apart = log(position(shape, other->limit) / position(shape, one->limit));
    if (fabs(apart) > 0.0)
        far = log(position(shape, arm->limit) / position(shape, one->limit)) / apart;
    guess(shape, arm, &time, &power);
    estimate.time_s = time * exp(time_one + far * (time_other - time_one));
    estimate.power_w = power * exp(power_one + far * (power_other - power_one));
    estimate.score = limit_arms_score_of(arms, arm->limit, estimate.power_w, estimate.time_s);
    return estimate;
}

double limit_shape_least_time(const struct limit_arms *arms, size_t place)
{
    double least = 0.0;

    for (size_t i = 0; i < place; i++) {
        const struct limit_arm *arm = &arms->arms[i];

        if (limit_arms_known(arms, i))
            least = fmax(least, arm->time_s * (1.0 - limit_half_width * arm->time_error));
    }
    return least;
}

/* The least power: as that of the next lower limit, or in proportion to the limit. */
static double least_power(const struct limit_shape *shape, const struct limit_arms *arms, int above,
                          int below, double limit)
{
    double least = 0.0;

    if (above != NOWHERE)
        least = arms->arms[above].power_w * (1.0 - limit_half_width * arms->arms[above].power_error) *
                pow(position(shape, limit) / position(shape, arms->arms[above].limit),
                    shape->is_clock ? 3.0 : 1.0);
    if (below != NOWHERE)
        least =
            fmax(least, arms->arms[below].power_w * (1.0 - limit_half_width * arms->arms[below].power_error));
    return least > 0.0 ? least : 0.0;
}

/* The line through a far and a near known arm, drawn on to the limit, less its error and the bend. */
static double line(const struct limit_shape *shape, const struct limit_arms *arms, int far, int near,
                   double limit)
{
    double x = position(shape, limit), x_near, lever, reach, near_score, far_score, error;

    if (far == NOWHERE || near == NOWHERE)
        return 0.0;
    x_near = position(shape, arms->arms[near].limit);
    lever = fabs(x_near - position(shape, arms->arms[far].limit));
    if (lever < least_lever * x_near)
        return 0.0;
    reach = fabs(x - x_near) / lever;
    near_score = limit_arms_score(arms, (size_t)near);
    far_score = limit_arms_score(arms, (size_t)far);
    error = hypot((1.0 + reach) * near_score * limit_arms_deviation(arms, (size_t)near),
                  reach * far_score * limit_arms_deviation(arms, (size_t)far));
    return near_score + reach * (near_score - far_score) - limit_half_width * error -
           bend * near_score * reach * (1.0 + reach) * pow(lever / fmin(x, x_near), 2.0);
}

double limit_shape_least_score(const struct limit_shape *shape, const struct limit_arms *arms, size_t place)
{
    const struct limit_arm *arm = &arms->arms[place];
    int above = known_from(arms, (int)place - 1, -1), below = known_from(arms, (int)place + 1, 1);
    double least = limit_arms_score_of(arms, arm->limit, least_power(shape, arms, above, below, arm->limit),
                                       limit_shape_least_time(arms, place));

    if (arms->objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT)
        return arm->limit;
    if (above != NOWHERE)
        least = fmax(least, line(shape, arms, known_from(arms, above - 1, -1), above, arm->limit));
    if (below != NOWHERE)
        least = fmax(least, line(shape, arms, known_from(arms, below + 1, 1), below, arm->limit));
    return least;
}
