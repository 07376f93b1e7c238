/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_ABI_H
#define FLYBALL_DEVICE_AMD_AMDSMI_ABI_H

#include <stddef.h>
#include <stdint.h>

/*
 * The binary interface of AMD's management library, libamd_smi.so, as far as it is used here, so
 * that building needs no SDK: versions 24 (ROCm 6.1 to 6.3), 25 (6.4) and 26 (7). On x86-64 and
 * little-endian.
 *
 * Most structs are alike in all three; amdsmi_layouts has the differences by version. A library
 * writes its whole struct, which may be longer than the one declared here, so answers are
 * received in a struct amdsmi_space.
 */
typedef void *amdsmi_socket;
typedef void *amdsmi_processor;
typedef uint32_t amdsmi_status;

enum { AMDSMI_INIT_GPUS = 2 };
enum amdsmi_clock_kind { AMDSMI_CLOCK_GRAPHICS = 0, AMDSMI_CLOCK_MEMORY = 4 };
enum { AMDSMI_TEMPERATURE_HOTSPOT = 1, AMDSMI_TEMPERATURE_CURRENT = 0, AMDSMI_POWER_SENSOR = 0 };
enum amdsmi_memory_kind { AMDSMI_MEMORY_VRAM = 0 };
enum amdsmi_clock_bound { AMDSMI_CLOCK_LOWEST = 0, AMDSMI_CLOCK_HIGHEST = 1 };

/* The value that means: this GPU has no such figure, in 16 and in 32 bits. */
enum { AMDSMI_NOTHING_16 = 0xFFFF };
#define AMDSMI_NOTHING_32 UINT32_MAX

/* X(name, code, state of a reading that fails with it, meaning) */
#define AMDSMI_STATUSES(X)                                                               \
    X(SUCCESS, 0, OK, "success")                                                         \
    X(INVALID, 1, FAILED, "a parameter is invalid")                                      \
    X(NOT_SUPPORTED, 2, UNSUPPORTED, "the GPU does not support it")                      \
    X(NOT_YET_IMPLEMENTED, 3, UNSUPPORTED, "the library does not implement it")          \
    X(FAIL_LOAD_MODULE, 4, FAILED, "the library could not load a module")                \
    X(FAIL_LOAD_SYMBOL, 5, MISSING, "the library lacks a function")                      \
    X(DRM_ERROR, 6, FAILED, "the kernel's graphics interface (DRM) failed")              \
    X(API_FAILED, 7, FAILED, "the call failed")                                          \
    X(TIMEOUT, 8, FAILED, "the call timed out")                                          \
    X(NO_PERMISSION, 10, DENIED, "permission is missing")                                \
    X(IO, 12, FAILED, "input or output failed")                                          \
    X(FILE_ERROR, 14, FAILED, "a file of the driver cannot be read")                     \
    X(OUT_OF_RESOURCES, 15, FAILED, "memory is exhausted")                               \
    X(INIT_ERROR, 18, FAILED, "the library could not initialise itself")                 \
    X(BUSY, 30, FAILED, "the GPU is busy")                                               \
    X(NOT_FOUND, 31, LOST, "the GPU was not found")                                      \
    X(NOT_INITIALISED, 32, LOST, "the GPU is not initialised")                           \
    X(DRIVER_NOT_LOADED, 34, LOST, "the driver is not loaded")                           \
    X(NO_DATA, 40, UNSUPPORTED, "there is no data")                                      \
    X(INSUFFICIENT_SIZE, 41, FAILED, "a buffer is too small")                            \
    X(UNEXPECTED_DATA, 43, FAILED, "the GPU is newer than the library, or its data odd") \
    X(FILE_NOT_FOUND, 52, UNSUPPORTED, "the driver does not show it")                    \
    X(UNKNOWN, 0xFFFFFFFF, FAILED, "an unknown error")

#define AMDSMI_STATUS_CONSTANT(name, code, state, meaning) \
    static const amdsmi_status AMDSMI_##name __attribute__((unused)) = code;
AMDSMI_STATUSES(AMDSMI_STATUS_CONSTANT)
#undef AMDSMI_STATUS_CONSTANT

/* Power limits in microwatts. */
struct amdsmi_power_cap {
    uint64_t now, standard, dpm_mhz, lowest, highest;
    uint64_t reserved[3];
};

/* In MHz. */
struct amdsmi_clock {
    uint32_t now, lowest, highest;
    uint8_t locked, deep_sleep;
    uint32_t reserved[4];
};

/* In percent. */
struct amdsmi_usage {
    uint32_t graphics, memory, media;
    uint32_t reserved[13];
};

