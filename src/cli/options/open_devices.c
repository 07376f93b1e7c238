/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/open_devices.h"

#include <stdio.h>
#include <string.h>

#include "cli/options/leftovers.h"
#include "device/open/backends.h"

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

int cli_open_devices_and(const struct cli_call *call, enum gpus_without_choice without,
                         enum leftovers leftovers, struct device_list *out_list,
                         char out_note[SELECTION_NOTE_MAX], struct fly_error *out_error)
{
    struct device_options options = cli_device_options(call);
    const char *gpus = cli_text(call, "gpus");
    int result = device_list_open(&options, out_list, out_error);

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

const char *device_label(const struct device_info *info, char label[DEVICE_LABEL_MAX])
{
    const struct {
        bool holds;
        const char *word;
    } words[] = {
        {info->emulated, "emulated"},
        {info->estimated, "estimated"},
        {info->module_power, "module"},
        {info->mig, "MIG"},
    };
    size_t length = 0;

    label[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (words[i].holds)
            length += (size_t)snprintf(label + length, DEVICE_LABEL_MAX - length, "%s%s",
                                       length > 0 ? ", " : "", words[i].word);
    }
    return label;
}

const char *reading_reason(const struct reading *reading, char reason[READING_REASON_MAX])
{
    const char *clause = reading_state_clause(reading->state);

    if (reading->state == READING_FAILED && reading->code != 0)
        snprintf(reason, READING_REASON_MAX, "%s (code %d)", clause, reading->code);
    else
        snprintf(reason, READING_REASON_MAX, "%s", clause);
    return reason;
}

void table_add_reading(struct table *table, const struct reading *reading, double divisor)
{
    char reason[READING_REASON_MAX];

    if (reading->state != READING_OK)
        table_add_unavailable(table, "-", reading_reason(reading, reason));
    else
        table_add_real(table, (double)reading->value / divisor);
}

/* The first of two that has a value; the first where none has. */
static const struct reading *either(const struct reading *first, const struct reading *second)
{
    return first->state != READING_OK && second->state == READING_OK ? second : first;
}

const struct reading *reading_power(const struct device_reading *reading)
{
    return either(&reading->values[QUANTITY_POWER_INSTANT], &reading->values[QUANTITY_POWER_AVERAGE]);
}

const struct reading *reading_limit(const struct device_reading *reading)
{
    return either(&reading->values[QUANTITY_POWER_LIMIT_ENFORCED], &reading->values[QUANTITY_POWER_LIMIT]);
}
