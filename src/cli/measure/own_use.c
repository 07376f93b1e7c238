/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measure/own_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { STATUS_LINE_MAX = 256 };

/* Returns this process's peak resident memory in bytes; -1 if the kernel does not say. */
static int64_t most_memory_bytes(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[STATUS_LINE_MAX];
    long long kibibytes = -1;

    while (status != NULL && kibibytes < 0 && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kibibytes = strtoll(line + 6, NULL, 10);
    }
    if (status != NULL)
        fclose(status);
    return kibibytes < 0 ? -1 : kibibytes * 1024;
}

void own_use_count(struct run_result *result)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    result->own_cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    result->own_memory_bytes = most_memory_bytes();
}
