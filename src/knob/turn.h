/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_TURN_H
#define FLYBALL_KNOB_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "device/device.h"
#include "knob/way/site.h"

/*
 * One knob that is turned, and how it is put back: by the session, by its guard, and
 * from the journal, all in the same way.
 *
 * A turn is written down before it is made, as intent, and again when it was made.
 * As intent the knob may stand where it stood, `earlier`, or where it is being put,
 * `ours`, give or take a driver's rounding to whole watts; once it was made,
 * both are what the driver answered. A ceiling on the clock, which no driver tells, is
 * what was set; what goes back is 0, none, see ceiling.h.
 */
struct turn {
    enum quantity quantity;
    int64_t previous; /* what goes back */
    int64_t earlier, ours;
    enum way way; /* by which it was turned, and goes back first */
};

enum { TURNS_MAX = 3 }; /* of a GPU: limit, ceiling on the clock, and persistence mode */

enum turn_end {
    TURN_RESTORED,
    TURN_UNNEEDED, /* it stood there already */
    TURN_FOREIGN,  /* it stands where we did not put it: left alone */
    TURN_FAILED
};

/* Whether a knob that stands at `value`, as the driver said, stands where the turn put it. */
bool turn_stands(const struct turn *turn, int64_t value);

/* Whether it is the intent of a way by which the knob may be turned later than it is asked for. */
bool turn_is_open(const struct turn *turn);

/*
 * Puts the knob back if it stands where the turn put it: by the way by which it was
 * turned, and by the site's others where that fails. What a daemon or a command was asked
 * for may come later than the intent of it: who `insists` puts back an intent of such a
 * way although the knob stands as it should, so that this is the last that is asked for.
 * `out_found` is what stood, 0 when it could not be read; of a ceiling the clock that speaks
 * against it, 0 when none does. `out_error` is set with TURN_FAILED.
 */
enum turn_end turn_back(struct site *site, const struct device *device, const struct turn *turn, bool insists,
                        int64_t *out_found, struct fly_error *out_error);

#endif
