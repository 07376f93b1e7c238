/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TALLY_RECORDED_H
#define FLYBALL_METER_TALLY_RECORDED_H

#include <stddef.h>

#include <flyball/error.h>

#include "base/arena.h"
#include "meter/tally/tally.h"

/*
 * Turns recordings (device/recording/recording.h) into windows of meter/tally/tally.h: the energy
 * that devices used within a period.
 *
 *     struct recorded recorded;
 *
 *     recorded_init(&recorded);
 *     recorded_read(&recorded, "node1.jsonl", "node1", since_unix_s, until_unix_s, out_error);
 *     tally_make(recorded.windows, recorded.count, ...);
 *     recorded_deinit(&recorded);
 *
 * Between two readings of a device the difference of its energy counter counts or, without a
 * counter, the mean of its power. If a border of the period lies between two readings, it divides
 * that energy in proportion. A window ends when a counter was reset or a device did not answer;
 * what happened between two windows is unknown. Readings are dated by the recording's begin and
 * its monotonic clock, so setting the wall clock meanwhile has no effect.
 *
 * A file is read once, whatever its length; memory grows with the windows.
 */
struct recorded {
    struct tally_window *windows; /* owned; their texts are in the arena */
    size_t count, capacity;
    size_t emulated; /* windows on emulated devices */
    struct arena arena;
};

void recorded_init(struct recorded *recorded);
void recorded_deinit(struct recorded *recorded);

/*
 * Adds a recording. `node` says where it was recorded, since the file does not. Errors are those
 * of recording_scan, except for its limit.
 */
int recorded_read(struct recorded *recorded, const char *path, const char *node, double since_unix_s,
                  double until_unix_s, struct fly_error *out_error);

#endif
