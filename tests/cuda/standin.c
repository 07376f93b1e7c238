/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that computes nothing: it checks that its functions are called
 * in an order that the driver allows and with arguments that it would take, and
 * writes each call as a line into the file that STANDIN_CUDA_LOG names. The real
 * driver's habits on a bad day are had by STANDIN_CUDA:
 *
 *     no_gpu        no GPU of that place
 *     old           compiles nothing newer than version 6.0 and nothing beyond sm_70
 *     new           compiles nothing for targets before sm_75
 *     no_compiler   compiles nothing at all
 *     launch_fails  the 3rd launch fails with 719
 *     crash         dies in the 3rd launch
 *     hang          never comes back from the 3rd launch
 *     hang_at_init  never comes back from cuInit
 *
 * With STANDIN_CUDA_WATTS its GPUs are those of the emulator, and the first launch
 * puts a load of so many watts on one of them, which ends with the process.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emulator/control.h"
#include "emulator/identity.h"
#include "exports.h"

#define PCI "00000000:07:00.0"

enum {
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX = 222,
    NOT_FOUND = 500,
    LAUNCH_FAILED = 719,
    STEPS_PER_MS = 1 << 14
};

static struct {
    bool initialized, retained, current, loaded, found, allocated;
    int launches;
    uint32_t pending_steps;
} seen;
static struct {
    struct emulator *machine; /* NULL: none is loaded */
    unsigned gpu;
    int slot;
} emulated;
static int context_place, module_place, function_place;

static bool is(const char *habit)
{
    const char *chosen = getenv("STANDIN_CUDA");

    return chosen != NULL && strcmp(chosen, habit) == 0;
}

/* One line for each call; returns the code, so that a function can end with it. */
static int done(const char *call, int code)
{
    const char *path = getenv("STANDIN_CUDA_LOG");
    FILE *log = path != NULL ? fopen(path, "a") : NULL;

    if (log != NULL) {
        fprintf(log, "%s %d\n", call, code);
        fclose(log);
    }
    return code;
}

static void hang(void)
{
    for (;;)
        pause();
}

int cuInit(unsigned flags)
{
    if (is("hang_at_init"))
        hang();
    seen.initialized = flags == 0;
    return done("cuInit", flags == 0 ? 0 : INVALID_VALUE);
}

/* The emulated GPU of that place. */
static bool find_emulated(const char *pci)
{
    if (emulator_open(NULL, &emulated.machine, NULL) < 0)
        return false;
    for (unsigned i = 0; i < emulator_gpu_count(emulated.machine); i++) {
        char bus_id[IDENTITY_MAX];

        identity_bus_id(&emulated.machine->state->gpus[i], bus_id);
        if (strcmp(bus_id, pci) == 0) {
            emulated.gpu = i;
            return true;
        }
    }
    return false;
}

static bool put_load(void)
{
    struct emulator_load load = {
        .wanted_w = strtod(getenv("STANDIN_CUDA_WATTS"), NULL), .utilization = 1, .memory_bytes = 1 << 20};

    return emulator_work_begin(emulated.machine, emulated.gpu, &load, &emulated.slot, NULL) == 0;
}

int cuDeviceGetByPCIBusId(int *device, const char *pci)
{
    bool wanted = getenv("STANDIN_CUDA_WATTS") != NULL;

    if (!seen.initialized)
        return done("cuDeviceGetByPCIBusId", NOT_INITIALIZED);
    if (is("no_gpu") || (wanted ? !find_emulated(pci) : strcmp(pci, PCI) != 0))
        return done("cuDeviceGetByPCIBusId", NO_DEVICE);
    *device = 0;
    return done("cuDeviceGetByPCIBusId", 0);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    if (!seen.initialized || device != 0 || attribute != 16)
        return done("cuDeviceGetAttribute", INVALID_VALUE);
    *value = 84;
    return done("cuDeviceGetAttribute", 0);
}