struct amdsmi_kfd {
    uint64_t id;
    uint32_t node; /* in the order in which HSA numbers agents, and so HIP */
};

/* Since ROCm 6.4. */
struct amdsmi_enumeration {
    uint32_t drm_render, drm_card;
    uint32_t hsa, hip;
    char hip_uuid[256]; /* "GPU-" and 16 hexadecimal digits, as named in ROCR_VISIBLE_DEVICES */
};

/* The first number is the interface's version; versions 24 and 25 begin with a year that equals it. */
struct amdsmi_version {
    uint32_t numbers[4];
    const char *build;
};

_Static_assert(sizeof(struct amdsmi_power_cap) == 64, "as the library has it");
_Static_assert(sizeof(struct amdsmi_clock) == 32, "as the library has it");
_Static_assert(sizeof(struct amdsmi_usage) == 64, "as the library has it");
_Static_assert(offsetof(struct amdsmi_enumeration, hip_uuid) == 16, "as the library has it");
_Static_assert(sizeof(struct amdsmi_version) == 24, "as the library has it");

/* Room for any answer: the longest, the facts of an ASIC, has 896 bytes. */
struct amdsmi_space {
    _Alignas(8) char bytes[2048];
};

/* By version, where the answer about power has its watts; each is 32 bits. */
struct amdsmi_layout {
    unsigned version;
    size_t power_bytes;
    size_t power_now, power_average;
};

#define AMDSMI_LAYOUTS {24, 68, 0, 4}, {25, 40, 8, 12}, {26, 192, 8, 12},

/*
 * X(symbol, parameters); all return a status. Names and versions are texts at the beginning of
 * their answers.
 */
#define AMDSMI_FUNCTIONS(X)                                                                                \
    X(amdsmi_init, (uint64_t flags))                                                                       \
    X(amdsmi_shut_down, (void))                                                                            \
    X(amdsmi_get_lib_version, (void *version))                                                             \
    X(amdsmi_get_socket_handles, (uint32_t * count, amdsmi_socket * sockets))                              \
    X(amdsmi_get_processor_handles, (amdsmi_socket socket, uint32_t * count, amdsmi_processor * handles))  \
    X(amdsmi_get_gpu_device_bdf, (amdsmi_processor gpu, uint64_t * bdf))                                   \
    X(amdsmi_get_gpu_device_uuid, (amdsmi_processor gpu, unsigned *size, char *uuid))                      \
    X(amdsmi_get_gpu_asic_info, (amdsmi_processor gpu, void *name))                                        \
    X(amdsmi_get_gpu_driver_info, (amdsmi_processor gpu, void *version))                                   \
    X(amdsmi_get_gpu_kfd_info, (amdsmi_processor gpu, void *kfd))                                          \
    X(amdsmi_get_gpu_enumeration_info, (amdsmi_processor gpu, void *enumeration))                          \
    X(amdsmi_get_power_info, (amdsmi_processor gpu, void *power))                                          \
    X(amdsmi_get_power_cap_info, (amdsmi_processor gpu, uint32_t sensor, void *power_cap))                 \
    X(amdsmi_get_energy_count, (amdsmi_processor gpu, uint64_t * ticks, float *uj_per_tick, uint64_t *ns)) \
    X(amdsmi_get_clock_info, (amdsmi_processor gpu, unsigned kind, void *clock))                           \
    X(amdsmi_get_gpu_activity, (amdsmi_processor gpu, void *usage))                                        \
    X(amdsmi_get_gpu_memory_total, (amdsmi_processor gpu, unsigned kind, uint64_t *bytes))                 \
    X(amdsmi_get_temp_metric, (amdsmi_processor gpu, unsigned sensor, unsigned metric, int64_t *celsius))  \
    X(amdsmi_set_power_cap, (amdsmi_processor gpu, uint32_t sensor, uint64_t cap_uw))                      \
    X(amdsmi_get_gpu_perf_level, (amdsmi_processor gpu, unsigned *level))                                  \
    X(amdsmi_set_gpu_perf_level, (amdsmi_processor gpu, unsigned level))                                   \
    X(amdsmi_set_gpu_clk_limit, (amdsmi_processor gpu, unsigned kind, unsigned bound, uint64_t mhz))

#define AMDSMI_FUNCTION_TYPE(symbol, parameters) typedef amdsmi_status symbol##_function parameters;
AMDSMI_FUNCTIONS(AMDSMI_FUNCTION_TYPE)
#undef AMDSMI_FUNCTION_TYPE

#endif
