/* SPDX-License-Identifier: Apache-2.0 */
#include "node/own_energy.h"

#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/prometheus.h"

static const struct meaning families[] = {
    {"flyball_daemon_energy_joules_total", "", MEANING_REAL, 0, "J", MEANING_COUNTER,
     "Energy of the daemon itself, estimated: that of the CPU packages, times its share of the time of all "
     "processors."},
};
const struct quantities own_energy_quantities = {"flyballd itself", QUANTITIES(families)};

void own_energy_init(struct own_energy *own)
{
    *own = (struct own_energy){.last = {.package_j = NAN}};
    pthread_mutex_init(&own->lock, NULL);
}

void own_energy_deinit(struct own_energy *own)
{
    pthread_mutex_destroy(&own->lock);
}

double own_energy_between(const struct own_reading *before, const struct own_reading *after)
{
    double drawn_j = after->package_j - before->package_j, of_s = after->machine_s - before->machine_s;
    double share = (after->cpu_s - before->cpu_s) / of_s;

    if (!(drawn_j > 0.0) || !(of_s > 0.0) || !(share > 0.0))
        return 0.0;
    return drawn_j * fmin(share, 1.0);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* The packages' totals; NAN without one. Those of an estimate are no meter. */
static double packages_j(struct watch *watch)
{
    size_t count = watch_cpu_count(watch);
    double sum_j = NAN;

    for (size_t i = 0; i < count; i++) {
        struct watch_device device;

        watch_look(watch, WATCH_CPU_FIRST + i, &device);
        if (device.info.kind != DEVICE_CPU || device.info.estimated || !device.total.counts)
            continue;
        sum_j = (isnan(sum_j) ? 0.0 : sum_j) + (double)device.total.energy_uj * 1e-6;
    }
    return sum_j;
}

static struct own_reading read_now(struct watch *watch)
{
    struct rusage usage = {.ru_utime = {0}};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    getrusage(RUSAGE_SELF, &usage);
    return (struct own_reading){.cpu_s = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
                                .machine_s = (double)mono_now().ns * 1e-9 * (double)processors,
                                .package_j = packages_j(watch)};
}

void own_energy_write(struct own_energy *own, struct watch *watch, struct buffer *text)
{
    struct own_reading now;
    double energy_j;

    pthread_mutex_lock(&own->lock);
    now = read_now(watch);
    own->energy_j += own_energy_between(&own->last, &now);
    own->last = now;
    energy_j = own->energy_j;
    pthread_mutex_unlock(&own->lock);
    if (isnan(now.package_j))
        return;
    prometheus_head(text, &families[0]);
    buffer_printf(text, "%s{source=\"estimated\"} %.6f\n", families[0].key, energy_j);
}
