/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of measuring, on emulated GPUs: a window's begin and end, compared with the bare calls of the
 * driver, and the processor time of the sampling thread. Each line is a figure and its ratio to a reference
 * measured in the same run. Nothing here passes or fails.
 *
 *     bench_meter LIBRARY [SECONDS]
 *
 * LIBRARY is the emulator's libnvidia-ml.so.1; the sampler is watched for SECONDS (10 unless given).
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/math/order.h"
#include "device/backend.h"
#include "emulator/control.h"
#include "meter/meter.h"

enum { ROUNDS = 31, GPUS_MAX = 8 };

static char state_path[64];

__attribute__((noreturn)) static void die(const char *text)
{
    fprintf(stderr, "bench_meter: %s\n", text);
    exit(1);
}

/* The driver, as a program without Flyball calls it. */
struct bare {
    void *library;
    int (*init)(void), (*shutdown)(void);
    int (*handle)(unsigned index, void **out_device);
    int (*energy)(void *device, unsigned long long *out_mj);
    void *devices[GPUS_MAX];
    unsigned count;
};

static void *symbol(const struct bare *bare, const char *name)
{
    void *found = dlsym(bare->library, name);

    if (found == NULL)
        die("the driver library lacks a function");
    return found;
}

static struct bare open_bare(const char *path, unsigned count)
{
    struct bare bare = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL), .count = count};

    if (bare.library == NULL)
        die(dlerror());
    *(void **)&bare.init = symbol(&bare, "nvmlInit_v2");
    *(void **)&bare.shutdown = symbol(&bare, "nvmlShutdown");
    *(void **)&bare.handle = symbol(&bare, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&bare.energy = symbol(&bare, "nvmlDeviceGetTotalEnergyConsumption");
    if (bare.init() != 0)
        die("the driver library does not start");
    for (unsigned i = 0; i < count; i++) {
        if (bare.handle(i, &bare.devices[i]) != 0)
            die("a GPU cannot be had");
    }
    return bare;
}

static struct emulator *start(unsigned gpus, unsigned latency_us)
{
    struct emulator_settings settings = emulator_default_settings;
    struct emulator *emulator;
    struct fly_error error;
    char text[128];

    snprintf(text, sizeof text, "gpus=%u,model=a100,ideal,latency=busy,latency-us=%u", gpus, latency_us);
    unlink(state_path);
    if (emulator_settings_parse(&settings, text, &error) < 0 ||
        emulator_create(state_path, &settings, &emulator, &error) < 0)
        die(error.text);
    for (unsigned i = 0; i < gpus; i++)
        emulator_set_load(emulator, i, 300.0);
    return emulator;
}

static struct fly_meter *open_meter(const char *path, struct device_list *list)
{
    const struct device_options options = {.nvml_path = path};
    const struct meter_parts parts = {.devices = list};
    struct fly_meter *meter;
    struct fly_error error;

    memset(list, 0, sizeof *list);
    if (device_backend_nvml.open(&options, list, &error) < 0 || meter_new(&parts, &meter, &error) < 0)
        die(error.text);
    return meter;
}

/* Seconds for `windows` times what a begin and an end ask of the driver. */
static double time_bare(const struct bare *bare, unsigned windows)
{
    struct mono_time begin = mono_now();
    unsigned long long energy_mj;

    for (unsigned i = 0; i < 2 * windows; i++) {
        for (unsigned gpu = 0; gpu < bare->count; gpu++) {
            if (bare->energy(bare->devices[gpu], &energy_mj) != 0)
                die("the counter cannot be read");
        }
    }
    return mono_elapsed_s(begin, mono_now());
}

static double time_windows(struct fly_meter *meter, unsigned windows)
{
    struct fly_device_energy energies[GPUS_MAX];
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = energies, .device_capacity = GPUS_MAX};
    struct mono_time begin = mono_now();

    for (unsigned i = 0; i < windows; i++) {
        fly_window window;

        if (fly_meter_begin(meter, "bench", &window, NULL) < 0 ||
            fly_meter_end(meter, window, &measured, NULL) < 0)
            die("a window cannot be measured");
    }
    return mono_elapsed_s(begin, mono_now());
}

