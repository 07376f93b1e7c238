/* SPDX-License-Identifier: Apache-2.0 */
/* A list of devices, and one read with stamps. */
#include "device/device.h"

#include <string.h>

#include "base/error.h"

static const char *const kind_names[] = {[DEVICE_GPU] = "GPU", [DEVICE_CPU] = "CPU", [DEVICE_DRAM] = "DRAM"};
_Static_assert(sizeof kind_names / sizeof kind_names[0] == DEVICE_KIND_COUNT, "one name for every kind");

const char *device_kind_name(enum device_kind kind)
{
    return kind_names[kind];
}

bool device_kind_find(const char *name, enum device_kind *out_kind)
{
    for (enum device_kind kind = 0; kind < DEVICE_KIND_COUNT; kind++) {
        if (strcmp(name, device_kind_name(kind)) == 0) {
            *out_kind = kind;
            return true;
        }
    }
    return false;
}

const struct clock *device_clock(const struct device_options *options)
{
    return options->clock != NULL ? options->clock : &clock_real;
}

size_t device_list_count(const struct device_list *list, enum device_kind kind)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        count += list->devices[i].info.kind == kind;
    return count;
}

int device_list_add(struct device_list *list, const struct device_backend *backend,
                    const struct device_info *info, void *state, struct fly_error *out_error)
{
    size_t index = device_list_count(list, info->kind);
    size_t place = list->count;

    if (list->count == DEVICES_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "more than %d devices; hide some, for example with "
                         "CUDA_VISIBLE_DEVICES",
                         DEVICES_MAX);
    while (place > 0 && list->devices[place - 1].info.kind > info->kind) {
        list->devices[place] = list->devices[place - 1];
        place--;
    }
    list->devices[place] = (struct device){.backend = backend, .info = *info, .state = state};
    list->devices[place].info.index = (unsigned)index;
    list->count++;
    return 0;
}

void device_list_remove(struct device_list *list, size_t place)
{
    enum device_kind kind = list->devices[place].info.kind;
    unsigned index = 0;

    list->devices[place].backend->close(&list->devices[place]);
    list->count--;
    memmove(&list->devices[place], &list->devices[place + 1],
            (list->count - place) * sizeof list->devices[0]);
    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind == kind)
            list->devices[i].info.index = index++;
    }
}

size_t device_list_find(const struct device_list *list, enum device_kind kind, const char *uuid)
{
    size_t place = 0;

    while (place < list->count &&
           (list->devices[place].info.kind != kind || strcmp(list->devices[place].info.uuid, uuid) != 0))
        place++;
    return place;
}

void device_list_close(struct device_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->devices[i].backend->close(&list->devices[i]);
    list->count = 0;
    if (list->free_played != NULL)
        list->free_played(list->played);
    list->played = NULL;
    list->free_played = NULL;
}

/*
 * Between which values a quantity of any device lies. Drivers were seen to give 4294967294 % and the watts
 * of a power station. Quantities without a row may have any value from 0.
 */
static const struct {
    int64_t least, most;
} possible[QUANTITY_COUNT] = {
    [QUANTITY_POWER_INSTANT] = {0, 20000000},       [QUANTITY_POWER_AVERAGE] = {0, 20000000},
    [QUANTITY_POWER_LIMIT] = {0, 20000000},         [QUANTITY_POWER_LIMIT_ENFORCED] = {0, 20000000},
    [QUANTITY_POWER_LIMIT_DEFAULT] = {0, 20000000}, [QUANTITY_POWER_LIMIT_MIN] = {0, 20000000},
    [QUANTITY_POWER_LIMIT_MAX] = {0, 20000000},     [QUANTITY_CLOCK_GPU] = {0, 20000},
    [QUANTITY_CLOCK_GPU_MAX] = {0, 20000},          [QUANTITY_CLOCK_MEMORY] = {0, 50000},
    [QUANTITY_TEMPERATURE] = {-100, 300},           [QUANTITY_UTILIZATION] = {0, 100},
    [QUANTITY_UTILIZATION_MEMORY] = {0, 100},       [QUANTITY_POWER_MODULE] = {0, 100000000},
};

static void refuse_impossible(struct reading *values)
{
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        bool bounded = possible[i].most > 0;

        if (values[i].state == READING_OK &&
            (values[i].value < possible[i].least || (bounded && values[i].value > possible[i].most)))
            values[i] = (struct reading){.state = READING_IMPOSSIBLE};
    }
}

void device_read(const struct device *device, const struct clock *clock, quantity_set wanted,
                 struct device_reading *out_reading)
{
    memset(out_reading->values, 0, sizeof out_reading->values);
    out_reading->before = clock->now(clock->state);
    device->backend->read(device, wanted, out_reading->values);
    out_reading->after = clock->now(clock->state);
    refuse_impossible(out_reading->values);
}

bool device_answers(const struct device *device, const struct clock *clock)
{
    const quantity_set figures = QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
                                 QUANTITY_BIT(QUANTITY_POWER_AVERAGE);
    struct device_reading reading;

    device_read(device, clock, figures, &reading);
    return reading.values[QUANTITY_ENERGY].state == READING_OK ||
           reading.values[QUANTITY_POWER_INSTANT].state == READING_OK ||
           reading.values[QUANTITY_POWER_AVERAGE].state == READING_OK;
}

bool counter_delta_uj(uint64_t modulus_uj, uint64_t before_uj, uint64_t after_uj, uint64_t *out_uj)
{
    if (after_uj < before_uj && modulus_uj == 0)
        return false;
    *out_uj = after_uj >= before_uj ? after_uj - before_uj : modulus_uj - before_uj + after_uj;
    return true;
}
