/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_API_H
#define FLYBALL_EMULATOR_API_H

#include "device/nvidia/nvml_abi.h"

/*
 * All functions of the emulator's libnvidia-ml.so.1: those that Flyball uses, from its own list, and those
 * that other programs bind (nvtop, gpustat, the Python bindings, hwloc, Slurm).
 *
 *     X(type of the result, symbol, parameters)
 */

struct nvml_bar1_memory { /* bytes */
    unsigned long long total, free, used;
};

#define NVML_MORE_FUNCTIONS(X) \
    NVML_FACT_FUNCTIONS(X) NVML_APPLICATION_FUNCTIONS(X) NVML_UNSUPPORTED_FUNCTIONS(X)

#define NVML_FACT_FUNCTIONS(X)                                                                     \
    X(int, nvmlDeviceGetBrand, (NVML_DEVICE, unsigned *brand))                                     \
    X(int, nvmlDeviceGetCurrPcieLinkGeneration, (NVML_DEVICE, unsigned *generation))               \
    X(int, nvmlDeviceGetMaxPcieLinkGeneration, (NVML_DEVICE, unsigned *generation))                \
    X(int, nvmlDeviceGetCurrPcieLinkWidth, (NVML_DEVICE, unsigned *width))                         \
    X(int, nvmlDeviceGetMaxPcieLinkWidth, (NVML_DEVICE, unsigned *width))                          \
    X(int, nvmlDeviceGetPcieThroughput, (NVML_DEVICE, unsigned counter, unsigned *kb_per_s))       \
    X(int, nvmlDeviceGetNumFans, (NVML_DEVICE, unsigned *count))                                   \
    X(int, nvmlDeviceGetNumGpuCores, (NVML_DEVICE, unsigned *count))                               \
    X(int, nvmlDeviceGetEncoderUtilization, (NVML_DEVICE, unsigned *percent, unsigned *period_us)) \
    X(int, nvmlDeviceGetDecoderUtilization, (NVML_DEVICE, unsigned *percent, unsigned *period_us)) \
    X(int, nvmlDeviceGetDisplayActive, (NVML_DEVICE, unsigned *active))                            \
    X(int, nvmlDeviceGetDisplayMode, (NVML_DEVICE, unsigned *mode))                                \
    X(int, nvmlDeviceGetEccMode, (NVML_DEVICE, unsigned *current, unsigned *pending))              \
    X(int, nvmlDeviceGetPowerState, (NVML_DEVICE, unsigned *state))                                \
    X(int, nvmlDeviceGetBoardId, (NVML_DEVICE, unsigned *id))                                      \
    X(int, nvmlDeviceGetMultiGpuBoard, (NVML_DEVICE, unsigned *several))                           \
    X(int, nvmlDeviceGetVbiosVersion, (NVML_DEVICE, char *version, unsigned bytes))                \
    X(int, nvmlDeviceGetBoardPartNumber, (NVML_DEVICE, char *number, unsigned bytes))              \
    X(int, nvmlDeviceGetTotalEccErrors,                                                            \
      (NVML_DEVICE, unsigned type, unsigned counter, unsigned long long *errors))                  \
    X(int, nvmlUnitGetCount, (unsigned *count))

/* What work that a scheduler starts runs at, and who may work. */
#define NVML_APPLICATION_FUNCTIONS(X)                                                                  \
    X(int, nvmlDeviceGetApplicationsClock, (NVML_DEVICE, unsigned type, unsigned *clock_mhz))          \
    X(int, nvmlDeviceGetDefaultApplicationsClock, (NVML_DEVICE, unsigned type, unsigned *clock_mhz))   \
    X(int, nvmlDeviceSetApplicationsClocks, (NVML_DEVICE, unsigned memory_mhz, unsigned graphics_mhz)) \
    X(int, nvmlDeviceResetApplicationsClocks, (NVML_DEVICE))                                           \
    X(int, nvmlDeviceGetAPIRestriction, (NVML_DEVICE, unsigned what, unsigned *restricted))            \
    X(int, nvmlDeviceSetAPIRestriction, (NVML_DEVICE, unsigned what, unsigned restricted))             \
    X(int, nvmlDeviceGetComputeMode, (NVML_DEVICE, unsigned *mode))                                    \
    X(int, nvmlDeviceSetComputeMode, (NVML_DEVICE, unsigned mode))

