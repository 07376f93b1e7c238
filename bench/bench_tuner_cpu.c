/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flyball's own processor time in an hour of training: a loop whose steps sleep, alone, with a meter and a
 * settled tuner, and with a tuner that searches, each for SECONDS on an emulated GPU. getrusage counts all
 * threads, so it includes the sampling thread and the emulator's work for each call, in place of a driver's.
 * Nothing passes or fails.
 *
 *     bench_tuner_cpu LIBRARY [SECONDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <flyball/tuner.h>

#include "base/clock.h"
#include "device/backend.h"
#include "emulator/control.h"
#include "meter/meter.h"
#include "train/tuner/tuner_private.h"

enum { STEP_NS = 20000000, LIMITS = 200 };

static char state_path[64];
static double seconds = 5.0;

__attribute__((noreturn)) static void die(const char *text)
{
    fprintf(stderr, "bench_tuner_cpu: %s\n", text);
    unlink(state_path);
    exit(1);
}

static int knob_range(void *data, struct fly_turner_range *out_range, struct fly_error *out_error)
{
    (void)data;
    (void)out_error;
    *out_range = (struct fly_turner_range){.lowest = 100.0, .highest = 400.0};
    return 0;
}

static int knob_set(void *data, double limit_w, struct fly_error *out_error)
{
    (void)out_error;
    return emulator_set_limit_w(data, 0, limit_w, NULL);
}

static int knob_standing(void *data, double *out_limit_w, struct fly_error *out_error)
{
    (void)out_error;
    *out_limit_w = emulator_limit_w(data, 0);
    return 0;
}

static double cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Processor seconds of the loop per second that it took. */
static double run_steps(struct fly_tuner *tuner)
{
    const struct timespec pause = {.tv_nsec = STEP_NS};
    struct mono_time begin = mono_now();
    double cpu_begin_s = cpu_s();

    while (mono_elapsed_s(begin, mono_now()) < seconds) {
        if (tuner != NULL)
            (void)fly_tuner_step_begin(tuner);
        nanosleep(&pause, NULL);
    }
    return (cpu_s() - cpu_begin_s) / mono_elapsed_s(begin, mono_now());
}

static double run_tuner(struct fly_meter *meter, struct emulator *emulator, bool settled)
{
    static const struct fly_turner turner = {knob_range, knob_set, knob_standing};
    double limits_w[LIMITS], share;
    struct fly_tuner_options options = {.size = sizeof options,
                                        .meter = meter,
                                        .turner = &turner,
                                        .turner_data = emulator,
                                        .limits_w = limits_w,
                                        .limit_count = LIMITS,
                                        .objective = {FLY_OBJECTIVE_TIME, 0.0, 1.03}};
    struct fly_tuner *tuner;
    struct fly_error error;

    /* Enough limits that the search lasts. */
    for (size_t i = 0; i < LIMITS; i++)
        limits_w[i] = 400.0 - (double)i;
    if (fly_tuner_new(&options, &tuner, &error) < 0)
        die(error.text);
    if (settled) {
        /* As after a choice, with the next check beyond the run. */
        tuner->state = FLY_TUNER_SETTLED;
        tuner->quiet_until = UINT64_MAX / 2;
    }
    share = run_steps(tuner);
    if (!settled && fly_tuner_state(tuner) != FLY_TUNER_SEARCHING)
        die("the search ended too soon; give fewer seconds");
    fly_tuner_free(tuner);
    return share;
}

static struct emulator *start(void)
{
    struct emulator_settings settings = emulator_default_settings;
    struct emulator *emulator;
    struct fly_error error;

    snprintf(state_path, sizeof state_path, "/tmp/flyball-bench-tuner-%d", (int)getpid());
    setenv("FLYBALL_EMULATOR_STATE", state_path, 1);
    if (emulator_settings_parse(&settings, "gpus=1,model=a100,ideal", &error) < 0 ||
        emulator_create(state_path, &settings, &emulator, &error) < 0)
        die(error.text);
    emulator_set_load(emulator, 0, 90.0);
    return emulator;
}

static void print_share(const char *what, double share, double alone)
{
    printf("%-35s %8.2f s an hour of training, %.3f %% of it; with it %.2f times the loop alone\n", what,
           (share - alone) * 3600.0, (share - alone) * 100.0, share / alone);
}

int main(int argc, char **argv)
{
    static struct device_list list;
    struct device_options options = {.nvml_path = argc > 1 ? argv[1] : NULL};
    const struct meter_parts parts = {.devices = &list};
    struct emulator *emulator = start();
    struct fly_meter *meter;
    struct fly_error error;
    double alone, settled, searching;

    if (argc < 2)
        die("usage: bench_tuner_cpu LIBRARY [SECONDS]");
    if (argc > 2)
        seconds = strtod(argv[2], NULL);
    alone = run_steps(NULL);
    if (device_backend_nvml.open(&options, &list, &error) < 0 || meter_new(&parts, &meter, &error) < 0)
        die(error.text);
    settled = run_tuner(meter, emulator, true);
    searching = run_tuner(meter, emulator, false);
    fly_meter_close(meter);
    device_list_close(&list);
    emulator_close(emulator);
    emulator_remove(state_path, NULL);
    printf("a loop of steps of %d ms alone       %8.2f s an hour of training\n", STEP_NS / 1000000,
           alone * 3600.0);
    print_share("processor time, tuner settled", settled, alone);
    print_share("processor time, tuner searching", searching, alone);
    return 0;
}
