/* SPDX-License-Identifier: Apache-2.0 */
#include "knob/unseen.h"

#include <stdio.h>

#include "base/error.h"
#include "base/pid_namespace.h"

enum { PROCESSES_MAX = 256, LOOKS = 3, TEXT_MAX = 120 };
static const double look_every_s = 0.5;

/*
 * A driver keeps some memory for itself and for each process, which no list has: this much at all, and this
 * share of what processes have. The least that a program has to compute with is more.
 */
static const uint64_t own_bytes = UINT64_C(128) << 20;
static const double own_share = 0.05;
static const double gib = 1024.0 * 1024.0 * 1024.0;

static const char remedy[] =
    "start it outside of the container, or where the machine's processes are seen (--pid=host), or set "
    "FLYBALL_CONTAINED=1 if the GPU is this container's alone";

/* What is listed on the GPU. */
struct listed {
    size_t count;
    uint64_t bytes;
    bool whole; /* the memory of all is known */
};

static bool list(const struct device *device, struct listed *out_listed)
{
    struct device_process processes[PROCESSES_MAX];
    size_t count = 0;

    *out_listed = (struct listed){.whole = true};
    if (device_processes(device, DEVICE_PROCESSES_ALL, processes, PROCESSES_MAX, &count) < 0)
        return false;
    out_listed->count = count;
    for (size_t i = 0; i < count; i++) {
        if (processes[i].memory_bytes == DEVICE_MEMORY_UNKNOWN)
            out_listed->whole = false;
        else
            out_listed->bytes += processes[i].memory_bytes;
    }
    return true;
}

/* Returns whether something speaks for others now, with what that is; clears `unknown` where anything is
 * known. */
static bool find(const struct device *device, char text[TEXT_MAX], bool *unknown)
{
    struct device_reading reading;
    const struct reading *work = &reading.values[QUANTITY_UTILIZATION];
    struct listed listed;
    uint64_t used = 0;

    if (!list(device, &listed))
        return false; /* check_processes says so */
    if (device_memory_used(device, &used) == READING_OK && listed.whole) {
        uint64_t own = own_bytes + (uint64_t)(own_share * (double)listed.bytes);

        *unknown = false;
        if (used > listed.bytes + own) {
            snprintf(text, TEXT_MAX, "%.1f GiB of its memory are in use by no process that is seen here",
                     (double)(used - listed.bytes) / gib);
            return true;
        }
    }
    device_read(device, &clock_real, QUANTITY_BIT(QUANTITY_UTILIZATION), &reading);
    if (work->state != READING_OK)
        return false;
    *unknown = false;
    snprintf(text, TEXT_MAX, "it is busy for %lld %% of the time with no process that is seen here",
             (long long)work->value);
    return work->value > 0 && listed.count == 0 && !device->info.emulated;
}

int unseen_check(const struct turnable_options *options, const struct device *device,
                 struct fly_error *out_error)
{
    char text[TEXT_MAX] = "";
    bool unknown = true, found = true;

    if (!options->begins || options->contained || pid_namespace_is_first(options->proc_root))
        return 0;
    for (int look = 0; look < LOOKS && found; look++) {
        if (look > 0)
            clock_real.sleep_until(clock_real.state, mono_after_s(mono_now(), look_every_s));
        found = find(device, text, &unknown);
    }
    if (found)
        return error_set(out_error, FLY_ESTATE,
                         "GPU %u is only measured: in this container other processes of the machine are not "
                         "seen, and %s; %s",
                         device->info.index, text, remedy);
    if (unknown)
        return error_set(out_error, FLY_EREAD,
                         "GPU %u is only measured: in this container other processes of the machine are not "
                         "seen, nor what is done on it; %s",
                         device->info.index, remedy);
    return 0;
}
