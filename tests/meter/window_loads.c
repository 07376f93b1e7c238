/* SPDX-License-Identifier: Apache-2.0 */
#include "window_loads.h"

#include <math.h>

#include "test.h"

static const double ramp_step_s = 0.02;

static const struct {
    const char *name;
    double exact_s; /* 0: drawn */
} kinds[WINDOW_LOADS] = {
    [WINDOW_STEADY] = {"steady", 0.0},
    [WINDOW_RAMPING] = {"ramping", 0.0},
    [WINDOW_BURSTY] = {"bursty", 0.0},
    [WINDOW_PERIODIC] = {"periodic", 0.0},
    [WINDOW_EVERY_530_MS] = {"every 0.53 s", 0.53},
    [WINDOW_EVERY_610_MS] = {"every 0.61 s", 0.61},
    [WINDOW_EVERY_1070_MS] = {"every 1.07 s", 1.07},
};

const char *window_load_name(enum window_load_kind kind)
{
    return kinds[kind].name;
}

static double exponential_s(struct window_load *load, double mean_s)
{
    return -mean_s * log(1.0 - test_uniform(&load->random));
}

static double level_w(struct window_load *load)
{
    return load->scale_w * (0.3 + 0.6 * test_uniform(&load->random));
}

struct window_load window_load_draw(enum window_load_kind kind, double scale_w, uint64_t seed)
{
    struct window_load load = {.kind = kind, .scale_w = scale_w, .random = seed * 0x9e3779b97f4a7c15u + 1};

    load.level_w = load.target_w = level_w(&load);
    load.low_w = scale_w * (0.25 + 0.15 * test_uniform(&load.random));
    load.high_w = scale_w * (0.6 + 0.3 * test_uniform(&load.random));
    load.duty = 0.6 + 0.3 * test_uniform(&load.random);
    load.period_s = 0.12 * exp(test_uniform(&load.random) * log(25.0));
    if (kinds[kind].exact_s > 0.0)
        load.period_s = kinds[kind].exact_s;
    return load;
}

static void next_of_ramp(struct window_load *load, double *out_duration_s, double *out_power_w)
{
    if (fabs(load->target_w - load->level_w) <= fabs(load->step_w) || load->step_w == 0.0) {
        double duration_s = 1.0 + 5.0 * test_uniform(&load->random);

        load->target_w = level_w(load);
        load->step_w = (load->target_w - load->level_w) * ramp_step_s / duration_s;
    }
    load->level_w += load->step_w;
    *out_duration_s = ramp_step_s;
    *out_power_w = load->level_w;
}

void window_load_next(void *state, double *out_duration_s, double *out_power_w)
{
    struct window_load *load = state;
    double jitter = kinds[load->kind].exact_s > 0.0 ? 0.0 : 0.05;
    double period_s = load->period_s * (1.0 + jitter * (2.0 * test_uniform(&load->random) - 1.0));

    if (load->kind == WINDOW_RAMPING) {
        next_of_ramp(load, out_duration_s, out_power_w);
        return;
    }
    load->high = !load->high;
    *out_power_w = load->high ? load->high_w : load->low_w;
    if (load->kind == WINDOW_STEADY) {
        *out_power_w = level_w(load);
        *out_duration_s = 10.0 + exponential_s(load, 50.0);
    } else if (load->kind == WINDOW_BURSTY) {
        *out_duration_s = 0.02 + exponential_s(load, load->high ? 0.28 : 0.68);
    } else {
        *out_duration_s = period_s * (load->high ? load->duty : 1.0 - load->duty);
    }
}
