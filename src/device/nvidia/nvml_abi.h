/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_NVML_ABI_H
#define FLYBALL_DEVICE_NVIDIA_NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

/*
 * The binary interface of NVIDIA's management library as Flyball uses it: numbers, layouts and
 * function types, so that building needs no SDK.
 *
 * Two sides share it. The NVML back end looks the functions up by name in libnvidia-ml.so.1; the
 * emulator's library of that name defines them. Both take the types from the one list
 * NVML_FUNCTIONS, so that the compiler checks each against the other:
 *
 *     #define DECLARE(result, symbol, parameters) result symbol parameters;
 *     NVML_FUNCTIONS(DECLARE)
 *
 * Driver units: mW, mJ, MHz, degrees Celsius, percent, microseconds. Layouts are those of 64-bit
 * Linux. Enumerations of the library are `unsigned` here, which is how they are passed.
 */

/* Returned by every function except nvmlErrorString. X(name, number, meaning) */
#define NVML_RETURNS(X)                                                                          \
    X(SUCCESS, 0, "success")                                                                     \
    X(UNINITIALIZED, 1, "the driver library was not initialised")                                \
    X(INVALID_ARGUMENT, 2, "an argument is not valid")                                           \
    X(NOT_SUPPORTED, 3, "this device does not support it")                                       \
    X(NO_PERMISSION, 4, "permission is missing")                                                 \
    X(ALREADY_INITIALIZED, 5, "the driver library was initialised before")                       \
    X(NOT_FOUND, 6, "it was not found")                                                          \
    X(INSUFFICIENT_SIZE, 7, "the buffer is too small")                                           \
    X(INSUFFICIENT_POWER, 8, "external power is not attached properly")                          \
    X(DRIVER_NOT_LOADED, 9, "the kernel driver is not loaded")                                   \
    X(TIMEOUT, 10, "the driver did not answer in time")                                          \
    X(IRQ_ISSUE, 11, "the kernel found a problem with the device's interrupts")                  \
    X(LIBRARY_NOT_FOUND, 12, "a library of the driver was not found")                            \
    X(FUNCTION_NOT_FOUND, 13, "the driver lacks the function")                                   \
    X(CORRUPTED_INFOROM, 14, "the board's information memory is damaged")                        \
    X(GPU_IS_LOST, 15, "the device fell off the bus")                                            \
    X(RESET_REQUIRED, 16, "the device needs a reset")                                            \
    X(OPERATING_SYSTEM, 17, "the operating system refuses access to the device")                 \
    X(LIB_RM_VERSION_MISMATCH, 18, "the driver library and the kernel driver differ in version") \
    X(IN_USE, 19, "the device is in use")                                                        \
    X(MEMORY, 20, "memory is exhausted")                                                         \
    X(NO_DATA, 21, "there is no data yet")                                                       \
    X(VGPU_ECC_NOT_SUPPORTED, 22, "error correction is on, which virtual devices exclude")       \
    X(INSUFFICIENT_RESOURCES, 23, "a resource other than memory is exhausted")                   \
    X(FREQ_NOT_SUPPORTED, 24, "this frequency is not supported")                                 \
    X(ARGUMENT_VERSION_MISMATCH, 25, "the driver does not know this version of the structure")   \
    X(DEPRECATED, 26, "the driver no longer offers the function")                                \
    X(NOT_READY, 27, "the device is not ready")                                                  \
    X(GPU_NOT_FOUND, 28, "no device was found")                                                  \
    X(INVALID_STATE, 29, "the device is in a state that does not allow it")                      \
    X(RESET_TYPE_NOT_SUPPORTED, 30, "this device does not support that kind of reset")           \
    X(UNKNOWN, 999, "the driver reports an unknown error")

#define NVML_RETURN_ENUM(name, number, meaning) NVML_##name = (number),
enum nvml_return { NVML_RETURNS(NVML_RETURN_ENUM) };
#undef NVML_RETURN_ENUM

/* Sizes of text buffers, the final NUL included. */
enum {
    NVML_NAME_BYTES = 96,
    NVML_UUID_BYTES = 96,
    NVML_VERSION_BYTES = 80,
    NVML_SERIAL_BYTES = 30,
    NVML_PCI_BYTES = 32,
    NVML_PCI_LEGACY_BYTES = 16,
};

