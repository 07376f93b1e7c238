/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 that computes nothing and takes its time: a kernel of Flyball's lasts as long as it would on
 * an emulated GPU, and draws power there for as long. So a program that trains through the driver can be
 * measured as on hardware. STANDIN_CUDA_WATTS (330) is what the heaviest kernel wants; those bound by memory
 * want less. Habits of the driver on a bad day, by STANDIN_CUDA:
 *
 *     no_init       cuInit fails with 100
 *     no_gpu        no GPU of that place
 *     no_compiler   compiles nothing at all
 *     busy          no context is to be had: another process has the GPU for itself
 *     launch_fails  each launch from the 100th on fails with 719
 *     hang          the 100th launch never comes back
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulator/boards.h"
#include "emulator/control.h"
#include "emulator/identity.h"
#include "exports.h"
#include "model/gpu_model.h"

enum {
    INVALID_VALUE = 1,
    NO_DEVICE = 100,
    NOT_FOUND = 500,
    UNAVAILABLE = 46,
    INVALID_PTX = 218,
    LAUNCH_FAILED = 719
};
enum { QUEUE_MAX = 256, BAD_LAUNCH = 100, PROCESSORS = 108, MULTIPROCESSOR_COUNT = 16 };
static const double flop_per_s = 40e12, bytes_per_s = 1.5e12, load_steps_per_s = 1.6e7;
static const uint64_t free_bytes = UINT64_C(16) << 30;

/* The seconds of a launch at the highest clock. */
static double multiply_s(void **arguments)
{
    double n = *(unsigned *)arguments[4];

    return 2.0 * n * n * n / flop_per_s;
}

static double update_s(void **arguments)
{
    return 16.0 * (4.0 * *(unsigned *)arguments[3] + *(unsigned *)arguments[4]) / bytes_per_s;
}

static double load_s(void **arguments)
{
    return *(uint32_t *)arguments[1] / load_steps_per_s;
}

static double short_s(void **arguments)
{
    (void)arguments;
    return 20e-6;
}

static const struct kernel {
    const char *name;
    double (*seconds)(void **arguments);
    double share;  /* of the power that the heaviest wants above idle */
    bool by_clock; /* the clock sets its pace */
} kernels[] = {
    {"flyball_multiply", multiply_s, 1.0, true}, {"flyball_update", update_s, 0.55, false},
    {"flyball_load", load_s, 1.0, true},         {"flyball_loss", short_s, 0.3, true},
    {"flyball_fill", short_s, 0.3, true},
};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

static struct {
    struct emulator *machine;
    unsigned gpu;
    int slot;
    bool working;
    double idle_w, wanted_w, share; /* share: of the load that is there now */
    const struct kernel *queue[QUEUE_MAX];
    double queue_s[QUEUE_MAX];
    unsigned queued;
    unsigned long launches, losses;
    uint64_t next_address;
} driver = {.next_address = 0x10000, .share = -1.0};

static bool is(const char *habit)
{
    const char *chosen = getenv("STANDIN_CUDA");

    return chosen != NULL && strcmp(chosen, habit) == 0;
}

/* A program that could not have the GPU never gives it back. */
__attribute__((destructor)) static void leave(void)
{
    emulator_close(driver.machine);
}

int cuInit(unsigned flags)
{
    return flags != 0 ? INVALID_VALUE : is("no_init") ? NO_DEVICE : 0;
}

int cuDeviceGetByPCIBusId(int *device, const char *pci)
{
    if (is("no_gpu") || (driver.machine == NULL && emulator_open_or_create(NULL, &driver.machine, NULL) < 0))
        return NO_DEVICE;
    for (unsigned i = 0; i < emulator_gpu_count(driver.machine); i++) {
        char bus_id[IDENTITY_MAX];

        identity_bus_id(&driver.machine->state->gpus[i], bus_id);
        if (strcmp(bus_id, pci) == 0) {
            driver.gpu = i;
            *device = 0;
            return 0;
        }
    }
    return NO_DEVICE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = PROCESSORS;
    return device == 0 && attribute == MULTIPROCESSOR_COUNT ? 0 : INVALID_VALUE;
}

int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    return device == 0 && flags == 4 ? 0 : INVALID_VALUE;
}

