/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SELFTEST_SELFTEST_H
#define FLYBALL_METER_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "device/device.h"
#include "meter/account.h"

/* ---- spreads and updates ---- */

/*
 * How values spread, in the unit of the values. The quantile of share q is the smallest value
 * that at least a share q of all values does not exceed. Without values, everything but the count
 * is NAN.
 */
struct spread {
    size_t count;
    double lowest, median, p99, highest;
};

/* Sorts `values`, none of which may be NAN. */
struct spread spread_of(double *values, size_t count);

/*
 * How often a driver updates a reading, seen from outside: the reading is polled faster than it
 * is updated, and the moments at which it changes are noted.
 *
 * An update that leaves the value as it was cannot be seen. So a value that never changes tells
 * nothing about its period: that is unknown, never 0. Values that seldom change show periods that
 * are too long; their shortest one is then the better guess. A value that changes at nearly every
 * poll is updated at least as often as it was polled: its period is only an upper bound.
 *
 *     updates_init(&watch, periods, COUNT(periods));
 *     while (...)
 *         updates_add(&watch, now, value);
 *     finding = updates_find(&watch);
 */
struct updates {
    double *periods_s; /* borrowed: times between two changes */
    size_t capacity, count;
    size_t polls, changes;
    int64_t value;
    struct mono_time first, last, changed; /* of the first poll, the last poll and the last change */
};

struct update_finding {
    size_t polls, changes;
    double poll_s;          /* between two polls, on average; NAN with fewer than two */
    struct spread period_s; /* between two changes; count 0: unknown */
    bool at_most;           /* the reading may well be updated more often than it was polled */
};

/* Starts without readings; keeps at most the first `capacity` periods. */
void updates_init(struct updates *updates, double *periods_s, size_t capacity);

/* Adds a value read at `when`, which must not go back. */
void updates_add(struct updates *updates, struct mono_time when, int64_t value);

/* Returns what was seen so far. Sorts the periods. */
struct update_finding updates_find(struct updates *updates);

/* ---- the test ---- */

/*
 * Tests how good the devices of this machine are as instruments: how long their calls take, how
 * often their readings change, and whether the energy counter and the integrated power agree,
 * idle and under load. Nothing is set, but by selftest_turn, through the caller.
 *
 *     selftest_latencies(list, clock, device, &result[device]);
 *     selftest_measure(&options, SELFTEST_IDLE, results, out_error);
 *     start a load;
 *     selftest_measure(&options, SELFTEST_LOADED, results, out_error);
 *     selftest_findings(&list->devices[i].info, &results[i], ...);
 *
 * The devices are measured together, as they are in use. Not thread-safe.
 */
enum selftest_stage { SELFTEST_IDLE, SELFTEST_LOADED, SELFTEST_STAGE_COUNT };

/* Returns "idle" or "loaded". */
const char *selftest_stage_name(enum selftest_stage stage);

/* The quantities whose updates are watched. */
enum { SELFTEST_WATCHED = 3 };
extern const enum quantity selftest_watched[SELFTEST_WATCHED];

/* What one device did in one stage. Unknown values are NAN. */
struct selftest_window {
    bool measured;
    double time_s;
    double counter_j, counter_uncertainty_j;
    double integral_j;
    double integral_excess; /* of the integral over the counter, as a fraction of the counter */
    double mean_power_w;
    double utilization; /* mean share of time with work on the device */
    double temperature_max_c;
    char note[160]; /* from the meter: why there is no energy, or what limits it */
    struct update_finding updates[SELFTEST_WATCHED];
    struct account_counter counter; /* as the meter saw it */
};

struct selftest_latency {
    struct reading reading; /* the last one: its state says whether the call works */
    struct spread seconds;  /* of the calls */
};

enum { SELFTEST_LEVELS = 4 };

/*
 * Returns up to which reading a limit counts as kept: 3 % above the limit or, for the noise of
 * sensors, 5 W if that is more.
 */
double selftest_kept_w(double limit_w);