/* nvmlDeviceGetArchitecture */
enum nvml_architecture {
    NVML_KEPLER = 2,
    NVML_MAXWELL = 3,
    NVML_PASCAL = 4,
    NVML_VOLTA = 5,
    NVML_TURING = 6,
    NVML_AMPERE = 7,
    NVML_ADA = 8,
    NVML_HOPPER = 9,
    NVML_BLACKWELL = 10,
    NVML_RUBIN = 13,
};
#define NVML_ARCHITECTURE_UNKNOWN 0xffffffffU

/* nvmlDeviceGetClockInfo, nvmlDeviceGetMaxClockInfo, nvmlDeviceGetClock */
enum nvml_clock_type { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEMORY, NVML_CLOCK_VIDEO };
enum nvml_clock_id {
    NVML_CLOCK_CURRENT,
    NVML_CLOCK_APPLICATION,
    NVML_CLOCK_APPLICATION_DEFAULT,
    NVML_CLOCK_BOOST_MAX,
};

enum { NVML_TEMPERATURE_GPU = 0 };
enum nvml_temperature_threshold {
    NVML_THRESHOLD_SHUTDOWN,
    NVML_THRESHOLD_SLOWDOWN,
    NVML_THRESHOLD_MEMORY_MAX,
    NVML_THRESHOLD_GPU_MAX,
};

enum { NVML_DISABLED = 0, NVML_ENABLED = 1 };

/* Bits of nvmlDeviceGetCurrentClocksEventReasons; those of `enum throttle_reason`. */
enum nvml_event_reason {
    NVML_REASON_IDLE = 0x1,
    NVML_REASON_APPLICATION_CLOCKS = 0x2,
    NVML_REASON_POWER_CAP = 0x4,
    NVML_REASON_HARDWARE_SLOWDOWN = 0x8,
    NVML_REASON_SYNC_BOOST = 0x10,
    NVML_REASON_SOFTWARE_THERMAL = 0x20,
    NVML_REASON_HARDWARE_THERMAL = 0x40,
    NVML_REASON_POWER_BRAKE = 0x80,
    NVML_REASON_DISPLAY = 0x100,
};

/* nvmlDeviceGetViolationStatus */
enum nvml_perf_policy { NVML_POLICY_POWER = 0, NVML_POLICY_THERMAL = 1 };

/* Fields of nvmlDeviceGetFieldValues, and the parts of a board to which some of them refer. */
enum nvml_field_id {
    NVML_FIELD_POWER_VIOLATION_TIME = 74,   /* us */
    NVML_FIELD_THERMAL_VIOLATION_TIME = 75, /* us */
    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_FIELD_TOTAL_ENERGY = 83, /* mJ since the driver was loaded, Volta and later */
    NVML_FIELD_C2C_LINK_COUNT = 170,
    NVML_FIELD_POWER_AVERAGE = 185, /* mW over one second; Ampere and later, not GA100 */
    NVML_FIELD_POWER_INSTANT = 186, /* mW */
    NVML_FIELD_POWER_LIMIT_MIN = 187,
    NVML_FIELD_POWER_LIMIT_MAX = 188,
    NVML_FIELD_POWER_LIMIT_DEFAULT = 189,
    NVML_FIELD_POWER_LIMIT_ENFORCED = 190,
    NVML_FIELD_ENERGY = 191, /* as NVML_FIELD_TOTAL_ENERGY, by scope */
    NVML_FIELD_POWER_LIMIT_REQUESTED = 192,
    NVML_FIELD_SOFTWARE_THERMAL_NS = 269, /* these three by version 13; 12 had them at 251 to 253 */
    NVML_FIELD_HARDWARE_THERMAL_NS = 270,
    NVML_FIELD_POWER_BRAKE_NS = 271,
};
enum nvml_power_scope {
    NVML_SCOPE_GPU,
    NVML_SCOPE_MODULE, /* the GPU with the CPU and memory on its module */
    NVML_SCOPE_MEMORY,
    NVML_SCOPE_GPU_BASE,
};

enum nvml_compute_mode {
    NVML_COMPUTE_DEFAULT,
    NVML_COMPUTE_EXCLUSIVE_THREAD,
    NVML_COMPUTE_PROHIBITED,
    NVML_COMPUTE_EXCLUSIVE_PROCESS,
};

/* Functions that may be open to every user. */
enum nvml_restricted_api {
    NVML_API_APPLICATION_CLOCKS,
    NVML_API_AUTO_BOOSTED_CLOCKS,
};

