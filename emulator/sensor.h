/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_SENSOR_H
#define FLYBALL_EMULATOR_SENSOR_H

#include "emulator/state.h"

/*
 * What the board says of the truth: readings that are updated now and then, at a
 * phase of their own, and that see only a window of the time.
 *
 * A power reading k is made at phase + k * period, from the mean power of the
 * window before, times the gain, plus noise, rounded to mW. The energy counter is
 * updated at moments of its own, and is either the true energy times the gain, or
 * the sum of the power readings until then times their period. The caller holds
 * the state's lock and has settled the GPU.
 */
void sensor_init(struct emulated_gpu *gpu, const struct emulator_settings *settings);

/* Other sensors from now on; the counter goes on from where it stands. */
void sensor_change(struct emulated_gpu *gpu, const struct emulator_sensor *sensor, int64_t now_ns);

/* Takes into the sum what was read until `at_ns`. */
void sensor_sum_up_to(struct emulated_gpu *gpu, int64_t at_ns);

bool sensor_has_instant(const struct emulated_gpu *gpu);
bool sensor_has_average(const struct emulated_gpu *gpu);

/* The readings in force at `at_ns`; the one asked for has to exist. */
unsigned sensor_instant_mw(const struct emulated_gpu *gpu, int64_t at_ns);
unsigned sensor_average_mw(const struct emulated_gpu *gpu, int64_t at_ns);

/* That of nvmlDeviceGetPowerUsage. */
unsigned sensor_usage_mw(const struct emulated_gpu *gpu, int64_t at_ns);

/* The energy counter at `at_ns`, at or after the moment that the GPU stands at. */
unsigned long long sensor_counter_mj(const struct emulated_gpu *gpu, int64_t at_ns);

/* The counter starts again at 0. */
void sensor_reset_counter(struct emulated_gpu *gpu, int64_t at_ns);

/* When the power reading in force at `at_ns` was made. */
int64_t sensor_power_made_ns(const struct emulated_gpu *gpu, int64_t at_ns);

#endif
