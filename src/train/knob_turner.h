/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_KNOB_TURNER_H
#define FLYBALL_TRAIN_KNOB_TURNER_H

#include <flyball/tuner.h>

#include "device/device.h"
#include "knob/knob.h"

/*
 * One limit for all GPUs of a knob, as the tuner turns it.
 *
 *     struct knob_turner data = {.knob = knob, .devices = devices, .count = count};
 *     struct fly_tuner_options options = {.turner = &knob_turner, .turner_data = &data, ...};
 */
struct knob_turner {
    struct knob *knob;                   /* borrowed, as are */
    const struct device *const *devices; /* those it was opened with */
    size_t count;
    int fault; /* the code of the first call that could not set; 0: none */
};

extern const struct fly_turner knob_turner;

#endif
