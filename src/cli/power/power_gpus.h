/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_POWER_POWER_GPUS_H
#define FLYBALL_CLI_POWER_POWER_GPUS_H

#include "cli/frame/call.h"
#include "cli/options/knob_options.h"
#include "cli/options/open_devices.h"
#include "device/device.h"
#include "knob/knob.h"

/*
 * The GPUs that a power command is about, and how it speaks of them.
 *
 *     static struct power_gpus gpus;
 *
 *     if (power_gpus_open(call, GPUS_VISIBLE, LEFTOVERS_REPAIR, &gpus, out_error) < 0)
 *         return ...;
 *     ... gpus.devices[i], gpus.options for knob_open ...
 *     power_gpus_close(&gpus);
 *
 * Large: for static storage, and not to be copied.
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

/* FLY_EUNSUPPORTED where there is no GPU, and the errors of cli_open_devices. */
int power_gpus_open(const struct cli_call *call, enum gpus_without_choice without, enum leftovers leftovers,
                    struct power_gpus *out_gpus, struct fly_error *out_error);
/* The same with all GPUs, also those of a file of facts. */
int power_gpus_open_or_facts(const struct cli_call *call, struct power_gpus *out_gpus,
                             struct fly_error *out_error);
void power_gpus_close(struct power_gpus *gpus);

/* "GPU 0, 2" of those of which `chosen` (NULL: all) is true, and "0,2" as --gpus takes it. */
char *power_gpus_names(const struct power_gpus *gpus, const bool *chosen, char text[POWER_NAMES_MAX]);
char *power_gpus_list(const struct power_gpus *gpus, const bool *chosen, char text[POWER_NAMES_MAX]);

/*
 * Ends a command that was refused: GPUs that are in use or held by others (FLY_ESTATE)
 * are said here, with a status of their own, and 0 is returned; other codes are.
 */
int power_refused(const struct cli_call *call, int code, const struct fly_error *error);

/* Of commands that set: their exit statuses. */
#define POWER_EXIT_STATUS                                                                                 \
    "64 for a limit outside a GPU's range, 66 for a GPU that is not there, 69 where there is no GPU or "  \
    "none "                                                                                               \
    "with a limit to set, 75 for a GPU that somebody else uses or holds (another program, MIG, MPS), 77 " \
    "without permission or with an operator's lock. Nothing is set then."

/* A limit in whole watts where it is one: "150 W", "187.5 W"; "an unknown limit" for 0. */
enum { POWER_LIMIT_TEXT_MAX = 32 };
char *power_limit_text(int64_t limit_mw, char text[POWER_LIMIT_TEXT_MAX]);

/* Appends a limit to a table, in W; "-" and the reason for one that is 0, which is not known. */
void power_gpus_add_limit(struct table *table, int64_t limit_mw, const char *reason);

#endif
