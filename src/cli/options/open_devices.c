/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/open_devices.h"

#include <string.h>

#include "cli/options/knob_options.h"
#include "device/open/backends.h"

/* clang-format off */
#define ROWS(replay_help) \
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
static const struct cli_option rows[] = {ROWS("Play back this recording in place of all devices.")};
static const struct cli_option rows_or_facts[] = {ROWS("Play back this recording in place of all devices, or "
                                                       "show what the facts of this file say of a machine.")};
const struct cli_options device_options = CLI_OPTIONS(rows);
const struct cli_options device_options_or_facts = CLI_OPTIONS(rows_or_facts);

struct device_options cli_device_options(const struct cli_call *call)
{
    const char *root = cli_text(call, "sysfs-root");

    return (struct device_options){
        .nvml_path = cli_text(call, "nvml"),
        .amdsmi_path = cli_text(call, "amdsmi"),
        .replay_path = cli_text(call, "replay"),
        .sysfs_root = strcmp(root, "/") != 0 ? root : NULL,
        .cpu_tdp_w = cli_set(call, "cpu-tdp") ? cli_real(call, "cpu-tdp") : 0,
    };
}

static int open_devices(const struct cli_call *call, const struct device_options *options,
                        enum gpus_without_choice without, enum leftovers leftovers,
                        struct device_list *out_list, char out_note[SELECTION_NOTE_MAX],
                        struct fly_error *out_error)
{
    const char *gpus = cli_text(call, "gpus");
    int result = device_list_open(options, out_list, out_error);

    if (out_note != NULL)
        out_note[0] = '\0';
    if (result < 0)
        return result;
    if (leftovers == LEFTOVERS_REPAIR)
        leftovers_repair(call, out_list, LEFTOVERS_AT_ONCE);
    if (gpus != NULL) {
        result = device_select_named(out_list, gpus, out_error);
    } else if (without == GPUS_VISIBLE) {
        struct visibility visible = visibility_of_environment();

        device_select_visible(out_list, &visible, out_note);
    }
    if (result < 0)
        device_list_close(out_list);
    return result;
}

int cli_open_devices_and(const struct cli_call *call, enum gpus_without_choice without,
                         enum leftovers leftovers, struct device_list *out_list,
                         char out_note[SELECTION_NOTE_MAX], struct fly_error *out_error)
{
    struct device_options options = cli_device_options(call);

    return open_devices(call, &options, without, leftovers, out_list, out_note, out_error);
}

int cli_open_devices_or_facts(const struct cli_call *call, struct device_list *out_list,
                              struct fly_error *out_error)
{
    struct device_options options = cli_device_options(call);

    options.facts = true;
    return open_devices(call, &options, GPUS_ALL, LEFTOVERS_REPAIR, out_list, NULL, out_error);
}

int cli_open_devices(const struct cli_call *call, enum gpus_without_choice without,
                     struct device_list *out_list, char out_note[SELECTION_NOTE_MAX],
                     struct fly_error *out_error)
{
    return cli_open_devices_and(call, without, LEFTOVERS_REPAIR, out_list, out_note, out_error);
}

void cli_note_backends(const struct cli_call *call, const struct device_list *list)
{
    for (size_t i = 0; i < list->report_count; i++) {
        const struct backend_report *report = &list->reports[i];

        if (report->error.code < 0)
            cli_note(call, "%s: %s", report->backend->title, report->error.text);
        else if (report->found == 0)
            cli_note(call, "%s: works, and has no device to list", report->backend->title);
    }
}