static void put_load(double share)
{
    struct emulator_load load = {.wanted_w = driver.idle_w + share * (driver.wanted_w - driver.idle_w),
                                 .utilization = share > 0.0 ? 1.0 : 0.0,
                                 .memory_bytes = UINT64_C(1) << 30};

    if (share == driver.share || !driver.working)
        return;
    emulator_work_change(driver.machine, driver.gpu, driver.slot, &load);
    driver.share = share;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    static int place;
    const char *watts = getenv("STANDIN_CUDA_WATTS");
    struct emulator_load none = {.memory_bytes = UINT64_C(1) << 30};

    if (device != 0 || is("busy"))
        return UNAVAILABLE;
    driver.idle_w = gpu_shape_find(emulated_boards[emulator_settings_of(driver.machine)->board].name)->idle_w;
    driver.wanted_w = watts != NULL ? strtod(watts, NULL) : 330.0;
    none.wanted_w = driver.idle_w;
    driver.working = emulator_work_begin(driver.machine, driver.gpu, &none, &driver.slot, NULL) == 0;
    *context = &place;
    return driver.working ? 0 : UNAVAILABLE;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    if (driver.working)
        emulator_work_end(driver.machine, driver.gpu, driver.slot);
    driver.working = false;
    emulator_close(driver.machine);
    driver.machine = NULL;
    return device == 0 ? 0 : INVALID_VALUE;
}

int cuCtxSetCurrent(void *context)
{
    return context != NULL ? 0 : INVALID_VALUE;
}

int cuModuleLoadData(void **module, const void *text)
{
    *module = &driver;
    return !is("no_compiler") && strncmp(text, ".version ", 9) == 0 ? 0 : INVALID_PTX;
}

int cuModuleUnload(void *module)
{
    return module == &driver ? 0 : INVALID_VALUE;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    for (size_t i = 0; module == &driver && i < KERNELS; i++) {
        if (strcmp(kernels[i].name, name) == 0) {
            memcpy(function, &(const void *){&kernels[i]}, sizeof *function);
            return 0;
        }
    }
    return NOT_FOUND;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    *address = driver.next_address;
    driver.next_address += bytes;
    return bytes > 0 ? 0 : INVALID_VALUE;
}

int cuMemFree_v2(uint64_t address)
{
    return address != 0 ? 0 : INVALID_VALUE;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *free = *total = free_bytes;
    return 0;
}

int cuMemsetD8_v2(uint64_t address, unsigned char byte, size_t count)
{
    (void)byte;
    return address != 0 && count > 0 ? 0 : INVALID_VALUE;
}

/* What is copied is always the loss, and it falls. */
int cuMemcpyDtoH_v2(void *out, uint64_t address, size_t bytes)
{
    float loss = 1e6F / (float)++driver.losses;

    if (address == 0 || bytes != sizeof loss)
        return INVALID_VALUE;
    (void)cuCtxSynchronize();
    memcpy(out, &loss, sizeof loss);
    return 0;
}

int cuLaunchKernel(void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                   void *stream, void **arguments, void **extra)
{
    const struct kernel *kernel = function;

    if (blocks_x == 0 || blocks_y == 0 || blocks_z != 1 || threads_x != 256 || threads_y != 1 ||
        threads_z != 1 || shared_bytes != 0 || stream != NULL || extra != NULL)
        return INVALID_VALUE;
    driver.launches++;
    if (driver.launches >= BAD_LAUNCH && is("launch_fails"))
        return LAUNCH_FAILED;
    while (driver.launches == BAD_LAUNCH && is("hang"))
        pause();
    if (driver.queued == QUEUE_MAX)
        (void)cuCtxSynchronize();
    driver.queue[driver.queued] = kernel;
    driver.queue_s[driver.queued++] = kernel->seconds(arguments);
    return 0;
}

/* Works off what was launched, each kernel for its time at the clock that the GPU has. */
int cuCtxSynchronize(void)
{
    struct mono_time at = mono_now();

    for (unsigned i = 0; i < driver.queued; i++) {
        put_load(driver.queue[i]->share);
        at = mono_after_s(at,
                          driver.queue_s[i] /
                              (driver.queue[i]->by_clock ? emulator_speed(driver.machine, driver.gpu) : 1.0));
        if (i + 1 == driver.queued || driver.queue[i + 1] != driver.queue[i])
            clock_real.sleep_until(NULL, at);
    }
    driver.queued = 0;
    put_load(0.0);
    return 0;
}
