/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that read CPU packages and their memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "node/public/public_private.h"
#include "shapes/shape_rows.h"

/* The part of "cpu-0" and "dram-0" that names the package. */
static const char *package_of(const char *uuid)
{
    const char *at = strchr(uuid, '-');

    return at != NULL ? at : "";
}

size_t public_find_cpus(struct watch *watch, struct public_cpu cpus[WATCH_CPUS_MAX])
{
    struct device_info infos[WATCH_CPUS_MAX];
    size_t places = watch_cpu_count(watch), count = 0;

    for (size_t i = 0; i < places; i++) {
        watch_gpu_info(watch, WATCH_CPU_FIRST + i, &infos[i]);
        if (infos[i].kind == DEVICE_CPU)
            cpus[count++] = (struct public_cpu){.id = infos[i].index, .cpu = WATCH_CPU_FIRST + i, .dram = -1};
    }
    for (size_t i = 0; i < places; i++) {
        for (size_t cpu = 0; cpu < count && infos[i].kind == DEVICE_DRAM; cpu++) {
            const char *package = package_of(infos[cpus[cpu].cpu - WATCH_CPU_FIRST].uuid);

            if (strcmp(package_of(infos[i].uuid), package) == 0)
                cpus[cpu].dram = (int)(WATCH_CPU_FIRST + i);
        }
    }
    return count;
}
