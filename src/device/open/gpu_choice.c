/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves entries by index, UUID and instance, and puts a list in the order of a choice. */
#include "device/open/gpu_choice.h"

#include <stdio.h>
#include <string.h>

bool gpu_choice_has(const struct gpu_choice *choice, size_t place)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (choice->places[i] == place)
            return true;
    }
    return false;
}

void gpu_choice_add(struct gpu_choice *choice, size_t place)
{
    choice->places[choice->count++] = place;
}

/* Finds the one GPU whose UUID has this beginning. */
static int find_uuid(const struct device_list *list, const struct gpu_choice *among, const char *uuid,
                     size_t length)
{
    int found = GPU_NOWHERE;

    for (size_t i = 0; i < among->count; i++) {
        const char *own = list->devices[among->places[i]].info.uuid;

        if (strncmp(own, uuid, length) != 0)
            continue;
        if (own[length] == '\0')
            return (int)among->places[i];
        found = found == GPU_NOWHERE ? (int)among->places[i] : GPU_AMBIGUOUS;
    }
    return found;
}

static int find_instance(const struct device_list *list, const struct gpu_choice *among,
                         const struct visible_entry *entry)
{
    char uuid[DEVICE_TEXT_MAX];

    if (entry->gpu_uuid != NULL)
        return find_uuid(list, among, entry->gpu_uuid, entry->gpu_uuid_length);
    if (entry->length >= sizeof uuid)
        return GPU_NOWHERE;
    memcpy(uuid, entry->text, entry->length);
    uuid[entry->length] = '\0';
    for (size_t i = 0; i < among->count; i++) {
        const struct device *device = &list->devices[among->places[i]];

        if (device->backend->has_instance != NULL && device->backend->has_instance(device, uuid))
            return (int)among->places[i];
    }
    return GPU_NOWHERE;
}

int gpu_choice_find(const struct device_list *list, const struct gpu_choice *among,
                    const struct visible_entry *entry)
{
    switch (entry->kind) {
    case VISIBLE_INDEX:
        return entry->index < among->count ? (int)among->places[entry->index] : GPU_NOWHERE;
    case VISIBLE_UUID:
        return find_uuid(list, among, entry->text, entry->length);
    case VISIBLE_INSTANCE:
        return find_instance(list, among, entry);
    default:
        return GPU_NOWHERE;
    }
}

static void swap(struct device *a, struct device *b)
{
    struct device kept = *a;

    *a = *b;
    *b = kept;
}

void gpu_choice_keep(struct device_list *list, const struct gpu_choice *chosen)
{
    struct gpu_choice order = *chosen;
    size_t kept;

    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind != DEVICE_GPU)
            gpu_choice_add(&order, i);
    }
    kept = order.count;
    for (size_t i = 0; i < list->count; i++) {
        if (!gpu_choice_has(&order, i))
            gpu_choice_add(&order, i);
    }
    for (size_t i = 0; i < list->count; i++) {
        size_t from = order.places[i];

        while (from < i) /* it was swapped away when that place was filled */
            from = order.places[from];
        if (from != i)
            swap(&list->devices[i], &list->devices[from]);
    }
    while (list->count > kept) {
        struct device *device = &list->devices[--list->count];

        device->backend->close(device);
    }
}

void gpu_choice_mark_instance(struct device_info *info)
{
    size_t length = strlen(info->note);

    if (!info->mig)
        snprintf(info->note + length, sizeof info->note - length,
                 "%sa MIG instance, measured as its whole GPU", length > 0 ? "; " : "");
    info->mig = true;
}
