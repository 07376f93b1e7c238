/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu_model.h"

#include <math.h>
#include <string.h>

#include "base/math/portable_math.h"

enum { PHASES = 8 };

const struct gpu_shape gpu_shapes[] = {
    {"v100-like", .idle_w = 70.0, .static_w = 70.0, .busy_w = 250.0, .lowest_limit_w = 100.0,
     .highest_limit_w = 250.0, .limit_step_w = 25.0},
    {"v100", .idle_w = 40.0, .static_w = 55.0, .busy_w = 250.0, .lowest_limit_w = 100.0,
     .highest_limit_w = 250.0, .limit_step_w = 25.0, .floor_clock = 0.7, .lowest_clock = 0.1},
    {"v100-sxm2", .idle_w = 45.0, .static_w = 65.0, .busy_w = 300.0, .lowest_limit_w = 150.0,
     .highest_limit_w = 300.0, .limit_step_w = 25.0, .floor_clock = 0.75, .lowest_clock = 0.1},
    {"a40", .idle_w = 55.0, .static_w = 78.0, .busy_w = 300.0, .lowest_limit_w = 100.0,
     .highest_limit_w = 300.0, .limit_step_w = 25.0, .floor_clock = 0.8, .lowest_clock = 0.2},
    {"a100", .idle_w = 60.0, .static_w = 75.0, .busy_w = 400.0, .lowest_limit_w = 100.0,
     .highest_limit_w = 400.0, .limit_step_w = 25.0, .floor_clock = 0.65, .lowest_clock = 0.15},
    {"h100", .idle_w = 75.0, .static_w = 120.0, .busy_w = 700.0, .lowest_limit_w = 200.0,
     .highest_limit_w = 700.0, .limit_step_w = 50.0, .floor_clock = 0.65, .lowest_clock = 0.17},
    {"h200", .idle_w = 75.0, .static_w = 130.0, .busy_w = 700.0, .lowest_limit_w = 200.0,
     .highest_limit_w = 700.0, .limit_step_w = 50.0, .floor_clock = 0.65, .lowest_clock = 0.17},
    {"gh200", .idle_w = 90.0, .static_w = 140.0, .busy_w = 900.0, .lowest_limit_w = 200.0,
     .highest_limit_w = 900.0, .limit_step_w = 50.0, .floor_clock = 0.65, .lowest_clock = 0.17},
    {"b200", .idle_w = 140.0, .static_w = 160.0, .busy_w = 1000.0, .lowest_limit_w = 200.0,
     .highest_limit_w = 1000.0, .limit_step_w = 50.0, .floor_clock = 0.65, .lowest_clock = 0.1},
    {.name = NULL},
};

const struct gpu_shape *gpu_shape_find(const char *name)
{
    const struct gpu_shape *shape = gpu_shapes;

    while (shape->name != NULL && strcmp(shape->name, name) != 0)
        shape++;
    return shape->name != NULL ? shape : NULL;
}

unsigned gpu_limit_count(const struct gpu_shape *shape)
{
    return (unsigned)((shape->highest_limit_w - shape->lowest_limit_w) / shape->limit_step_w) + 1;
}

double gpu_limit_w(const struct gpu_shape *shape, unsigned index)
{
    return shape->lowest_limit_w + index * shape->limit_step_w;
}

double gpu_wanted_w(const struct gpu_shape *shape, const struct gpu_load *load, double batch_size)
{
    return shape->idle_w +
           (shape->busy_w - shape->idle_w) * batch_size / (batch_size + load->half_busy_batch);
}

double gpu_static_w(const struct gpu_shape *shape, double wanted_w)
{
    double work = (wanted_w - shape->idle_w) / (shape->busy_w - shape->idle_w);

    return fmin(shape->idle_w + (shape->static_w - shape->idle_w) * fmin(work, 1.0), wanted_w);
}

double gpu_clock(const struct gpu_shape *shape, double wanted_w, double limit_w)
{
    double floor = shape->floor_clock, static_w = gpu_static_w(shape, wanted_w);
    double share;

    if (limit_w >= wanted_w)
        return 1.0;
    share = (limit_w - static_w) / (wanted_w - static_w);
    if (!(share > 0.0))
        return shape->lowest_clock;
    return fmax(share >= floor * floor * floor ? portable_exp(portable_log(share) / 3.0)
                                               : share / (floor * floor),
                shape->lowest_clock);
}

