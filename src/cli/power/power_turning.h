/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_POWER_POWER_TURNING_H
#define FLYBALL_CLI_POWER_POWER_TURNING_H

#include "cli/options/power_wish.h"
#include "cli/power/power_gpus.h"

/*
 * Sets limits of the chosen GPUs for some time, and reports them.
 *
 *     static struct power_turning turning;
 *
 *     if (power_turning_begin(call, &wish, kept, &turning, out_error) < 0)
 *         ...
 *     while (power_turning_check(call, &turning) && ...)
 *         ... wait, at most half a second ...
 *     result = power_turning_end(call, &turning, out_error);
 *
 * Large: keep it in static storage. Do not copy it.
 */
struct power_turning {
    struct power_gpus gpus;
    struct knob *knob;
    int64_t limits_mw[DEVICES_MAX]; /* 0: it stays as it is */
};

/* What to set. */
struct power_request {
    const struct power_wish *limit;       /* NULL: it stays as it is */
    const struct workload_set *workloads; /* profiles to request, or none of them; NULL: they stay */
    int64_t level;                        /* performance level; KNOB_NO_LEVEL: it stays */
};

/* How often to call power_turning_check. */
extern const double power_check_s;

/*
 * Opens the GPUs and their knobs, and sets each GPU as requested, or to the driver's defaults
 * without a request (NULL): all GPUs or none. Returns the codes of power_gpus_open and knob_set; the
 * text names the GPU and, if permission is missing, a command that would do it.
 */
int power_turning_begin(const struct cli_call *call, const struct power_request *request, bool kept,
                        struct power_turning *out_turning, struct fly_error *out_error);

/* Returns whether at least one of our settings is still in force. Warns of those that others changed. */
bool power_turning_check(const struct cli_call *call, struct power_turning *turning);

/*
 * Restores the limits (one that is kept stays), and says what is set now. Returns the error of a
 * limit that could not be restored.
 */
int power_turning_end(const struct cli_call *call, struct power_turning *turning,
                      struct fly_error *out_error);

extern const struct quantities power_turning_quantities;

/*
 * Prints the limits before and now on standard output. `put_back` is a command line for programs;
 * NULL if nothing has to be restored by hand.
 */
int power_turning_emit(const struct cli_call *call, const struct power_turning *turning, const char *schema,
                       const char *put_back, struct fly_error *out_error);

#endif
