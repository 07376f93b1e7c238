/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_WAY_H
#define FLYBALL_KNOB_WAY_WAY_H

#include "knob/way/site.h"

/* A way of turning knobs, for site.c; all of them stand in the array of ways.c. */
struct way_calls {
    /* Whether it is there to be tried for the GPU. */
    bool (*offers)(const struct site *site, const struct device *device);
    /*
     * Turns the knob, whose value was checked already. Sets `out_uncertain` before a failure that
     * leaves open what became of the knob. The result is read afterwards by the caller.
     */
    int (*set)(struct site *site, const struct device *device, enum quantity quantity, int64_t value,
               bool *out_uncertain, struct fly_error *out_error);
};

extern const struct way_calls way_commands, way_daemon;

extern const struct way_calls *const ways[WAY_COUNT];

#endif
