/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_OPEN_DEVICES_H
#define FLYBALL_CLI_OPTIONS_OPEN_DEVICES_H

#include "cli/frame/call.h"
#include "cli/frame/command.h"
#include "device/device.h"
#include "device/open/selection.h"

/*
 * Options that commands on real devices share, as rows of their tables;
 * cli/options/open_devices.h reads them.
 *
 *     static const struct cli_option options[] = {
 *         DEVICE_OPTION_GPUS("GPUs to list; if not given, all of this node."),
 *         {.name = "interval", ...},
 *         DEVICE_OPTIONS,
 *     };
 */

/* clang-format off */

/* Selects GPUs; `without` says what applies if the option is not given. */
#define DEVICE_OPTION_GPUS(without) DEVICE_OPTION_GPUS_SHOWN(without, false)
#define DEVICE_OPTION_GPUS_SHOWN(without, shown) \
    {.name = "gpus", .letter = 'i', .type = CLI_TEXT, .placeholder = "GPUS", \
     .help = "GPUs by index as 'flyball devices' counts them, UUID or unique beginning of one, separated by " \
             "commas; or all, or none. " without, .often = shown}

/* Where devices are found. */
#define DEVICE_OPTIONS DEVICE_OPTIONS_WITH("Play back this recording in place of all devices.")

/* The same for a command that only shows devices: cli_open_devices_or_facts reads them. */
#define DEVICE_OPTIONS_OR_FACTS \
    DEVICE_OPTIONS_WITH("Play back this recording in place of all devices, or show what the facts of this file say of " \
                        "a machine.")
#define DEVICE_OPTIONS_WITH(replay_help) \
    {.name = "nvml", .type = CLI_TEXT, .placeholder = "FILE", .key = "device.nvml", .sensitive = true, \
     .help = "NVIDIA's management library; if not given, libnvidia-ml.so.1 is searched for."}, \
    {.name = "amdsmi", .type = CLI_TEXT, .placeholder = "FILE", .key = "device.amdsmi", .sensitive = true, \
     .help = "AMD's management library; if not given, libamd_smi is searched for."}, \
    {.name = "cpu-tdp", .type = CLI_REAL, .placeholder = "WATTS", .minimum = 0, .above_minimum = true, \
     .maximum = 100000, .key = "device.cpu_tdp_w", \
     .help = "Where a CPU has no sensor that can be read, estimate its energy from its use and this power of " \
             "all CPUs together under full load; it is then named an estimate."}, \
    {.name = "replay", .type = CLI_TEXT, .placeholder = "FILE", .key = "device.replay", .sensitive = true, \
     .help = replay_help}, \
    {.name = "sysfs-root", .type = CLI_TEXT, .placeholder = "DIR", .default_text = "/", .key = "device.sysfs_root", .sensitive = true, \
     .help = "Directory in which sys, proc and dev of this machine are found."}

/* clang-format on */

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
