/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_POWER_POWER_TURNING_H
#define FLYBALL_CLI_POWER_POWER_TURNING_H

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
