/* SPDX-License-Identifier: Apache-2.0 */
/* Requests one workload profile on all GPUs of a knob, or none. */
#include <math.h>

#include "base/error.h"
#include "train/tuner/knob_turner.h"
#include "train/tuner/workload_setting.h"

/* Finds the profiles that all GPUs offer, and the lowest of their highest power limits, 0 if unknown. */
static int find_common(const struct knob_turner *turner, struct workload_set *out_common, double *out_power_w,
                       struct fly_error *out_error)
{
    double power_w = INFINITY;

    for (size_t i = 0; i < turner->count; i++) {
        const struct device *gpu = turner->devices[i];
        struct workload_set none = {{0}};
        struct setting highest = {.number = 0};
        struct workloads workloads;
        int code = device_check_workloads(gpu, &none, out_error);

        if (code == 0 && device_read_workloads(gpu, &workloads) != READING_OK)
            code = error_set(out_error, FLY_EREAD, "the workload power profiles of GPU %u cannot be read",
                             gpu->info.index);
        if (code < 0)
            return code;
        *out_common = i == 0 ? workloads.supported : workload_common(out_common, &workloads.supported);
        setting_read(gpu, QUANTITY_POWER_LIMIT_MAX, &highest);
        power_w = fmin(power_w, (double)highest.number * 1e-3);
    }
    *out_power_w = power_w;
    return 0;
}

static int range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    struct knob_turner *turner = data;
    struct workload_set common = {{0}};
    double power_w = 0.0;
    int code = find_common(turner, &common, &power_w, out_error);

    if (code < 0)
        return code;
    turner->setting_count = 0;
    turner->settings[turner->setting_count++] = workload_setting(FLY_TUNER_NO_PROFILE);
    for (unsigned id = 0; id < WORKLOADS_MAX; id++) {
        if (workload_has(&common, id))
            turner->settings[turner->setting_count++] = workload_setting((int)id);
    }
    if (turner->count == 0 || turner->setting_count == 1)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "there is no workload power profile that all of the GPUs offer");
    *out_range = (struct fly_turner_range){
        .lowest = workload_setting(WORKLOADS_MAX - 1),
        .highest = workload_setting(FLY_TUNER_NO_PROFILE),
        .highest_power_w = power_w,
        .settings = turner->settings,
        .setting_count = turner->setting_count,
    };
    return 0;
}

/* The set that the setting means on a GPU. */
static struct workload_set set_of(const struct knob_turner *turner, size_t gpu, double setting)
{
    struct workload_set set = {{0}};
    int profile = workload_of_setting(setting);

    if (profile == FLY_TUNER_SEVERAL_PROFILES)
        return knob_report(turner->knob, gpu)->workloads_before;
    if (profile >= 0)
        workload_add(&set, (unsigned)profile);
    return set;
}

static int set(void *data, double setting, struct fly_error *out_error)
{
    struct knob_turner *turner = data;
    struct workload_set sets[DEVICES_MAX];
    const struct workload_set *chosen[DEVICES_MAX] = {NULL};
    struct fly_error error;
    int code;

    for (size_t i = 0; i < turner->count; i++) {
        sets[i] = set_of(turner, i, setting);
        chosen[i] = knob_turner_leaves(turner, i) ? NULL : &sets[i];
    }
    turner->turns++;
    code = knob_set_workloads(turner->knob, chosen, &error);
    if (turner->fault == 0)
        turner->fault = code;
    if (code < 0 && out_error != NULL)
        *out_error = error;
    return code;
}

/* The setting that a GPU's requested set is. A profile that the driver does not enforce does not stand. */
static double setting_of(const struct workloads *workloads)
{
    int profile = FLY_TUNER_NO_PROFILE;

    for (unsigned id = 0; id < WORKLOADS_MAX; id++) {
        if (!workload_has(&workloads->requested, id))
            continue;
        if (profile != FLY_TUNER_NO_PROFILE)
            return workload_setting(FLY_TUNER_SEVERAL_PROFILES);
        profile = (int)id;
    }
    if (profile != FLY_TUNER_NO_PROFILE && !workload_has(&workloads->enforced, (unsigned)profile))
        profile = FLY_TUNER_NO_PROFILE;
    return workload_setting(profile);
}

static int standing(void *data, double *out_setting, struct fly_error *out_error)
{
    const struct knob_turner *turner = data;
    bool as_before = true, alike = true, any = false;
    double first = workload_setting(FLY_TUNER_NO_PROFILE);

    for (size_t i = 0; i < turner->count; i++) {
        const struct device *gpu = turner->devices[i];
        struct workloads workloads;
        double setting;

        if (knob_turner_leaves(turner, i))
            continue;
        if (device_read_workloads(gpu, &workloads) != READING_OK)
            return error_set(out_error, FLY_EREAD, "the workload power profiles of GPU %u cannot be read",
                             gpu->info.index);
        setting = setting_of(&workloads);
        if (!any)
            first = setting;
        any = true;
        alike = alike && setting == first && setting != workload_setting(FLY_TUNER_SEVERAL_PROFILES);
        as_before = as_before &&
                    workload_equals(&workloads.requested, &knob_report(turner->knob, i)->workloads_before);
    }
    if (!alike && !as_before)
        return error_set(out_error, FLY_ESTATE, "the GPUs have different workload power profiles");
    *out_setting = alike ? first : workload_setting(FLY_TUNER_SEVERAL_PROFILES);
    return 0;
}

const struct fly_turner workload_turner = {.range = range, .set = set, .standing = standing};
