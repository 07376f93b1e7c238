/* SPDX-License-Identifier: Apache-2.0 */
#include "model/batch_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/pareto.h>

static int compare_left_out(const void *left, const void *right)
{
    const struct left_out *a = left, *b = right;

    return (a->batch_size > b->batch_size) - (a->batch_size < b->batch_size);
}

static int compare_points(const void *left, const void *right)
{
    const struct fly_operating_point *a = left, *b = right;
    const double of_a[] = {a->time_s, a->energy_j, a->power_limit_w, a->batch_size};
    const double of_b[] = {b->time_s, b->energy_j, b->power_limit_w, b->batch_size};

    for (size_t i = 0; i < sizeof of_a / sizeof of_a[0]; i++) {
        if (of_a[i] != of_b[i])
            return of_a[i] > of_b[i] ? 1 : -1;
    }
    return 0;
}

/* Adds the points of one batch size. Returns false if one of them is no number. */
static bool add_points(const struct batch_figures *batch, struct operating_points *points)
{
    for (size_t p = 0; p < batch->point_count; p++) {
        const struct fly_power_point *epoch = &batch->points[p];
        struct fly_operating_point point = {batch->batch_size, epoch->limit_w, epoch->time_s * batch->epochs,
                                            epoch->time_s * epoch->power_w * batch->epochs};

        if (!isfinite(point.time_s) || !isfinite(point.energy_j) || point.time_s <= 0.0 ||
            point.energy_j <= 0.0)
            return false;
        points->points[points->count + p] = point;
    }
    points->count += batch->point_count;
    return true;
}

static void add_batches(const struct batch_figures *batches, size_t count, struct operating_points *points,
                        struct left_out *left_out)
{
    for (size_t b = 0; b < count; b++) {
        struct left_out out = {batches[b].batch_size, LEFT_OUT_UNBOUNDED};

        if (batches[b].unpowered)
            out.reason = LEFT_OUT_UNPOWERED;
        else if (isinf(batches[b].epochs))
            out.reason = LEFT_OUT_UNREACHED;
        else if (add_points(&batches[b], points))
            continue;
        left_out[points->left_out_count++] = out;
    }
    qsort(left_out, points->left_out_count, sizeof left_out[0], compare_left_out);
    points->left_out = left_out;
}

/* Marks the points of the frontier, which is computed from a copy of them. */
static void mark_frontier(struct operating_points *points, struct fly_operating_point *copy)
{
    size_t length, at = 0;

    if (points->count == 0)
        return;
    memcpy(copy, points->points, points->count * sizeof copy[0]);
    length = fly_pareto_frontier(copy, points->count);
    for (size_t i = 0; i < points->count && at < length; i++) {
        points->on_frontier[i] = compare_points(&points->points[i], &copy[at]) == 0;
        at += points->on_frontier[i];
    }
}

static size_t find(const struct operating_points *points, const struct fly_operating_point *reference)
{
    size_t i = 0;

    while (i < points->count && (points->points[i].batch_size != reference->batch_size ||
                                 points->points[i].power_limit_w != reference->power_limit_w))
        i++;
    return i;
}

int batch_points_of(const struct batch_figures *batches, size_t count, struct fly_operating_point reference,
                    struct arena *arena, struct operating_points *out_points, struct fly_error *out_error)
{
    struct operating_points points = {0};
    struct fly_operating_point *copy;
    struct left_out *left_out;
    size_t most = 0;

    for (size_t b = 0; b < count; b++)
        most += batches[b].point_count;
    points.points = arena_alloc(arena, most, sizeof points.points[0]);
    points.on_frontier = arena_alloc(arena, most, sizeof points.on_frontier[0]);
    copy = arena_alloc(arena, most, sizeof copy[0]);
    left_out = arena_alloc(arena, count, sizeof left_out[0]);
    if (points.points == NULL || points.on_frontier == NULL || copy == NULL || left_out == NULL)
        return error_no_memory(out_error);
    add_batches(batches, count, &points, left_out);
    if (points.count > 1)
        qsort(points.points, points.count, sizeof points.points[0], compare_points);
    mark_frontier(&points, copy);
    points.default_point = find(&points, &reference);
    *out_points = points;
    return 0;
}
