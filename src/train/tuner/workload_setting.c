/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/workload_setting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <flyball/tuner.h>

#include "device/workloads.h"

double workload_setting(int profile)
{
    return profile == FLY_TUNER_SEVERAL_PROFILES ? 0.0 : (double)(WORKLOADS_MAX - profile);
}

int workload_of_setting(double setting)
{
    long code = lround(setting);

    return code < 1 || code > (long)WORKLOADS_MAX + 1 ? FLY_TUNER_SEVERAL_PROFILES
                                                      : WORKLOADS_MAX - (int)code;
}

char *workload_setting_text(double setting, char text[WORKLOAD_SETTING_MAX])
{
    int profile = workload_of_setting(setting);
    char name[WORKLOAD_NAME_MAX];

    snprintf(text, WORKLOAD_SETTING_MAX, "%s",
             profile == FLY_TUNER_NO_PROFILE         ? "none"
             : profile == FLY_TUNER_SEVERAL_PROFILES ? "several"
                                                     : workload_name((unsigned)profile, name));
    return text;
}

static bool read_setting(const char *text, void *out_setting)
{
    struct workload_set set;
    double setting = workload_setting(FLY_TUNER_NO_PROFILE);
    unsigned found = 0;

    if (!workload_parse(text, &set))
        return false;
    for (unsigned id = 0; id < WORKLOADS_MAX; id++) {
        if (workload_has(&set, id)) {
            setting = workload_setting((int)id);
            found++;
        }
    }
    if (found > 1)
        return false;
    *(double *)out_setting = setting;
    return true;
}

static void write_setting(const void *setting, char text[SHAPE_CODED_MAX])
{
    _Static_assert((int)WORKLOAD_SETTING_MAX <= (int)SHAPE_CODED_MAX, "the longest text fits");
    workload_setting_text(*(const double *)setting, text);
}

const struct shape_coding workload_setting_coding = {.expected = "a workload power profile, or none",
                                                     .size = sizeof(double),
                                                     .read = read_setting,
                                                     .write = write_setting};
