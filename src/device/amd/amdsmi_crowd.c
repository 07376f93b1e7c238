/* SPDX-License-Identifier: Apache-2.0 */
#include "device/amd/amdsmi_crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/amd/amdsmi_set.h"
#include "device/sysfs.h"

enum { SOCKETS_MAX = DEVICES_MAX };

static int bad_call(const char *what, amdsmi_status status, struct fly_error *out_error)
{
    return error_set(out_error, status == AMDSMI_NO_PERMISSION ? FLY_EPERM : FLY_EREAD,
                     "AMD SMI cannot list %s: %s (AMD SMI %u); see what 'amd-smi list' says", what,
                     amdsmi_meaning(status), status);
}

/* Finds the GPUs of one socket; leaves out what has no place on the PCI bus, since it is no GPU. */
static int find_on_socket(struct amdsmi_crowd *crowd, amdsmi_socket socket, struct fly_error *out_error)
{
    const struct amdsmi_calls *call = &crowd->library->call;
    amdsmi_processor handles[DEVICES_MAX] = {NULL};
    uint32_t count = DEVICES_MAX;
    amdsmi_status status = call->processors(socket, &count, handles);

    if (status != AMDSMI_SUCCESS)
        return bad_call("the GPUs of a socket", status, out_error);
    for (uint32_t i = 0; i < count && i < DEVICES_MAX; i++) {
        struct amdsmi_candidate *candidate = &crowd->candidates[crowd->count];
        uint64_t bdf = 0;

        if (handles[i] == NULL || call->bdf(handles[i], &bdf) != AMDSMI_SUCCESS)
            continue;
        if (crowd->count == DEVICES_MAX)
            return error_set(out_error, FLY_ELIMIT, "more than %d AMD GPUs; hide some from this machine",
                             DEVICES_MAX);
        *candidate = (struct amdsmi_candidate){.gpu = {.library = crowd->library, .handle = handles[i]},
                                               .bdf = bdf,
                                               .order = UINT32_MAX,
                                               .partner = SIZE_MAX};
        crowd->count++;
    }
    return 0;
}

static int find_all(struct amdsmi_crowd *crowd, struct fly_error *out_error)
{
    amdsmi_socket sockets[SOCKETS_MAX] = {NULL};
    uint32_t count = 0;
    amdsmi_status status = crowd->library->call.sockets(&count, NULL);
    int code = 0;

    if (status == AMDSMI_SUCCESS && count > SOCKETS_MAX)
        return error_set(out_error, FLY_ELIMIT, "more than %d AMD GPUs; hide some from this machine",
                         SOCKETS_MAX);
    if (status == AMDSMI_SUCCESS)
        status = crowd->library->call.sockets(&count, sockets);
    if (status != AMDSMI_SUCCESS)
        return bad_call("the sockets of this machine", status, out_error);
    for (uint32_t i = 0; i < count && i < SOCKETS_MAX && code == 0; i++)
        code = find_on_socket(crowd, sockets[i], out_error);
    return code;
}

/* Takes a text at the beginning of an answer, or nothing. */
static void take_text(amdsmi_status (*ask)(amdsmi_processor, void *), amdsmi_processor handle,
                      char text[DEVICE_TEXT_MAX])
{
    struct amdsmi_space space = {{0}};

    if (ask != NULL && ask(handle, space.bytes) == AMDSMI_SUCCESS)
        snprintf(text, DEVICE_TEXT_MAX, "%.*s", DEVICE_TEXT_MAX - 1, space.bytes);
}

/* Takes HIP's number and UUID from the newer call, or what the number is made from from the older one. */
static void take_order(struct amdsmi_candidate *candidate)
{
    const struct amdsmi_calls *call = &candidate->gpu.library->call;
    struct amdsmi_space space = {{0}};
    struct amdsmi_enumeration enumeration;
    struct amdsmi_kfd kfd;

    if (call->enumeration != NULL &&
        call->enumeration(candidate->gpu.handle, space.bytes) == AMDSMI_SUCCESS) {
        memcpy(&enumeration, space.bytes, sizeof enumeration);
        candidate->order = enumeration.hip;
        if (strncmp(enumeration.hip_uuid, "GPU-", 4) == 0)
            snprintf(candidate->info.uuid, DEVICE_TEXT_MAX, "%.*s", DEVICE_TEXT_MAX - 1,
                     enumeration.hip_uuid);
    } else if (call->kfd != NULL && call->kfd(candidate->gpu.handle, space.bytes) == AMDSMI_SUCCESS) {
        memcpy(&kfd, space.bytes, sizeof kfd);
        candidate->order = kfd.node;
    }
}

