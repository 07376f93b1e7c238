/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU packages and memory through Linux' powercap tree.
 *
 * Zones are in /sys/class/powercap: each package as intel-rapl:N, with its parts intel-rapl:N:M
 * inside it and, as links, beside it. Containers often get the real directory,
 * intel-rapl/intel-rapl:N, instead. Both places are searched, and every domain is taken once.
 * AMD's processors use the same names. intel-rapl-mmio:N shows the packages of intel-rapl:N a
 * second time and is ignored, like psys, which overlaps packages and memory.
 *
 * Since CVE-2020-8694 only root may read energy_uj, because fast reads reveal secrets of other
 * processes. The kernel checks the permission when the file is opened, so a device keeps its
 * descriptor and reads with one pread. Domains that may not be opened are listed all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/cpu/rapl_domain.h"
#include "device/sysfs.h"

#define ZONE_PREFIX "intel-rapl:"

struct zone {
    int file;  /* of energy_uj, or -1 */
    int error; /* errno that says why there is none */
};

/* The state of a walk over the tree. */
struct walk {
    struct device_list *list;
    struct fly_error *out_error;
    char directory[SYSFS_PATH_MAX]; /* "/sys/class/powercap" */
    bool whole_packages;
    struct rapl_domain package; /* the package whose parts are being visited */
    size_t zones, denied;
};

static void take_modulus(const char *path, struct device_info *info)
{
    static const char unknown[] = "its counter's range is unknown: no energy for a window in which it wraps";
    char file[SYSFS_PATH_MAX];
    uint64_t range_uj;

    if (sysfs_path(file, "%s/max_energy_range_uj", path) && sysfs_read_u64(file, UINT64_MAX, &range_uj) == 0)
        info->energy_modulus_uj = rapl_modulus_uj(range_uj);
    if (info->energy_modulus_uj == 0)
        snprintf(info->note, sizeof info->note, "%s", unknown);
}

static int add_zone(struct walk *walk, const char *path, const struct rapl_domain *domain)
{
    struct device_info info;
    char file[SYSFS_PATH_MAX];
    struct zone *zone;
    int code;

    rapl_domain_info(domain, walk->whole_packages, &info);
    if (device_list_find(walk->list, info.kind, info.uuid) < walk->list->count ||
        !sysfs_path(file, "%s/energy_uj", path))
        return 0;
    zone = malloc(sizeof *zone);
    if (zone == NULL)
        return error_no_memory(walk->out_error);
    take_modulus(path, &info);
    zone->file = open(file, O_RDONLY | O_CLOEXEC);
    zone->error = zone->file < 0 ? errno : 0;
    code = device_list_add(walk->list, &device_backend_rapl_powercap, &info, zone, walk->out_error);
    if (code < 0) {
        if (zone->file >= 0)
            close(zone->file);
        free(zone);
        return code;
    }
    walk->zones++;
    walk->denied += sysfs_failed_reading(zone->error).state == READING_DENIED;
    return 0;
}

/* Returns whether `path` is a zone, and gives its name. */
static bool zone_name(const char *path, char name[SYSFS_TEXT_MAX])
{
    char file[SYSFS_PATH_MAX];

    return sysfs_path(file, "%s/name", path) && sysfs_read_text(file, name, SYSFS_TEXT_MAX) > 0;
}

static int visit_part(void *data, const char *path, unsigned number)
{
    struct walk *walk = data;
    struct rapl_domain domain = walk->package;
    char name[SYSFS_TEXT_MAX];

    (void)number;
    if (!zone_name(path, name) || strcmp(name, "dram") != 0)
        return 0;
    domain.kind = DEVICE_DRAM;
    return add_zone(walk, path, &domain);
}

static int visit_package(void *data, const char *path, unsigned number)
{
    struct walk *walk = data;
    char name[SYSFS_TEXT_MAX], prefix[SYSFS_TEXT_MAX];
    const char *const places[] = {path, walk->directory};
    int code;

    if (!zone_name(path, name) || !rapl_domain_parse(name, &walk->package))
        return 0;
    code = add_zone(walk, path, &walk->package);
    snprintf(prefix, sizeof prefix, ZONE_PREFIX "%u:", number);
    for (size_t i = 0; i < 2 && code == 0; i++)
        code = sysfs_each_numbered(places[i], prefix, visit_part, walk);
    return code;
}

static int report(const struct walk *walk)
{
    if (walk->zones == 0)
        return error_set(walk->out_error, FLY_EUNSUPPORTED,
                         "no CPU energy counters in '%.120s': the kernel shows none; on hardware load its "
                         "driver with 'sudo modprobe intel_rapl_msr', a virtual machine has none",
                         walk->directory);
    if (walk->denied > 0)
        return error_set(
            walk->out_error, FLY_EPERM,
            "%zu of %zu CPU energy counters in '%.120s' may not be read: permission denied; "
            "allow it until the next boot with 'sudo chmod -R a+r "
            "%.120s/intel-rapl/' (every user of this machine can then read them, see CVE-2020-8694)",
            walk->denied, walk->zones, walk->directory, walk->directory);
    return 0;
}

static int powercap_open(const struct device_options *options, struct device_list *list,
                         struct fly_error *out_error)
{
    struct walk walk = {.list = list, .out_error = out_error};
    char root[SYSFS_PATH_MAX], nested[SYSFS_PATH_MAX];
    int code;

    sysfs_root(options, root);
    walk.whole_packages = rapl_counts_whole_packages(root);
    if (!sysfs_path(walk.directory, "%s/sys/class/powercap", root) ||
        !sysfs_path(nested, "%s/intel-rapl", walk.directory))
        return error_set(out_error, FLY_EUSAGE, "the root '%.200s' is too long; use a shorter path", root);
    code = sysfs_each_numbered(walk.directory, ZONE_PREFIX, visit_package, &walk);
    if (code == 0)
        code = sysfs_each_numbered(nested, ZONE_PREFIX, visit_package, &walk);
    return code == 0 ? report(&walk) : code;
}

static void powercap_close(struct device *device)
{
    struct zone *zone = device->state;

    if (zone->file >= 0)
        close(zone->file);
    free(zone);
}

static struct reading read_energy(const struct zone *zone)
{
    uint64_t energy_uj;
    int code = zone->file < 0 ? -zone->error : sysfs_pread_u64(zone->file, INT64_MAX, &energy_uj);

    if (code < 0)
        return sysfs_failed_reading(-code);
    return (struct reading){.value = (int64_t)energy_uj, .state = READING_OK};
}

static void powercap_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    readings_fail(values, wanted, READING_UNSUPPORTED, 0);
    if ((wanted & QUANTITY_BIT(QUANTITY_ENERGY)) != 0)
        values[QUANTITY_ENERGY] = read_energy(device->state);
}

const struct device_backend device_backend_rapl_powercap = {
    .name = "rapl-powercap",
    .title = "CPUs and memory, through powercap (RAPL)",
    .kind = DEVICE_CPU,
    .open = powercap_open,
    .close = powercap_close,
    .read = powercap_read,
};
