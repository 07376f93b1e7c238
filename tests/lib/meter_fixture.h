/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_METER_FIXTURE_H
#define FLYBALL_TESTS_LIB_METER_FIXTURE_H

#include "fake_device.h"
#include "meter/meter.h"

/* A meter over some made-up GPUs that draw 100 W, in virtual time, from second 10 on. */
struct meter_fixture {
    struct fake_time time;
    struct clock clock;
    struct fake_load load;
    struct fake_device fakes[4];
    struct device_list list;
    struct fly_meter *meter;
};

/* A device with a counter every 20 ms and a sensor that sees 25 of 100 ms; one with that sensor alone. */
extern const struct fake_device fixture_counting, fixture_sensing;

void fixture_set_up(struct meter_fixture *fixture, const struct fake_device *like, size_t count);

/* Opens the meter; you may change fakes and list before. */
void fixture_open(struct meter_fixture *fixture, uint32_t windows_max);
void fixture_tear_down(struct meter_fixture *fixture);

/* Lets time pass, and samples when it is due. */
void fixture_pass(struct meter_fixture *fixture, double duration_s);

fly_window fixture_begin(struct meter_fixture *fixture, const char *name);
/* Ends the window; returns what the first device did in it. */
struct fly_device_energy fixture_end(struct meter_fixture *fixture, fly_window window);

/* Measures a window of that length from now on. */
struct fly_device_energy fixture_measure(struct meter_fixture *fixture, double length_s);

/* Fails the test unless the stated interval contains the truth. */
void fixture_check_truth(const struct fly_device_energy *energy, double truth_j);

#endif
