/* SPDX-License-Identifier: Apache-2.0 */
/* What devices say about themselves. */
#include <math.h>

#include "cli/machine/facts_parts.h"

enum { PROCESSES_MAX = 64 };

static double known(double value)
{
    return value > 0.0 ? value : NAN;
}

static struct facts_sensor sensor_of(struct facts_maker *maker, const struct sensor_facts *sensor)
{
    return (struct facts_sensor){.counter_period_s = known(sensor->counter_period_s),
                                 .power_period_s = known(sensor->power_period_s),
                                 .power_window_s = known(sensor->power_window_s),
                                 .gain_error = known(sensor->gain_error),
                                 .counter_from_power = sensor->counter_from_power,
                                 .source = facts_keep(maker, sensor->source)};
}

static void ask_quantities(struct facts_maker *maker, const struct device *device, struct facts_device *out)
{
    struct device_reading reading;
    struct facts_answer *answers = facts_room(maker, QUANTITY_COUNT, sizeof *answers);

    device_read(device, &clock_real, QUANTITY_ALL, &reading);
    for (size_t i = 0; answers != NULL && i < QUANTITY_COUNT; i++) {
        const struct reading *value = &reading.values[i];

        answers[i] = (struct facts_answer){.quantity = (enum quantity)i,
                                           .state = value->state,
                                           .value = value->state == READING_OK ? (double)value->value : NAN,
                                           .code = value->code > 0 ? (uint32_t)value->code : 0};
    }
    out->answers = answers;
    out->answer_count = answers != NULL ? QUANTITY_COUNT : 0;
}

static void ask_clocks(struct facts_maker *maker, const struct device *device, struct facts_device *out)
{
    int64_t clocks_mhz[DEVICE_CLOCKS_MAX];
    size_t count = 0;

    if (device_clocks(device, clocks_mhz, DEVICE_CLOCKS_MAX, &count, NULL) < 0)
        count = 0;
    out->clocks_mhz = facts_room(maker, count, sizeof *out->clocks_mhz);
    for (size_t i = 0; out->clocks_mhz != NULL && i < count; i++)
        out->clocks_mhz[out->clock_count++] = (uint32_t)clocks_mhz[i];
}

/* Returns whether processes can be seen; does not keep which ones. */
static enum facts_processes ask_processes(const struct device *device)
{
    struct device_process processes[PROCESSES_MAX];
    size_t count = 0;
    int code = device_processes(device, DEVICE_PROCESSES_COMPUTING, processes, PROCESSES_MAX, &count);

    return code == 0                  ? PROCESSES_SEEN
           : code == FLY_EUNSUPPORTED ? PROCESSES_NOT_OFFERED
           : code == FLY_EPERM        ? PROCESSES_DENIED
                                      : PROCESSES_FAILED;
}

static struct facts_device device_of(struct facts_maker *maker, const struct device *device)
{
    const struct device_info *info = &device->info;
    struct facts_device out = {
        .kind = info->kind,
        .backend = device->backend->name,
        .pseudonym = facts_keep(maker, info->uuid),
        .bus = facts_keep(maker, info->pci),
        .name = facts_keep(maker, info->name),
        .driver = facts_keep(maker, info->driver),
        .note = facts_keep(maker, info->note),
        .has_minor = info->minor >= 0,
        .minor = info->minor >= 0 ? (uint32_t)info->minor : 0,
        .emulated = info->emulated,
        .estimated = info->estimated,
        .module_power = info->module_power,
        .mig = info->mig,
        .denied = info->denied,
        .memory_bytes = info->memory_bytes,
        .energy_modulus_uj = info->energy_modulus_uj <= INT64_MAX ? info->energy_modulus_uj : 0,
        .sensor = sensor_of(maker, &info->sensor),
        .processes = ask_processes(device),
    };

    ask_quantities(maker, device, &out);
    ask_clocks(maker, device, &out);
    return out;
}

void facts_ask_devices(struct facts_maker *maker)
{
    struct facts *facts = maker->facts;

    facts->devices = facts_room(maker, maker->list->count, sizeof *facts->devices);
    for (size_t i = 0; facts->devices != NULL && i < maker->list->count; i++)
        facts->devices[facts->device_count++] = device_of(maker, &maker->list->devices[i]);
}
