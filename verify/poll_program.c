/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_poll [OPTION ...]: polls what one GPU's driver says, and writes when it changed, as lines of CSV.
 *
 *     --gpu N      as the driver counts them (0)
 *     --nvml FILE  the driver's library, if it is not where the loader looks
 *     --scale X    how long all of it takes, in relation to 25 s (1)
 *     --watch S    reads power for so many seconds, a millisecond apart, and nothing else
 *
 * Times are in ns of the monotonic clock unless they say otherwise. The lines:
 *
 *     call,NAME,CODE,NS                          one call, and how long it took
 *     polls,NAME,BURST,COUNT,BEGIN,END           a burst of calls, one after the other
 *     change,NAME,BURST,BEFORE,BEGIN,END,VALUE   in it: another value than that of the call begun at BEFORE
 *     field,NAME,BEGIN,END,DATE_US,STAMP_US,LATENCY_US,CODE,VALUE   one of a call for several fields
 *     sample,CALL,DATE_US,STAMP_US,VALUE         of the driver's own buffer, read by the CALL-th call
 *     samples,CALL,CODE,COUNT,NS                 such a call
 *     sparse,BEGIN,END,VALUE                     the counter, read rarely, after pauses at random
 *     watch,NAME,BEGIN,END,VALUE                 a reading of --watch
 *     cost,bare|meter,NS                         two bare readings of the counter; a window's begin and end
 *
 * DATE_US is the wall clock between begin and end, STAMP_US what the driver says.
 * VALUE is in mJ or mW. A function that the driver lacks has CODE -1. Nothing is set.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "verify/gpu_at_hand.h"

enum { CALLS = 200, COSTS = 300, SAMPLES_MAX = 4096, LACKING = -1 };
typedef int samples_function(struct nvml_device *device, unsigned type, unsigned long long last_us,
                             unsigned *value_type, unsigned *count, struct nvml_sample *samples);

static volatile sig_atomic_t stopped;
static struct gpu_at_hand gpu;
static uint32_t random_state = 1;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static unsigned long long value_of(unsigned type, const union nvml_value *value)
{
    switch (type) {
    case NVML_VALUE_DOUBLE:
        return value->d > 0.0 ? (unsigned long long)value->d : 0;
    case NVML_VALUE_UNSIGNED:
    case NVML_VALUE_SIGNED:
        return value->ui;
    case NVML_VALUE_UNSIGNED_SHORT:
        return value->us;
    default:
        return value->ull;
    }
}

static int read_energy(unsigned long long *out_value)
{
    return gpu.nvml->call.energy != NULL ? gpu.nvml->call.energy(gpu.device, out_value) : LACKING;
}

static int read_power(unsigned long long *out_value)
{
    unsigned power_mw = 0;
    int code = gpu.nvml->call.power != NULL ? gpu.nvml->call.power(gpu.device, &power_mw) : LACKING;

    *out_value = power_mw;
    return code;
}

static int read_field(unsigned id, unsigned long long *out_value)
{
    struct nvml_field_value field = {.field_id = id};
    int code = gpu.nvml->call.fields != NULL ? gpu.nvml->call.fields(gpu.device, 1, &field) : LACKING;

    *out_value = value_of(field.value_type, &field.value);
    return code != NVML_SUCCESS ? code : field.code;
}

static int read_instant(unsigned long long *out_value)
{
    return read_field(NVML_FIELD_POWER_INSTANT, out_value);
}

static int read_average(unsigned long long *out_value)
{
    return read_field(NVML_FIELD_POWER_AVERAGE, out_value);
}

/* The names of readings on the lines, and the fields that one call asks for together. */
struct polled {
    const char *name;
    int (*read)(unsigned long long *out_value);
};
static const struct polled energy = {"energy", read_energy}, power = {"power", read_power},
                           instant = {"power_instant", read_instant},
                           average = {"power_average", read_average};
static const struct {
    const char *name;
    unsigned id;
} fields[] = {{"energy", NVML_FIELD_TOTAL_ENERGY},
              {"power_instant", NVML_FIELD_POWER_INSTANT},
              {"power_average", NVML_FIELD_POWER_AVERAGE}};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static void pause_s(double duration_s)
{
    clock_real.sleep_until(NULL, mono_after_s(mono_now(), duration_s));
}

