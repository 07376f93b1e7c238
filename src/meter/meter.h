/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_METER_H
#define FLYBALL_METER_METER_H

#include <flyball/meter.h>

#include "device/device.h"
#include "meter/account.h"
#include "meter/claim.h"

/*
 * The inside of <flyball/meter.h>: a meter over devices that the caller opened, with a clock of
 * the caller.
 *
 * In virtual time there is no thread: whoever moves the clock calls `meter_sample` at each moment
 * that `meter_next_sample` names.
 */
struct meter_parts {
    struct device_list *devices; /* borrowed; already selected */
    const struct clock *clock;   /* NULL: clock_real */
    bool threadless;
    double sample_hz;
    uint32_t windows_max;
    void (*synchronize)(void *data);
    void *synchronize_data;
};

int meter_new(const struct meter_parts *parts, struct fly_meter **out_meter, struct fly_error *out_error);

/*
 * Sets which process counts each device, for fly_meter_device_counted_by; borrowed. NULL, as at
 * first: this process counts all.
 */
void meter_set_claims(struct fly_meter *meter, const struct claims *claims);

/*
 * Like fly_meter_begin, _peek and _end, but without the caller's `synchronize`. They are for
 * threads other than the training thread: what `synchronize` waits for may in turn wait for that
 * thread.
 */
int meter_begin_at_once(struct fly_meter *meter, const char *name, fly_window *out_window,
                        struct fly_error *out_error);
int meter_peek_at_once(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                       struct fly_error *out_error);
int meter_end_at_once(struct fly_meter *meter, fly_window window, struct fly_measurement *out_measurement,
                      struct fly_error *out_error);

/*
 * meter_sample does what the thread does when it wakes: it takes one sample of every device, or makes
 * the extra readings of counters that are due; meter_next_sample returns the moment at which the
 * next is due.
 */
void meter_sample(struct fly_meter *meter);
struct mono_time meter_next_sample(const struct fly_meter *meter);

/* Adds a reading of a device that the caller made, so that its counter's updates are tracked by it too. */
void meter_add(struct fly_meter *meter, size_t device, const struct device_reading *reading);

/* Gives how a device's counter behaves, as far as it has shown. Thread-safe. */
void meter_counter(const struct fly_meter *meter, size_t device, struct account_counter *out_counter);

/* Returns the devices, in the order of the measurement. */
const struct device_list *meter_devices(const struct fly_meter *meter);

/* Returns the clock that stamps its readings: that of all who measure with it. */
const struct clock *meter_clock(const struct fly_meter *meter);

/* Return the paths as in fly_meter_options; NULL: searched for. */
const char *meter_nvml_path(const struct fly_meter *meter);
const char *meter_amdsmi_path(const struct fly_meter *meter);

/* Returns the processor seconds that the sampling thread has used. */
double meter_own_cpu_s(const struct fly_meter *meter);

/* Gives the newest sample of a device, for display; false before the first. Thread-safe. */
bool meter_latest(const struct fly_meter *meter, size_t device, struct device_reading *out_reading);

#endif
