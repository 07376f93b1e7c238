/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's GPUs, through AMD SMI.
 *
 * Written from the library's documentation and tested against a stand-in for it;
 * not yet run on hardware, which the title says to whoever lists back ends.
 *
 * GPUs are listed as HIP numbers them, so that indices of ROCR_VISIBLE_DEVICES
 * fit, and carry the UUID that ROCR_VISIBLE_DEVICES names. Opening takes up to a
 * fifth of a second where counters have to be checked, for all GPUs together.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/amdsmi_gpu.h"
#include "device/backends.h"
#include "device/sysfs.h"

enum { SOCKETS_MAX = DEVICES_MAX, TRIAL_STEPS = 4 };

static const double trial_step_s = 0.05;

/* A GPU on its way into the list. */
struct candidate {
    struct amdsmi_gpu gpu;
    uint64_t bdf;
    uint64_t order; /* HIP's number, or the node that it is made from; UINT32_MAX: not known */
    struct device_info info;
    struct amdsmi_trial trial;
    size_t partner; /* the other die, or SIZE_MAX */
};

struct crowd {
    struct amdsmi_library *library;
    size_t count;
    struct candidate candidates[DEVICES_MAX];
};

static int bad_call(const char *what, amdsmi_status status, struct fly_error *out_error)
{
    return error_set(out_error, status == AMDSMI_NO_PERMISSION ? FLY_EPERM : FLY_EREAD,
                     "AMD SMI cannot list %s: %s (AMD SMI %u); see what 'amd-smi list' says", what,
                     amdsmi_meaning(status), status);
}

/* The GPUs of one socket; what is no GPU has no place on the PCI bus and is left out. */
static int find_on_socket(struct crowd *crowd, amdsmi_socket socket, struct fly_error *out_error)
{
    const struct amdsmi_calls *call = &crowd->library->call;
    amdsmi_processor handles[DEVICES_MAX] = {NULL};
    uint32_t count = DEVICES_MAX;
    amdsmi_status status = call->processors(socket, &count, handles);

    if (status != AMDSMI_SUCCESS)
        return bad_call("the GPUs of a socket", status, out_error);
    for (uint32_t i = 0; i < count && i < DEVICES_MAX; i++) {
        struct candidate *candidate = &crowd->candidates[crowd->count];
        uint64_t bdf = 0;

        if (handles[i] == NULL || call->bdf(handles[i], &bdf) != AMDSMI_SUCCESS)
            continue;
        if (crowd->count == DEVICES_MAX)
            return error_set(out_error, FLY_ELIMIT, "more than %d AMD GPUs; hide some from this machine",
                             DEVICES_MAX);
        *candidate = (struct candidate){.gpu = {.library = crowd->library, .handle = handles[i]},
                                        .bdf = bdf,
                                        .order = UINT32_MAX,
                                        .partner = SIZE_MAX};
        crowd->count++;
    }
    return 0;
}

static int find_all(struct crowd *crowd, struct fly_error *out_error)
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

/* A text at the beginning of an answer, or nothing. */
static void take_text(amdsmi_status (*ask)(amdsmi_processor, void *), amdsmi_processor handle,
                      char text[DEVICE_TEXT_MAX])
{
    struct amdsmi_space space = {{0}};

    if (ask != NULL && ask(handle, space.bytes) == AMDSMI_SUCCESS)
        snprintf(text, DEVICE_TEXT_MAX, "%.*s", DEVICE_TEXT_MAX - 1, space.bytes);
}

/* HIP's number and UUID from the newer call, the number's origin from the older one. */
static void take_order(struct candidate *candidate)
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

/* What the kernel says is what HIP makes its UUID of; then AMD SMI's own, which is another, then the slot. */
static void take_uuid(struct candidate *candidate, const char *root)
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

static void describe(struct candidate *candidate, const char *root)
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
    take_order(candidate);
    take_uuid(candidate, root);
}

static int compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->bdf > b->bdf) - (a->bdf < b->bdf);
}

/* One reading of counter and power for a trial: either power that the GPU has. */
static void sample(const struct candidate *candidate, struct reading *out_energy, struct reading *out_power)
{
    const quantity_set wanted = QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
                                QUANTITY_BIT(QUANTITY_POWER_AVERAGE);
    struct reading values[QUANTITY_COUNT];

    amdsmi_gpu_read(&candidate->gpu, wanted, values);
    *out_energy = values[QUANTITY_ENERGY];
    *out_power = values[QUANTITY_POWER_INSTANT].state == READING_OK ? values[QUANTITY_POWER_INSTANT]
                                                                    : values[QUANTITY_POWER_AVERAGE];
}

/* Tries the counters of all GPUs at once, until all have moved or the time is over. */
static void try_counters(struct crowd *crowd, const struct clock *clock)
{
    struct mono_time start[DEVICES_MAX];
    bool waiting = false;

    for (size_t i = 0; i < crowd->count; i++) {
        struct amdsmi_trial *trial = &crowd->candidates[i].trial;

        start[i] = clock->now(clock->state);
        sample(&crowd->candidates[i], &trial->energy_before, &trial->power_before);
        trial->energy_after = trial->energy_before;
        trial->power_after = trial->power_before;
        waiting = waiting || trial->energy_before.state == READING_OK;
    }
    for (int step = 0; step < TRIAL_STEPS && waiting; step++) {
        clock->sleep_until(clock->state, mono_after_s(clock->now(clock->state), trial_step_s));
        waiting = step == 0;
        for (size_t i = 0; i < crowd->count; i++) {
            struct amdsmi_trial *trial = &crowd->candidates[i].trial;

            trial->time_s = mono_elapsed_s(start[i], clock->now(clock->state));
            sample(&crowd->candidates[i], &trial->energy_after, &trial->power_after);
            waiting = waiting || (trial->energy_after.state == READING_OK &&
                                  trial->energy_after.value == trial->energy_before.value);
        }
    }
}