/* Kinds of samples of nvmlDeviceGetSamples. */
enum nvml_sampling_type {
    NVML_SAMPLES_TOTAL_POWER = 0,
    NVML_SAMPLES_GPU_UTILIZATION = 1,
    NVML_SAMPLES_MEMORY_UTILIZATION = 2,
    NVML_SAMPLES_GPU_CLOCK = 5,
    NVML_SAMPLES_MEMORY_CLOCK = 6,
    NVML_SAMPLES_MODULE_POWER = 7,
};

/* Which member of a `union nvml_value` holds. */
enum nvml_value_type {
    NVML_VALUE_DOUBLE,
    NVML_VALUE_UNSIGNED,
    NVML_VALUE_UNSIGNED_LONG,
    NVML_VALUE_UNSIGNED_LONG_LONG,
    NVML_VALUE_SIGNED_LONG_LONG,
    NVML_VALUE_SIGNED,
    NVML_VALUE_UNSIGNED_SHORT,
};
union nvml_value {
    double d;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
    int si;
    unsigned short us;
};

/* A device of the library; opaque. */
struct nvml_device;

struct nvml_field_value {
    unsigned field_id; /* set by the caller */
    unsigned scope_id; /* set by the caller */
    long long timestamp_us;
    long long latency_us;
    unsigned value_type; /* enum nvml_value_type */
    int code;            /* enum nvml_return, for each field */
    union nvml_value value;
};

struct nvml_pci_info { /* nvmlDeviceGetPciInfo_v3 */
    char bus_id_legacy[NVML_PCI_LEGACY_BYTES];
    unsigned domain, bus, device;
    unsigned device_id, subsystem_id;
    char bus_id[NVML_PCI_BYTES];
};
struct nvml_pci_info_v2 { /* nvmlDeviceGetPciInfo_v2, and nvmlDeviceGetPciInfo with less of it filled in */
    char bus_id[NVML_PCI_LEGACY_BYTES];
    unsigned domain, bus, device;
    unsigned device_id, subsystem_id;
    unsigned reserved[4];
};

struct nvml_utilization { /* percent of the last sampling period */
    unsigned gpu, memory;
};

struct nvml_memory { /* bytes */
    unsigned long long total, free, used;
};
struct nvml_memory_v2 {
    unsigned version; /* NVML_MEMORY_V2, set by the caller */
    unsigned long long total, reserved, free, used;
};

struct nvml_sample {
    unsigned long long timestamp_us;
    union nvml_value value;
};

struct nvml_violation_time {
    unsigned long long reference_us;
    unsigned long long violation_ns;
};

struct nvml_power_value_v2 {
    unsigned version; /* NVML_POWER_VALUE_V2, set by the caller */
    unsigned char scope;
    unsigned power_mw;
};

struct nvml_temperature_v1 {
    unsigned version; /* NVML_TEMPERATURE_V1, set by the caller */
    unsigned sensor;
    int temperature_c;
};

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long memory_bytes; /* NVML_MEMORY_UNKNOWN: not known */
};
struct nvml_process { /* of the functions ending in _v2 and _v3 */
    unsigned pid;
    unsigned long long memory_bytes;
    unsigned gpu_instance, compute_instance; /* NVML_NO_INSTANCE: none */
};
#define NVML_MEMORY_UNKNOWN UINT64_MAX
#define NVML_NO_INSTANCE UINT32_MAX
struct nvml_process_utilization { /* percent */
    unsigned pid;
    unsigned long long timestamp_us;
    unsigned sm, memory, encoder, decoder;
};

