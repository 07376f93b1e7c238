/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All energy counters that the kernel shows, including those that Flyball does not use (psys,
 * core, uncore).
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/machine/facts_parts.h"
#include "device/sysfs.h"

static void add_domain(struct facts_maker *maker, enum facts_through through, const char *name,
                       uint64_t range_uj, bool readable)
{
    struct facts *facts = maker->facts;

    if (facts->domain_count == FACTS_DOMAINS_MAX || facts->domains == NULL)
        return;
    facts->domains[facts->domain_count] = (struct facts_domain){
        .through = through, .name = facts_keep(maker, name), .range_uj = range_uj, .readable = readable};
    if (facts->domains[facts->domain_count].name != NULL)
        facts->domain_count++;
}

static void take_zone(struct facts_maker *maker, const char *directory, const char *entry)
{
    char path[SYSFS_PATH_MAX], name[SYSFS_TEXT_MAX], full[2 * SYSFS_TEXT_MAX];
    uint64_t range_uj = 0;

    if (!sysfs_path(path, "%s/%s/name", directory, entry) || sysfs_read_text(path, name, sizeof name) <= 0)
        return;
    snprintf(full, sizeof full, "%.63s %s", entry, name);
    if (!sysfs_path(path, "%s/%s/max_energy_range_uj", directory, entry) ||
        sysfs_read_u64(path, INT64_MAX, &range_uj) < 0)
        range_uj = 0;
    if (sysfs_path(path, "%s/%s/energy_uj", directory, entry) && access(path, F_OK) == 0)
        add_domain(maker, THROUGH_POWERCAP, full, range_uj, access(path, R_OK) == 0);
}

/* Everybody may read the event's file; perf_event_paranoid says who may open the event. */
static void take_event(struct facts_maker *maker, const char *directory, const char *entry)
{
    const struct facts_machine *machine = &maker->facts->machine;

    (void)directory;
    if (strncmp(entry, "energy-", strlen("energy-")) == 0 && strchr(entry, '.') == NULL)
        add_domain(maker, THROUGH_PERF, entry, 0, machine->reads_perf || machine->perf_paranoid < 1);
}

static void each_entry(struct facts_maker *maker, const char *place,
                       void (*take)(struct facts_maker *maker, const char *directory, const char *entry))
{
    struct device_options options = {.sysfs_root = maker->root};
    char root[SYSFS_PATH_MAX], directory[SYSFS_PATH_MAX];
    struct dirent **entries = NULL;
    int count;

    sysfs_root(&options, root);
    if (!sysfs_path(directory, "%s%s", root, place))
        return;
    count = scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.')
            take(maker, directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

void facts_find_domains(struct facts_maker *maker)
{
    maker->facts->domains = facts_room(maker, FACTS_DOMAINS_MAX, sizeof *maker->facts->domains);
    each_entry(maker, "/sys/class/powercap", take_zone);
    each_entry(maker, "/sys/bus/event_source/devices/power/events", take_event);
}
