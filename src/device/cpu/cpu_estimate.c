/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's energy if no sensor can be read: estimated from its use and a power that the user
 * stated. Nothing is measured, and every output says so.
 *
 *     power = TDP * (idle + (1 - idle) * busy share of all processors)
 *
 * Linear in the use: Fan, Weber, Barroso, "Power provisioning for a warehouse-sized computer",
 * ISCA 2007. `idle` is 0.12, the idle share of the TDP on which the estimates of the Teads and
 * Cloud Carbon Footprint data sets are based. Measured curves are up to a third above the line at
 * half load, and how far a TDP is from the real power differs by model; hence the gain error of a
 * half. With a linear law, a difference of the counter depends only on its two ends, not on how
 * often it was read in between:
 *
 *     energy(t) = TDP * (idle * time since opening + (1 - idle) * busy time / processors)
 *
 * The stated power is that of all packages together. Time stolen by a hypervisor counts as idle,
 * since others use it; so does waiting for I/O. /proc/stat covers the whole machine, also in a
 * container.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/cpu/proc_stat.h"
#include "device/sysfs.h"

enum { LINE_MAX_BYTES = 512, STAT_MAX_BYTES = 1 << 20, TDP_MAX_W = 100000 };

static const double idle_share = 0.12;

struct estimate {
    int file; /* of /proc/stat */
    const struct clock *clock;
    struct mono_time opened;
    uint64_t busy_at_open;
    double idle_w;          /* of all packages */
    double uj_per_tick;     /* of busy time */
    _Atomic int64_t energy; /* the highest so far, since the kernel's times may go back a little */
};

/* Reads the beginning of the file as text; returns -errno on failure. */
static int read_stat(int file, char *text, size_t size, struct proc_stat *out_stat)
{
    ssize_t length = pread(file, text, size - 1, 0);

    if (length < 0)
        return -errno;
    text[length] = '\0';
    return proc_stat_parse(text, out_stat) ? 0 : -EBADMSG;
}

static struct device_info describe(double tdp_w, uint64_t steal_ticks, long ticks_per_s)
{
    struct device_info info = {
        .kind = DEVICE_CPU,
        .minor = -1,
        .uuid = "cpu-estimate",
        .estimated = true,
        .sensor = {.counter_period_s = 1.0 / (double)ticks_per_s,
                   .gain_error = 0.5,
                   .source = "Fan et al., ISCA 2007; gain assumed"},
    };

    snprintf(info.name, sizeof info.name, "CPU, estimated from use and a stated %g W", tdp_w);
    snprintf(info.note, sizeof info.note,
             "an estimate, nothing is measured: %g %% of %g W idle, all of it busy%s", idle_share * 100.0,
             tdp_w, steal_ticks > 0 ? "; time stolen by other virtual machines is idle" : "");
    return info;
}

/* Replaces CPUs that exist but cannot be read; their reports still say what would open them. */
static void remove_unreadable(struct device_list *list)
{
    size_t place = 0;

    while (place < list->count) {
        if (list->devices[place].info.kind == DEVICE_CPU)
            device_list_remove(list, place);
        else
            place++;
    }
}

/* Reads how the processors were used so far, and how many there are. */
static int read_machine(int file, struct proc_stat *out_stat, unsigned *out_processors,
                        struct fly_error *out_error)
{
    char *text = malloc(STAT_MAX_BYTES);
    int code;

    if (text == NULL)
        return error_no_memory(out_error);
    code = read_stat(file, text, STAT_MAX_BYTES, out_stat);
    *out_processors = code == 0 ? proc_stat_processors(text) : 0;
    free(text);
    if (*out_processors > 0)
        return 0;
    return error_set(
        out_error, FLY_EREAD,
        "the CPU's energy cannot be estimated: '/proc/stat' does not say how the processors were "
        "used; mount it");
}

