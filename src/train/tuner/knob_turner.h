/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_KNOB_TURNER_H
#define FLYBALL_TRAIN_TUNER_KNOB_TURNER_H

#include <flyball/tuner.h>

#include "device/device.h"
#include "knob/knob.h"

/*
 * One limit, or one ceiling on the clock, for all GPUs of a knob, as the tuner turns it.
 *
 *     struct knob_turner data = {.knob = knob, .devices = devices, .count = count};
 *     struct fly_tuner_options options = {.turner = &knob_turner, .turner_data = &data, ...};
 *
 * clock_turner is for FLY_TUNER_CLOCK. It offers clocks that the GPUs have, from the highest
 * of all of them, with which it lifts its ceiling, down to two fifths of that, at most 16:
 * below, what a GPU draws at any clock outweighs what a lower one saves.
 */
struct knob_turner {
    struct knob *knob;                   /* borrowed, as are */
    const struct device *const *devices; /* those it was opened with */
    size_t count;
    unsigned turns;      /* calls that set */
    int fault;           /* the code of the first call that could not set; 0: none */
    int64_t highest_mhz; /* clock_turner: that all have, once the range was asked for */
};

extern const struct fly_turner knob_turner;
extern const struct fly_turner clock_turner;

#endif