struct nvml_device_attributes { /* of a MIG instance */
    unsigned multiprocessors, shared_copy_engines, shared_decoders, shared_encoders, shared_jpeg, shared_ofa;
    unsigned gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

/*
 * Workload power profiles, of boards since Blackwell. A mask has 255 bits; bit N of word W is profile
 * 32 W + N.
 */
enum { NVML_WORKLOADS_MAX = 255, NVML_WORKLOAD_WORDS = 8 };
struct nvml_workload_mask {
    unsigned words[NVML_WORKLOAD_WORDS];
};
struct nvml_workload_info { /* the caller sets no version inside an array */
    unsigned version;
    unsigned id;
    unsigned priority; /* of two that conflict, the lower one holds */
    struct nvml_workload_mask conflicts;
};
struct nvml_workload_infos {
    unsigned version; /* NVML_WORKLOAD_INFOS, set by the caller */
    struct nvml_workload_mask supported;
    struct nvml_workload_info profiles[NVML_WORKLOADS_MAX]; /* at the place of their ids */
};
struct nvml_workloads_current {
    unsigned version; /* NVML_WORKLOADS_CURRENT, set by the caller */
    struct nvml_workload_mask supported, requested, enforced;
};
struct nvml_workloads_requested { /* of the functions that are deprecated since version 13.1 */
    unsigned version;             /* NVML_WORKLOADS_REQUESTED, set by the caller */
    struct nvml_workload_mask mask;
};
enum nvml_workload_operation { NVML_WORKLOADS_CLEAR, NVML_WORKLOADS_SET, NVML_WORKLOADS_OVERWRITE };
struct nvml_workloads_update { /* has no version */
    unsigned operation;        /* enum nvml_workload_operation */
    struct nvml_workload_mask mask;
};

/* The version that a structure carries: its size, and its number in the highest byte. */
#define NVML_STRUCT_VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)
#define NVML_MEMORY_V2 NVML_STRUCT_VERSION(struct nvml_memory_v2, 2)
#define NVML_POWER_VALUE_V2 NVML_STRUCT_VERSION(struct nvml_power_value_v2, 2)
#define NVML_TEMPERATURE_V1 NVML_STRUCT_VERSION(struct nvml_temperature_v1, 1)
#define NVML_WORKLOAD_INFO NVML_STRUCT_VERSION(struct nvml_workload_info, 1)
#define NVML_WORKLOAD_INFOS NVML_STRUCT_VERSION(struct nvml_workload_infos, 1)
#define NVML_WORKLOADS_CURRENT NVML_STRUCT_VERSION(struct nvml_workloads_current, 1)
#define NVML_WORKLOADS_REQUESTED NVML_STRUCT_VERSION(struct nvml_workloads_requested, 1)

/* Flags of nvmlInitWithFlags. */
enum { NVML_INIT_NO_GPUS = 1, NVML_INIT_NO_ATTACH = 2, NVML_INIT_FORCE = 4 };

/*
 * The functions, from the library's life to the device's. If several end in _vN, a driver may
 * have only the older ones, since drivers keep old functions.
 *
 *     X(type of the result, symbol, parameters)
 */
#define NVML_FUNCTIONS(X) \
    NVML_SYSTEM_FUNCTIONS(X) NVML_IDENTITY_FUNCTIONS(X) NVML_READING_FUNCTIONS(X) NVML_SETTING_FUNCTIONS(X)

#define NVML_DEVICE struct nvml_device *device

#define NVML_SYSTEM_FUNCTIONS(X)                                                          \
    X(int, nvmlInit, (void))                                                              \
    X(int, nvmlInit_v2, (void))                                                           \
    X(int, nvmlInitWithFlags, (unsigned flags))                                           \
    X(int, nvmlShutdown, (void))                                                          \
    X(const char *, nvmlErrorString, (int code))                                          \
    X(int, nvmlSystemGetDriverVersion, (char *version, unsigned bytes))                   \
    X(int, nvmlSystemGetNVMLVersion, (char *version, unsigned bytes))                     \
    X(int, nvmlSystemGetCudaDriverVersion, (int *version))                                \
    X(int, nvmlSystemGetCudaDriverVersion_v2, (int *version))                             \
    X(int, nvmlSystemGetProcessName, (unsigned pid, char *name, unsigned bytes))          \
    X(int, nvmlDeviceGetCount, (unsigned *count))                                         \
    X(int, nvmlDeviceGetCount_v2, (unsigned *count))                                      \
    X(int, nvmlDeviceGetHandleByIndex, (unsigned index, struct nvml_device **out))        \
    X(int, nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct nvml_device **out))     \
    X(int, nvmlDeviceGetHandleByUUID, (const char *uuid, struct nvml_device **out))       \
    X(int, nvmlDeviceGetHandleByPciBusId, (const char *bus_id, struct nvml_device **out)) \
    X(int, nvmlDeviceGetHandleByPciBusId_v2, (const char *bus_id, struct nvml_device **out))

