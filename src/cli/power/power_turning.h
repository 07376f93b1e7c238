/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_POWER_POWER_TURNING_H
#define FLYBALL_CLI_POWER_POWER_TURNING_H

#include "cli/options/power_wish.h"
#include "cli/power/power_gpus.h"

/*
 * Limits of the chosen GPUs, set for some time, and what is said of it.
 *
 *     static struct power_turning turning;
 *
 *     if (power_turning_begin(call, &wish, kept, &turning, out_error) < 0)
 *         ...
 *     while (power_turning_check(call, &turning) && ...)
 *         ... wait, at most half a second ...
 *     result = power_turning_end(call, &turning, out_error);
 *
 * Large: for static storage, and not to be copied.
 */
struct power_turning {
    struct power_gpus gpus;
    struct knob *knob;
    int64_t limits_mw[DEVICES_MAX];
};

/* How often to call power_turning_check. */
extern const double power_check_s;

/*
 * Opens the GPUs, their knobs, and sets each to what was wished for: all or none. Without
 * a wish (NULL) to the driver's default. The codes of power_gpus_open and knob_set; the
 * text names the GPU, and where permission is missing a command that would do it.
 */
int power_turning_begin(const struct cli_call *call, const struct power_wish *wish, bool kept,
                        struct power_turning *out_turning, struct fly_error *out_error);

/* Whether a limit of ours stands still. Warns of what others changed. */
bool power_turning_check(const struct cli_call *call, struct power_turning *turning);

/* Turns back (a kept one stays), and says what stands now. The error of a limit that could not be. */
int power_turning_end(const struct cli_call *call, struct power_turning *turning,
                      struct fly_error *out_error);

extern const struct quantities power_turning_quantities;

/*
 * What stood and what stands, on standard output; `put_back`, a command line, is for
 * programs, NULL where nothing is to be put back by hand.
 */
int power_turning_emit(const struct cli_call *call, const struct power_turning *turning, const char *schema,
                       const char *put_back, struct fly_error *out_error);

#endif
