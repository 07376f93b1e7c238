/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TALLY_RECORDED_H
#define FLYBALL_METER_TALLY_RECORDED_H

#include <stddef.h>

#include <flyball/error.h>

#include "base/arena.h"
#include "meter/tally/tally.h"

/*
 * What recordings (device/recording/recording.h) say that devices took within a period, as
 * windows of meter/tally/tally.h:
 *
 *     struct recorded recorded;
 *
 *     recorded_init(&recorded);
 *     recorded_read(&recorded, "node1.jsonl", "node1", since_unix_s, until_unix_s, out_error);
 *     tally_make(recorded.windows, recorded.count, ...);
 *     recorded_deinit(&recorded);
 *
 * Between two readings of a device the difference of its energy counter counts, and
 * where it has none the mean of its power; a border of the period between them cuts it
 * in proportion. A counter that was reset, or a device that did not answer, ends a
 * window; what is between two windows is not known. Readings are dated by the
 * recording's begin and its monotonic clock: a wall clock that is set meanwhile has no
 * part in it.
 *
 * A file is read once, whatever its length; memory grows with the windows.
 */
struct recorded {
    struct tally_window *windows; /* owned; their texts stand in the arena */
    size_t count, capacity;
    size_t emulated; /* windows on emulated devices */
    struct arena arena;
};

void recorded_init(struct recorded *recorded);
void recorded_deinit(struct recorded *recorded);

/* `node`: where the file was recorded, for it does not say so. Errors as of recording_load, but for its
 * limit. */
int recorded_read(struct recorded *recorded, const char *path, const char *node, double since_unix_s,
                  double until_unix_s, struct fly_error *out_error);

#endif
