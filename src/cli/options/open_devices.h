/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_OPEN_DEVICES_H
#define FLYBALL_CLI_OPTIONS_OPEN_DEVICES_H

#include "cli/frame/call.h"
#include "device/device.h"
#include "device/open/selection.h"

/*
 * Devices as the options of cli/options/device_options.h want them.
 *
 *     static struct device_list list;
 *
 *     if (cli_open_devices(call, GPUS_ALL, &list, NULL, out_error) < 0)
 *         ...
 *     device_list_close(&list);
 */

/* Which GPUs without --gpus: all of the node, or those that a CUDA or HIP program started here would see. */
enum gpus_without_choice { GPUS_ALL, GPUS_VISIBLE };

/* What device_list_open takes; texts are borrowed from the call. */
struct device_options cli_device_options(const struct cli_call *call);

/* What becomes of settings that killed programs left on any GPU of the node. */
enum leftovers { LEFTOVERS_REPAIR, LEFTOVERS_LEAVE };

/*
 * Opens the devices of this machine, puts back what killed programs left on its GPUs
 * (cli/options/leftovers.h), and keeps the GPUs that were asked for; CPUs and memory stay. `out_note` (may be
 * NULL) receives what hides GPUs, "" for nothing. FLY_ENOTFOUND and FLY_EUSAGE for what --gpus names wrongly,
 * and the errors of device_list_open.
 */
int cli_open_devices(const struct cli_call *call, enum gpus_without_choice without,
                     struct device_list *out_list, char out_note[SELECTION_NOTE_MAX],
                     struct fly_error *out_error);

/* The same, where leftovers may be for the caller to see to. */
int cli_open_devices_and(const struct cli_call *call, enum gpus_without_choice without,
                         enum leftovers leftovers, struct device_list *out_list,
                         char out_note[SELECTION_NOTE_MAX], struct fly_error *out_error);

/* The same with all GPUs, for a command that only shows: --replay may name facts of a machine as well. */
int cli_open_devices_or_facts(const struct cli_call *call, struct device_list *out_list,
                              struct fly_error *out_error);

/* Notes on back ends that found nothing or not everything, and why. */
void cli_note_backends(const struct cli_call *call, const struct device_list *list);

#endif