/* Sorts; returns the least, which is the true cost: the rest is what else the machine did. */
static double least(double *values)
{
    qsort(values, ROUNDS, sizeof values[0], order_doubles);
    return values[0];
}

static void bench_windows(const char *path, unsigned gpus, unsigned latency_us)
{
    unsigned windows = latency_us > 0 ? 400 / gpus : 50000 / gpus;
    struct emulator *emulator = start(gpus, latency_us);
    struct bare bare = open_bare(path, gpus);
    static struct device_list list;
    struct fly_meter *meter = open_meter(path, &list);
    double bare_s[ROUNDS], measured_s[ROUNDS], ratios[ROUNDS], ratio;

    (void)time_windows(meter, 10);
    for (int i = 0; i < ROUNDS; i++) {
        bare_s[i] = time_bare(&bare, windows) / windows;
        measured_s[i] = time_windows(meter, windows) / windows;
        ratios[i] = measured_s[i] / bare_s[i];
    }
    fly_meter_close(meter);
    device_list_close(&list);
    bare.shutdown();
    emulator_close(emulator);
    emulator_remove(state_path, NULL);
    ratio = least(measured_s) / least(bare_s);
    (void)least(ratios);
    printf("begin and end, %u GPU%s calls of %2u us  %8.1f us in the bare calls; with the meter %5.3f times "
           "(rounds: %.3f in the middle, %.3f at most), own time per device %.0f ns\n",
           gpus, gpus > 1 ? "s," : ", ", latency_us, bare_s[0] * 1e6, ratio, ratios[ROUNDS / 2],
           ratios[ROUNDS - 1], (measured_s[0] - bare_s[0]) / gpus * 1e9);
}

static double thread_cpu_s(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static void bench_sampler(const char *path, double seconds)
{
    struct emulator *emulator = start(GPUS_MAX, 0);
    static struct device_list list;
    struct fly_meter *meter = open_meter(path, &list);
    struct mono_time begin = mono_now();
    double before_s = meter_own_cpu_s(meter), own_s, passed_s, device_s;
    struct device_reading reading;

    clock_real.sleep_until(NULL, mono_after_s(begin, seconds));
    passed_s = mono_elapsed_s(begin, mono_now());
    own_s = meter_own_cpu_s(meter) - before_s;
    /* The same questions without the meter: sleeps in between, as a sampler does. */
    before_s = thread_cpu_s();
    for (int round = 0; round < 20; round++) {
        clock_real.sleep_until(NULL, mono_after_s(mono_now(), 0.1));
        for (size_t i = 0; i < list.count; i++)
            device_read(&list.devices[i], &clock_real,
                        QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
                            QUANTITY_BIT(QUANTITY_UTILIZATION) | QUANTITY_BIT(QUANTITY_THROTTLE),
                        &reading);
    }
    device_s = (thread_cpu_s() - before_s) / 20.0 * 10.0;
    fly_meter_close(meter);
    device_list_close(&list);
    emulator_close(emulator);
    emulator_remove(state_path, NULL);
    printf(
        "sampling %d GPUs at 10 Hz           %8.0f us of processor time a second over %.0f s, %.3f %% of a "
        "core; %.2f times the bare calls at that rate\n",
        GPUS_MAX, own_s / passed_s * 1e6, passed_s, 100.0 * own_s / passed_s, own_s / passed_s / device_s);
}

int main(int argc, char **argv)
{
    static const unsigned gpu_counts[] = {1, GPUS_MAX}, latencies_us[] = {50, 0};

    if (argc < 2)
        die("usage: bench_meter LIBRARY [SECONDS]");
    snprintf(state_path, sizeof state_path, "/tmp/flyball-bench-%d", (int)getpid());
    setenv("FLYBALL_EMULATOR_STATE", state_path, 1);
    for (size_t latency = 0; latency < 2; latency++) {
        for (size_t gpus = 0; gpus < 2; gpus++)
            bench_windows(argv[1], gpu_counts[gpus], latencies_us[latency]);
    }
    bench_sampler(argv[1], argc > 2 ? strtod(argv[2], NULL) : 10.0);
    return 0;
}
