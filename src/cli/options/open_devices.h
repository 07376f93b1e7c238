/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_OPEN_DEVICES_H
#define FLYBALL_CLI_OPTIONS_OPEN_DEVICES_H

#include "cli/frame/call.h"
#include "cli/frame/command.h"
#include "device/device.h"
#include "device/open/selection.h"

/* Options that commands on real devices share: a row, and tables. */

/* clang-format off */

/* Selects GPUs; `without` says what applies if the option is not given. */
#define DEVICE_OPTION_GPUS(without) DEVICE_OPTION_GPUS_SHOWN(without, false)
#define DEVICE_OPTION_GPUS_SHOWN(without, shown) \
    {.name = "gpus", .letter = 'i', .type = CLI_TEXT, .placeholder = "GPUS", \
     .help = "GPUs by index as 'flyball devices' counts them, UUID or unique beginning of one, separated by " \
             "commas; or all, or none. " without, .often = shown}
/* clang-format on */

/* Where devices are found; for a command that only shows devices, cli_open_devices_or_facts reads the second.
 */
extern const struct cli_options device_options, device_options_or_facts;

/*
 * Opens devices as the options above say.
 *
 *     static struct device_list list;
 *
 *     if (cli_open_devices(call, GPUS_ALL, &list, NULL, out_error) < 0)
 *         ...
 *     device_list_close(&list);
 */

/*
 * Which GPUs to open without --gpus: all of the node, or those that a CUDA or HIP program started
 * here would see.
 */
enum gpus_without_choice { GPUS_ALL, GPUS_VISIBLE };

/* Returns the options for device_list_open; texts are borrowed from the call. */
struct device_options cli_device_options(const struct cli_call *call);

/* What to do with settings that killed programs left on any GPU of the node. */
enum leftovers { LEFTOVERS_REPAIR, LEFTOVERS_LEAVE };

/*
 * Opens the devices of this machine, restores what killed programs left on its GPUs
 * (cli/options/knob_options.h), and keeps the GPUs that were asked for; CPUs and memory stay.
 * `out_note` (may be NULL) receives what hides GPUs, "" for nothing. FLY_ENOTFOUND and FLY_EUSAGE
 * for a wrong --gpus, and the errors of device_list_open.
 */
int cli_open_devices(const struct cli_call *call, enum gpus_without_choice without,
                     struct device_list *out_list, char out_note[SELECTION_NOTE_MAX],
                     struct fly_error *out_error);

/* Does the same; with LEFTOVERS_LEAVE the caller handles leftovers. */
int cli_open_devices_and(const struct cli_call *call, enum gpus_without_choice without,
                         enum leftovers leftovers, struct device_list *out_list,
                         char out_note[SELECTION_NOTE_MAX], struct fly_error *out_error);

/* Does the same with all GPUs, for a command that only shows: --replay may also name a machine's facts. */
int cli_open_devices_or_facts(const struct cli_call *call, struct device_list *out_list,
                              struct fly_error *out_error);

/* Prints notes on back ends that found nothing or not everything, and why. */
void cli_note_backends(const struct cli_call *call, const struct device_list *list);

#endif
