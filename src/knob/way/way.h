/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_WAY_H
#define FLYBALL_KNOB_WAY_WAY_H

#include "knob/way/site.h"

/* A way of turning knobs, for site.c; ways.c has the array of all ways. */
struct way_calls {
    /* Returns whether the way can be tried for the GPU. */
    bool (*offers)(const struct site *site, const struct device *device);
    /* Says whether the way has what brings the knob to that value; NULL: only trying tells. */
    int (*covers)(struct site *site, const struct device *device, enum quantity quantity,
                  const struct setting *value, bool *out_covers, struct fly_error *out_error);
    /*
     * Turns the knob; the value was checked already. Sets `out_uncertain` before a failure that
     * leaves the knob's state unknown. The caller reads the result afterwards.
     */
    int (*set)(struct site *site, const struct device *device, enum quantity quantity,
               const struct setting *value, bool *out_uncertain, struct fly_error *out_error);
};

extern const struct way_calls way_commands, way_daemon;

extern const struct way_calls *const ways[WAY_COUNT];

#endif