#define NVML_IDENTITY_FUNCTIONS(X)                                                                       \
    X(int, nvmlDeviceGetName, (NVML_DEVICE, char *name, unsigned bytes))                                 \
    X(int, nvmlDeviceGetUUID, (NVML_DEVICE, char *uuid, unsigned bytes))                                 \
    X(int, nvmlDeviceGetSerial, (NVML_DEVICE, char *serial, unsigned bytes))                             \
    X(int, nvmlDeviceGetIndex, (NVML_DEVICE, unsigned *index))                                           \
    X(int, nvmlDeviceGetMinorNumber, (NVML_DEVICE, unsigned *minor))                                     \
    X(int, nvmlDeviceGetPciInfo, (NVML_DEVICE, struct nvml_pci_info_v2 * pci))                           \
    X(int, nvmlDeviceGetPciInfo_v2, (NVML_DEVICE, struct nvml_pci_info_v2 * pci))                        \
    X(int, nvmlDeviceGetPciInfo_v3, (NVML_DEVICE, struct nvml_pci_info * pci))                           \
    X(int, nvmlDeviceGetArchitecture, (NVML_DEVICE, unsigned *architecture))                             \
    X(int, nvmlDeviceGetCudaComputeCapability, (NVML_DEVICE, int *major, int *minor))                    \
    X(int, nvmlDeviceGetMigMode, (NVML_DEVICE, unsigned *current, unsigned *pending))                    \
    X(int, nvmlDeviceGetMaxMigDeviceCount, (NVML_DEVICE, unsigned *count))                               \
    X(int, nvmlDeviceGetMigDeviceHandleByIndex, (NVML_DEVICE, unsigned index, struct nvml_device **out)) \
    X(int, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, (NVML_DEVICE, struct nvml_device * *out))       \
    X(int, nvmlDeviceIsMigDeviceHandle, (NVML_DEVICE, unsigned *is_mig))                                 \
    X(int, nvmlDeviceGetGpuInstanceId, (NVML_DEVICE, unsigned *id))                                      \
    X(int, nvmlDeviceGetComputeInstanceId, (NVML_DEVICE, unsigned *id))                                  \
    X(int, nvmlDeviceGetAttributes_v2, (NVML_DEVICE, struct nvml_device_attributes * attributes))

