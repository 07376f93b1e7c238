/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_LIBRARY_H
#define FLYBALL_DEVICE_NVIDIA_NVML_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/shared_object.h"
#include "device/nvidia/nvml_abi.h"

/*
 * NVIDIA's management library, loaded and initialised at first use.
 *
 *     struct nvml_library *library;
 *     unsigned count;
 *
 *     if (nvml_library_open(NULL, &library, out_error) < 0)
 *         ...
 *     library->call.count(&count);
 *     nvml_library_release(library);
 *
 * Drivers offer different functions. A slot is NULL if the library has none of the names in its
 * row; if the row says that the function is required, opening fails instead.
 *
 *     X(slot, required, function type, names from newer to older...)
 *
 * All names of one row have the same parameters, so any of them will do.
 */
#define NVML_CALLS(X)                                                                                        \
    X(init, true, nvmlInit_v2, "nvmlInit_v2", "nvmlInit")                                                    \
    X(shutdown, true, nvmlShutdown, "nvmlShutdown")                                                          \
    X(count, true, nvmlDeviceGetCount_v2, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                     \
    X(handle, true, nvmlDeviceGetHandleByIndex_v2, "nvmlDeviceGetHandleByIndex_v2",                          \
      "nvmlDeviceGetHandleByIndex")                                                                          \
    X(driver_version, false, nvmlSystemGetDriverVersion, "nvmlSystemGetDriverVersion")                       \
    X(handle_by_uuid, false, nvmlDeviceGetHandleByUUID, "nvmlDeviceGetHandleByUUID")                         \
    X(handle_by_pci, false, nvmlDeviceGetHandleByPciBusId_v2, "nvmlDeviceGetHandleByPciBusId_v2",            \
      "nvmlDeviceGetHandleByPciBusId")                                                                       \
    X(name, false, nvmlDeviceGetName, "nvmlDeviceGetName")                                                   \
    X(uuid, false, nvmlDeviceGetUUID, "nvmlDeviceGetUUID")                                                   \
    X(minor, false, nvmlDeviceGetMinorNumber, "nvmlDeviceGetMinorNumber")                                    \
    X(pci, false, nvmlDeviceGetPciInfo_v3, "nvmlDeviceGetPciInfo_v3")                                        \
    X(pci_v2, false, nvmlDeviceGetPciInfo_v2, "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo")             \
    X(architecture, false, nvmlDeviceGetArchitecture, "nvmlDeviceGetArchitecture")                           \
    X(capability, false, nvmlDeviceGetCudaComputeCapability, "nvmlDeviceGetCudaComputeCapability")           \
    X(mig_mode, false, nvmlDeviceGetMigMode, "nvmlDeviceGetMigMode")                                         \
    X(mig_parent, false, nvmlDeviceGetDeviceHandleFromMigDeviceHandle,                                       \
      "nvmlDeviceGetDeviceHandleFromMigDeviceHandle")                                                        \
    X(energy, false, nvmlDeviceGetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption")             \
    X(power, false, nvmlDeviceGetPowerUsage, "nvmlDeviceGetPowerUsage")                                      \
    X(fields, false, nvmlDeviceGetFieldValues, "nvmlDeviceGetFieldValues")                                   \
    X(limit, false, nvmlDeviceGetPowerManagementLimit, "nvmlDeviceGetPowerManagementLimit")                  \
    X(limit_default, false, nvmlDeviceGetPowerManagementDefaultLimit,                                        \
      "nvmlDeviceGetPowerManagementDefaultLimit")                                                            \
    X(limit_range, false, nvmlDeviceGetPowerManagementLimitConstraints,                                      \
      "nvmlDeviceGetPowerManagementLimitConstraints")                                                        \
    X(limit_enforced, false, nvmlDeviceGetEnforcedPowerLimit, "nvmlDeviceGetEnforcedPowerLimit")             \
    X(clock, false, nvmlDeviceGetClockInfo, "nvmlDeviceGetClockInfo")                                        \
    X(clock_max, false, nvmlDeviceGetMaxClockInfo, "nvmlDeviceGetMaxClockInfo")                              \
    X(temperature, false, nvmlDeviceGetTemperatureV, "nvmlDeviceGetTemperatureV")                            \
    X(temperature_old, false, nvmlDeviceGetTemperature, "nvmlDeviceGetTemperature")                          \
    X(utilization, false, nvmlDeviceGetUtilizationRates, "nvmlDeviceGetUtilizationRates")                    \
    X(memory, false, nvmlDeviceGetMemoryInfo, "nvmlDeviceGetMemoryInfo")                                     \
    X(memory_v2, false, nvmlDeviceGetMemoryInfo_v2, "nvmlDeviceGetMemoryInfo_v2")                            \
    X(throttle, false, nvmlDeviceGetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksEventReasons",     \
      "nvmlDeviceGetCurrentClocksThrottleReasons")                                                           \
    X(persistence, false, nvmlDeviceGetPersistenceMode, "nvmlDeviceGetPersistenceMode")                      \
    X(processes, false, nvmlDeviceGetComputeRunningProcesses_v3, "nvmlDeviceGetComputeRunningProcesses_v3",  \
      "nvmlDeviceGetComputeRunningProcesses_v2")                                                             \
    X(processes_v1, false, nvmlDeviceGetComputeRunningProcesses, "nvmlDeviceGetComputeRunningProcesses")     \
    X(graphics, false, nvmlDeviceGetGraphicsRunningProcesses_v3, "nvmlDeviceGetGraphicsRunningProcesses_v3", \
      "nvmlDeviceGetGraphicsRunningProcesses_v2")                                                            \
    X(graphics_v1, false, nvmlDeviceGetGraphicsRunningProcesses, "nvmlDeviceGetGraphicsRunningProcesses")    \
    X(mps, false, nvmlDeviceGetMPSComputeRunningProcesses_v3, "nvmlDeviceGetMPSComputeRunningProcesses_v3",  \
      "nvmlDeviceGetMPSComputeRunningProcesses_v2")                                                          \
    X(mps_v1, false, nvmlDeviceGetMPSComputeRunningProcesses, "nvmlDeviceGetMPSComputeRunningProcesses")     \
    X(use, false, nvmlDeviceGetProcessUtilization, "nvmlDeviceGetProcessUtilization")                        \
    X(mig_most, false, nvmlDeviceGetMaxMigDeviceCount, "nvmlDeviceGetMaxMigDeviceCount")                     \
    X(mig_part, false, nvmlDeviceGetMigDeviceHandleByIndex, "nvmlDeviceGetMigDeviceHandleByIndex")           \
    X(instance_id, false, nvmlDeviceGetGpuInstanceId, "nvmlDeviceGetGpuInstanceId")                          \
    X(attributes, false, nvmlDeviceGetAttributes_v2, "nvmlDeviceGetAttributes_v2")                           \
    X(set_limit, false, nvmlDeviceSetPowerManagementLimit, "nvmlDeviceSetPowerManagementLimit")              \
    X(set_persistence, false, nvmlDeviceSetPersistenceMode, "nvmlDeviceSetPersistenceMode")                  \
    X(memory_clocks, false, nvmlDeviceGetSupportedMemoryClocks, "nvmlDeviceGetSupportedMemoryClocks")        \
    X(gpu_clocks, false, nvmlDeviceGetSupportedGraphicsClocks, "nvmlDeviceGetSupportedGraphicsClocks")       \
    X(lock_clocks, false, nvmlDeviceSetGpuLockedClocks, "nvmlDeviceSetGpuLockedClocks")                      \
    X(unlock_clocks, false, nvmlDeviceResetGpuLockedClocks, "nvmlDeviceResetGpuLockedClocks")                \
    X(lock_memory, false, nvmlDeviceSetMemoryLockedClocks, "nvmlDeviceSetMemoryLockedClocks")                \
    X(unlock_memory, false, nvmlDeviceResetMemoryLockedClocks, "nvmlDeviceResetMemoryLockedClocks")          \
    X(workloads, false, nvmlDeviceWorkloadPowerProfileGetCurrentProfiles,                                    \
      "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles")                                                    \
    X(update_workloads, false, nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1,                              \
      "nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1")                                                     \
    X(set_workloads, false, nvmlDeviceWorkloadPowerProfileSetRequestedProfiles,                              \
      "nvmlDeviceWorkloadPowerProfileSetRequestedProfiles")                                                  \
    X(clear_workloads, false, nvmlDeviceWorkloadPowerProfileClearRequestedProfiles,                          \
      "nvmlDeviceWorkloadPowerProfileClearRequestedProfiles")

#define NVML_FUNCTION_TYPE(result, symbol, parameters) typedef result symbol##_function parameters;
NVML_FUNCTIONS(NVML_FUNCTION_TYPE)
#undef NVML_FUNCTION_TYPE

#define NVML_CALL_SLOT(slot, required, type, ...) type##_function *slot;
struct nvml_calls {
    NVML_CALLS(NVML_CALL_SLOT)
};
#undef NVML_CALL_SLOT

struct nvml_library {
    struct nvml_calls call;
    struct shared_object object;
    atomic_size_t users;             /* number of users; the last one releases it */
    pid_t owner;                     /* the process that initialised it */
    bool emulated;                   /* it is an emulator's library */
    char driver[NVML_VERSION_BYTES]; /* the version; empty if unknown */
};

/*
 * Loads and initialises the library at `path` or, if that is NULL, under the name by which
 * drivers install it. It is returned with one user. FLY_EUNSUPPORTED if there is no library, no
 * kernel driver or none that fits, FLY_EPERM, FLY_EREAD if the driver fails, and the errors of
 * shared_object_open for a path; the text names the library and the next step.
 */
int nvml_library_open(const char *path, struct nvml_library **out_library, struct fly_error *out_error);

/*
 * Gives up one use, by any thread; the last one shuts the library down and frees it. After fork the child
 * only frees its memory, since it shares the driver with its parent.
 */
void nvml_library_release(struct nvml_library *library);

/* Returns the meaning of a code as text, also for unknown codes. Static storage. */
const char *nvml_meaning(int code);

#endif
