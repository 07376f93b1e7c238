/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_RECORDING_RECORDING_H
#define FLYBALL_DEVICE_RECORDING_RECORDING_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"
#include "device/device.h"

/*
 * What the devices of a node reported over time, as a file.
 *
 * JSON lines, none longer than RECORDING_LINE_MAX bytes: a header; one line for each device with
 * its facts, in the order of the list; the readings; and, if the recording ended in good order, a
 * line that says so.
 *
 *     {"schema":"flyball.recording/1","flyball":"0.2.0","date":"2026-11-21T16:20:00Z","unix_us":1795278000123456,"interval_s":0.1,"devices":2}
 *     {"device":0,"kind":"GPU","name":"NVIDIA A40","uuid":"GPU-8f3a...","sensor":{...},...}
 *     {"t":1203377,"d":0,"energy_uj":918273000,"power_mw":78113,"power_limit_mw":["no_permission",4]}
 *     {"t":60000000000,"end":true}
 *
 * `unix_us` is the date to the microsecond; older recordings have none. `t` is in nanoseconds
 * since just before the first reading, by the monotonic clock, halfway between the stamps before
 * and after the reading. `d` is the device. A reading has only the quantities that differ from
 * the device's last one, under the keys of device/quantity.h: a whole number if the device
 * answered, otherwise the state's word and the driver's code. Unknown facts are null. Nothing in
 * the file names the host.
 *
 * A line is complete or does not count. A file whose end a power cut tore off, or filled with
 * zeros, is good up to its last complete line, and is known to be cut off.
 */
#define RECORDING_SCHEMA "flyball.recording/1"

enum {
    RECORDING_LINE_MAX = 8192,
    RECORDING_CHANGES_MAX = 1 << 24, /* values in a file that can be loaded: 384 MiB in memory */
};

/*
 * Turns readings into lines, which collect in `lines` until the caller has written and cleared
 * them (buffer_clear). Allocates nothing once `lines` has grown to the most that the caller lets
 * collect.
 *
 *     recording_writer_init(&writer, &list, &clock_real, 0.1, out_error);
 *     device_read(&list.devices[0], &clock_real, wanted, &reading);
 *     recording_writer_add(&writer, 0, wanted, &reading);
 *     write(file, writer.lines.data, writer.lines.length);
 */
struct recording_writer {
    struct buffer lines;
    struct mono_time start;
    struct reading last[DEVICES_MAX][QUANTITY_COUNT];
};

/* Begins with the lines of the header and the devices. FLY_ENOMEM. Needs the deinit after success. */
int recording_writer_init(struct recording_writer *writer, const struct device_list *devices,
                          const struct clock *clock, double interval_s, struct fly_error *out_error);
void recording_writer_deinit(struct recording_writer *writer);

/* Adds those of the wanted quantities that differ from the device's last reading. */
void recording_writer_add(struct recording_writer *writer, size_t device, quantity_set wanted,
                          const struct device_reading *reading);

/* Adds the line for an end in good order. */
void recording_writer_end(struct recording_writer *writer, struct mono_time now);

/*
 * A recording in memory. Constant once loaded, and so thread-safe.
 */
struct recording;

/*
 * Loads from a stream, which the caller closes; messages use `name` as the path. FLY_EREAD; FLY_EDATA if it
 * is no recording, with file, line, field and what was expected; FLY_ELIMIT beyond the limits above;
 * FLY_ENOMEM.
 */
int recording_load_stream(const char *name, FILE *stream, struct recording **out_recording,
                          struct fly_error *out_error);

/*
 * Reads a file of any length once, without keeping it. After each reading of a device it calls
 * this with all that the device has reported so far (READING_NOT_READ: nothing yet). The
 * recording then has only the devices, the date and the interval. A negative answer ends the
 * reading and is returned. Errors as recording_load_stream, except for the number of values, and
 * FLY_ENOTFOUND, FLY_EPERM.
 */
typedef int recording_visit(void *context, const struct recording *recording, size_t device, int64_t t_ns,
                            const struct reading values[QUANTITY_COUNT], struct fly_error *out_error);
int recording_scan(const char *path, recording_visit *visit, void *context, struct fly_error *out_error);

void recording_free(struct recording *recording);

/* Return the recorded devices; their infos live as long as the recording. */
size_t recording_device_count(const struct recording *recording);
const struct device_info *recording_device(const struct recording *recording, size_t device);

/* Return when it began, its intended interval (0: unknown), and when it ended in ns since its start. */
struct wall_time recording_date(const struct recording *recording);
double recording_interval_s(const struct recording *recording);
int64_t recording_end_ns(const struct recording *recording);

/* Returns whether it ended in good order; otherwise the last lines may be missing. */
bool recording_ended(const struct recording *recording);

/* Returns the seconds between two readings of a device, on average; 0 with fewer than two. */
double recording_gap_s(const struct recording *recording, size_t device);

/*
 * Returns what the device last reported of a quantity at or before `t_ns`; before its first
 * report, that one; after the end READING_ENDED; for a quantity that was never recorded
 * READING_NOT_READ.
 */
struct reading recording_at(const struct recording *recording, size_t device, enum quantity quantity,
                            int64_t t_ns);

#endif