/* Begins the estimate over an open /proc/stat, which it takes on success. */
static int begin(int file, const struct device_options *options, struct estimate **out_estimate,
                 struct device_info *out_info, struct fly_error *out_error)
{
    long ticks_per_s = sysconf(_SC_CLK_TCK);
    struct estimate *estimate;
    struct proc_stat stat = {0};
    unsigned processors = 0;
    int code = read_machine(file, &stat, &processors, out_error);

    if (code < 0)
        return code;
    estimate = malloc(sizeof *estimate);
    if (estimate == NULL)
        return error_no_memory(out_error);
    *out_info = describe(options->cpu_tdp_w, stat.steal_ticks, ticks_per_s);
    *estimate = (struct estimate){
        .file = file,
        .clock = device_clock(options),
        .busy_at_open = stat.busy_ticks,
        .idle_w = options->cpu_tdp_w * idle_share,
        .uj_per_tick =
            options->cpu_tdp_w * (1.0 - idle_share) / (double)ticks_per_s / (double)processors * 1e6,
    };
    estimate->opened = estimate->clock->now(estimate->clock->state);
    *out_estimate = estimate;
    return 0;
}

static int estimate_open(const struct device_options *options, struct device_list *list,
                         struct fly_error *out_error)
{
    char root[SYSFS_PATH_MAX], path[SYSFS_PATH_MAX];
    struct estimate *estimate;
    struct device_info info;
    int file, code;

    if (!(options->cpu_tdp_w > 0.0 && options->cpu_tdp_w <= TDP_MAX_W))
        return error_set(
            out_error, FLY_EUNSUPPORTED,
            "no CPU energy without a sensor that can be read; state the thermal design power of all "
            "CPUs in watts, with --cpu-tdp or in cpu_tdp_w, to have it estimated from their use");
    sysfs_root(options, root);
    file = sysfs_path(path, "%s/proc/stat", root) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return error_set(
            out_error, FLY_EREAD,
            "the CPU's energy cannot be estimated: '%.200s/proc/stat' cannot be opened; mount it", root);
    code = begin(file, options, &estimate, &info, out_error);
    if (code < 0) {
        close(file);
        return code;
    }
    remove_unreadable(list);
    code = device_list_add(list, &device_backend_cpu_estimate, &info, estimate, out_error);
    if (code < 0) {
        close(file);
        free(estimate);
    }
    return code;
}

static void estimate_close(struct device *device)
{
    struct estimate *estimate = device->state;

    close(estimate->file);
    free(estimate);
}

/* Returns the higher of `energy_uj` and the highest value so far, and keeps it. */
static int64_t never_less(struct estimate *estimate, int64_t energy_uj)
{
    int64_t said = atomic_load(&estimate->energy);

    while (said < energy_uj && !atomic_compare_exchange_weak(&estimate->energy, &said, energy_uj))
        ;
    return said > energy_uj ? said : energy_uj;
}

static struct reading read_energy(struct estimate *estimate)
{
    struct mono_time now = estimate->clock->now(estimate->clock->state);
    char line[LINE_MAX_BYTES];
    struct proc_stat stat = {0};
    int code = read_stat(estimate->file, line, sizeof line, &stat);
    double energy_uj = mono_elapsed_s(estimate->opened, now) * estimate->idle_w * 1e6;

    if (code < 0)
        return sysfs_failed_reading(-code);
    if (stat.busy_ticks > estimate->busy_at_open)
        energy_uj += (double)(stat.busy_ticks - estimate->busy_at_open) * estimate->uj_per_tick;
    if (!(energy_uj < 0x1p63))
        return sysfs_failed_reading(EOVERFLOW);
    return (struct reading){.value = never_less(estimate, (int64_t)energy_uj), .state = READING_OK};
}

static void estimate_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    if ((wanted & QUANTITY_BIT(QUANTITY_ENERGY)) != 0)
        values[QUANTITY_ENERGY] = read_energy(device->state);
}

const struct device_backend device_backend_cpu_estimate = {
    .name = "cpu-estimate",
    .title = "CPUs, estimated from their use and a stated power",
    .fallback = true,
    .kind = DEVICE_CPU,
    .open = estimate_open,
    .close = estimate_close,
    .read = estimate_read,
};
