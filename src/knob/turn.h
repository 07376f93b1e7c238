/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_TURN_H
#define FLYBALL_KNOB_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include <flyball/error.h>

#include "device/setting.h"
#include "knob/way/site.h"

/*
 * One knob that is turned, and how it is put back: the same for the session, its guard, and the
 * journal.
 *
 * A turn is written down as an intent before it is made, and again after it was made. During the
 * intent the knob may be at its old value, `earlier`, or at its new one, `ours`, give or take a
 * driver's rounding to whole watts. After the turn was made, both are what the driver reported.
 * For a ceiling on a clock, which no driver reports, they are what was set; the value to put
 * back is 0, none, see ceiling.h. A set of workload profiles may be changed by two calls of the driver
 * (device_request_workloads), so during the intent it may also lie between its old and new value.
 *
 * What stood before may be out of reach by then: a range of limits has shrunk, profiles are not offered any
 * more, or a driver takes a value and reports another. The nearest value is set, and the turn becomes a debt
 * (debt.h): its `previous` is what is owed, and `earlier` and `ours` are what stands instead.
 */
struct turn {
    enum quantity quantity;
    struct setting previous; /* the value to put back */
    struct setting earlier, ours;
    enum way way; /* by which it was turned; tried first to put it back */
};

/* Of a GPU: limit, ceilings on two clocks, workload profiles, performance level, and persistence mode. */
enum { TURNS_MAX = 6 };

enum turn_end {
    TURN_RESTORED,
    TURN_SHORT,    /* it stands as near to that value as can be set: the turn is now a debt */
    TURN_UNNEEDED, /* it was at that value already */
    TURN_FOREIGN,  /* it is not where the turn put it: left as it is */
    TURN_FAILED
};

/* Returns whether `value`, as the driver reported it, is where the turn put the knob. */
bool turn_stands(const struct turn *turn, const struct setting *value);

/*
 * Returns whether `value` stands because of the turn on that device: where it put the knob, or where the
 * driver has moved that since because its range does not reach there any more.
 */
bool turn_stands_on(const struct device *device, const struct turn *turn, const struct setting *value);

/* Returns whether it is an intent: written down, and perhaps not made. */
bool turn_is_intent(const struct turn *turn);

/* Returns whether it is an intent by a way that may turn the knob some time after it was asked to. */
bool turn_is_open(const struct turn *turn);

/*
 * Puts the knob back if it is where the turn put it: by the way by which it was turned, and by
 * the site's others if that fails. A daemon may do what it was asked some time
 * later. So with `insists`, an intent by such a way is put back although the knob is as it should
 * be, so that this is the last request. `out_found` is the value found, empty if it could not be
 * read; for a ceiling its number is the clock that contradicts it, 0 if none does. `out_error` is
 * set with TURN_FAILED.
 *
 * A turn that becomes a debt is changed, and given to `note` before the knob is moved and after that: it is
 * an intent in between. Without one the caller writes it down. Its failure keeps nothing from being set.
 */
struct turn_note {
    void (*note)(void *state, const struct turn *turn);
    void *state;
};
enum turn_end turn_back(const struct site *site, const struct device *device, struct turn *turn, bool insists,
                        const struct turn_note *note, struct setting *out_found, struct fly_error *out_error);

#endif
