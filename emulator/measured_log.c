/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of 'flyball record', during which the limits of GPUs changed under a load: the mean power and
 * the mean clock under each limit. It knows no steps, so the time of work is taken as the inverse of the
 * clock.
 */
#include <stdio.h>

#include "base/error.h"
#include "device/recording/recording.h"
#include "emulator/measured.h"

enum { BUSY_PERCENT = 50 };

/* After a limit changed the power needs this long to get there. */
static const double settling_s = 1.0;

/* Of a limit. */
struct sums {
    double limit_w, time_s, energy_j, clock_s; /* clock_s: clock in MHz times time */
};

/* What a device last said. */
struct before {
    int64_t t_ns, limit_mw, power_mw, clock_mhz, changed_ns;
    bool is_known;
};

struct log {
    const char *path;
    struct sums sums[GPU_FIT_POINTS_MAX];
    size_t count;
    struct before before[DEVICES_MAX];
    struct measured *measured;
};

/* The first of two readings that has a value; 0 without. */
static int64_t either(const struct reading *first, const struct reading *second)
{
    if (first->state == READING_OK)
        return first->value;
    return second->state == READING_OK ? second->value : 0;
}

static int add_time(struct log *log, const struct before *before, double time_s, struct fly_error *out_error)
{
    double limit_w = (double)before->limit_mw / 1000.0;
    size_t place = 0;

    while (place < log->count && log->sums[place].limit_w != limit_w)
        place++;
    if (place == GPU_FIT_POINTS_MAX)
        return error_set(out_error, FLY_ELIMIT, "%s: more than %d power limits; record fewer", log->path,
                         GPU_FIT_POINTS_MAX);
    if (place == log->count)
        log->sums[log->count++] = (struct sums){.limit_w = limit_w};
    log->sums[place].time_s += time_s;
    log->sums[place].energy_j += (double)before->power_mw / 1000.0 * time_s;
    log->sums[place].clock_s += (double)before->clock_mhz * time_s;
    return 0;
}

static int visit(void *context, const struct recording *recording, size_t device, int64_t t_ns,
                 const struct reading values[QUANTITY_COUNT], struct fly_error *out_error)
{
    struct log *log = context;
    struct before *before = &log->before[device];
    const struct device_info *info = recording_device(recording, device);
    int64_t limit_mw = either(&values[QUANTITY_POWER_LIMIT_ENFORCED], &values[QUANTITY_POWER_LIMIT]);
    const struct reading *use = &values[QUANTITY_UTILIZATION];
    bool is_busy = use->state != READING_OK || use->value >= BUSY_PERCENT;
    int code = 0;

    if (info->kind != DEVICE_GPU)
        return 0;
    if (log->measured->gpu[0] == '\0')
        snprintf(log->measured->gpu, sizeof log->measured->gpu, "%.90s", info->name);
    if (before->is_known && (double)(before->t_ns - before->changed_ns) / 1e9 >= settling_s)
        code = add_time(log, before, (double)(t_ns - before->t_ns) / 1e9, out_error);
    if (limit_mw != before->limit_mw)
        before->changed_ns = t_ns;
    before->t_ns = t_ns;
    before->limit_mw = limit_mw;
    before->power_mw = either(&values[QUANTITY_POWER_INSTANT], &values[QUANTITY_POWER_AVERAGE]);
    before->clock_mhz = either(&values[QUANTITY_CLOCK_GPU], &values[QUANTITY_CLOCK_GPU]);
    before->is_known = is_busy && limit_mw > 0 && before->power_mw > 0 && before->clock_mhz > 0;
    return code;
}

static int take_sums(struct log *log, struct fly_error *out_error)
{
    double highest_mhz = 0.0;
    int code = 0;

    for (size_t i = 0; i < log->count; i++) {
        double clock_mhz = log->sums[i].clock_s / log->sums[i].time_s;

        highest_mhz = clock_mhz > highest_mhz ? clock_mhz : highest_mhz;
    }
    for (size_t i = 0; i < log->count && code == 0; i++) {
        const struct sums *sums = &log->sums[i];
        struct fly_power_point point = {sums->limit_w, sums->energy_j / sums->time_s,
                                        highest_mhz * sums->time_s / sums->clock_s};

        code = measured_add(log->measured, &point, log->path, out_error);
    }
    return code;
}

int measured_read_log(const char *path, struct measured *measured, struct fly_error *out_error)
{
    struct log log = {.path = path, .measured = measured};
    int code;

    code = recording_scan(path, visit, &log, out_error);
    if (code == 0 && log.count == 0)
        code = error_set(out_error, FLY_EDATA,
                         "%s: no GPU in it has readings of power, clock and power limit under a load; record "
                         "one that trains while 'flyball power set' changes its limit",
                         path);
    return code < 0 ? code : take_sums(&log, out_error);
}
