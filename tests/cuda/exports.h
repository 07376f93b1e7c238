/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_CUDA_EXPORTS_H
#define FLYBALL_TESTS_CUDA_EXPORTS_H

#include <stddef.h>
#include <stdint.h>

/* What a stand-in for the CUDA driver's library answers. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetByPCIBusId(int *device, const char *pci);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags);
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuCtxSetCurrent(void *context);
EXPORT int cuCtxSynchronize(void);
EXPORT int cuModuleLoadData(void **module, const void *text);
EXPORT int cuModuleUnload(void *module);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes);
EXPORT int cuMemFree_v2(uint64_t address);
EXPORT int cuLaunchKernel(void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                          unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                          void *stream, void **arguments, void **extra);

#endif
