/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_POWER_POWER_GPUS_H
#define FLYBALL_CLI_POWER_POWER_GPUS_H

#include "cli/frame/call.h"
#include "cli/options/knob_options.h"
#include "cli/options/open_devices.h"
#include "device/device.h"
#include "knob/knob.h"

/*
 * The GPUs of a power command, and how it names them.
 *
 *     static struct power_gpus gpus;
 *
 *     if (power_gpus_open(call, GPUS_VISIBLE, LEFTOVERS_REPAIR, &gpus, out_error) < 0)
 *         return ...;
 *     ... gpus.devices[i], gpus.options for knob_open ...
 *     power_gpus_close(&gpus);
 *
 * Large: keep it in static storage. Do not copy it.
 */
enum { POWER_NAMES_MAX = 512, POWER_STATUS_IN_USE = 75 };

struct power_gpus {
    struct device_list list;
    const struct device *devices[DEVICES_MAX];
    size_t count;
    struct knob_options options;
    char readonly_path[CLI_READONLY_MAX];
    char hidden[SELECTION_NOTE_MAX]; /* what hides GPUs, "" for nothing */
};

/* FLY_EUNSUPPORTED if there is no GPU, and the errors of cli_open_devices. */
int power_gpus_open(const struct cli_call *call, enum gpus_without_choice without, enum leftovers leftovers,
                    struct power_gpus *out_gpus, struct fly_error *out_error);
/* Does the same with all GPUs, including those of a file of facts. */
int power_gpus_open_or_facts(const struct cli_call *call, struct power_gpus *out_gpus,
                             struct fly_error *out_error);
void power_gpus_close(struct power_gpus *gpus);

/* Write the GPUs for which `chosen` is true (NULL: all): "GPU 0, 2", and "0,2" as --gpus takes it. */
char *power_gpus_names(const struct power_gpus *gpus, const bool *chosen, char text[POWER_NAMES_MAX]);
char *power_gpus_list(const struct power_gpus *gpus, const bool *chosen, char text[POWER_NAMES_MAX]);

/*
 * Ends a command that was refused. If GPUs are in use or held by others (FLY_ESTATE), says so,
 * sets an exit status of its own and returns 0; returns other codes unchanged.
 */
int power_refused(const struct cli_call *call, int code, const struct fly_error *error);

/* The exit statuses of commands that set limits. */
#define POWER_EXIT_STATUS                                                                                 \
    "64 for a limit outside a GPU's range, 66 for a GPU that is not there, 69 where there is no GPU or "  \
    "none "                                                                                               \
    "with a limit to set, 75 for a GPU that somebody else uses or holds (another program, MIG, MPS), 77 " \
    "without permission or with an operator's lock. Nothing is set then."

/* Writes a limit, in whole watts if it is one: "150 W", "187.5 W"; "an unknown limit" for 0. */
enum { POWER_LIMIT_TEXT_MAX = 32 };
char *power_limit_text(int64_t limit_mw, char text[POWER_LIMIT_TEXT_MAX]);

/* Appends a limit to a table, in W; for 0, which means unknown, "-" and the reason. */
void power_gpus_add_limit(struct table *table, int64_t limit_mw, const char *reason);

#endif