static void take_kfd(struct amdsmi_candidate *candidate)
{
    const struct amdsmi_calls *call = &candidate->gpu.library->call;
    struct amdsmi_space space = {{0}};
    struct amdsmi_kfd kfd;

    if (call->kfd == NULL || call->kfd(candidate->gpu.handle, space.bytes) != AMDSMI_SUCCESS)
        return;
    memcpy(&kfd, space.bytes, sizeof kfd);
    candidate->kfd = kfd.id != UINT64_MAX ? kfd.id : 0;
}

/*
 * Takes what the kernel reports, from which HIP makes its UUID; else AMD SMI's own, which
 * differs; else the slot.
 */
static void take_uuid(struct amdsmi_candidate *candidate, const char *root)
{
    const struct amdsmi_calls *call = &candidate->gpu.library->call;
    uint64_t bdf = candidate->bdf;
    char path[SYSFS_PATH_MAX], unique[SYSFS_TEXT_MAX], text[DEVICE_TEXT_MAX] = "";
    unsigned size = sizeof text - 1;

    if (candidate->info.uuid[0] != '\0')
        return;
    if (sysfs_path(path, "%s/sys/bus/pci/devices/%04x:%02x:%02x.%x/unique_id", root, (unsigned)(bdf >> 16),
                   (unsigned)(bdf >> 8) & 0xFF, (unsigned)(bdf >> 3) & 0x1F, (unsigned)bdf & 7) &&
        sysfs_read_text(path, unique, sizeof unique) > 0)
        snprintf(candidate->info.uuid, DEVICE_TEXT_MAX, "GPU-%s", unique);
    else if (call->uuid != NULL && call->uuid(candidate->gpu.handle, &size, text) == AMDSMI_SUCCESS &&
             text[0] != '\0')
        snprintf(candidate->info.uuid, DEVICE_TEXT_MAX, "%s", text);
    else
        snprintf(candidate->info.uuid, DEVICE_TEXT_MAX, "amd-%s", candidate->info.pci);
}

static void take_memory(struct amdsmi_candidate *candidate)
{
    const struct amdsmi_calls *call = &candidate->gpu.library->call;
    uint64_t bytes = 0;

    if (call->memory != NULL &&
        call->memory(candidate->gpu.handle, AMDSMI_MEMORY_VRAM, &bytes) == AMDSMI_SUCCESS &&
        bytes != UINT64_MAX)
        candidate->info.memory_bytes = bytes;
}

static void describe(struct amdsmi_candidate *candidate, const char *root)
{
    const struct amdsmi_calls *call = &candidate->gpu.library->call;
    uint64_t bdf = candidate->bdf;

    candidate->info = (struct device_info){
        .kind = DEVICE_GPU,
        .minor = -1,
        .sensor = {.counter_period_s = 0.01,
                   .gain_error = 0.05,
                   .source = "assumed: no figure of AMD's GPUs "
                             "is documented"},
    };
    snprintf(candidate->info.pci, sizeof candidate->info.pci, "%08X:%02X:%02X.%X", (unsigned)(bdf >> 16),
             (unsigned)(bdf >> 8) & 0xFF, (unsigned)(bdf >> 3) & 0x1F, (unsigned)bdf & 7);
    take_text(call->name, candidate->gpu.handle, candidate->info.name);
    if (candidate->info.name[0] == '\0')
        snprintf(candidate->info.name, sizeof candidate->info.name, "AMD GPU");
    take_text(call->driver, candidate->gpu.handle, candidate->info.driver);
    take_memory(candidate);
    take_order(candidate);
    take_kfd(candidate);
    snprintf(candidate->gpu.root, sizeof candidate->gpu.root, "%s", root);
    take_uuid(candidate, root);
}

/* UUIDs are made of serial numbers, which not all GPUs have: equal ones are replaced by the slot. */
static void make_uuids_unique(struct amdsmi_crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        struct device_info *info = &crowd->candidates[i].info;
        bool alike = false;

        for (size_t j = i + 1; j < crowd->count; j++) {
            struct device_info *other = &crowd->candidates[j].info;

            if (strcmp(info->uuid, other->uuid) != 0)
                continue;
            alike = true;
            snprintf(other->uuid, sizeof other->uuid, "amd-%s", other->pci);
        }
        if (alike)
            snprintf(info->uuid, sizeof info->uuid, "amd-%s", info->pci);
    }
}

static int compare(const void *left, const void *right)
{
    const struct amdsmi_candidate *a = left, *b = right;

    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->bdf > b->bdf) - (a->bdf < b->bdf);
}

int amdsmi_crowd_find(struct amdsmi_crowd *crowd, const char *root, struct fly_error *out_error)
{
    int code = find_all(crowd, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < crowd->count; i++)
        describe(&crowd->candidates[i], root);
    for (size_t i = 0; i < crowd->count; i++)
        amdsmi_take_clocks(&crowd->candidates[i].gpu);
    make_uuids_unique(crowd);
    qsort(crowd->candidates, crowd->count, sizeof crowd->candidates[0], compare);
    return 0;
}
