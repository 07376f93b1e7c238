/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measure/run_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/options/open_devices.h"
#include "meter/meter.h"

enum { FIRST_MAJOR = 580, FIRST_MINOR = 105 };

static const char *const texts[IDLE_BOOST_DRIVER_COUNT] = {
    [IDLE_BOOST_NO_GPU] = "there is no NVIDIA GPU that it could change",
    [IDLE_BOOST_UNKNOWN] = "it takes a driver of 580.105 or later, and the driver does not say which it is",
    [IDLE_BOOST_EMULATED] = "the GPUs are emulated, and their idle power is the same with it",
    [IDLE_BOOST_TOO_OLD] =
        "the driver is older than 580.105, and ignores it: clocks stay up at idle as before",
    [IDLE_BOOST_KNOWN] = "the program's clocks fall when nothing runs; how much that saved was not measured, "
                         "reported were 26 to 66 W while a program idles on an A100, H100 or L40S "
                         "(" IDLE_BOOST_SOURCE ")",
};

void idle_boost_disable(void)
{
    setenv(IDLE_BOOST_VARIABLE, "1", 1);
}

enum idle_boost_driver idle_boost_of_version(const char *version)
{
    char *dot, *end;
    unsigned long major = strtoul(version, &dot, 10), minor;

    if (dot == version || *dot != '.')
        return IDLE_BOOST_UNKNOWN;
    minor = strtoul(dot + 1, &end, 10);
    if (end == dot + 1 || (*end != '.' && *end != '\0'))
        return IDLE_BOOST_UNKNOWN;
    return major > FIRST_MAJOR || (major == FIRST_MAJOR && minor >= FIRST_MINOR) ? IDLE_BOOST_KNOWN
                                                                                 : IDLE_BOOST_TOO_OLD;
}

void idle_boost_judge(const struct device_list *list, struct idle_boost *out_boost)
{
    *out_boost = (struct idle_boost){.driver = IDLE_BOOST_NO_GPU};
    for (size_t i = 0; i < list->count; i++) {
        const struct device *gpu = &list->devices[i];

        if (gpu->info.kind != DEVICE_GPU || strcmp(gpu->backend->name, "nvml") != 0)
            continue;
        snprintf(out_boost->version, sizeof out_boost->version, "%s", gpu->info.driver);
        out_boost->driver =
            gpu->info.emulated ? IDLE_BOOST_EMULATED : idle_boost_of_version(gpu->info.driver);
        return;
    }
}

const char *idle_boost_text(enum idle_boost_driver driver)
{
    return texts[driver];
}

int metered_devices_open(const struct cli_call *call, struct metered_devices *out_devices,
                         struct fly_error *out_error)
{
    struct metered_devices *devices = out_devices;
    struct meter_parts parts = {.devices = &devices->list};
    int result = cli_open_devices(call, GPUS_VISIBLE, &devices->list, devices->selection, &devices->fault);

    if (result == FLY_EUSAGE)
        return cli_value_error(call, "gpus", cli_text(call, "gpus"), "indices, UUIDs, all or none, each once",
                               out_error);
    /* The user named a GPU that does not exist. */
    if (result == FLY_ENOTFOUND && cli_text(call, "gpus") != NULL)
        return error_set(out_error, result, "%s", devices->fault.text);
    if (result < 0)
        return 0;
    devices->opened = true;
    if (devices->list.count == 0) {
        error_set(&devices->fault, FLY_EUNSUPPORTED,
                  "no device here can be measured; 'flyball doctor' says why, and what would change it");
        return 0;
    }
    if (meter_new(&parts, &devices->meter, &devices->fault) < 0)
        devices->meter = NULL;
    return 0;
}

void metered_devices_close(struct metered_devices *devices)
{
    fly_meter_close(devices->meter);
    devices->meter = NULL;
    if (devices->opened)
        device_list_close(&devices->list);
    devices->opened = false;
}

/* A weighted mean over what is known. */
struct mean {
    double sum;
    double weight;
};

static void mean_add(struct mean *mean, double value, double weight)
{
    if (!isfinite(value) || !isfinite(weight))
        return;
    mean->sum += value * weight;
    mean->weight += weight;
}

static double mean_of(const struct mean *mean)
{
    return mean->weight > 0 ? mean->sum / mean->weight : NAN;
}

static void add_device(const struct device_info *info, const struct fly_device_energy *energy, bool counted,
                       struct run_totals *totals)
{
    if (!counted) {
        totals->elsewhere++;
    } else if (!isfinite(energy->energy_j)) {
        totals->unavailable++;
        totals->least_energy_j += isfinite(energy->least_energy_j) ? energy->least_energy_j : 0.0;
    } else {
        totals->devices++;
        totals->emulated += info->emulated;
        totals->estimated += info->estimated;
        totals->energy_j += energy->energy_j;
        if (isfinite(energy->uncertainty_j))
            totals->uncertainty_j += energy->uncertainty_j;
        else
            totals->without_bound++;
    }
}

void run_totals(const struct run_result *result, struct run_totals *out_totals)
{
    struct mean idle = {0}, idle_energy = {0}, capped = {0}, heat = {0}, brake = {0};
    struct run_totals totals = {0};

    for (size_t i = 0; result->fault == NULL && i < result->list->count; i++) {
        const struct fly_device_energy *energy = &result->measured.devices[i];

        add_device(&result->list->devices[i].info, energy, result->claims->devices[i].counted, &totals);
        if (result->list->devices[i].info.kind != DEVICE_GPU)
            continue;
        mean_add(&idle, energy->idle_share, energy->time_s);
        mean_add(&idle_energy, energy->idle_energy_share, energy->energy_j);
        mean_add(&capped, energy->capped_share, energy->time_s);
        mean_add(&heat, energy->heat_share, energy->time_s);
        mean_add(&brake, energy->brake_share, energy->time_s);
    }
    totals.idle_share = mean_of(&idle);
    totals.idle_energy_share = mean_of(&idle_energy);
    totals.capped_share = mean_of(&capped);
    totals.heat_share = mean_of(&heat);
    totals.brake_share = mean_of(&brake);
    *out_totals = totals;
}

/* Returns whether some device of a kind has a figure, counted here or elsewhere. */
static bool kind_has_figure(const struct run_result *result, enum device_kind kind)
{
    for (size_t i = 0; result->fault == NULL && i < result->list->count; i++) {
        if (result->list->devices[i].info.kind == kind && isfinite(result->measured.devices[i].energy_j))
            return true;
    }
    return false;
}

size_t run_not_included(const struct run_result *result, const char *texts[NOT_INCLUDED_MAX])
{
    static const char *const kinds[] = {[DEVICE_GPU] = "GPUs", [DEVICE_CPU] = "CPUs", [DEVICE_DRAM] = "DRAM"};
    size_t count = 0;

    for (enum device_kind kind = 0; kind < DEVICE_KIND_COUNT; kind++) {
        if (!kind_has_figure(result, kind))
            texts[count++] = kinds[kind];
    }
    texts[count++] = "fans";
    texts[count++] = "power supply losses";
    texts[count++] = "network and storage";
    return count;
}
