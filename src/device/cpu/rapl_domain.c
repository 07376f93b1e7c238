/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/rapl_domain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "device/sysfs.h"

enum { PACKAGE_MAX = 4096, NJ_PER_UJ = 1000 };

bool rapl_domain_parse(const char *name, struct rapl_domain *out_domain)
{
    static const char head[] = "package-", middle[] = "-die-";
    char text[SYSFS_TEXT_MAX];
    uint64_t package, die = 0;
    char *split;

    if (strncmp(name, head, strlen(head)) != 0 || strlen(name) >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%s", name + strlen(head));
    split = strstr(text, middle);
    if (split != NULL) {
        *split = '\0';
        if (!number_parse_u64(split + strlen(middle), PACKAGE_MAX, &die))
            return false;
    }
    if (!number_parse_u64(text, PACKAGE_MAX, &package))
        return false;
    *out_domain = (struct rapl_domain){
        .kind = DEVICE_CPU, .package = (unsigned)package, .die = split != NULL ? (int)die : -1};
    return true;
}

bool rapl_counts_whole_packages(const char *root)
{
    char path[SYSFS_PATH_MAX], line[256];
    bool whole = false;
    FILE *file;

    if (!sysfs_path(path, "%s/proc/cpuinfo", root))
        return false;
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "vendor_id", strlen("vendor_id")) == 0) {
            whole = strstr(line, "AuthenticAMD") != NULL || strstr(line, "HygonGenuine") != NULL;
            break;
        }
    }
    fclose(file);
    return whole;
}

void rapl_domain_info(const struct rapl_domain *domain, bool whole_packages, struct device_info *out_info)
{
    /* 5 %: about what comparisons with instruments find since Haswell; no software can check it. */
    static const struct sensor_facts measured = {.counter_period_s = 0.001,
                                                 .gain_error = 0.05,
                                                 .source = "Intel SDM 3B, RAPL: about 1 ms; gain assumed"};
    static const struct sensor_facts modelled = {.counter_period_s = 0.001,
                                                 .source = "Schoene et al., CLUSTER 2021: 1 ms on Zen 2"};
    char place[SYSFS_TEXT_MAX];

    if (domain->die < 0 || whole_packages)
        snprintf(place, sizeof place, "%u", domain->package);
    else
        snprintf(place, sizeof place, "%u-die-%d", domain->package, domain->die);
    *out_info = (struct device_info){
        .kind = domain->kind, .minor = -1, .sensor = whole_packages ? modelled : measured};
    snprintf(out_info->name, sizeof out_info->name, "package-%s%s", place,
             domain->kind == DEVICE_DRAM ? " dram" : "");
    snprintf(out_info->uuid, sizeof out_info->uuid, "%s-%s", domain->kind == DEVICE_DRAM ? "dram" : "cpu",
             place);
    if (whole_packages)
        snprintf(out_info->note, sizeof out_info->note, "a model of the processor, without memory");
}

uint64_t rapl_modulus_uj(uint64_t range_uj)
{
    const uint64_t last = UINT32_MAX, values = last + 1;
    uint64_t unit_nj;

    if (range_uj == 0 || range_uj == UINT64_MAX)
        return 0;
    if (range_uj > UINT64_MAX / (2 * NJ_PER_UJ))
        return range_uj + 1;
    unit_nj = (range_uj * NJ_PER_UJ + last - 1) / last;
    if (last * unit_nj / NJ_PER_UJ != range_uj)
        return range_uj + 1;
    return (values * unit_nj + NJ_PER_UJ / 2) / NJ_PER_UJ;
}
