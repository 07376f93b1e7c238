/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_NVIDIA_CUDA_CONTEXT_H
#define FLYBALL_DEVICE_NVIDIA_CUDA_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "base/shared_object.h"

/*
 * One GPU through CUDA's driver library, loaded at run time; what is called of it is declared here, so that
 * no toolkit is needed.
 *
 *     struct cuda_context context;
 *     int code = cuda_context_open(NULL, "00000000:07:00.0", &context, out_error);
 *
 *     if (code == 0)
 *         code = cuda_context_load(&context, text, &module);
 *     ...
 *     cuda_context_close(&context);
 *
 * If the driver hangs or crashes, so does the caller: use it in a process of its own.
 */
typedef uint64_t cuda_address;

/*
 *     X(slot, symbol, parameters)
 *
 * All return 0 or an error code. The library has to have all of them.
 */
#define CUDA_CALLS(X)                                                                                 \
    X(init, "cuInit", (unsigned flags))                                                               \
    X(device_by_pci, "cuDeviceGetByPCIBusId", (int *out_device, const char *pci))                     \
    X(attribute, "cuDeviceGetAttribute", (int *out_value, int attribute, int device))                 \
    X(set_flags, "cuDevicePrimaryCtxSetFlags_v2", (int device, unsigned flags))                       \
    X(retain, "cuDevicePrimaryCtxRetain", (void **out_context, int device))                           \
    X(release, "cuDevicePrimaryCtxRelease_v2", (int device))                                          \
    X(set_current, "cuCtxSetCurrent", (void *context))                                                \
    X(synchronize, "cuCtxSynchronize", (void))                                                        \
    X(load, "cuModuleLoadData", (void **out_module, const void *text))                                \
    X(unload, "cuModuleUnload", (void *module))                                                       \
    X(function, "cuModuleGetFunction", (void **out_function, void *module, const char *name))         \
    X(allocate, "cuMemAlloc_v2", (cuda_address * out_address, size_t bytes))                          \
    X(free, "cuMemFree_v2", (cuda_address address))                                                   \
    X(memory_info, "cuMemGetInfo_v2", (size_t * out_free, size_t * out_total))                        \
    X(set_memory, "cuMemsetD8_v2", (cuda_address address, unsigned char byte, size_t count))          \
    X(copy_out, "cuMemcpyDtoH_v2", (void *out, cuda_address address, size_t bytes))                   \
    X(launch, "cuLaunchKernel",                                                                       \
      (void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,   \
       unsigned threads_y, unsigned threads_z, unsigned shared_bytes, void *stream, void **arguments, \
       void **extra))

#define CUDA_SLOT(slot, symbol, parameters) int(*slot) parameters;
struct cuda_calls {
    CUDA_CALLS(CUDA_SLOT)
};
#undef CUDA_SLOT

struct cuda_context {
    struct shared_object object;
    struct cuda_calls call;
    int device, processors;
    void *context; /* NULL: none was had */
};

/*
 * Opens the GPU at `pci` through the library at `library_path` (NULL: libcuda.so.1, as the loader finds it),
 * and makes its primary context current. FLY_EUNSUPPORTED if there is no library, it lacks a function, or
 * CUDA has no such GPU; FLY_EREAD if a call failed, with its name and code. Close it in any case.
 */
int cuda_context_open(const char *library_path, const char *pci, struct cuda_context *out_context,
                      struct fly_error *out_error);

/* Undoes what opening has done. Modules and memory are the caller's. */
void cuda_context_close(struct cuda_context *context);

/* Sets the error of a call that failed with a code; returns FLY_EREAD. */
int cuda_failed(const char *symbol, int code, struct fly_error *out_error);

#endif
