/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measure/idle_boost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_MAJOR = 580, FIRST_MINOR = 105 };

static const char *const texts[IDLE_BOOST_DRIVER_COUNT] = {
    [IDLE_BOOST_NO_GPU] = "there is no NVIDIA GPU that it could change",
    [IDLE_BOOST_UNKNOWN] = "it takes a driver of 580.105 or later, and the driver does not say which it is",
    [IDLE_BOOST_EMULATED] = "the GPUs are emulated, and their idle power is the same with it",
    [IDLE_BOOST_TOO_OLD] =
        "the driver is older than 580.105, and ignores it: clocks stay up at idle as before",
    [IDLE_BOOST_KNOWN] = "the program's clocks fall when nothing runs; how much that saved was not measured, "
                         "reported were 26 to 66 W while a program idles on an A100, H100 or L40S "
                         "(" IDLE_BOOST_SOURCE ")",
};

void idle_boost_disable(void)
{
    setenv(IDLE_BOOST_VARIABLE, "1", 1);
}

enum idle_boost_driver idle_boost_of_version(const char *version)
{
    char *dot, *end;
    unsigned long major = strtoul(version, &dot, 10), minor;

    if (dot == version || *dot != '.')
        return IDLE_BOOST_UNKNOWN;
    minor = strtoul(dot + 1, &end, 10);
    if (end == dot + 1 || (*end != '.' && *end != '\0'))
        return IDLE_BOOST_UNKNOWN;
    return major > FIRST_MAJOR || (major == FIRST_MAJOR && minor >= FIRST_MINOR) ? IDLE_BOOST_KNOWN
                                                                                 : IDLE_BOOST_TOO_OLD;
}

void idle_boost_judge(const struct device_list *list, struct idle_boost *out_boost)
{
    *out_boost = (struct idle_boost){.driver = IDLE_BOOST_NO_GPU};
    for (size_t i = 0; i < list->count; i++) {
        const struct device *gpu = &list->devices[i];

        if (gpu->info.kind != DEVICE_GPU || strcmp(gpu->backend->name, "nvml") != 0)
            continue;
        snprintf(out_boost->version, sizeof out_boost->version, "%s", gpu->info.driver);
        out_boost->driver =
            gpu->info.emulated ? IDLE_BOOST_EMULATED : idle_boost_of_version(gpu->info.driver);
        return;
    }
}

const char *idle_boost_text(enum idle_boost_driver driver)
{
    return texts[driver];
}
