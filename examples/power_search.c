/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Just-in-time power profiling with libflyball, in a training loop over a simulated GPU (no hardware is read
 * or set).
 *
 *     cc power_search.c $(pkg-config --cflags --libs flyball) -lm
 */
#include <math.h>
#include <stdio.h>

#include <flyball/flyball.h>

/* The simulated GPU: what it has used so far, and its current limit. */
static double used_j, used_s, limit_w = 250.0;

static void train_one_step(void)
{
    double wanted_w = 220.0, power_w = fmin(limit_w, wanted_w);
    double step_s = 0.1 * cbrt((wanted_w - 60.0) / (power_w - 60.0));

    used_j += power_w * step_s;
    used_s += step_s;
}

int main(void)
{
    static const double limits_w[] = {100.0, 125.0, 150.0, 175.0, 200.0, 225.0, 250.0};
    const struct fly_power_search_options options = {
        .size = sizeof options,
        .limits_w = limits_w,
        .limit_count = sizeof limits_w / sizeof limits_w[0],
        .wait_steps = 1,
        .warmup_steps = 10,
        .profile_steps = 40,
        .objective = {.kind = FLY_OBJECTIVE_ENERGY, .max_slowdown = 1.1},
    };
    struct fly_power_point points[sizeof limits_w / sizeof limits_w[0]];
    struct fly_power_search *search;
    struct fly_error error;
    double window_j = 0.0, window_s = 0.0;
    size_t count;

    if (fly_power_search_new(&options, &search, &error) < 0) {
        fprintf(stderr, "power_search: %s\n", error.text);
        return fly_error_exit_status(error.code);
    }
    for (int step = 0; step < 400; step++) {
        struct fly_power_search_action action;

        fly_power_search_step_begin(search, &action);
        while (action.close_window)
            fly_power_search_measured(search, used_j - window_j, used_s - window_s, &action);
        if (action.set_limit)
            limit_w = action.limit_w;
        if (action.open_window) {
            window_j = used_j;
            window_s = used_s;
        }
        train_one_step();
    }
    count = fly_power_search_profile(search, points, sizeof points / sizeof points[0]);
    for (size_t i = 0; i < count; i++)
        printf("%3.0f W: %5.1f J and %.4f s a step\n", points[i].limit_w,
               points[i].power_w * points[i].time_s, points[i].time_s);
    printf("least energy at most 10 %% slower: %.0f W\n", fly_power_search_limit_w(search));
    fly_power_search_free(search);
    return 0;
}
