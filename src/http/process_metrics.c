/* SPDX-License-Identifier: Apache-2.0 */
/* The figures under the names that Prometheus' own clients give them. */
#include "http/process_metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <flyball/version.h>

#include "base/number.h"
#include "http/prometheus.h"

enum { STAT_BYTES = 1024, LINE_BYTES = 256 };
/* Fields of /proc/PID/stat behind the name's parenthesis, from 0. */
enum {
    FIELD_USER = 11,
    FIELD_SYSTEM = 12,
    FIELD_START = 19,
    FIELD_VIRTUAL = 20,
    FIELD_RESIDENT = 21,
    FIELDS = 22
};

static void put(struct buffer *text, const char *name, const char *type, const char *help, double value)
{
    char number[NUMBER_TEXT_MAX];

    prometheus_head(text, name, type, help);
    buffer_printf(text, "%s %s\n", name, number_format(value, number));
}

static bool read_fields(double fields[FIELDS])
{
    char line[STAT_BYTES];
    FILE *file = fopen("/proc/self/stat", "re");
    char *at = NULL;
    size_t length;

    if (file == NULL)
        return false;
    length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    at = strrchr(line, ')');
    if (at == NULL)
        return false;
    at += strlen(") S");
    fields[0] = 0.0; /* the state, a letter */
    for (int i = 1; i < FIELDS; i++) {
        char *end;

        fields[i] = (double)strtoll(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    return true;
}

/* When the machine booted, in seconds since 1970; negative: not known. */
static double boot_time_s(void)
{
    FILE *file = fopen("/proc/stat", "re");
    char line[LINE_BYTES];
    double found = -1.0;

    if (file == NULL)
        return found;
    while (found < 0.0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "btime ", 6) == 0)
            found = strtod(line + 6, NULL);
    }
    fclose(file);
    return found;
}

/* Open descriptors without the one that counts them; negative: not known. */
static double open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    double count = -1.0;

    if (directory == NULL)
        return count;
    /* cppcheck-suppress readdirCalled ; of a stream of its own */
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 2.0; /* "." and ".."; its own is the one that the count began with */
}

void process_metrics_write_version(struct buffer *text)
{
    prometheus_head(text, "flyball_build_info", "gauge", "The version that runs.");
    buffer_printf(text, "flyball_build_info{version=\"%s\"} 1\n", fly_version());
}

void process_metrics_write(struct buffer *text)
{
    double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    double boot_s = boot_time_s(), descriptors = open_descriptors();
    double fields[FIELDS];
    struct rlimit limit;

    if (read_fields(fields)) {
        put(text, "process_cpu_seconds_total", "counter", "Processor time of this process.",
            (fields[FIELD_USER] + fields[FIELD_SYSTEM]) / ticks);
        put(text, "process_resident_memory_bytes", "gauge", "Memory of this process that is resident.",
            fields[FIELD_RESIDENT] * page);
        put(text, "process_virtual_memory_bytes", "gauge", "Address space of this process.",
            fields[FIELD_VIRTUAL]);
        if (boot_s >= 0.0)
            put(text, "process_start_time_seconds", "gauge", "When this process started, since 1970.",
                boot_s + fields[FIELD_START] / ticks);
    }
    if (descriptors >= 0.0)
        put(text, "process_open_fds", "gauge", "Descriptors that are open.", descriptors);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        put(text, "process_max_fds", "gauge", "Descriptors that may be open.", (double)limit.rlim_cur);
}
