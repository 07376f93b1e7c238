/* SPDX-License-Identifier: Apache-2.0 */
/* What a meter tells about itself and its devices. */
#include "meter/meter_handle.h"

size_t fly_meter_device_count(const struct fly_meter *meter)
{
    return meter->devices->count;
}

static const struct device_info *info_of(const struct fly_meter *meter, size_t device)
{
    return device < meter->devices->count ? &meter->devices->devices[device].info : NULL;
}

const char *fly_meter_device_kind(const struct fly_meter *meter, size_t device)
{
    const struct device_info *info = info_of(meter, device);

    return info != NULL ? device_kind_name(info->kind) : NULL;
}

int fly_meter_device_index(const struct fly_meter *meter, size_t device)
{
    const struct device_info *info = info_of(meter, device);

    return info != NULL ? (int)info->index : -1;
}

const char *fly_meter_device_name(const struct fly_meter *meter, size_t device)
{
    const struct device_info *info = info_of(meter, device);

    return info != NULL ? info->name : NULL;
}

const char *fly_meter_device_uuid(const struct fly_meter *meter, size_t device)
{
    const struct device_info *info = info_of(meter, device);

    return info != NULL ? info->uuid : NULL;
}

const char *fly_meter_device_counted_by(const struct fly_meter *meter, size_t device)
{
    if (device >= meter->devices->count)
        return NULL;
    return meter->claims == NULL || meter->claims->devices[device].counted
               ? ""
               : meter->claims->devices[device].by;
}

void meter_set_claims(struct fly_meter *meter, const struct claims *claims)
{
    meter->claims = claims;
}

const struct clock *meter_clock(const struct fly_meter *meter)
{
    return meter->clock;
}

const struct device_list *meter_devices(const struct fly_meter *meter)
{
    return meter->devices;
}

void meter_sample(struct fly_meter *meter)
{
    sampler_take(&meter->sampler);
}

struct mono_time meter_next_sample(const struct fly_meter *meter)
{
    return meter->sampler.next;
}

const char *meter_nvml_path(const struct fly_meter *meter)
{
    return meter->nvml_path;
}

const char *meter_amdsmi_path(const struct fly_meter *meter)
{
    return meter->amdsmi_path;
}

double meter_own_cpu_s(const struct fly_meter *meter)
{
    return (double)atomic_load_explicit(&meter->sampler.cpu_ns, memory_order_relaxed) * 1e-9;
}

void meter_add(struct fly_meter *meter, size_t device, const struct device_reading *reading)
{
    account_add(&meter->accounts[device], reading);
}

void meter_counter(const struct fly_meter *meter, size_t device, struct account_counter *out_counter)
{
    account_counter(&meter->accounts[device], out_counter);
}

bool meter_latest(const struct fly_meter *meter, size_t device, struct device_reading *out_reading)
{
    return device < meter->devices->count && account_latest(&meter->accounts[device], out_reading);
}
