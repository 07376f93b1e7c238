/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MACHINE_MONITOR_H
#define FLYBALL_CLI_MACHINE_MONITOR_H

#include "cli/frame/call.h"
#include "cli/machine/monitored.h"

/* The devices that `flyball monitor` watches, and its two forms of output. */
struct monitor {
    const struct cli_call *call;
    struct device_list *list;
    struct monitored *watches; /* one for each device of the list */
    double interval_s;
    struct mono_time start, now, due;
};

/* Reads all devices, and sets the time of the next reading. */
void monitor_read(struct monitor *monitor);

extern const struct quantities monitor_quantities;

/*
 * Print a row for every device in the format of the call: as a whole table, or as lines, the
 * first with a heading.
 */
int monitor_put_table(const struct monitor *monitor, struct fly_error *out_error);
int monitor_put_lines(const struct monitor *monitor, bool heading, struct fly_error *out_error);

/*
 * Shows the screen until q or a signal to end, then restores the terminal. FLY_EUNSUPPORTED for a
 * terminal that cannot be drawn on.
 */
int monitor_screen(struct monitor *monitor, struct fly_error *out_error);

#endif
