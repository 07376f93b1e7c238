/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_SENSOR_H
#define FLYBALL_EMULATOR_SENSOR_H

#include "emulator/state.h"

/*
 * What the board's sensors show of the truth: readings that are updated now and then, with a phase of their
 * own, and that see only a window of the time.
 *
 * Power reading k is made at phase + k * period, from the mean power of the window before it, times the gain,
 * plus noise, rounded to mW. The energy counter is updated at moments of its own (counter_clock.h), or when
 * it is read. It is either the true energy times the gain, or the sum of the power readings so far times
 * their period. The caller holds the state's lock and has settled the GPU.
 */
void sensor_init(struct emulated_gpu *gpu, const struct emulator_settings *settings);

/* Changes the sensors from now on; the counter continues. */
void sensor_change(struct emulated_gpu *gpu, const struct emulator_sensor *sensor, int64_t now_ns);

/* Adds the readings up to `at_ns` to the sum. */
void sensor_sum_up_to(struct emulated_gpu *gpu, int64_t at_ns);

bool sensor_has_instant(const struct emulated_gpu *gpu);
bool sensor_has_average(const struct emulated_gpu *gpu);

/* The readings in force at `at_ns`; the one you ask for must exist. */
unsigned sensor_instant_mw(const struct emulated_gpu *gpu, int64_t at_ns);
unsigned sensor_average_mw(const struct emulated_gpu *gpu, int64_t at_ns);

/* The reading that nvmlDeviceGetPowerUsage returns. */
unsigned sensor_usage_mw(const struct emulated_gpu *gpu, int64_t at_ns);

/*
 * The energy counter at `at_ns`, which must not be before the moment that the GPU is at. A counter that is
 * updated by reading stays as it was last read.
 */
unsigned long long sensor_counter_mj(const struct emulated_gpu *gpu, int64_t at_ns);

/* Reads the counter as a driver does: this may update it. */
unsigned long long sensor_read_counter_mj(struct emulated_gpu *gpu, int64_t at_ns);

/* When the counter's value at `at_ns` was made. */
int64_t sensor_counter_made_ns(const struct emulated_gpu *gpu, int64_t at_ns);

/* The machine has just slept: monotonic time stood still, and nothing was drawn. */
void sensor_sleep(struct emulated_gpu *gpu, int64_t at_ns, int64_t duration_ns);

/* Starts the counter again at 0. */
void sensor_reset_counter(struct emulated_gpu *gpu, int64_t at_ns);

/* When the power reading in force at `at_ns` was made. */
int64_t sensor_power_made_ns(const struct emulated_gpu *gpu, int64_t at_ns);

#endif
