/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/limit_arms.h"

#include <math.h>

#include <flyball/power_profile.h>

#include "policy/power_score.h"

const double limit_half_width = 1.96;

/* With so many steps an interval is looked at for the first time; each doubling is another look. */
static const double first_look_steps = 10.0;
/*
 * The normal distribution's quantiles for one-sided errors of 0.05 / (k * (k + 1)), which add up to
 * 0.05, for looks k = 1, 2, ...; the first two also allow for a spread that is known from few steps.
 */
static const double look_factors[] = {2.40, 2.50, 2.60, 2.70, 2.75, 2.80, 2.85, 2.90};
enum { LOOK_FACTORS = sizeof look_factors / sizeof look_factors[0] };
/* What visits differ by is known from few of them, and each visit is a look. */
static const double whole_factor = 3.0;
/* For times that come from elsewhere. */
static const double plain_factor = 2.0;

bool limit_arms_known(const struct limit_arms *arms, size_t place)
{
    return !arms->arms[place].left_out && arms->arms[place].time_s > 0.0;
}

double limit_arms_score_of(const struct limit_arms *arms, double limit, double power_w, double time_s)
{
    const struct fly_power_point point = {limit, power_w, time_s};

    return power_score(&point, &arms->objective, arms->max_power_w);
}

double limit_arms_score(const struct limit_arms *arms, size_t place)
{
    const struct limit_arm *arm = &arms->arms[place];

    return limit_arms_score_of(arms, arm->limit, arm->power_w, arm->time_s);
}

/* How much of the score follows the power, as a share. */
static double power_share(const struct limit_arms *arms, const struct limit_arm *arm)
{
    switch (arms->objective.kind) {
    case FLY_OBJECTIVE_ENERGY:
    case FLY_OBJECTIVE_CARBON:
    case FLY_OBJECTIVE_MONEY:
        return 1.0;
    case FLY_OBJECTIVE_COST:
        return arms->objective.eta * arm->power_w /
               (arms->objective.eta * arm->power_w + (1.0 - arms->objective.eta) * arms->max_power_w);
    case FLY_OBJECTIVE_TIME:
    case FLY_OBJECTIVE_LOWEST_LIMIT:
        break;
    }
    return 0.0;
}

static double visits_of(const struct limit_arm *arm)
{
    return arm->visits > 1 ? arm->visits : 1.0;
}

double limit_arms_deviation(const struct limit_arms *arms, size_t place)
{
    const struct limit_arm *arm = &arms->arms[place];
    double share = power_share(arms, arm), root = sqrt(visits_of(arm));
    double time_error = hypot(arm->time_error, arms->visit_time_noise / root);

    if (arms->objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT)
        return 0.0;
    return share > 0.0 ? hypot(time_error, share * hypot(arm->power_error, arms->visit_power_noise / root))
                       : time_error;
}

static double look_factor(double steps)
{
    double look = steps > 0.0 ? log2(steps / first_look_steps) : 0.0;

    if (!(steps > 0.0))
        return plain_factor;
    if (look < 0.0)
        return look_factors[0];
    return look_factors[look < LOOK_FACTORS - 1 ? (size_t)look : LOOK_FACTORS - 1];
}

double limit_arms_ratio_error(const struct limit_arms *arms, double time_error, double steps, unsigned visits)
{
    const struct limit_arm *highest = &arms->arms[0];
    double fewer = highest->steps > 0.0 ? fmin(steps, highest->steps) : steps;
    double own = visits > 1 ? visits : 1.0, others = visits_of(highest);
    double whole = arms->visit_time_noise * sqrt(1.0 / own + 1.0 / others);
    double factor = fmax(arms->visit_factor, whole_factor);

    return hypot(look_factor(fewer) * hypot(time_error, highest->time_error), factor * whole);
}

/* Whether the arm keeps the bound with its error added `times` times. */
static bool is_within_bound(const struct limit_arms *arms, size_t place, double times)
{
    const struct limit_arm *arm = &arms->arms[place];
    double error;

    if (place == 0 || !isfinite(arms->objective.max_slowdown))
        return true;
    error = limit_arms_ratio_error(arms, arm->time_error, arm->steps, arm->visits);
    return arm->time_s * (1.0 + times * error) <= arms->objective.max_slowdown * arms->arms[0].time_s;
}

bool limit_arms_may_keep_bound(const struct limit_arms *arms, size_t place)
{
    return is_within_bound(arms, place, -1.0);
}

bool limit_arms_keeps_bound(const struct limit_arms *arms, size_t place)
{
    return is_within_bound(arms, place, 1.0);
}

bool limit_arms_choose(const struct limit_arms *arms, size_t *out_place)
{
    bool found = false;
    double least = INFINITY;

    if (isfinite(arms->objective.max_slowdown) && !limit_arms_known(arms, 0))
        return false;
    for (size_t i = 0; i < arms->count && i < arms->open; i++) {
        if (!limit_arms_known(arms, i) || !limit_arms_keeps_bound(arms, i) ||
            (found && limit_arms_score(arms, i) >= least))
            continue;
        least = limit_arms_score(arms, i);
        *out_place = i;
        found = true;
    }
    return found;
}