/* What one device did at one limit. Unknown values are NAN. */
struct selftest_level {
    double limit_w; /* what the driver reported after it was set; 0: this level was not reached */
    double mean_power_w, uncertainty_w; /* after the time to settle */
    double mean_reading_w;              /* mean of the power readings in the same time */
    double settled_s;                   /* from setting the limit until the readings stayed under it */
    double clock_mhz;                   /* mean of the readings of the GPU clock */
    double work_per_s;                  /* in steps of the load's kernel */
    double capped_share;                /* of the time, according to the driver */
};

struct selftest_turning {
    bool wanted;       /* limits of this device were to be tested */
    bool tried;        /* they may be set */
    char why_not[320]; /* why they may not, and what to do */
    struct selftest_level levels[SELFTEST_LEVELS];
    bool killed;           /* a process that held this device's limit was killed */
    char not_killed[320];  /* why no process was killed */
    double killed_limit_w; /* the limit that the process held */
    double back_s;         /* from the kill until the earlier limit was back; NAN: not within back_max_s */
    double back_max_s;
    double before_w, after_w; /* the limit before any change, and at the end */
};

struct selftest_result {
    bool load_ran; /* set by the caller: the test's own load ran in the second stage */
    struct selftest_latency latencies[QUANTITY_COUNT];
    struct selftest_window windows[SELFTEST_STAGE_COUNT];
    struct selftest_turning turning;
};

/* How many calls of each quantity are timed. */
enum { SELFTEST_CALLS = 200 };

/* Times the calls of one device, each for at most a second. */
void selftest_latencies(const struct device *device, const struct clock *clock,
                        struct selftest_result *result);

struct selftest_options {
    struct device_list *devices;
    const struct clock *clock; /* NULL: clock_real */
    double duration_s;         /* of a stage, and of the window at each level */
    double poll_s;             /* between looks for updates; slow drivers make it longer */
    bool (*go_on)(void *data); /* asked at every poll; NULL: always */
    void *data;
    /* Of selftest_turn alone: */
    double settle_s; /* after each change, until the window begins */
    /* Sets the limits of level 0, 1, ... of all devices that take part; a negative code ends the test. */
    int (*set)(void *data, int level, struct fly_error *out_error);
    /* Gives the work done on a device so far; false if it is unknown. NULL: always unknown. */
    bool (*work)(void *data, size_t device, double *out_work);
};

/*
 * Measures all devices for a while, into results[device].windows[which]. Returns FLY_ESTATE if
 * go_on interrupted it.
 */
int selftest_measure(const struct selftest_options *options, enum selftest_stage which,
                     struct selftest_result *results, struct fly_error *out_error);

/*
 * Tests whether power limits have the stated effect. Under a load it goes level by level from the
 * highest limit down and measures the mean power, when the readings stay under the limit, and how
 * much work is done. The caller (knob/) decides who may set limits and how they are restored.
 *
 *     start a load;
 *     selftest_turn(&options, results, out_error);       results[i].turning.tried: it takes part
 *     kill a process that holds limits down, and fill in results[i].turning.killed;
 *
 * Fills in the levels. Returns the errors of `set`, FLY_ESTATE if go_on ended it, FLY_ENOMEM; levels
 * reached until then stay filled in.
 */
int selftest_turn(const struct selftest_options *options, struct selftest_result *results,
                  struct fly_error *out_error);

/* What a self-test found about one thing that a board claims. */
enum selftest_outcome { SELFTEST_AS_EXPECTED, SELFTEST_DIFFERS, SELFTEST_NOT_KNOWN, SELFTEST_OUTCOME_COUNT };

enum { SELFTEST_FINDINGS_MAX = 16, SELFTEST_TEXT_MAX = 400 };
struct selftest_finding {
    const char *check; /* "counter_against_integral" */
    enum selftest_outcome outcome;
    char text[SELFTEST_TEXT_MAX];
};

/* Returns "as_expected", "differs" or "not_known". */
const char *selftest_outcome_word(enum selftest_outcome outcome);

/*
 * Says what the figures mean, one clause each: of the counter against the integral, of measured
 * periods against the stated ones, and of what could not be told. Returns the number of findings,
 * at most SELFTEST_FINDINGS_MAX.
 */
size_t selftest_findings(const struct device_info *info, const struct selftest_result *result,
                         struct selftest_finding findings[SELFTEST_FINDINGS_MAX]);

#endif
