/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of the settled tuner's step hook, compared with an empty function called in the same way. */
#include <stdio.h>
#include <stdlib.h>

#include <flyball/tuner.h>

#include "base/clock.h"
#include "base/math/order.h"
#include "meter/meter.h"
#include "train/tuner/tuner_private.h"

enum { ROUNDS = 21, CALLS = 1000000 };

static double limit_w = 300.0;

static int knob_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    (void)data;
    (void)out_error;
    *out_range = (struct fly_turner_range){.lowest = 100.0, .highest = 300.0, .step = 25.0};
    return 0;
}

static int knob_set(void *data, double wanted_w, struct fly_error *out_error)
{
    (void)data;
    (void)out_error;
    limit_w = wanted_w;
    return 0;
}

static int knob_standing(void *data, double *out_limit_w, struct fly_error *out_error)
{
    (void)data;
    (void)out_error;
    *out_limit_w = limit_w;
    return 0;
}

static int nothing(struct fly_tuner *tuner)
{
    (void)tuner;
    return 0;
}

/* Nanoseconds of a call through a pointer that the compiler cannot follow. */
static double time_calls_ns(int (*volatile hook)(struct fly_tuner *), struct fly_tuner *tuner)
{
    struct mono_time begin = mono_now();

    for (int i = 0; i < CALLS; i++)
        (void)hook(tuner);
    return mono_elapsed_s(begin, mono_now()) / CALLS * 1e9;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_tuner: %s\n", what);
    exit(1);
}

int main(void)
{
    static const struct fly_turner turner = {knob_range, knob_set, knob_standing};
    static struct device_list list;
    const struct meter_parts parts = {.devices = &list, .threadless = true};
    struct fly_tuner_options options = {
        .size = sizeof options, .turner = &turner, .objective = {FLY_OBJECTIVE_ENERGY, 0.0, 1.03}};
    struct fly_tuner *tuner;
    struct fly_error error;
    double empty_ns[ROUNDS], settled_ns[ROUNDS];

    if (meter_new(&parts, &options.meter, &error) < 0 || fly_tuner_new(&options, &tuner, &error) < 0)
        die(error.text);
    /* As after a choice, with the next check far away. */
    tuner->state = FLY_TUNER_SETTLED;
    tuner->quiet_until = UINT64_MAX / 2;
    for (int i = 0; i < ROUNDS; i++) {
        empty_ns[i] = time_calls_ns(nothing, NULL);
        settled_ns[i] = time_calls_ns(fly_tuner_step_begin, tuner);
    }
    qsort(empty_ns, ROUNDS, sizeof empty_ns[0], order_doubles);
    qsort(settled_ns, ROUNDS, sizeof settled_ns[0], order_doubles);
    printf("step hook, settled                  %8.1f ns, %.1f at most of %d rounds; an empty function %.1f "
           "ns\n",
           settled_ns[ROUNDS / 2], settled_ns[ROUNDS - 1], ROUNDS, empty_ns[ROUNDS / 2]);
    fly_tuner_free(tuner);
    fly_meter_close(options.meter);
    if (settled_ns[ROUNDS / 2] >= 50.0)
        die("the settled step hook takes 50 ns or more");
    return 0;
}
