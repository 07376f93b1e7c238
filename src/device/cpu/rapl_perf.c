/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU packages and memory through the kernel's perf event source "power".
 *
 * It counts the same RAPL registers as powercap, in 64 bits, so nothing wraps during a
 * measurement. It needs CAP_PERFMON or kernel.perf_event_paranoid <= 0, where powercap needs
 * root. So it is used for each domain that powercap cannot read: a domain has the same uuid by
 * both ways, and is listed once. One processor of every package (or die) answers, according to
 * "cpumask". energy-cores and energy-gpu are parts of energy-pkg, and energy-psys overlaps all;
 * none of them is opened.
 */
#include "device/cpu/rapl_perf.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "device/backend.h"
#include "device/cpu/perf_text.h"
#include "device/cpu/rapl_domain.h"
#include "device/sysfs.h"

enum { CPUS_MAX = 64, MASK_TEXT_MAX = 512 };

static int kernel_open(uint32_t type, uint64_t config, unsigned cpu)
{
    struct perf_event_attr attributes = {.type = type, .size = sizeof attributes, .config = config};
    long file = syscall(SYS_perf_event_open, &attributes, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

    return file < 0 ? -errno : (int)file;
}

static int kernel_read(int file, uint64_t *out_count)
{
    ssize_t length = read(file, out_count, sizeof *out_count);

    if (length < 0)
        return -errno;
    return length == sizeof *out_count ? 0 : -ENODATA;
}

static const struct perf_calls kernel_calls = {kernel_open, kernel_read};
static const struct perf_calls *calls = &kernel_calls;

void rapl_perf_set_calls(const struct perf_calls *other)
{
    calls = other != NULL ? other : &kernel_calls;
}

/* An open event, or why it could not be opened. */
struct event {
    int file;
    int error;
    double uj_per_count;
};

/* The source, and the state of its events so far. */
struct source {
    struct device_list *list;
    struct fly_error *out_error;
    char root[SYSFS_PATH_MAX];
    char directory[SYSFS_PATH_MAX];
    bool whole_packages;
    uint32_t type;
    unsigned cpus[CPUS_MAX];
    size_t cpu_count;
    size_t events, denied;
};

/* Reads an event's "energy-pkg" and "energy-pkg.scale", in joules per count. */
static bool describe(const struct source *source, const char *name, uint64_t *out_config,
                     double *out_uj_per_count)
{
    char path[SYSFS_PATH_MAX], event[SYSFS_TEXT_MAX], scale[SYSFS_TEXT_MAX], unit[SYSFS_TEXT_MAX];
    double joules;

    if (!sysfs_path(path, "%s/events/%s", source->directory, name) ||
        sysfs_read_text(path, event, sizeof event) < 0 || !perf_event_parse(event, out_config))
        return false;
    if (!sysfs_path(path, "%s/events/%s.scale", source->directory, name) ||
        sysfs_read_text(path, scale, sizeof scale) < 0 || !number_parse_double(scale, &joules) ||
        !(joules > 0.0 && joules <= 1.0))
        return false;
    if (!sysfs_path(path, "%s/events/%s.unit", source->directory, name) ||
        sysfs_read_text(path, unit, sizeof unit) < 0 || strcmp(unit, "Joules") != 0)
        return false;
    *out_uj_per_count = joules * 1e6;
    return true;
}

static bool topology(const struct source *source, unsigned cpu, const char *name, uint64_t *out_value)
{
    char path[SYSFS_PATH_MAX];

    return sysfs_path(path, "%s/sys/devices/system/cpu/cpu%u/topology/%s", source->root, cpu, name) &&
           sysfs_read_u64(path, INT_MAX, out_value) == 0;
}

/*
 * Finds the domain for which a processor of the mask answers: its die if the mask has several of
 * a package.
 */
static bool find_domain(const struct source *source, unsigned cpu, struct rapl_domain *out_domain)
{
    uint64_t package, other, die;
    size_t dies = 0;

    if (!topology(source, cpu, "physical_package_id", &package))
        return false;
    for (size_t i = 0; i < source->cpu_count; i++)
        dies += topology(source, source->cpus[i], "physical_package_id", &other) && other == package;
    *out_domain = (struct rapl_domain){.package = (unsigned)package, .die = -1};
    if (dies > 1 && topology(source, cpu, "die_id", &die))
        out_domain->die = (int)die;
    return true;
}

/* Returns whether `uuid` names the domain or one of its dies. */
static bool within(const char *uuid, const char *domain)
{
    size_t length = strlen(domain);

    return strncmp(uuid, domain, length) == 0 &&
           (uuid[length] == '\0' || strncmp(uuid + length, "-die-", strlen("-die-")) == 0);
}

/* Finds out whether the list has the domain by another way, and whether that one answers. */
static bool find_other(const struct device_list *list, const struct device_info *info, size_t *out_place,
                       bool *out_answers)
{
    bool found = false;

    *out_answers = false;
    for (size_t i = 0; i < list->count; i++) {
        if (list->devices[i].info.kind != info->kind || !within(list->devices[i].info.uuid, info->uuid))
            continue;
        *out_place = i;
        *out_answers = *out_answers || device_answers(&list->devices[i], &clock_real);
        found = true;
    }
    return found;
}

static int add_event(struct source *source, const struct device_info *info, const struct event *opened)
{
    struct event *event = malloc(sizeof *event);
    int code;

    if (event == NULL)
        return error_no_memory(source->out_error);
    *event = *opened;
    code = device_list_add(source->list, &device_backend_rapl_perf, info, event, source->out_error);
    if (code < 0)
        free(event);
    return code;
}

/*
 * Returns where a count of 64 bits wraps. 0, never, if that does not fit: it is centuries away
 * then, which is not so at the kernel's scale.
 */
static uint64_t modulus_uj(double uj_per_count)
{
    double modulus = ldexp(uj_per_count, 64);

    return modulus < 0x1p63 ? (uint64_t)modulus : 0;
}

/* Opens one domain, unless it can be read already; if it opens, it replaces one that could not be read. */
static int take_domain(struct source *source, const struct rapl_domain *domain, uint64_t config,
                       double uj_per_count, unsigned cpu)
{
    struct event event = {.file = -1, .uj_per_count = uj_per_count};
    struct device_info info;
    bool answers, known;
    size_t place;
    int code;

    rapl_domain_info(domain, source->whole_packages, &info);
    info.energy_modulus_uj = modulus_uj(uj_per_count);
    known = find_other(source->list, &info, &place, &answers);
    if (answers)
        return 0;
    source->events++;
    event.file = calls->open(source->type, config, cpu);
    event.error = event.file < 0 ? -event.file : 0;
    source->denied += sysfs_failed_reading(event.error).state == READING_DENIED;
    if (known && event.file < 0)
        return 0;
    while (known) {
        device_list_remove(source->list, place);
        known = find_other(source->list, &info, &place, &answers);
    }
    code = add_event(source, &info, &event);
    if (code < 0 && event.file >= 0)
        close(event.file);
    return code;
}

static int take_events(struct source *source)
{
    static const struct {
        const char *name;
        enum device_kind kind;
    } events[] = {{"energy-pkg", DEVICE_CPU}, {"energy-ram", DEVICE_DRAM}};

    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        uint64_t config;
        double uj_per_count;

        if (!describe(source, events[i].name, &config, &uj_per_count))
            continue;
        for (size_t j = 0; j < source->cpu_count; j++) {
            struct rapl_domain domain;
            int code = 0;

            if (find_domain(source, source->cpus[j], &domain)) {
                domain.kind = events[i].kind;
                code = take_domain(source, &domain, config, uj_per_count, source->cpus[j]);
            }
            if (code < 0)
                return code;
        }
    }
    return 0;
}

