/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_VERIFY_UNIT_WINDOWS_H
#define FLYBALL_VERIFY_UNIT_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "verify/gpu_at_hand.h"

/*
 * Windows of many lengths over one training, measured side by side: all of one length hold the same number of
 * units, and each unit is the same work. So what differs among them is the error of measuring.
 *
 *     unit_windows_open(&parts, unit_s, &windows, out_error);
 *     do {
 *         code = unit_windows_between(&windows, out_error);
 *         ... one unit of work ...
 *     } while (...);
 *     unit_windows_close(&windows);
 *
 * A window that ended is a line of CSV: length_s (the length aimed at), units, begin_ns and end_ns
 * (monotonic), time_s, the meter's energy_j, uncertainty_j, source and integral_j, and counter_j, the plain
 * difference of the driver's counter. What is not known, or not bounded, is empty. Windows of different
 * lengths overlap.
 */
enum { WINDOW_LENGTHS = 9 };

struct unit_windows_parts {
    struct gpu_at_hand *gpu; /* with its meter */
    FILE *out;
};

struct open_window {
    double length_s;
    unsigned units;
    unsigned left; /* units until it ends, or until the next one begins */
    bool is_open;
    fly_window window;
    int64_t begin_ns;
    double counter_begin_j; /* NAN: not known */
};

struct unit_windows {
    struct unit_windows_parts parts;
    uint32_t random;
    struct open_window rows[WINDOW_LENGTHS];
};

/*
 * Makes windows of 20 ms to 10 s out of units that take unit_s, leaves out lengths shorter than a unit, and
 * writes the heading.
 */
void unit_windows_open(const struct unit_windows_parts *parts, double unit_s,
                       struct unit_windows *out_windows);

/* Ends and begins what is due, between two units. The errors of the meter. */
int unit_windows_between(struct unit_windows *windows, struct fly_error *out_error);

/* Drops the windows that are still open. */
void unit_windows_close(struct unit_windows *windows);

#endif
