/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_MEASURE_IDLE_BOOST_H
#define FLYBALL_CLI_MEASURE_IDLE_BOOST_H

#include "device/device.h"

/*
 * The idle boost of NVIDIA's GPUs: while a program has a CUDA context, the driver holds the clocks up
 * although nothing runs. Since driver 580.105 the variable CUDA_DISABLE_PERF_BOOST=1 in the program's
 * environment ends that. Reported for a context that idles (arXiv 2605.23918): 26.3 W more with the
 * boost on an A100, 49.9 W on an H100, 66.4 W on an L40S. Work itself is as fast without it.
 *
 *     idle_boost_disable();                        before the program is started
 *     idle_boost_judge(&list, &boost);             once the devices are open
 *     run_result.idle_boost = &boost;
 */
#define IDLE_BOOST_VARIABLE "CUDA_DISABLE_PERF_BOOST"
#define IDLE_BOOST_SOURCE "arXiv 2605.23918"

/* Whether the driver knows the variable. */
enum idle_boost_driver {
    IDLE_BOOST_NO_GPU, /* there is no NVIDIA GPU, so nothing is changed */
    IDLE_BOOST_UNKNOWN,
    IDLE_BOOST_EMULATED, /* an emulator answers, which does not model the boost */
    IDLE_BOOST_TOO_OLD,
    IDLE_BOOST_KNOWN,
    IDLE_BOOST_DRIVER_COUNT
};

struct idle_boost {
    enum idle_boost_driver driver;
    char version[DEVICE_TEXT_MAX]; /* of the driver; "" if unknown */
};

/* Lets the programs that this process starts run without the boost. */
void idle_boost_disable(void);

/* Finds out what the driver of the list's NVIDIA GPUs makes of it. */
void idle_boost_judge(const struct device_list *list, struct idle_boost *out_boost);

/* What a driver of that version makes of it: "580.126.09"; pure. */
enum idle_boost_driver idle_boost_of_version(const char *version);

/* A clause about it. Static storage. */
const char *idle_boost_text(enum idle_boost_driver driver);

#endif