/*
 * What no emulated board has: another driver model, links to other GPUs, a place near some processors, fans,
 * a window into memory. They answer NVML_NOT_SUPPORTED, as NVIDIA's do on a board without it.
 */
#define NVML_UNSUPPORTED_FUNCTIONS(X)                                                                       \
    X(int, nvmlDeviceGetDriverModel, (NVML_DEVICE, unsigned *current, unsigned *pending))                   \
    X(int, nvmlDeviceGetDriverModel_v2, (NVML_DEVICE, unsigned *current, unsigned *pending))                \
    X(int, nvmlDeviceGetNvLinkState, (NVML_DEVICE, unsigned link, unsigned *active))                        \
    X(int, nvmlDeviceGetNvLinkVersion, (NVML_DEVICE, unsigned link, unsigned *version))                     \
    X(int, nvmlDeviceGetNvLinkCapability, (NVML_DEVICE, unsigned link, unsigned capability, unsigned *has)) \
    X(int, nvmlDeviceGetNvLinkErrorCounter,                                                                 \
      (NVML_DEVICE, unsigned link, unsigned counter, unsigned long long *errors))                           \
    X(int, nvmlDeviceGetNvLinkRemotePciInfo, (NVML_DEVICE, unsigned link, struct nvml_pci_info_v2 *pci))    \
    X(int, nvmlDeviceGetNvLinkRemotePciInfo_v2, (NVML_DEVICE, unsigned link, struct nvml_pci_info *pci))    \
    X(int, nvmlDeviceGetNvLinkRemoteDeviceType, (NVML_DEVICE, unsigned link, unsigned *type))               \
    X(int, nvmlDeviceGetCpuAffinity, (NVML_DEVICE, unsigned words, unsigned long *mask))                    \
    X(int, nvmlDeviceGetCpuAffinityWithinScope,                                                             \
      (NVML_DEVICE, unsigned words, unsigned long *mask, unsigned scope))                                   \
    X(int, nvmlDeviceGetMemoryAffinity, (NVML_DEVICE, unsigned words, unsigned long *mask, unsigned scope)) \
    X(int, nvmlDeviceSetCpuAffinity, (NVML_DEVICE))                                                         \
    X(int, nvmlDeviceClearCpuAffinity, (NVML_DEVICE))                                                       \
    X(int, nvmlDeviceGetTopologyCommonAncestor,                                                             \
      (NVML_DEVICE, struct nvml_device * other, unsigned *ancestor))                                        \
    X(int, nvmlDeviceGetTopologyNearestGpus,                                                                \
      (NVML_DEVICE, unsigned level, unsigned *count, struct nvml_device **nearest))                         \
    X(int, nvmlDeviceGetAutoBoostedClocksEnabled, (NVML_DEVICE, unsigned *enabled, unsigned *by_default))   \
    X(int, nvmlDeviceGetFanSpeed, (NVML_DEVICE, unsigned *percent))                                         \
    X(int, nvmlDeviceGetFanSpeed_v2, (NVML_DEVICE, unsigned fan, unsigned *percent))                        \
    X(int, nvmlDeviceGetMemoryBusWidth, (NVML_DEVICE, unsigned *bits))                                      \
    X(int, nvmlDeviceGetBAR1MemoryInfo, (NVML_DEVICE, struct nvml_bar1_memory * memory))

#define EMULATOR_EXPORT __attribute__((visibility("default")))
#define EMULATOR_DECLARE(result, symbol, parameters) EMULATOR_EXPORT result symbol parameters;
NVML_FUNCTIONS(EMULATOR_DECLARE)
NVML_MORE_FUNCTIONS(EMULATOR_DECLARE)
#undef EMULATOR_DECLARE

/* Not part of NVML: the emulator's version. */
EMULATOR_EXPORT const char *flyball_emulator_version(void);

/* Not part of NVML: why the calling thread's last nvmlInit found no GPUs to emulate; "" when it did. */
EMULATOR_EXPORT const char *flyball_emulator_complaint(void);

/*
 * Not part of NVML: how the readings of a GPU are made, since settings may have changed them from the
 * board's. Times are in seconds; a window below 0 means that the reading does not exist. Returns an NVML
 * code; needs an initialised library.
 */
struct flyball_emulator_sensor {
    double counter_period_s, power_period_s, instant_window_s, average_window_s;
    int counter_from_power, usage_is_average;
};
EMULATOR_EXPORT int flyball_emulator_sensor(NVML_DEVICE, struct flyball_emulator_sensor *sensor);

#endif