/* The first die of a second one's card: the nearest before it on the bus that is none itself. */
static size_t find_first_die(const struct crowd *crowd, size_t second)
{
    const struct candidate *it = &crowd->candidates[second];
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < crowd->count; i++) {
        const struct candidate *other = &crowd->candidates[i];

        if (other->bdf < it->bdf && (found == SIZE_MAX || other->bdf > crowd->candidates[found].bdf))
            found = i;
    }
    if (found == SIZE_MAX || crowd->candidates[found].gpu.second_die ||
        !amdsmi_two_dies(crowd->candidates[found].info.name))
        return SIZE_MAX;
    return found;
}

static void pair_dies(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        struct candidate *candidate = &crowd->candidates[i];

        candidate->gpu.second_die = amdsmi_is_second_die(candidate->info.name, &candidate->trial);
    }
    for (size_t i = 0; i < crowd->count; i++) {
        size_t first = crowd->candidates[i].gpu.second_die ? find_first_die(crowd, i) : SIZE_MAX;

        crowd->candidates[i].partner = first;
        if (first != SIZE_MAX)
            crowd->candidates[first].partner = i;
    }
}

/* By place on the bus, since indices change with what a program is shown. */
static void note_die(const struct crowd *crowd, struct candidate *candidate)
{
    const char *partner =
        candidate->partner != SIZE_MAX ? crowd->candidates[candidate->partner].info.pci : NULL;
    char *note = candidate->info.note;
    const size_t size = sizeof candidate->info.note;

    if (candidate->gpu.second_die && partner != NULL)
        snprintf(note, size, "second die of a card: its energy is counted with the GPU at %s", partner);
    else if (candidate->gpu.second_die)
        snprintf(note, size,
                 "second die of a card: its energy is counted with the first, which is not to be seen here");
    else if (partner != NULL)
        snprintf(note, size,
                 "first die of a card: power, energy and limit are the card's, with the GPU at %s", partner);
    else if (amdsmi_two_dies(candidate->info.name) && candidate->trial.power_before.state == READING_OK)
        snprintf(note, size,
                 "first die of a card: power, energy and limit are the card's, with its second die");
}

static void judge(const struct crowd *crowd, struct candidate *candidate)
{
    static const char *const notes[] = {
        [AMDSMI_COUNTER_GOOD] = "",
        [AMDSMI_COUNTER_ABSENT] = "",
        [AMDSMI_COUNTER_WRONG] = "its energy counter disagrees with its power and is not used",
        [AMDSMI_COUNTER_UNCHECKED] = "its energy counter could not be checked against a power reading",
    };
    enum amdsmi_verdict verdict = amdsmi_judge(&candidate->trial);
    char *note = candidate->info.note;

    _Static_assert(sizeof notes / sizeof notes[0] == AMDSMI_VERDICT_COUNT, "one note for every verdict");
    note_die(crowd, candidate);
    if (candidate->gpu.second_die)
        return;
    candidate->gpu.counter_off = verdict == AMDSMI_COUNTER_WRONG;
    if (notes[verdict][0] != '\0')
        snprintf(note + strlen(note), sizeof candidate->info.note - strlen(note), "%s%s",
                 note[0] != '\0' ? "; " : "", notes[verdict]);
}

static int add(struct device_list *list, const struct candidate *candidate, struct fly_error *out_error)
{
    struct amdsmi_gpu *gpu = malloc(sizeof *gpu);
    int code;

    if (gpu == NULL)
        return error_no_memory(out_error);
    *gpu = candidate->gpu;
    code = device_list_add(list, &device_backend_amdsmi, &candidate->info, gpu, out_error);
    if (code < 0)
        free(gpu);
    else
        gpu->library->users++;
    return code;
}

static int amdsmi_open(const struct device_options *options, struct device_list *list,
                       struct fly_error *out_error)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    char root[SYSFS_PATH_MAX];
    int code = crowd != NULL ? 0 : error_no_memory(out_error);

    if (code == 0)
        code = amdsmi_library_open(options->amdsmi_path, &crowd->library, out_error);
    if (code < 0)
        goto done;
    sysfs_root(options, root);
    code = find_all(crowd, out_error);
    for (size_t i = 0; i < crowd->count; i++)
        describe(&crowd->candidates[i], root);
    qsort(crowd->candidates, crowd->count, sizeof crowd->candidates[0], compare);
    if (code == 0)
        try_counters(crowd, device_clock(options));
    pair_dies(crowd);
    for (size_t i = 0; i < crowd->count && code == 0; i++) {
        judge(crowd, &crowd->candidates[i]);
        code = add(list, &crowd->candidates[i], out_error);
    }
    amdsmi_library_release(crowd->library);
done:
    free(crowd);
    return code;
}

static void amdsmi_close(struct device *device)
{
    struct amdsmi_gpu *gpu = device->state;

    amdsmi_library_release(gpu->library);
    free(gpu);
}

static void amdsmi_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    amdsmi_gpu_read(device->state, wanted, values);
}

const struct device_backend device_backend_amdsmi = {
    .name = "amdsmi",
    .title = "AMD GPUs, through AMD SMI (not yet run on hardware)",
    .kind = DEVICE_GPU,
    .open = amdsmi_open,
    .close = amdsmi_close,
    .read = amdsmi_read,
};
