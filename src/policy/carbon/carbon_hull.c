/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/carbon/carbon_hull.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/objective_check.h"

/* Slack for rounding: a limit that meets a bound of 3 % except for the last bit counts as meeting it. */
static const double time_slack = 1e-12;

static int compare_limits(const void *left, const void *right)
{
    const struct carbon_point *a = left, *b = right;

    return (a->limit_w > b->limit_w) - (a->limit_w < b->limit_w);
}

/* Orders by ascending rate; among equal rates by ascending power. */
static int compare_rates(const void *left, const void *right)
{
    const struct carbon_point *a = left, *b = right;

    if (a->rate != b->rate)
        return a->rate < b->rate ? -1 : 1;
    return (a->power_w > b->power_w) - (a->power_w < b->power_w);
}

static int check(const struct fly_power_point *points, size_t count,
                 const struct carbon_surroundings *surroundings, struct fly_error *out_error)
{
    if (count == 0)
        return error_set(out_error, FLY_EUSAGE,
                         "the power profile is empty; expected at least one power limit");
    if (count > CARBON_POINTS_MAX)
        return error_set(out_error, FLY_ELIMIT, "the power profile has %zu limits; expected at most %d",
                         count, CARBON_POINTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!objective_positive(points[i].limit_w) || !objective_positive(points[i].power_w) ||
            !objective_positive(points[i].time_s))
            return error_set(
                out_error, FLY_EUSAGE,
                "power profile, point %zu: limit %g W, power %g W, time %g s: expected numbers above 0; "
                "leave out what is unknown",
                i, points[i].limit_w, points[i].power_w, points[i].time_s);
    }
    if (!isfinite(surroundings->host_w) || surroundings->host_w < 0.0)
        return error_set(out_error, FLY_EUSAGE, "host power of %g W: expected 0 or more",
                         surroundings->host_w);
    if (!isfinite(surroundings->pue) || surroundings->pue < 1.0)
        return error_set(out_error, FLY_EUSAGE, "PUE of %g: expected 1 or more", surroundings->pue);
    return 0;
}

/* Returns whether `b` lies on or beyond the line from `a` to `c`, seen from inside the hull. */
static bool is_needless(const struct carbon_point *a, const struct carbon_point *b,
                        const struct carbon_point *c, double sign)
{
    return sign * ((b->power_w - a->power_w) * (c->rate - a->rate) -
                   (c->power_w - a->power_w) * (b->rate - a->rate)) >=
           0.0;
}

/* Builds the hull of points with ascending rates; `sign` is 1 for the lower hull and -1 for the upper one. */
static void build(const struct carbon_point *points, size_t count, double sign, struct carbon_hull *out_hull)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        /* Among equal rates the better one stays. */
        if (kept > 0 && points[i].rate == out_hull->points[kept - 1].rate) {
            if (sign * points[i].power_w >= sign * out_hull->points[kept - 1].power_w)
                continue;
            kept--;
        }
        while (kept > 1 &&
               is_needless(&out_hull->points[kept - 2], &out_hull->points[kept - 1], &points[i], sign))
            kept--;
        out_hull->points[kept++] = points[i];
    }
    out_hull->count = kept;
}

int carbon_profile_init(struct carbon_profile *profile, const struct fly_power_point *points, size_t count,
                        const struct carbon_surroundings *surroundings, struct fly_error *out_error)
{
    struct carbon_profile made = {.host_w = surroundings->host_w, .pue = surroundings->pue, .count = count};
    struct carbon_point sorted[CARBON_POINTS_MAX];
    double least_s = INFINITY;
    int code = check(points, count, surroundings, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++)
        least_s = fmin(least_s, points[i].time_s);
    for (size_t i = 0; i < count; i++)
        made.points[i] = (struct carbon_point){
            .limit_w = points[i].limit_w,
            .power_w = (points[i].power_w + surroundings->host_w) * surroundings->pue,
            .rate = least_s / points[i].time_s,
        };
    qsort(made.points, count, sizeof made.points[0], compare_limits);
    for (size_t i = 1; i < count; i++) {
        if (made.points[i].limit_w == made.points[i - 1].limit_w)
            return error_set(out_error, FLY_EUSAGE, "power profile: the limit of %g W stands there twice",
                             made.points[i].limit_w);
    }
    for (size_t i = 0; i < count; i++) {
        if (made.points[i].rate >= made.points[made.fastest].rate)
            made.fastest = i;
    }
    memcpy(sorted, made.points, sizeof sorted);
    qsort(sorted, count, sizeof sorted[0], compare_rates);
    build(sorted, count, 1.0, &made.lower);
    build(sorted, count, -1.0, &made.upper);
    *profile = made;
    return 0;
}

void carbon_hull_from(const struct carbon_profile *profile, int negative, double power_w,
                      struct carbon_hull *out_hull)
{
    struct carbon_point points[CARBON_POINTS_MAX + 1] = {{.power_w = power_w}};

    memcpy(points + 1, profile->points, profile->count * sizeof points[0]);
    qsort(points, profile->count + 1, sizeof points[0], compare_rates);
    build(points, profile->count + 1, negative ? -1.0 : 1.0, out_hull);
}

double carbon_hull_slope(const struct carbon_hull *hull, size_t segment)
{
    const struct carbon_point *point = &hull->points[segment];

    return (point[1].power_w - point[0].power_w) / (point[1].rate - point[0].rate);
}

size_t carbon_profile_static(const struct carbon_profile *profile, double work_s, double time_s)
{
    size_t best = profile->fastest;

    for (size_t i = 0; i < profile->count; i++) {
        const struct carbon_point *point = &profile->points[i], *least = &profile->points[best];
        double energy = point->power_w / point->rate, least_energy = least->power_w / least->rate;

        if (work_s > point->rate * time_s * (1.0 + time_slack))
            continue;
        if (energy < least_energy || (energy == least_energy && point->rate > least->rate))
            best = i;
    }
    return best;
}

static bool takes_less(const struct carbon_point *point, const struct carbon_point *than)
{
    double energy = point->power_w / point->rate, least = than->power_w / than->rate;

    return energy < least || (energy == least && point->rate > than->rate);
}

struct carbon_mix carbon_profile_mix(const struct carbon_profile *profile, double work_s, double time_s)
{
    const struct carbon_hull *hull = &profile->lower;
    const struct carbon_point *fastest = &hull->points[hull->count - 1];
    struct carbon_mix best = {*fastest, *fastest, 1.0};
    double least_rate = work_s / time_s;

    for (size_t i = 0; i + 1 < hull->count; i++) {
        const struct carbon_point *low = &hull->points[i], *high = low + 1;
        double share = fmax((least_rate - low->rate) / (high->rate - low->rate), 0.0);
        struct carbon_mix mix = {*low, *high, share};
        struct carbon_point at = carbon_mix_point(&mix), than = carbon_mix_point(&best);

        if (share <= 1.0 && takes_less(&at, &than))
            best = mix;
    }
    return best;
}

struct carbon_point carbon_mix_point(const struct carbon_mix *mix)
{
    double share = mix->high_share;

    return (struct carbon_point){
        .limit_w = mix->low.limit_w + share * (mix->high.limit_w - mix->low.limit_w),
        .power_w = mix->low.power_w + share * (mix->high.power_w - mix->low.power_w),
        .rate = mix->low.rate + share * (mix->high.rate - mix->low.rate),
    };
}