#define NVML_READING_FUNCTIONS(X)                                                                            \
    X(int, nvmlDeviceGetTotalEnergyConsumption, (NVML_DEVICE, unsigned long long *energy_mj))                \
    X(int, nvmlDeviceGetPowerUsage, (NVML_DEVICE, unsigned *power_mw))                                       \
    X(int, nvmlDeviceGetFieldValues, (NVML_DEVICE, int count, struct nvml_field_value *fields))              \
    X(int, nvmlDeviceGetSamples,                                                                             \
      (NVML_DEVICE, unsigned type, unsigned long long last_us, unsigned *value_type, unsigned *count,        \
       struct nvml_sample *samples))                                                                         \
    X(int, nvmlDeviceGetPowerManagementMode, (NVML_DEVICE, unsigned *enabled))                               \
    X(int, nvmlDeviceGetPowerManagementLimit, (NVML_DEVICE, unsigned *limit_mw))                             \
    X(int, nvmlDeviceGetPowerManagementDefaultLimit, (NVML_DEVICE, unsigned *limit_mw))                      \
    X(int, nvmlDeviceGetPowerManagementLimitConstraints,                                                     \
      (NVML_DEVICE, unsigned *lowest_mw, unsigned *highest_mw))                                              \
    X(int, nvmlDeviceGetEnforcedPowerLimit, (NVML_DEVICE, unsigned *limit_mw))                               \
    X(int, nvmlDeviceGetClockInfo, (NVML_DEVICE, unsigned type, unsigned *clock_mhz))                        \
    X(int, nvmlDeviceGetMaxClockInfo, (NVML_DEVICE, unsigned type, unsigned *clock_mhz))                     \
    X(int, nvmlDeviceGetClock, (NVML_DEVICE, unsigned type, unsigned id, unsigned *clock_mhz))               \
    X(int, nvmlDeviceGetSupportedMemoryClocks, (NVML_DEVICE, unsigned *count, unsigned *clocks_mhz))         \
    X(int, nvmlDeviceGetSupportedGraphicsClocks,                                                             \
      (NVML_DEVICE, unsigned memory_mhz, unsigned *count, unsigned *clocks_mhz))                             \
    X(int, nvmlDeviceGetTemperature, (NVML_DEVICE, unsigned sensor, unsigned *temperature_c))                \
    X(int, nvmlDeviceGetTemperatureV, (NVML_DEVICE, struct nvml_temperature_v1 * temperature))               \
    X(int, nvmlDeviceGetTemperatureThreshold, (NVML_DEVICE, unsigned type, unsigned *temperature_c))         \
    X(int, nvmlDeviceGetUtilizationRates, (NVML_DEVICE, struct nvml_utilization * utilization))              \
    X(int, nvmlDeviceGetMemoryInfo, (NVML_DEVICE, struct nvml_memory * memory))                              \
    X(int, nvmlDeviceGetMemoryInfo_v2, (NVML_DEVICE, struct nvml_memory_v2 * memory))                        \
    X(int, nvmlDeviceGetPerformanceState, (NVML_DEVICE, unsigned *state))                                    \
    X(int, nvmlDeviceGetCurrentClocksEventReasons, (NVML_DEVICE, unsigned long long *reasons))               \
    X(int, nvmlDeviceGetCurrentClocksThrottleReasons, (NVML_DEVICE, unsigned long long *reasons))            \
    X(int, nvmlDeviceGetSupportedClocksEventReasons, (NVML_DEVICE, unsigned long long *reasons))             \
    X(int, nvmlDeviceGetSupportedClocksThrottleReasons, (NVML_DEVICE, unsigned long long *reasons))          \
    X(int, nvmlDeviceGetViolationStatus,                                                                     \
      (NVML_DEVICE, unsigned policy, struct nvml_violation_time *violation))                                 \
    X(int, nvmlDeviceGetPersistenceMode, (NVML_DEVICE, unsigned *enabled))                                   \
    X(int, nvmlDeviceWorkloadPowerProfileGetProfilesInfo, (NVML_DEVICE, struct nvml_workload_infos * infos)) \
    X(int, nvmlDeviceWorkloadPowerProfileGetCurrentProfiles,                                                 \
      (NVML_DEVICE, struct nvml_workloads_current * current))                                                \
    X(int, nvmlDeviceGetComputeRunningProcesses,                                                             \
      (NVML_DEVICE, unsigned *count, struct nvml_process_v1 *processes))                                     \
    X(int, nvmlDeviceGetComputeRunningProcesses_v2,                                                          \
      (NVML_DEVICE, unsigned *count, struct nvml_process *processes))                                        \
    X(int, nvmlDeviceGetComputeRunningProcesses_v3,                                                          \
      (NVML_DEVICE, unsigned *count, struct nvml_process *processes))                                        \
    X(int, nvmlDeviceGetGraphicsRunningProcesses,                                                            \
      (NVML_DEVICE, unsigned *count, struct nvml_process_v1 *processes))                                     \
    X(int, nvmlDeviceGetGraphicsRunningProcesses_v2,                                                         \
      (NVML_DEVICE, unsigned *count, struct nvml_process *processes))                                        \
    X(int, nvmlDeviceGetGraphicsRunningProcesses_v3,                                                         \
      (NVML_DEVICE, unsigned *count, struct nvml_process *processes))                                        \
    X(int, nvmlDeviceGetMPSComputeRunningProcesses,                                                          \
      (NVML_DEVICE, unsigned *count, struct nvml_process_v1 *processes))                                     \
    X(int, nvmlDeviceGetMPSComputeRunningProcesses_v2,                                                       \
      (NVML_DEVICE, unsigned *count, struct nvml_process *processes))                                        \
    X(int, nvmlDeviceGetMPSComputeRunningProcesses_v3,                                                       \
      (NVML_DEVICE, unsigned *count, struct nvml_process *processes))                                        \
    X(int, nvmlDeviceGetProcessUtilization,                                                                  \
      (NVML_DEVICE, struct nvml_process_utilization * samples, unsigned *count, unsigned long long last_us))