double gpu_power_w(const struct gpu_shape *shape, double wanted_w, double clock)
{
    double voltage = fmax(clock, shape->floor_clock), static_w = gpu_static_w(shape, wanted_w);

    if (clock >= 1.0)
        return wanted_w;
    return static_w + (wanted_w - static_w) * clock * voltage * voltage;
}

/* Work of `full_clock_s` seconds at full clock, in phases of equal length there. */
struct phased {
    const struct gpu_shape *shape;
    const struct gpu_nature *nature;
    const struct gpu_bounds *bounds;
    double full_clock_s;
};

static struct gpu_pace pace_in_phase(const struct phased *work, double wanted_w)
{
    double by_limit = gpu_clock(work->shape, wanted_w, work->bounds->limit_w);
    struct gpu_pace pace = {.clock = fmin(by_limit, work->bounds->ceiling)};

    pace.capped = by_limit < 1.0 && by_limit <= work->bounds->ceiling;
    pace.power_w = pace.capped && by_limit > work->shape->lowest_clock
                       ? work->bounds->limit_w
                       : gpu_power_w(work->shape, wanted_w, pace.clock);
    return pace;
}

/* The time of `full_clock_s` seconds at a clock. */
static double stretched_s(const struct gpu_nature *nature, double full_clock_s, double clock)
{
    return full_clock_s * nature->clock_share / clock +
           full_clock_s * (1.0 - nature->clock_share) * fmax(1.0, nature->memory_clock / clock);
}

/* Adds a part of `time_s` to the means of a pace whose time so far is `*total_s`. */
static void add_part(struct gpu_pace *mean, double *total_s, const struct gpu_pace *part, double time_s)
{
    *total_s += time_s;
    mean->power_w += (part->power_w - mean->power_w) * (time_s / *total_s);
    mean->clock += (part->clock - mean->clock) * (time_s / *total_s);
    mean->capped = mean->capped || part->capped;
}

/* Returns the means; stores the time. All phases of the work have its static power. */
static struct gpu_pace pace_of(const struct phased *whole, double *out_time_s)
{
    struct gpu_shape shape = *whole->shape;
    struct phased own = {&shape, whole->nature, whole->bounds, whole->full_clock_s};
    const struct phased *work = &own;
    const struct gpu_nature *nature = work->nature;
    int phases = nature->power_spread > 0.0 ? PHASES : 1;
    double least_w = gpu_static_w(work->shape, work->bounds->wanted_w);
    double busy_s = work->full_clock_s * (1.0 - nature->wait_share);
    struct gpu_pace mean = {.power_w = 0.0};

    shape.idle_w = shape.static_w = least_w;
    *out_time_s = 0.0;
    for (int i = 0; i < phases; i++) {
        double share = 1.0 - nature->power_spread * (i + 0.5) / PHASES;
        double wanted_w =
            phases == 1 ? work->bounds->wanted_w : least_w + (work->bounds->wanted_w - least_w) * share;
        struct gpu_pace phase = pace_in_phase(work, wanted_w);

        add_part(&mean, out_time_s, &phase, stretched_s(nature, busy_s / phases, phase.clock));
    }
    if (nature->wait_share > 0.0) {
        double wait_s = work->full_clock_s * nature->wait_share;
        struct gpu_pace wait = {.power_w = least_w, .clock = mean.clock};

        add_part(&mean, out_time_s, &wait,
                 fmax(wait_s * (1.0 - nature->wait_hidden), wait_s - (*out_time_s - busy_s)));
    }
    return mean;
}

struct gpu_pace gpu_pace_of(const struct gpu_shape *shape, const struct gpu_nature *nature,
                            const struct gpu_bounds *bounds)
{
    struct phased work = {shape, nature, bounds, 1.0};
    double time_s;
    struct gpu_pace pace = pace_of(&work, &time_s);

    pace.slowdown = fmax(time_s, 1.0);
    return pace;
}

struct fly_power_point gpu_work(const struct gpu_shape *shape, const struct gpu_load *load, double samples,
                                double batch_size, double limit_w)
{
    struct gpu_bounds bounds = {gpu_wanted_w(shape, load, batch_size), limit_w, 1.0};
    struct phased work = {shape, &load->nature, &bounds,
                          samples * (load->sample_s + load->step_s / batch_size)};
    struct fly_power_point point = {.limit_w = limit_w};

    point.power_w = pace_of(&work, &point.time_s).power_w;
    return point;
}
