/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_CALL_H
#define FLYBALL_EMULATOR_CALL_H

#include "device/nvml_abi.h"
#include "emulator/gpu.h"

/*
 * What every function of the library does before and after its own work: check
 * that the library is initialised and its arguments are there, take as long as
 * calls take, meet the faults of the script, hold the lock of the state.
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
};

/* Begins a call about a device; the code that it ends with at once, or NVML_SUCCESS with the lock held. */
int call_device(struct call *call, const char *function, const struct nvml_device *device,
                bool arguments_given);

/* The same for a call that turns something: only root may, unless the state lets every user. */
int call_setting(struct call *call, const char *function, const struct nvml_device *device,
                 bool arguments_given);

/* The same for a call about the whole machine, or about the GPU that has yet to be found (-1: none). */
int call_system(struct call *call, const char *function, int gpu, bool arguments_given);

/* Releases what is held, and returns the code. */
int call_end(struct call *call, int code);

/* The handle of a GPU. */
struct nvml_device *call_handle(unsigned gpu);

/* The initialisation of the library in this process. */
int call_library_open(const char *function);
int call_library_close(const char *function);

/* Copies a text into a caller's buffer: NVML_SUCCESS or NVML_INSUFFICIENT_SIZE. */
__attribute__((format(printf, 3, 4))) int call_text(char *out, unsigned bytes, const char *format, ...);

#endif
