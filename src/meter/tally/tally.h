/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TALLY_TALLY_H
#define FLYBALL_METER_TALLY_TALLY_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * The sum of what many processes measured: each device of each node at each
 * moment once.
 *
 *     struct tally tally;
 *
 *     tally_make(windows, count, &tally, out_error);
 *     for (size_t i = 0; i < tally.count; i++)
 *         ... tally.devices[i].energy_j ...
 *     tally_deinit(&tally);
 *
 * The rule, for the windows of one device: they are taken one after the other,
 * those that were counted by whoever measured them first, and of these the longer
 * first. A window adds what it has outside of those taken before:
 *
 * - apart from all of them, its energy and its uncertainty;
 * - within them, nothing;
 * - partly within, the part of its energy that belongs to the time outside, at its
 *   mean power. How the power was spread is not known, so the uncertainty grows by
 *   that part as a whole.
 *
 * So ranks that end a moment later than the one that counts add that moment, and
 * windows whose claims did not see each other are not counted twice. Uncertainties
 * add up, since errors of one sensor may have one cause. A window without an energy
 * covers nothing; time that only such windows saw is `unknown_s`.
 *
 * Moments are dates of the node's clock: a clock that is set during a job makes
 * windows look apart, or together. Pure.
 */
struct tally_window {
    const char *node;
    enum device_kind kind;
    const char *uuid;
    double start_unix_s;
    double time_s;        /* above 0 */
    double energy_j;      /* NAN: not known */
    double uncertainty_j; /* NAN: no bound is known */
    bool counted;         /* by whoever measured it */
};

struct tally_device {
    const char *node; /* borrowed from a window, as uuid is */
    enum device_kind kind;
    const char *uuid;
    size_t windows;       /* that were measured */
    double time_s;        /* that they cover together */
    double unknown_s;     /* of that, without a figure */
    double energy_j;      /* NAN: no window has one */
    double uncertainty_j; /* of those with a bound */
    bool without_bound;   /* for some part of the energy */
    bool overlapped;      /* a part of a window was taken at its mean power */
    size_t counted_twice; /* windows, called counted, that overlap others called so by more than a little */
};

struct tally {
    size_t count;
    struct tally_device *devices; /* owned; by node, kind and uuid */
};

/* FLY_ENOMEM. The order of the windows does not matter. */
int tally_make(const struct tally_window *windows, size_t count, struct tally *out_tally,
               struct fly_error *out_error);
void tally_deinit(struct tally *tally);

#endif
