/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_TUNER_KNOB_TURNER_H
#define FLYBALL_TRAIN_TUNER_KNOB_TURNER_H

#include <flyball/tuner.h>

#include "device/device.h"
#include "knob/knob.h"

/*
 * Turns a power limit, or a ceiling on the clock, on all GPUs of a knob for the tuner.
 *
 *     struct knob_turner data = {.knob = knob, .devices = devices, .count = count};
 *     struct fly_tuner_options options = {.turner = &knob_turner, .turner_data = &data, ...};
 *
 * Use clock_turner with FLY_TUNER_CLOCK, with the same data. It offers at most 16 clocks that the GPUs have:
 * from the highest clock that all of them reach, which stands for no ceiling, down to two fifths of that.
 * Below, what a GPU draws at any clock outweighs what a lower clock saves. Use workload_turner
 * with FLY_TUNER_PROFILE: it offers none and each workload profile that all GPUs have, one at a time.
 */
struct knob_turner {
    struct knob *knob;                   /* borrowed */
    const struct device *const *devices; /* borrowed: those that the knob was opened with */
    size_t count;
    const bool *left_alone; /* borrowed: which of them are not turned; NULL: all are */
    unsigned turns;         /* how many calls set something, */
    unsigned clock_turns;   /* and of these clocks */
    int fault, clock_fault; /* error codes of the first calls that could not set a limit, a clock; 0: none */
    int64_t highest_mhz;    /* clock_turner: highest clock that all GPUs reach, known after range() */
    double highest_power_w; /* that each GPU may draw, known after range(); 0: not known */
    double settings[WORKLOADS_MAX + 1]; /* workload_turner: those of its range */
    size_t setting_count;
};

static inline bool knob_turner_leaves(const struct knob_turner *turner, size_t gpu)
{
    return turner->left_alone != NULL && turner->left_alone[gpu];
}

extern const struct fly_turner knob_turner;
extern const struct fly_turner clock_turner;
extern const struct fly_turner workload_turner;

#endif
