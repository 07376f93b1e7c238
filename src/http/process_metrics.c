/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the figures are those of Prometheus' own clients. */
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
/* Fields of /proc/PID/stat after the parenthesised name, from 0. */
enum {
    FIELD_USER = 11,
    FIELD_SYSTEM = 12,
    FIELD_START = 19,
    FIELD_VIRTUAL = 20,
    FIELD_RESIDENT = 21,
    FIELDS = 22
};

enum family { BUILD, CPU, RESIDENT, VIRTUAL, STARTED, OPEN, MOST };
static const struct meaning families[] = {
    [BUILD] = {"flyball_build_info", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE, "The version that runs."},
    [CPU] = {"process_cpu_seconds_total", "", MEANING_REAL, 0, "s", MEANING_COUNTER,
             "Processor time of this process."},
    [RESIDENT] = {"process_resident_memory_bytes", "", MEANING_REAL, 0, "B", MEANING_GAUGE,
                  "Memory of this process that is resident."},
    [VIRTUAL] = {"process_virtual_memory_bytes", "", MEANING_REAL, 0, "B", MEANING_GAUGE,
                 "Address space of this process."},
    [STARTED] = {"process_start_time_seconds", "", MEANING_REAL, 0, "s", MEANING_GAUGE,
                 "When this process started, since 1970."},
    [OPEN] = {"process_open_fds", "", MEANING_REAL, 0, NULL, MEANING_GAUGE, "Descriptors that are open."},
    [MOST] = {"process_max_fds", "", MEANING_REAL, 0, NULL, MEANING_GAUGE, "Descriptors that may be open."},
};
const struct quantities process_quantities = {"a metric of the service", QUANTITIES(families)};

static void put(struct buffer *text, enum family family, double value)
{
    char number[NUMBER_TEXT_MAX];

    prometheus_head(text, &families[family]);
    buffer_printf(text, "%s %s\n", families[family].key, number_format(value, number));
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

/* Returns when the machine booted, in seconds since 1970; negative: not known. */
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

/* Counts the open descriptors without the one used for counting; negative: not known. */
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
    return count - 2.0; /* "." and ".."; the count began at -1 for its own descriptor */
}

void process_metrics_write_version(struct buffer *text)
{
    prometheus_head(text, &families[BUILD]);
    buffer_printf(text, "%s{version=\"%s\"} 1\n", families[BUILD].key, fly_version());
}

void process_metrics_write(struct buffer *text)
{
    double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    double boot_s = boot_time_s(), descriptors = open_descriptors();
    double fields[FIELDS];
    struct rlimit limit;

    if (read_fields(fields)) {
        put(text, CPU, (fields[FIELD_USER] + fields[FIELD_SYSTEM]) / ticks);
        put(text, RESIDENT, fields[FIELD_RESIDENT] * page);
        put(text, VIRTUAL, fields[FIELD_VIRTUAL]);
        if (boot_s >= 0.0)
            put(text, STARTED, boot_s + fields[FIELD_START] / ticks);
    }
    if (descriptors >= 0.0)
        put(text, OPEN, descriptors);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        put(text, MOST, (double)limit.rlim_cur);
}