static double random_s(double low_s, double high_s)
{
    random_state = random_state * 1664525U + 1013904223U;
    return low_s + (high_s - low_s) * random_state / 4294967296.0;
}

/* Busy polling: as fast as the driver answers. */
static void burst(const struct polled *reading, int number, double duration_s)
{
    struct mono_time start = mono_now(), end = mono_after_s(start, duration_s), before = start, now = start;
    unsigned long long last = 0, value;
    unsigned long count = 0;
    int code = 0;

    while (code == 0 && now.ns < end.ns && !stopped) {
        struct mono_time begin = mono_now();

        code = reading->read(&value);
        now = mono_now();
        if (code == 0 && count++ > 0 && value != last)
            printf("change,%s,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%llu\n", reading->name, number,
                   before.ns, begin.ns, now.ns, value);
        last = value;
        before = begin;
    }
    printf("polls,%s,%d,%lu,%" PRId64 ",%" PRId64 "\n", reading->name, number, count, start.ns, now.ns);
}

static void time_calls(const struct polled *reading)
{
    for (int i = 0; i < CALLS && !stopped; i++) {
        struct mono_time begin = mono_now();
        unsigned long long value;
        int code = reading->read(&value);

        printf("call,%s,%d,%" PRId64 "\n", reading->name, code, mono_now().ns - begin.ns);
        if (code != 0)
            break;
    }
}

/* All fields in one call, again and again; `quiet`: how long the calls take alone. */
static void poll_fields(double duration_s, bool quiet)
{
    struct mono_time end = mono_after_s(mono_now(), duration_s);
    int code = gpu.nvml->call.fields != NULL ? 0 : LACKING;

    if (code != 0)
        printf("call,fields,%d,0\n", code);
    for (int i = 0; code == 0 && !stopped && (quiet ? i < CALLS : mono_now().ns < end.ns); i++) {
        struct nvml_field_value values[FIELDS] = {{0}};
        struct mono_time begin, after;
        int64_t date_ns;

        for (int field = 0; field < FIELDS; field++)
            values[field].field_id = fields[field].id;
        begin = mono_now();
        code = gpu.nvml->call.fields(gpu.device, FIELDS, values);
        after = mono_now();
        date_ns = clock_real.date(NULL).ns - (after.ns - begin.ns) / 2;
        if (quiet || code != 0)
            printf("call,fields,%d,%" PRId64 "\n", code, after.ns - begin.ns);
        for (int field = 0; code == 0 && !quiet && field < FIELDS; field++)
            printf("field,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%lld,%lld,%d,%llu\n", fields[field].name,
                   begin.ns, after.ns, date_ns / 1000, values[field].timestamp_us, values[field].latency_us,
                   values[field].code, value_of(values[field].value_type, &values[field].value));
        if (!quiet)
            pause_s(0.001);
    }
}

static unsigned long long read_samples(samples_function *get, int number, unsigned long long last_us)
{
    static struct nvml_sample samples[SAMPLES_MAX];
    unsigned type = 0, count = SAMPLES_MAX;
    struct mono_time begin = mono_now();
    int code = get(gpu.device, NVML_SAMPLES_TOTAL_POWER, last_us, &type, &count, samples);
    int64_t took_ns = mono_now().ns - begin.ns, date_us = clock_real.date(NULL).ns / 1000;

    printf("samples,%d,%d,%u,%" PRId64 "\n", number, code, code == 0 ? count : 0, took_ns);
    for (unsigned i = 0; code == 0 && i < count && i < SAMPLES_MAX; i++) {
        printf("sample,%d,%" PRId64 ",%llu,%llu\n", number, date_us, samples[i].timestamp_us,
               value_of(type, &samples[i].value));
        last_us = samples[i].timestamp_us > last_us ? samples[i].timestamp_us : last_us;
    }
    return last_us;
}

/* The whole buffer, and after a pause what has come since. */
static void poll_samples(double duration_s)
{
    const void *found = shared_object_find(&gpu.nvml->object, "nvmlDeviceGetSamples");
    union {
        const void *found;
        samples_function *get;
    } samples = {found};
    unsigned long long last_us;

    if (found == NULL) {
        printf("samples,0,%d,0,0\n", LACKING);
        return;
    }
    last_us = read_samples(samples.get, 0, 0);
    for (int i = 1; i <= 3 && !stopped; i++) {
        pause_s(duration_s / 3);
        last_us = read_samples(samples.get, i, last_us);
    }
}