static bool find_source(struct source *source)
{
    char path[SYSFS_PATH_MAX], mask[MASK_TEXT_MAX];
    uint64_t type;

    if (!sysfs_path(path, "%s/type", source->directory) || sysfs_read_u64(path, UINT32_MAX, &type) < 0)
        return false;
    source->type = (uint32_t)type;
    return sysfs_path(path, "%s/cpumask", source->directory) &&
           sysfs_read_text(path, mask, sizeof mask) > 0 &&
           perf_cpus_parse(mask, source->cpus, CPUS_MAX, &source->cpu_count);
}

/* If everything that powercap could not read is read here, powercap's report must not ask for permission. */
static void settle_powercap(struct device_list *list)
{
    for (size_t i = 0; i < list->report_count; i++) {
        struct backend_report *report = &list->reports[i];
        bool left = false;

        if (report->backend != &device_backend_rapl_powercap || report->error.code != FLY_EPERM)
            continue;
        for (size_t j = 0; j < list->count; j++)
            left = left || (list->devices[j].backend == report->backend &&
                            !device_answers(&list->devices[j], &clock_real));
        if (!left)
            error_set(&report->error, FLY_EPERM,
                      "CPU energy counters of powercap may not be read: permission denied; nothing is "
                      "missing, since the kernel's perf events are read instead");
    }
}

static int perf_open(const struct device_options *options, struct device_list *list,
                     struct fly_error *out_error)
{
    struct source source = {.list = list, .out_error = out_error};
    int code;

    sysfs_root(options, source.root);
    if (!sysfs_path(source.directory, "%s/sys/bus/event_source/devices/power", source.root) ||
        !find_source(&source))
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "no perf event source 'power': the kernel has none here; on hardware load it with "
                         "'sudo modprobe rapl'");
    source.whole_packages = rapl_counts_whole_packages(source.root);
    code = take_events(&source);
    if (code < 0)
        return code;
    if (source.events > source.denied)
        settle_powercap(list);
    if (source.denied > 0)
        return error_set(
            out_error, FLY_EPERM,
            "%zu of %zu energy events of the perf source 'power' may not be opened: permission "
            "denied; allow it until the next boot with 'sudo sysctl kernel.perf_event_paranoid=0' "
            "(for every user, see CVE-2020-8694), or give the program CAP_PERFMON",
            source.denied, source.events);
    if (source.events == 0 && device_list_count(list, DEVICE_CPU) == 0)
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the perf event source 'power' has no energy events; a virtual machine shows none, "
                         "so measure on its host");
    return 0;
}

static void perf_close(struct device *device)
{
    struct event *event = device->state;

    if (event->file >= 0)
        close(event->file);
    free(event);
}

static struct reading read_energy(const struct event *event)
{
    uint64_t count = 0;
    int code = event->file < 0 ? -event->error : calls->read(event->file, &count);
    double energy_uj;

    if (code < 0)
        return sysfs_failed_reading(-code);
    energy_uj = (double)count * event->uj_per_count;
    if (!(energy_uj < 0x1p63))
        return sysfs_failed_reading(EOVERFLOW);
    return (struct reading){.value = (int64_t)energy_uj, .state = READING_OK};
}

static void perf_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    if ((wanted & QUANTITY_BIT(QUANTITY_ENERGY)) != 0)
        values[QUANTITY_ENERGY] = read_energy(device->state);
}

const struct device_backend device_backend_rapl_perf = {
    .name = "rapl-perf",
    .title = "CPUs and memory, through perf events (RAPL)",
    .kind = DEVICE_CPU,
    .open = perf_open,
    .close = perf_close,
    .read = perf_read,
};
