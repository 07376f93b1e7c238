/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_DEVICE_OPTIONS_H
#define FLYBALL_CLI_OPTIONS_DEVICE_OPTIONS_H

#include "cli/frame/command.h"

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

#endif
