/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses a device, as its back end tells it. */
#include "device/device_processes.h"

#include "device/device.h"

int device_processes(const struct device *device, unsigned kinds, struct device_process *processes,
                     size_t maximum, size_t *out_count)
{
    if (device->backend->processes == NULL)
        return FLY_EUNSUPPORTED;
    return device->backend->processes(device, kinds, processes, maximum, out_count);
}

enum reading_state device_memory_used(const struct device *device, uint64_t *out_bytes)
{
    return device->backend->memory_used != NULL ? device->backend->memory_used(device, out_bytes)
                                                : READING_UNSUPPORTED;
}

enum reading_state device_use(const struct device *device, int64_t since_us,
                              struct device_use_sample *samples, size_t maximum, size_t *out_count)
{
    if (device->backend->use == NULL)
        return READING_UNSUPPORTED;
    return device->backend->use(device, since_us, samples, maximum, out_count);
}

enum reading_state device_division(const struct device *device, struct device_division *out_division)
{
    return device->backend->division != NULL ? device->backend->division(device, out_division)
                                             : READING_UNSUPPORTED;
}
