/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_TRAIN_KNOB_BENCH_H
#define FLYBALL_TESTS_TRAIN_KNOB_BENCH_H

/*
 * A training on emulated GPUs whose limits and clocks a tuner sets by the guarded knob, in virtual time; one
 * at a time.
 */
#include "knob_support.h"

#include <math.h>

#include "meter/meter.h"
#include "model/gpu_model.h"
#include "train/tuner/knob_turner.h"
#include "train/tuner/tuner.h"

enum { HIGHEST_MHZ = 1410, STEP_MHZ = 60, LOWEST_TRIED_MHZ = 570, CEILINGS = 15, EPOCH_STEPS = 70 };

/* A training: what its steps want of each GPU, and how their time follows the clock. */
struct training {
    double wanted_w, step_s, clock_share;
    double light_w, light_share; /* what a part of each step wants instead; 0: there is none */
};

static struct bench {
    struct knob_machine machine;
    struct clock clock;
    struct fly_meter *meter;
    struct knob *knob;
    struct knob_turner turner;
    struct training training;
} bench;

static inline void start_model(const char *model, unsigned gpus, const struct training *training,
                               const char *script)
{
    struct meter_parts parts = {.threadless = true, .sample_hz = 10.0};
    char settings[96];

    memset(&bench, 0, sizeof bench);
    snprintf(settings, sizeof settings, "gpus=%u,model=%s,time=virtual,sensor=exact,settle-ms=0.001", gpus,
             model);
    knob_machine_start(&bench.machine, settings, script);
    bench.training = *training;
    bench.clock = emulator_clock(bench.machine.emulator);
    for (size_t i = 0; i < bench.machine.list.count; i++)
        bench.machine.list.devices[i].info.sensor =
            (struct sensor_facts){1e-3, 1e-3, 1e-3, false, 0.0, "a test"};
    parts.devices = &bench.machine.list;
    parts.clock = &bench.clock;
    assert_int_equal(meter_new(&parts, &bench.meter, NULL), 0);
    bench.knob = knob_machine_open(&bench.machine);
    bench.turner = (struct knob_turner){.knob = bench.knob, .devices = bench.machine.devices, .count = gpus};
}

static inline void start(unsigned gpus, const struct training *training, const char *script)
{
    start_model("a100", gpus, training, script);
}

static inline void stop(void)
{
    knob_close(bench.knob, NULL);
    fly_meter_close(bench.meter);
    knob_machine_stop(&bench.machine);
}

static inline struct fly_tuner *open_tuner(const struct fly_tuner_options *options)
{
    struct fly_tuner *tuner;
    struct fly_error error;

    if (tuner_new(options, &bench.clock, &tuner, &error) < 0)
        fail_msg("%s", error.text);
    return tuner;
}

static inline void pass(double duration_s)
{
    struct mono_time until = mono_after_s(bench.clock.now(bench.clock.state), duration_s);

    while (meter_next_sample(bench.meter).ns <= until.ns) {
        bench.clock.sleep_until(bench.clock.state, meter_next_sample(bench.meter));
        meter_sample(bench.meter);
    }
    bench.clock.sleep_until(bench.clock.state, until);
}

static inline double step_time_s(double clock)
{
    const struct training *training = &bench.training;

    return training->step_s * (training->clock_share / clock + 1.0 - training->clock_share);
}

/* A part of a step that wants that much. */
static inline void work(double wanted_w, double share)
{
    for (unsigned gpu = 0; gpu < bench.turner.count && share > 0.0; gpu++)
        emulator_set_load(bench.machine.emulator, gpu, wanted_w);
    if (share > 0.0)
        pass(share * step_time_s(emulator_speed(bench.machine.emulator, 0)));
}

static inline void step(struct fly_tuner *tuner)
{
    const struct training *training = &bench.training;

    assert_int_equal(fly_tuner_step_begin(tuner), 0);
    work(training->wanted_w, 1.0 - training->light_share);
    work(training->light_w, training->light_share);
}

static inline struct fly_tuner_report report_of(const struct fly_tuner *tuner)
{
    struct fly_tuner_report report = {.size = sizeof report};

    assert_int_equal(fly_tuner_report(tuner, &report), 0);
    return report;
}

static inline bool is_under_way(const struct fly_tuner *tuner)
{
    return fly_tuner_state(tuner) != FLY_TUNER_SETTLED && fly_tuner_state(tuner) != FLY_TUNER_STOPPED;
}

static inline struct fly_tuner_report settle(struct fly_tuner *tuner)
{
    assert_int_equal(fly_tuner_epoch_begin(tuner), 0);
    for (int i = 1; is_under_way(tuner); i++) {
        assert_true(i < 100000);
        step(tuner);
        if (i % EPOCH_STEPS == 0) {
            assert_int_equal(fly_tuner_epoch_end(tuner), 0);
            pass(2.0);
            assert_int_equal(fly_tuner_epoch_begin(tuner), 0);
        }
    }
    return report_of(tuner);
}

#endif
