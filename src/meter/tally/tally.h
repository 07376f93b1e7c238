/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_TALLY_TALLY_H
#define FLYBALL_METER_TALLY_TALLY_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * Sums what many processes measured, and counts each device of each node at each moment once.
 *
 *     struct tally tally;
 *
 *     tally_make(windows, count, &tally, out_error);
 *     for (size_t i = 0; i < tally.count; i++)
 *         ... tally.devices[i].energy_j ...
 *     tally_deinit(&tally);
 *
 * The rule for the windows of one device: they are taken one after the other. Windows that their
 * process counted come first, and among these the longer ones first. A window adds what lies
 * outside of the windows taken before it:
 *
 * - if it lies apart from all of them, its energy and its uncertainty;
 * - if it lies within them, nothing;
 * - if it lies partly within them, the part of its energy that belongs to the time outside, at
 *   its mean power. How the power was spread is unknown, so the uncertainty grows by all of that
 *   part.
 *
 * So ranks that end a moment later than the one that counts add that moment, and windows whose
 * claims did not see each other are not counted twice. Uncertainties are added up, since errors
 * of one sensor may have one cause. A window without an energy covers nothing; time that only
 * such windows cover is `unknown_s`.
 *
 * Moments are dates of the node's clock: if a clock is set during a job, windows may seem apart,
 * or seem to overlap. Pure.
 */
struct tally_window {
    const char *node;
    enum device_kind kind;
    const char *uuid;
    double start_unix_s;
    double time_s;        /* above 0 */
    double energy_j;      /* NAN: unknown */
    double uncertainty_j; /* NAN: no bound is known */
    bool counted;         /* by the process that measured it */
};

struct tally_device {
    const char *node; /* borrowed from a window, like uuid */
    enum device_kind kind;
    const char *uuid;
    size_t windows;       /* how many were measured */
    double time_s;        /* that the windows cover together */
    double unknown_s;     /* the part of it without a figure */
    double energy_j;      /* NAN: no window has one */
    double uncertainty_j; /* of the energies with a bound */
    bool without_bound;   /* some part of the energy has no bound */
    bool overlapped;      /* a part of a window was taken at its mean power */
    size_t counted_twice; /* windows marked `counted` that clearly overlap others marked so */
};

struct tally {
    size_t count;
    struct tally_device *devices; /* owned; ordered by node, kind and uuid */
};

/* Sums the windows, whose order does not matter. FLY_ENOMEM. */
int tally_make(const struct tally_window *windows, size_t count, struct tally *out_tally,
               struct fly_error *out_error);
void tally_deinit(struct tally *tally);

#endif