/* Readings that are far apart, so that a counter that is updated only when somebody reads shows itself. */
static void poll_rarely(double duration_s)
{
    struct mono_time end = mono_after_s(mono_now(), duration_s);

    while (mono_now().ns < end.ns && !stopped) {
        struct mono_time begin;
        unsigned long long value;

        pause_s(random_s(0.005, 0.25));
        begin = mono_now();
        if (read_energy(&value) != 0)
            break;
        printf("sparse,%" PRId64 ",%" PRId64 ",%llu\n", begin.ns, mono_now().ns, value);
    }
}

/* Pairs in turn, so that both meet the same machine. */
static void time_windows(void)
{
    struct fly_device_energy energy_of_window;
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = &energy_of_window, .device_capacity = 1};
    struct fly_error error;

    if (gpu_open_meter(&gpu, &error) < 0) {
        fprintf(stderr, "verify_poll: %s\n", error.text);
        return;
    }
    for (int i = 0; i < COSTS && !stopped; i++) {
        struct mono_time begin = mono_now(), middle;
        unsigned long long value;
        fly_window window;

        if (read_energy(&value) != 0 || read_energy(&value) != 0)
            break;
        middle = mono_now();
        if (fly_meter_begin(gpu.meter, "verify", &window, &error) < 0 ||
            fly_meter_end(gpu.meter, window, &measured, &error) < 0)
            break;
        printf("cost,meter,%" PRId64 "\ncost,bare,%" PRId64 "\n", mono_now().ns - middle.ns,
               middle.ns - begin.ns);
        pause_s(0.001);
    }
}

/* Readings of power as they come, for what follows when a load begins or ends. */
static void watch(double duration_s)
{
    const struct polled *const readings[] = {&power, &instant, &average};
    struct mono_time end = mono_after_s(mono_now(), duration_s);

    while (mono_now().ns < end.ns && !stopped) {
        for (int i = 0; i < 3; i++) {
            struct mono_time begin = mono_now();
            unsigned long long value;

            if (readings[i]->read(&value) == NVML_SUCCESS)
                printf("watch,%s,%" PRId64 ",%" PRId64 ",%llu\n", readings[i]->name, begin.ns, mono_now().ns,
                       value);
        }
        pause_s(0.001);
    }
}

static void poll_all(double scale)
{
    const struct polled *const readings[] = {&energy, &power, &instant, &average};

    burst(&energy, 0, 4.0 * scale);
    for (int i = 0; i < 4; i++)
        time_calls(readings[i]);
    poll_fields(0.0, true);
    for (int i = 1; i < 4; i++)
        burst(readings[i], 0, 2.0 * scale);
    burst(&energy, 1, scale);
    poll_fields(3.0 * scale, false);
    burst(&energy, 2, scale);
    poll_samples(2.0 * scale);
    poll_rarely(4.0 * scale);
    burst(&energy, 3, scale);
    time_windows();
    burst(&energy, 4, scale);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"gpu", 1, NULL, 'g'},
                                            {"nvml", 1, NULL, 'n'},
                                            {"scale", 1, NULL, 's'},
                                            {"watch", 1, NULL, 'w'},
                                            {NULL, 0, NULL, 0}};
    struct sigaction on_signal = {.sa_handler = stop};
    struct fly_error error = {0};
    const char *nvml_path = NULL;
    unsigned index = 0;
    double scale = 1.0, watch_s = 0.0;
    int option, code;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'g')
            index = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'n')
            nvml_path = optarg;
        else if (option == 's')
            scale = strtod(optarg, NULL);
        else if (option == 'w')
            watch_s = strtod(optarg, NULL);
        else
            return fly_error_exit_status(FLY_EUSAGE);
    }
    sigaction(SIGINT, &on_signal, NULL);
    sigaction(SIGTERM, &on_signal, NULL);
    code = gpu_open(nvml_path, index, &gpu, &error);
    if (code == 0 && watch_s > 0.0)
        watch(watch_s);
    else if (code == 0)
        poll_all(scale);
    else
        fprintf(stderr, "verify_poll: %s\n", error.text);
    gpu_close(&gpu);
    return code == 0 ? 0 : fly_error_exit_status(code);
}
