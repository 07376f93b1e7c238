/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's GPUs, through AMD SMI.
 *
 * Written from the library's documentation and tested against a stand-in for it; not yet run on
 * hardware. The title says so when back ends are listed.
 *
 * GPUs are listed as HIP numbers them, so that indices of ROCR_VISIBLE_DEVICES are valid, and
 * have the UUID that ROCR_VISIBLE_DEVICES uses. If counters have to be checked, opening takes up
 * to a fifth of a second, for all GPUs together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/amd/amdsmi_crowd.h"
#include "device/amd/amdsmi_processes.h"
#include "device/amd/amdsmi_read.h"
#include "device/amd/amdsmi_set.h"
#include "device/amd/amdsmi_share.h"
#include "device/backend.h"
#include "device/sysfs.h"

enum { TRIAL_STEPS = 4 };

static const double trial_step_s = 0.05;

/* Reads counter and power once for a trial: either power that the GPU has. */
static void sample(const struct amdsmi_candidate *candidate, struct reading *out_energy,
                   struct reading *out_power)
{
    const quantity_set wanted = QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
                                QUANTITY_BIT(QUANTITY_POWER_AVERAGE);
    struct reading values[QUANTITY_COUNT];

    amdsmi_gpu_read(&candidate->gpu, wanted, values);
    *out_energy = values[QUANTITY_ENERGY];
    *out_power = values[QUANTITY_POWER_INSTANT].state == READING_OK ? values[QUANTITY_POWER_INSTANT]
                                                                    : values[QUANTITY_POWER_AVERAGE];
}

/* Tries the counters of all GPUs at the same time, until all have moved or the time is over. */
static void try_counters(struct amdsmi_crowd *crowd, const struct clock *clock)
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

static void judge(const struct amdsmi_crowd *crowd, struct amdsmi_candidate *candidate)
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
    amdsmi_note_sharing(crowd, candidate);
    if (candidate->gpu.elsewhere)
        return;
    candidate->gpu.counter_off = verdict == AMDSMI_COUNTER_WRONG;
    if (notes[verdict][0] != '\0')
        snprintf(note + strlen(note), sizeof candidate->info.note - strlen(note), "%s%s",
                 note[0] != '\0' ? "; " : "", notes[verdict]);
}

static int add(struct device_list *list, const struct amdsmi_candidate *candidate,
               struct fly_error *out_error)
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
    struct amdsmi_crowd *crowd = calloc(1, sizeof *crowd);
    char root[SYSFS_PATH_MAX];
    int code = crowd != NULL ? 0 : error_no_memory(out_error);

    if (code == 0)
        code = amdsmi_library_open(options->amdsmi_path, &crowd->library, out_error);
    if (code < 0)
        goto done;
    sysfs_root(options, root);
    code = amdsmi_crowd_find(crowd, root, out_error);
    if (code == 0) {
        try_counters(crowd, device_clock(options));
        amdsmi_share(crowd);
    }
    for (size_t i = 0; i < crowd->count; i++)
        crowd->candidates[i].info.index = (unsigned)(device_list_count(list, DEVICE_GPU) + i);
    for (size_t i = 0; i < crowd->count && code == 0; i++) {
        if (options->only_pci != NULL && strcmp(crowd->candidates[i].info.pci, options->only_pci) != 0)
            continue;
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

/* The kernel's compute driver knows those that compute, and no others. */
static int amdsmi_processes(const struct device *device, unsigned kinds, struct device_process *processes,
                            size_t maximum, size_t *out_count)
{
    if ((kinds & DEVICE_PROCESSES_COMPUTING) == 0)
        return FLY_EUNSUPPORTED;
    return amdsmi_processes_read(device->state, processes, maximum, out_count);
}

/* A GPU whose limit is another's has nothing to set, or it would set the other's. */
static int amdsmi_set(const struct device *device, enum quantity quantity, int64_t value,
                      struct reading *out_result, struct fly_error *out_error)
{
    const struct amdsmi_gpu *gpu = device->state;
    struct reading values[QUANTITY_COUNT] = {0};
    amdsmi_status status = gpu->elsewhere ? AMDSMI_NOT_SUPPORTED : amdsmi_set_value(gpu, quantity, value);

    if (status != AMDSMI_SUCCESS)
        return amdsmi_set_error(&device->info, quantity, value, status, out_error);
    if (quantity == QUANTITY_PERFORMANCE_LEVEL) {
        out_result->state = amdsmi_level_read(gpu, &out_result->value);
        return 0;
    }
    if (quantity >= QUANTITY_COUNT) {
        *out_result = (struct reading){.state = READING_UNSUPPORTED};
        return 0;
    }
    amdsmi_gpu_read(gpu, QUANTITY_BIT(quantity), values);
    *out_result = values[quantity];
    return 0;
}

static enum reading_state amdsmi_level(const struct device *device, int64_t *out_level)
{
    const struct amdsmi_gpu *gpu = device->state;

    return gpu->elsewhere ? READING_UNSUPPORTED : amdsmi_level_read(gpu, out_level);
}

static int amdsmi_clocks(const struct device *device, enum quantity quantity, int64_t *clocks_mhz,
                         size_t maximum, size_t *out_count)
{
    if (quantity != QUANTITY_CLOCK_CEILING)
        return FLY_EUNSUPPORTED;
    return amdsmi_clocks_read(device->state, clocks_mhz, maximum, out_count) == AMDSMI_SUCCESS
               ? 0
               : FLY_EUNSUPPORTED;
}

const struct device_backend device_backend_amdsmi = {
    .name = "amdsmi",
    .title = "AMD GPUs, through AMD SMI (not yet run on hardware)",
    .kind = DEVICE_GPU,
    .open = amdsmi_open,
    .close = amdsmi_close,
    .read = amdsmi_read,
    .processes = amdsmi_processes,
    .set = amdsmi_set,
    .clocks = amdsmi_clocks,
    .level = amdsmi_level,
};
