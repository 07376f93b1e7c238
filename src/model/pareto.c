/* SPDX-License-Identifier: Apache-2.0 */
#include <flyball/pareto.h>

#include <stdlib.h>

#include <flyball/cost.h>

static int compare_doubles(double a, double b)
{
    return (a > b) - (a < b);
}

/* Fastest first; among equals the point that should stay comes first. */
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
