/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunes the power limit of a training while it runs; all that it needs is a meter. The training is simulated:
 * a step sleeps. Arguments: the number of steps, the milliseconds of a step, and the objective: "energy",
 * "time".
 *
 *     cc tune.c $(pkg-config --cflags --libs flyball) -lm
 *     sudo -E ./a.out 2000 20
 *
 * Without a GPU: flyball-emulator run --load-w 300 -- ./a.out 2000 20
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <flyball/flyball.h>

enum { STEPS_OF_AN_EPOCH = 500, LIMITS_MAX = 64 };

static void train_one_step(long step_ms)
{
    struct timespec pause = {step_ms / 1000, step_ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

static void print_result(const struct fly_tuner *tuner)
{
    struct fly_tuner_report report = {.size = sizeof report};
    struct fly_tuner_point points[LIMITS_MAX];
    size_t count = fly_tuner_points(tuner, points, LIMITS_MAX);

    fly_tuner_report(tuner, &report);
    for (size_t i = 0; i < count && i < LIMITS_MAX; i++) {
        if (points[i].mark == FLY_TUNER_VALID)
            printf("%3.0f W: %6.3f J a step, within %.1f %%, and %.2f ms\n", points[i].limit_w,
                   points[i].power_w * points[i].time_s, 100.0 * points[i].energy_error,
                   1e3 * points[i].time_s);
    }
    if (report.reason != FLY_TUNER_GOES_ON)
        printf("not tuned (%s): %s\n", fly_tuner_reason_name(report.reason), report.text);
    else
        printf("%s at %.0f W, %.0f W before; the search took %.1f s\n",
               report.state == FLY_TUNER_SETTLED ? "settled" : "not settled yet", report.limit_w,
               report.start_limit_w, report.search_time_s);
}

int main(int argc, char **argv)
{
    const long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    const long step_ms = argc > 2 ? strtol(argv[2], NULL, 10) : 20;
    struct fly_meter_options meter_options = {.size = sizeof meter_options};
    struct fly_tuner_options options = {
        .size = sizeof options,
        .objective = {.kind = FLY_OBJECTIVE_ENERGY, .max_slowdown = INFINITY},
    };
    struct fly_tuner *tuner;
    struct fly_error error;

    if (argc > 3 && fly_objective_parse(argv[3], &options.objective, &error) < 0) {
        fprintf(stderr, "tune: %s\n", error.text);
        return fly_error_exit_status(error.code);
    }
    options.objective.max_slowdown = 1.03;
    if (fly_meter_open(&meter_options, &options.meter, &error) < 0) {
        fprintf(stderr, "tune: %s\n", error.text);
        return fly_error_exit_status(error.code);
    }
    if (fly_tuner_new(&options, &tuner, &error) < 0) {
        fprintf(stderr, "tune: %s\n", error.text);
        fly_meter_close(options.meter);
        return fly_error_exit_status(error.code);
    }
    for (long step = 0; step < steps; step++) {
        if (step % STEPS_OF_AN_EPOCH == 0)
            fly_tuner_epoch_begin(tuner);
        fly_tuner_step_begin(tuner);
        train_one_step(step_ms);
        if (step % STEPS_OF_AN_EPOCH == STEPS_OF_AN_EPOCH - 1 || step == steps - 1)
            fly_tuner_epoch_end(tuner);
    }
    print_result(tuner);
    fly_tuner_free(tuner); /* sets the limit that stood before */
    fly_meter_close(options.meter);
    return 0;
}
