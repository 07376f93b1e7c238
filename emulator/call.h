/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_CALL_H
#define FLYBALL_EMULATOR_CALL_H

#include "device/nvidia/nvml_abi.h"
#include "emulator/gpu.h"

/*
 * What every function of the library does before and after its own work: checks that the library is
 * initialised and its arguments are given, takes the time that calls take, applies the script's faults, and
 * holds the state's lock.
 *
 *     int nvmlDeviceGetIndex(struct nvml_device *device, unsigned *index)
 *     {
 *         struct call call;
 *         int code = call_device(&call, __func__, device, index != NULL);
 *
 *         if (code == NVML_SUCCESS)
 *             *index = call.gpu->index;
 *         return call_end(&call, code);
 *     }
 */
struct call {
    struct emulator_state *state; /* NULL: not held */
    struct emulated_gpu *gpu;     /* settled at now_ns */
    int64_t now_ns;
    int instance; /* index of the handle's MIG instance; -1: the whole GPU */
};

/* Whether the library is initialised in this process. */
bool call_library_is_open(void);

/* What the functions below do after their arguments are checked. */
int call_enter(struct call *call, const char *function, int gpu);
int call_enter_device(struct call *call, const char *function, const struct nvml_device *device);
int call_enter_instance(struct call *call, const char *function, const struct nvml_device *device);
int call_enter_setting(struct call *call, const char *function, const struct nvml_device *device);

/* Ends a call that lacks arguments; inline, so that a static analyser sees it. */
static inline int call_refuse(struct call *call)
{
    *call = (struct call){.state = NULL};
    return call_library_is_open() ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
}

/*
 * Begins a call about a device. Returns NVML_SUCCESS with the lock held, or the code with which the call ends
 * at once.
 */
static inline int call_device(struct call *call, const char *function, const struct nvml_device *device,
                              bool arguments_given)
{
    return arguments_given ? call_enter_device(call, function, device) : call_refuse(call);
}

/* The same for a call that also works on a MIG instance; other calls are not supported there. */
static inline int call_instance(struct call *call, const char *function, const struct nvml_device *device,
                                bool arguments_given)
{
    return arguments_given ? call_enter_instance(call, function, device) : call_refuse(call);
}

/* The same for a call that changes a setting: only root may, unless the state lets every user. */
static inline int call_setting(struct call *call, const char *function, const struct nvml_device *device,
                               bool arguments_given)
{
    return arguments_given ? call_enter_setting(call, function, device) : call_refuse(call);
}

/* The same for a call about the whole machine, or about a GPU that is yet to be found (-1: none). */
static inline int call_system(struct call *call, const char *function, int gpu, bool arguments_given)
{
    return arguments_given ? call_enter(call, function, gpu) : call_refuse(call);
}

/* Whether the calling process may change what only root may, on a call that holds the lock. */
bool call_may_set(const struct call *call);

/* Releases what the call holds; returns the code. */
int call_end(struct call *call, int code);

/* The handle of a GPU; of one of its instances. */
struct nvml_device *call_handle(unsigned gpu);
struct nvml_device *call_instance_handle(unsigned gpu, unsigned instance);

/* Initialises the library in this process, and undoes that. */
int call_library_open(const char *function);
int call_library_close(const char *function);

/* Why this thread's last initialisation found no GPUs to emulate; "" when it did. */
const char *call_library_complaint(void);

/* Copies a text into a caller's buffer: NVML_SUCCESS or NVML_INSUFFICIENT_SIZE. */
__attribute__((format(printf, 3, 4))) int call_text(char *out, unsigned bytes, const char *format, ...);

#endif
