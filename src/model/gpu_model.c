/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu_model.h"

#include <math.h>
#include <string.h>

#include "base/math/portable_math.h"

const struct gpu_shape gpu_shapes[] = {
    {"v100-like", .idle_w = 70.0, .busy_w = 250.0, .lowest_limit_w = 100.0, .highest_limit_w = 250.0,
     .limit_step_w = 25.0},
    {"v100", .idle_w = 40.0, .busy_w = 250.0, .lowest_limit_w = 100.0, .highest_limit_w = 250.0,
     .limit_step_w = 25.0},
    {"v100-sxm2", .idle_w = 45.0, .busy_w = 300.0, .lowest_limit_w = 150.0, .highest_limit_w = 300.0,
     .limit_step_w = 25.0},
    {"a40", .idle_w = 55.0, .busy_w = 300.0, .lowest_limit_w = 100.0, .highest_limit_w = 300.0,
     .limit_step_w = 25.0},
    {"a100", .idle_w = 60.0, .busy_w = 400.0, .lowest_limit_w = 100.0, .highest_limit_w = 400.0,
     .limit_step_w = 25.0},
    {"h100", .idle_w = 75.0, .busy_w = 700.0, .lowest_limit_w = 200.0, .highest_limit_w = 700.0,
     .limit_step_w = 50.0},
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

double gpu_clock(const struct gpu_shape *shape, double wanted_w, double limit_w)
{
    if (limit_w >= wanted_w)
        return 1.0;
    return portable_exp(portable_log((limit_w - shape->idle_w) / (wanted_w - shape->idle_w)) / 3.0);
}

struct fly_power_point gpu_work(const struct gpu_shape *shape, const struct gpu_load *load, double samples,
                                double batch_size, double limit_w)
{
    double wanted_w = gpu_wanted_w(shape, load, batch_size);
    double clock = gpu_clock(shape, wanted_w, limit_w);
    double full_clock_s = samples * (load->sample_s + load->step_s / batch_size);

    return (struct fly_power_point){
        .limit_w = limit_w,
        .power_w = fmin(wanted_w, limit_w),
        .time_s = full_clock_s * load->clock_share / clock + full_clock_s * (1.0 - load->clock_share),
    };
}
