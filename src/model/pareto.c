/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/pareto.h>

#include <math.h>
#include <stdlib.h>

#include <flyball/cost.h>

#include "base/error.h"
#include "model/objective_check.h"

static int compare_doubles(double a, double b)
{
    return (a > b) - (a < b);
}

/* Orders points fastest first; among equally fast ones, the one to keep comes first. */
static int compare_points(const void *left, const void *right)
{
    const struct fly_operating_point *a = left, *b = right;
    int order = compare_doubles(a->time_s, b->time_s);

    if (order == 0)
        order = compare_doubles(a->energy_j, b->energy_j);
    if (order == 0)
        order = compare_doubles(a->power_limit_w, b->power_limit_w);
    if (order == 0)
        order = compare_doubles(a->batch_size, b->batch_size);
    return order;
}

size_t fly_pareto_frontier(struct fly_operating_point *points, size_t count)
{
    size_t length = 0;

    if (count > 1)
        qsort(points, count, sizeof *points, compare_points);
    for (size_t i = 0; i < count; i++) {
        if (length == 0 || points[i].energy_j < points[length - 1].energy_j) {
            struct fly_operating_point kept = points[i];

            points[i] = points[length];
            points[length++] = kept;
        }
    }
    return length;
}

const struct fly_operating_point *fly_pareto_best(const struct fly_operating_point *frontier, size_t count,
                                                  double eta, double max_power_w)
{
    const struct fly_operating_point *best = NULL;
    double least_j = 0.0;

    for (size_t i = 0; i < count; i++) {
        double cost_j = fly_cost(eta, max_power_w, frontier[i].energy_j, frontier[i].time_s);

        if (best == NULL || cost_j < least_j) {
            best = &frontier[i];
            least_j = cost_j;
        }
    }
    return best;
}

static double score_of(const struct fly_operating_point *point, const struct fly_objective *objective,
                       double max_power_w)
{
    switch (objective->kind) {
    case FLY_OBJECTIVE_ENERGY:
    case FLY_OBJECTIVE_CARBON: /* all at one time on one grid, so carbon follows energy */
    case FLY_OBJECTIVE_MONEY:
        return point->energy_j;
    case FLY_OBJECTIVE_TIME:
        return point->time_s;
    case FLY_OBJECTIVE_COST:
        return fly_cost(objective->eta, max_power_w, point->energy_j, point->time_s);
    case FLY_OBJECTIVE_LOWEST_LIMIT:
        return point->power_limit_w;
    }
    return NAN;
}

static int check_points(const struct fly_operating_point *points, size_t count, struct fly_error *out_error)
{
    if (count == 0)
        return error_set(out_error, FLY_EUSAGE, "no operating point to choose from; expected at least one");
    for (size_t i = 0; i < count; i++) {
        if (!objective_positive(points[i].power_limit_w) || !objective_positive(points[i].time_s) ||
            !objective_positive(points[i].energy_j))
            return error_set(
                out_error, FLY_EUSAGE,
                "operating point %zu: limit %g W, time %g s, energy %g J: expected numbers above 0; leave "
                "out what is unknown",
                i, points[i].power_limit_w, points[i].time_s, points[i].energy_j);
    }
    return 0;
}

static int refuse_bound(const struct fly_operating_point *points, size_t count, double allowed_s,
                        struct fly_error *out_error)
{
    double fastest_s = points[0].time_s;

    for (size_t i = 1; i < count; i++)
        fastest_s = fmin(fastest_s, points[i].time_s);
    return error_set(out_error, FLY_EEXHAUSTED,
                     "no operating point takes at most %g s; the fastest takes %g s, so allow a larger "
                     "slowdown",
                     allowed_s, fastest_s);
}

int fly_pareto_choose(const struct fly_operating_point *points, size_t count,
                      const struct fly_objective *objective, double max_power_w, double reference_time_s,
                      size_t *out_index, struct fly_error *out_error)
{
    int code = objective_check(objective, max_power_w, out_error);
    double allowed_s = INFINITY, least = INFINITY;
    size_t best = count;

    if (code == 0)
        code = check_points(points, count, out_error);
    if (code < 0)
        return code;
    if (isfinite(objective->max_slowdown)) {
        if (!objective_positive(reference_time_s))
            return error_set(out_error, FLY_EUSAGE, "reference_time_s %g: expected a number above 0",
                             reference_time_s);
        allowed_s = objective->max_slowdown * reference_time_s;
    }
    for (size_t i = 0; i < count; i++) {
        double score = score_of(&points[i], objective, max_power_w);

        if (points[i].time_s > allowed_s)
            continue;
        if (best == count || score < least ||
            (score == least && compare_points(&points[i], &points[best]) < 0)) {
            best = i;
            least = score;
        }
    }
    if (best == count)
        return refuse_bound(points, count, allowed_s, out_error);
    *out_index = best;
    return 0;
}
