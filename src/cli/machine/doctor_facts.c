/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the facts that the ailments use; sets nothing on a device. */
#include <string.h>

#include "cli/machine/doctor.h"
#include "knob/knob_defaults.h"
#include "knob/unseen.h"

enum { PROCESSES_MAX = 64 };

static void look_at_reports(const struct device_list *list, struct doctor_facts *facts)
{
    for (size_t i = 0; i < list->report_count; i++) {
        const struct backend_report *report = &list->reports[i];

        if (strcmp(report->backend->name, "nvml") == 0) {
            facts->nvidia_works = report->error.code == 0;
            facts->nvidia_mismatch = strstr(report->error.text, "updated while it ran") != NULL;
        }
        if (strcmp(report->backend->name, "amdsmi") == 0)
            facts->amd_works = report->error.code == 0;
    }
}

static void look_at_gpu(const struct device *device, const struct reading *values, bool answers,
                        struct doctor_facts *facts)
{
    struct device_process processes[PROCESSES_MAX];
    size_t count;

    facts->gpus++;
    facts->gpus_silent += !answers;
    facts->without_counter += answers && values[QUANTITY_ENERGY].state != READING_OK;
    facts->without_persistence +=
        values[QUANTITY_PERSISTENCE].state == READING_OK && values[QUANTITY_PERSISTENCE].value == 0;
    facts->with_mig += device->info.mig;
    facts->processes_denied +=
        device_processes(device, DEVICE_PROCESSES_COMPUTING, processes, PROCESSES_MAX, &count) == FLY_EPERM;
}

static void look_at_device(const struct device *device, struct doctor_facts *facts)
{
    struct device_reading reading;
    bool answers = device_answers(device, &clock_real);

    device_read(device, &clock_real, QUANTITY_ALL, &reading);
    facts->anything |= answers;
    facts->emulated |= device->info.emulated;
    if (device->info.kind == DEVICE_GPU)
        look_at_gpu(device, reading.values, answers, facts);
    if (device->info.kind == DEVICE_CPU && answers && device->info.estimated)
        facts->cpu_estimated = true;
    if (device->info.kind == DEVICE_CPU && answers && !device->info.estimated)
        facts->cpu_measured = true;
    if (device->info.kind == DEVICE_DRAM && answers)
        facts->dram_measured = true;
}

void doctor_look(const struct device_list *list, const struct facts_machine *machine,
                 struct doctor_facts *out_facts)
{
    *out_facts = (struct doctor_facts){.machine = *machine};
    look_at_reports(list, out_facts);
    for (size_t i = 0; i < list->count; i++)
        look_at_device(&list->devices[i], out_facts);
}

void doctor_look_outside(const struct device_list *list, struct doctor_facts *facts)
{
    struct turnable_options others = knob_others(&(struct knob_options){.program = NULL});

    others.begins = true;
    for (size_t i = 0; i < list->count; i++) {
        const struct device *device = &list->devices[i];

        if (device->info.kind == DEVICE_GPU)
            facts->others_unseen += unseen_check(&others, device, NULL) < 0;
    }
}
