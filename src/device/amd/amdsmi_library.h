/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_LIBRARY_H
#define FLYBALL_DEVICE_AMD_AMDSMI_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/shared_object.h"
#include "device/amd/amdsmi_abi.h"
#include "device/quantity.h"

/*
 * AMD's management library, loaded and initialised at first use.
 *
 *     struct amdsmi_library *library;
 *
 *     if (amdsmi_library_open(NULL, &library, out_error) < 0)
 *         ...
 *     amdsmi_library_lock(library);
 *     library->call.sockets(&count, NULL);
 *     amdsmi_library_unlock(library);
 *     amdsmi_library_release(library);
 *
 * AMD promises nothing about calls from several threads, so every caller must hold the lock. A
 * slot is NULL if the library lacks its function. If the row says that the function is required,
 * opening fails instead: X(slot, required, symbol)
 */
#define AMDSMI_CALLS(X)                                    \
    X(init, true, amdsmi_init)                             \
    X(shut_down, true, amdsmi_shut_down)                   \
    X(version, true, amdsmi_get_lib_version)               \
    X(sockets, true, amdsmi_get_socket_handles)            \
    X(processors, true, amdsmi_get_processor_handles)      \
    X(bdf, true, amdsmi_get_gpu_device_bdf)                \
    X(uuid, false, amdsmi_get_gpu_device_uuid)             \
    X(name, false, amdsmi_get_gpu_asic_info)               \
    X(driver, false, amdsmi_get_gpu_driver_info)           \
    X(kfd, false, amdsmi_get_gpu_kfd_info)                 \
    X(enumeration, false, amdsmi_get_gpu_enumeration_info) \
    X(power, false, amdsmi_get_power_info)                 \
    X(power_cap, false, amdsmi_get_power_cap_info)         \
    X(energy, false, amdsmi_get_energy_count)              \
    X(clock, false, amdsmi_get_clock_info)                 \
    X(usage, false, amdsmi_get_gpu_activity)               \
    X(memory, false, amdsmi_get_gpu_memory_total)          \
    X(temperature, false, amdsmi_get_temp_metric)          \
    X(set_power_cap, false, amdsmi_set_power_cap)          \
    X(level, false, amdsmi_get_gpu_perf_level)             \
    X(set_level, false, amdsmi_set_gpu_perf_level)         \
    X(set_clock, false, amdsmi_set_gpu_clk_limit)

#define AMDSMI_CALL_SLOT(slot, required, symbol) symbol##_function *slot;
struct amdsmi_calls {
    AMDSMI_CALLS(AMDSMI_CALL_SLOT)
};
#undef AMDSMI_CALL_SLOT

struct amdsmi_library {
    struct amdsmi_calls call;
    const struct amdsmi_layout *layout; /* of its version */
    struct shared_object object;
    pthread_mutex_t lock;
    size_t users; /* number of users; the last one releases it */
    pid_t owner;  /* the process that initialised it */
};

/*
 * Loads and initialises the library at `path` or, if that is NULL, by the names of its versions,
 * newest first. It is returned with one user. FLY_EUNSUPPORTED if there is no library, no driver
 * or an unknown version, FLY_EPERM, FLY_EREAD if it fails; the text names the library and the
 * next step.
 */
int amdsmi_library_open(const char *path, struct amdsmi_library **out_library, struct fly_error *out_error);

/*
 * Gives up one use; the last one shuts the library down and frees it. A forked child only frees
 * memory, since it shares the open files of its parent. For one thread.
 */
void amdsmi_library_release(struct amdsmi_library *library);

void amdsmi_library_lock(struct amdsmi_library *library);
void amdsmi_library_unlock(struct amdsmi_library *library);

/*
 * Return what a status means, as text, and the state of a reading that fails with it; also for
 * unknown codes.
 */
const char *amdsmi_meaning(amdsmi_status status);
struct reading amdsmi_failed_reading(amdsmi_status status);

#endif
