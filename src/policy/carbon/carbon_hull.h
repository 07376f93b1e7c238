/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_POLICY_CARBON_CARBON_HULL_H
#define FLYBALL_POLICY_CARBON_CARBON_HULL_H

#include <stddef.h>

#include <flyball/error.h>
#include <flyball/power_profile.h>

/*
 * A measured power profile as the carbon plan uses it: which power a machine draws at which rate
 * of work.
 *
 * A second of work is what the fastest limit does in one second. A rate is in seconds of work per
 * second, so the rate of the fastest limit is 1, and work is stated as the time that it would
 * take at the fastest limit. A power is all that counts: (GPUs + host) * PUE.
 *
 * Two limits can take turns, so every point between two measured ones can be had on average. Of
 * all those points only the edge matters: the lower hull where energy has a positive weight, and
 * the upper hull where it has a negative one (at times consumers are paid to use electricity).
 * Along both, from the slowest point to the fastest, each further bit of work costs more than the
 * one before. Value types; pure; thread-safe.
 */
enum { CARBON_POINTS_MAX = 64 };

struct carbon_point {
    double limit_w; /* 0: the job is paused, or has ended */
    double power_w;
    double rate;
};

struct carbon_hull {
    struct carbon_point points[CARBON_POINTS_MAX + 1]; /* ascending rates */
    size_t count;                                      /* at least 1 */
};

struct carbon_profile {
    struct carbon_point points[CARBON_POINTS_MAX]; /* ascending limits */
    size_t count;
    size_t fastest; /* index; among equally fast points the one with the highest limit */
    double host_w;
    double pue;
    struct carbon_hull lower;
    struct carbon_hull upper;
};

/* What the site adds to the GPUs. */
struct carbon_surroundings {
    double host_w; /* drawn by the rest of the machine while the job runs; from 0 */
    double pue;    /* power usage effectiveness of the site; from 1 */
};

/*
 * Returns FLY_EUSAGE for no points, for a point with a value that is not above 0, for a limit
 * that occurs twice, and for surroundings out of range; FLY_ELIMIT for too many points.
 */
int carbon_profile_init(struct carbon_profile *profile, const struct fly_power_point *points, size_t count,
                        const struct carbon_surroundings *surroundings, struct fly_error *out_error);

/* Makes the hull of the profile's points and of a standstill that draws `power_w`. */
void carbon_hull_from(const struct carbon_profile *profile, int negative, double power_w,
                      struct carbon_hull *out_hull);

/* Returns the extra power per extra rate between point `segment` and the next. */
double carbon_hull_slope(const struct carbon_hull *hull, size_t segment);

/*
 * Returns the best single limit that does `work_s` within `time_s`, as an index into `points`:
 * among those fast enough the one with the least energy for the work; among equals the fastest.
 * If none is fast enough, returns the fastest.
 */
size_t carbon_profile_static(const struct carbon_profile *profile, double work_s, double time_s);

/* Two limits that take turns; with a share of 0 or 1 only one of them is used. */
struct carbon_mix {
    struct carbon_point low, high;
    double high_share; /* share of the time at the higher limit */
};

/*
 * Returns the best constant speed that does `work_s` within `time_s`: among all mixtures of two
 * limits that are fast enough, the one with the least energy for the work; the fastest limit if
 * none is. It is no worse than the best single limit.
 */
struct carbon_mix carbon_profile_mix(const struct carbon_profile *profile, double work_s, double time_s);

/* Returns a mixture as if it were one limit: the means over its time. */
struct carbon_point carbon_mix_point(const struct carbon_mix *mix);

#endif
