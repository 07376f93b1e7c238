/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's texts about CPUs: the first line of /proc/stat, the description of a perf event, a list of
 * processors, the name and the range of a RAPL zone.
 */
#include <string.h>

#include "device/cpu/perf_text.h"
#include "device/cpu/proc_stat.h"
#include "device/cpu/rapl_domain.h"
#include "fuzz.h"

enum { CPUS_MAX = 16 };

static void check_cpus(const char *text)
{
    unsigned cpus[CPUS_MAX];
    size_t count = CPUS_MAX + 1;

    if (!perf_cpus_parse(text, cpus, CPUS_MAX, &count)) {
        FUZZ_CHECK(count == CPUS_MAX + 1);
        return;
    }
    FUZZ_CHECK(count <= CPUS_MAX && (count > 0) == (text[0] != '\0'));
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(cpus[i] <= UINT16_MAX);
}

static void check_stat(const char *text)
{
    struct proc_stat stat;

    if (proc_stat_parse(text, &stat)) {
        FUZZ_CHECK(strncmp(text, "cpu ", 4) == 0);
        FUZZ_CHECK(stat.busy_ticks <= UINT64_MAX - stat.idle_ticks);
        FUZZ_CHECK(stat.busy_ticks + stat.idle_ticks <= UINT64_MAX - stat.steal_ticks);
    }
    FUZZ_CHECK(proc_stat_processors(text) <= strlen(text) / 4);
}

static void check_domain(const char *text)
{
    struct rapl_domain domain;
    struct device_info info;

    if (!rapl_domain_parse(text, &domain))
        return;
    FUZZ_CHECK(domain.kind == DEVICE_CPU && domain.die >= -1);
    for (int whole = 0; whole < 2; whole++) {
        rapl_domain_info(&domain, whole != 0, &info);
        FUZZ_CHECK(strncmp(info.uuid, "cpu-", 4) == 0 && strlen(info.uuid) < sizeof info.uuid - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    uint64_t value;

    FUZZ_CHECK(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_cpus(text);
    check_stat(text);
    check_domain(text);
    if (perf_event_parse(text, &value))
        FUZZ_CHECK(value <= UINT8_MAX && strncmp(text, "event=", 6) == 0);
    if (size >= sizeof value) {
        memcpy(&value, data, sizeof value);
        FUZZ_CHECK(rapl_modulus_uj(value) == 0 || rapl_modulus_uj(value) >= value);
    }
    free(text);
    return 0;
}