/* Root only. */
#define NVML_SETTING_FUNCTIONS(X)                                                                     \
    X(int, nvmlDeviceSetPowerManagementLimit, (NVML_DEVICE, unsigned limit_mw))                       \
    X(int, nvmlDeviceSetPowerManagementLimit_v2, (NVML_DEVICE, struct nvml_power_value_v2 * limit))   \
    X(int, nvmlDeviceSetPersistenceMode, (NVML_DEVICE, unsigned enabled))                             \
    X(int, nvmlDeviceSetGpuLockedClocks, (NVML_DEVICE, unsigned lowest_mhz, unsigned highest_mhz))    \
    X(int, nvmlDeviceResetGpuLockedClocks, (NVML_DEVICE))                                             \
    X(int, nvmlDeviceSetMemoryLockedClocks, (NVML_DEVICE, unsigned lowest_mhz, unsigned highest_mhz)) \
    X(int, nvmlDeviceResetMemoryLockedClocks, (NVML_DEVICE))                                          \
    X(int, nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1,                                           \
      (NVML_DEVICE, struct nvml_workloads_update * update))                                           \
    X(int, nvmlDeviceWorkloadPowerProfileSetRequestedProfiles,                                        \
      (NVML_DEVICE, struct nvml_workloads_requested * requested))                                     \
    X(int, nvmlDeviceWorkloadPowerProfileClearRequestedProfiles,                                      \
      (NVML_DEVICE, struct nvml_workloads_requested * requested))

/*
 * Beyond NVML: an emulator's library exports these functions. The first returns its version, so that every
 * program can report that no hardware answered; the second why the last initialisation found no emulated
 * GPUs, "" when it did.
 */
#define NVML_EMULATOR_SYMBOL "flyball_emulator_version"
#define NVML_EMULATOR_COMPLAINT_SYMBOL "flyball_emulator_complaint"
typedef const char *nvml_emulator_text_function(void);

#define NVML_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define NVML_AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member)
NVML_SIZE(struct nvml_field_value, 40);
NVML_AT(struct nvml_field_value, timestamp_us, 8);
NVML_AT(struct nvml_field_value, value_type, 24);
NVML_AT(struct nvml_field_value, code, 28);
NVML_AT(struct nvml_field_value, value, 32);
NVML_SIZE(struct nvml_pci_info, 68);
NVML_AT(struct nvml_pci_info, domain, 16);
NVML_AT(struct nvml_pci_info, bus_id, 36);
NVML_SIZE(struct nvml_pci_info_v2, 52);
NVML_SIZE(struct nvml_utilization, 8);
NVML_SIZE(struct nvml_memory, 24);
NVML_SIZE(struct nvml_memory_v2, 40);
NVML_AT(struct nvml_memory_v2, total, 8);
NVML_SIZE(struct nvml_sample, 16);
NVML_SIZE(struct nvml_violation_time, 16);
NVML_SIZE(struct nvml_power_value_v2, 12);
NVML_AT(struct nvml_power_value_v2, scope, 4);
NVML_AT(struct nvml_power_value_v2, power_mw, 8);
NVML_SIZE(struct nvml_temperature_v1, 12);
NVML_SIZE(struct nvml_process_v1, 16);
NVML_SIZE(struct nvml_process, 24);
NVML_AT(struct nvml_process, memory_bytes, 8);
NVML_AT(struct nvml_process, gpu_instance, 16);
NVML_SIZE(struct nvml_process_utilization, 32);
NVML_AT(struct nvml_process_utilization, sm, 16);
NVML_SIZE(struct nvml_device_attributes, 40);
NVML_AT(struct nvml_device_attributes, memory_mib, 32);
NVML_SIZE(struct nvml_workload_info, 44);
NVML_AT(struct nvml_workload_info, conflicts, 12);
NVML_SIZE(struct nvml_workload_infos, 11256);
NVML_AT(struct nvml_workload_infos, supported, 4);
NVML_AT(struct nvml_workload_infos, profiles, 36);
NVML_SIZE(struct nvml_workloads_current, 100);
NVML_AT(struct nvml_workloads_current, requested, 36);
NVML_AT(struct nvml_workloads_current, enforced, 68);
NVML_SIZE(struct nvml_workloads_requested, 36);
NVML_SIZE(struct nvml_workloads_update, 36);
NVML_AT(struct nvml_workloads_update, mask, 4);
#undef NVML_SIZE
#undef NVML_AT
_Static_assert(NVML_POWER_VALUE_V2 == 0x0200000C && NVML_TEMPERATURE_V1 == 0x0100000C, "versions of NVML");
_Static_assert(NVML_WORKLOAD_INFOS == 0x01002bf8 && NVML_WORKLOADS_CURRENT == 0x01000064 &&
                   NVML_WORKLOADS_REQUESTED == 0x01000024,
               "versions of NVML");

#endif
