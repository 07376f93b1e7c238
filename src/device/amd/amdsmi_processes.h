/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_PROCESSES_H
#define FLYBALL_DEVICE_AMD_AMDSMI_PROCESSES_H

#include <stddef.h>

#include "device/amd/amdsmi_gpu.h"
#include "device/device.h"

/*
 * Lists the processes that compute on what the GPU's limit holds for: the GPU itself, and the other
 * die or partitions that share its limit. At most `maximum`.
 *
 * The kernel's compute driver (KFD) shows them below /sys/class/kfd/kfd/proc: each process that uses
 * it, with the memory it has on each GPU and the queues it has opened there. A process counts for a
 * GPU on which it has either. The list of AMD SMI is not used, since its layout differs between
 * versions. FLY_EREAD if the kernel does not show it, or it is not known which GPUs share the limit.
 * Thread-safe; allocates while it runs.
 */
int amdsmi_processes_read(const struct amdsmi_gpu *gpu, struct device_process *processes, size_t maximum,
                          size_t *out_count);

#endif