int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    bool valid = seen.initialized && device == 0 && flags == 4 && !seen.retained;

    return done("cuDevicePrimaryCtxSetFlags", valid ? 0 : INVALID_VALUE);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (!seen.initialized || device != 0)
        return done("cuDevicePrimaryCtxRetain", INVALID_VALUE);
    seen.retained = true;
    *context = &context_place;
    return done("cuDevicePrimaryCtxRetain", 0);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    bool valid = device == 0 && seen.retained && !seen.loaded && !seen.allocated;

    if (emulated.machine != NULL && seen.launches > 0)
        emulator_work_end(emulated.machine, emulated.gpu, emulated.slot);
    emulator_close(emulated.machine);
    emulated.machine = NULL;
    seen.retained = false;
    return done("cuDevicePrimaryCtxRelease", valid ? 0 : INVALID_CONTEXT);
}

int cuCtxSetCurrent(void *context)
{
    seen.current = seen.retained && context == &context_place;
    return done("cuCtxSetCurrent", seen.current ? 0 : INVALID_CONTEXT);
}

/* Whether this driver would compile the text, by its first two lines, its entry and its last character. */
static int compile(const char *text)
{
    const char *target_text = strstr(text, "\n.target sm_");
    size_t length = strlen(text);
    unsigned long major, target;

    if (strncmp(text, ".version ", 9) != 0 || target_text == NULL ||
        strstr(text, ".visible .entry flyball_load(") == NULL || strcmp(text + length - 2, "}\n") != 0)
        return INVALID_PTX;
    major = strtoul(text + 9, NULL, 10);
    target = strtoul(target_text + strlen("\n.target sm_"), NULL, 10);
    if (is("no_compiler") || (is("new") && target < 75))
        return INVALID_PTX;
    return is("old") && (major > 6 || target > 70) ? UNSUPPORTED_PTX : 0;
}

int cuModuleLoadData(void **module, const void *text)
{
    int code = seen.current ? compile(text) : INVALID_CONTEXT;

    if (code == 0)
        *module = &module_place;
    seen.loaded = code == 0;
    return done("cuModuleLoadData", code);
}

int cuModuleUnload(void *module)
{
    bool valid = seen.loaded && module == &module_place;

    seen.loaded = false;
    return done("cuModuleUnload", valid ? 0 : INVALID_VALUE);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    if (!seen.loaded || module != &module_place || strcmp(name, "flyball_load") != 0)
        return done("cuModuleGetFunction", NOT_FOUND);
    seen.found = true;
    *function = &function_place;
    return done("cuModuleGetFunction", 0);
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    if (!seen.current || bytes != 84 * 8 * 256 * sizeof(float))
        return done("cuMemAlloc", INVALID_VALUE);
    seen.allocated = true;
    *address = 0x7000;
    return done("cuMemAlloc", 0);
}

int cuMemFree_v2(uint64_t address)
{
    bool valid = seen.allocated && address == 0x7000;

    seen.allocated = false;
    return done("cuMemFree", valid ? 0 : INVALID_VALUE);
}

int cuLaunchKernel(void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                   void *stream, void **arguments, void **extra)
{
    bool valid = seen.found && function == &function_place && blocks_x == 84 * 8 && blocks_y == 1 &&
                 blocks_z == 1 && threads_x == 256 && threads_y == 1 && threads_z == 1 && shared_bytes == 0 &&
                 stream == NULL && extra == NULL && *(uint64_t *)arguments[0] == 0x7000 &&
                 *(uint32_t *)arguments[1] > 0;

    if (!valid)
        return done("cuLaunchKernel", INVALID_VALUE);
    seen.pending_steps = *(uint32_t *)arguments[1];
    if (seen.launches == 0 && emulated.machine != NULL && !put_load())
        return done("cuLaunchKernel", LAUNCH_FAILED);
    if (++seen.launches == 3) {
        if (is("crash"))
            abort();
        if (is("hang"))
            hang();
        if (is("launch_fails"))
            return done("cuLaunchKernel", LAUNCH_FAILED);
    }
    return done("cuLaunchKernel", 0);
}

/* A kernel takes time, as its steps and the GPU's clock have it. */
int cuCtxSynchronize(void)
{
    double speed = emulated.machine != NULL ? emulator_speed(emulated.machine, emulated.gpu) : 1;
    double took_s = seen.pending_steps / (STEPS_PER_MS * 1e3 * speed);
    struct timespec pause = {(time_t)took_s, (long)((took_s - (double)(time_t)took_s) * 1e9)};

    nanosleep(&pause, NULL);
    seen.pending_steps = 0;
    return done("cuCtxSynchronize", seen.current ? 0 : INVALID_CONTEXT);
}
