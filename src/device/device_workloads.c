/* SPDX-License-Identifier: Apache-2.0 */
/* Workload power profiles of a device: read, checked and requested. */
#include "base/error.h"
#include "device/device.h"

enum reading_state device_read_workloads(const struct device *device, struct workloads *out_workloads)
{
    if (device->backend->workloads == NULL)
        return READING_UNSUPPORTED;
    return device->backend->workloads(device, out_workloads);
}

int device_check_workloads(const struct device *device, const struct workload_set *wanted,
                           struct fly_error *out_error)
{
    struct workloads workloads = {.supported = {{0}}};
    enum reading_state state = device_read_workloads(device, &workloads);
    struct workload_set foreign;
    char text[WORKLOAD_TEXT_MAX], offered[WORKLOAD_TEXT_MAX];

    if (state == READING_UNSUPPORTED || state == READING_MISSING ||
        device->backend->request_workloads == NULL)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "%s %u has no workload power profiles, or its driver is too old for them; NVIDIA's "
                         "boards have them since Blackwell",
                         device_kind_name(device->info.kind), device->info.index);
    if (state != READING_OK)
        return error_set(out_error, state == READING_DENIED ? FLY_EPERM : FLY_EREAD,
                         "the workload power profiles of GPU %u are not known: %s; see 'flyball doctor'",
                         device->info.index, reading_state_clause(state));
    foreign = workload_without(wanted, &workloads.supported);
    if (workload_is_empty(&foreign))
        return 0;
    return error_set(
        out_error, FLY_EUSAGE, "GPU %u does not offer the workload power profile %.100s; choose of %.300s",
        device->info.index, workload_text(&foreign, text), workload_text(&workloads.supported, offered));
}

int device_request_workloads(const struct device *device, const struct workload_set *wanted,
                             struct fly_error *out_error)
{
    int code = device_check_workloads(device, wanted, out_error);

    return code < 0 ? code : device->backend->request_workloads(device, wanted, out_error);
}
