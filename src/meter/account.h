/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_ACCOUNT_H
#define FLYBALL_METER_ACCOUNT_H

#include <pthread.h>

#include <flyball/meter.h>

#include "device/device.h"
#include "meter/counter.h"
#include "meter/counter_lag.h"
#include "meter/integral.h"
#include "meter/knots.h"
#include "meter/phase.h"
#include "meter/sensing.h"
#include "meter/shares.h"
#include "meter/summing.h"
#include "meter/variation.h"

/*
 * Adds up the readings of one device. Window edges and the sampler bring readings from any
 * thread. It keeps totals, so a window is the difference of two edges, however long it was and
 * however many samples it contains. Thread-safe: the lock is held only for arithmetic, never
 * during a driver call. Allocates at init only.
 */

/* What is known at one moment, according to the device's own stamp. */
struct account_edge {
    struct mono_time at;
    double read_s; /* how long the reading took: the stamp is uncertain by that much */
    struct counter_edge counter;
    struct phase_age age; /* of the counter's last update, as far as updates are tracked */
    double expected_w;    /* the power after it; NAN: unknown */
    double change_w;      /* by how much the figures for that differ */
    struct integral_edge integral;
    struct variation_edge variation;
    struct shares shares;
    struct reading power_limit;
    enum reading_state energy_state, power_state; /* of the latest attempts */
};

/* The begin of an open window, and what cannot be computed as a difference. */
struct account_mark {
    struct account_edge begin;
    bool centred;                       /* begin_centred is valid: */
    struct integral_edge begin_centred; /* the sum of readings up to the begin plus the lag */
    double jump_w;                      /* how far the power had moved away from the begin's power by then */
    int64_t temperature_max_c;          /* INT64_MIN: unknown */
    struct knot next[2];                /* the counter's updates that were known next */
    uint32_t before, after;             /* neighbours in the list of open marks */
};

/* Everything known of a window that has ended. */
struct account_window {
    struct account_mark mark;
    struct account_edge end;
    struct account_edge good; /* the last sample with an energy; before the begin: there was none since */
    struct sensing sensing;
    double counter_period_s; /* as stated, or longer if readings show that */
    bool counter_late;       /* it sums averages, see counter_lag.h; `sensing` has its lag */
    struct variation_mean variation;
    double edges_w; /* error at two edges from the power of the last minute or so, per second that
                     * they miss */
    enum phase_state phase;
    bool sees_all;             /* the counter does not sum power readings */
    bool disagree;             /* counter and power readings do, in the long run */
    double surprise_w, step_j; /* as struct fusion_window has them */
    double held_j;             /* error from holding the last power for the lag, or for a shorter window, */
    double counter_held_j;     /* and for the counter's lag */
};

struct account {
    const struct device *device; /* borrowed */
    pthread_mutex_t lock;
    struct sensing sensing;
    struct counter counter;
    struct counter_lag lag;
    struct phase phase;
    struct knots knots;
    struct summing summing;
    uint32_t breaks; /* resets and holes up to the last knot */
    struct integral integral;
    struct variation variation; /* of the sampler's power readings; else of powers by the counter */
    struct shares shares;
    struct device_reading latest; /* of the sampler; slow quantities are as last read */
    bool sampled;
    struct mono_time sampled_at;
    struct integral_edge sampled_integral;
    struct counter_edge sampled_counter;
    struct account_edge good; /* the last sample with an energy */
    enum reading_state energy_state, power_state;
    quantity_set wanted; /* to be read at a window's edge */
    struct account_mark *marks;
    uint32_t mark_count, first_open; /* first_open is mark_count if none is open */
    uint32_t uncentred;              /* open marks whose lag has not passed yet */
    uint32_t unsettled;              /* open marks that have not got both next updates yet */
};

bool account_init(struct account *account, const struct device *device, uint32_t mark_count,
                  double sample_period_s);
void account_deinit(struct account *account);

/* Returns what a window's edge has to read: the counter if there is one, else the power. */
quantity_set account_wanted(struct account *account);

/* Adds a reading of the sampler. */
void account_sample(struct account *account, const struct device_reading *reading);

/*
 * Returns when to read the counter besides, to track its updates, at `now` or later; INT64_MAX ns:
 * not at all. account_extra adds such a reading.
 */
struct mono_time account_next_extra(struct account *account, struct mono_time now);
void account_extra(struct account *account, const struct device_reading *reading);

/* Adds a reading that somebody made for reasons of their own. */
void account_add(struct account *account, const struct device_reading *reading);

/* Adds the reading at a window's begin, and keeps the edge under `mark`. */
void account_begin(struct account *account, uint32_t mark, const struct device_reading *reading);

/* Adds a reading within the window, and gives everything known of the window up to there. */
void account_peek(struct account *account, uint32_t mark, const struct device_reading *reading,
                  struct account_window *out_window);

/* Does the same at the window's end; the mark is free again. */
void account_end(struct account *account, uint32_t mark, const struct device_reading *reading,
                 struct account_window *out_window);

/* How the counter behaves, as far as it has shown. */
struct account_counter {
    enum phase_state state;
    double period_s, spread_s; /* of its updates: from one to the next, and how far one is off */
    double step_j;             /* in which it counts; 0: unknown */
    bool disagrees;            /* with the power readings, in the long run */
};
void account_counter(struct account *account, struct account_counter *out_counter);

/* Gives the newest reading of the sampler; false before the first. */
bool account_latest(struct account *account, struct device_reading *out_reading);

#endif
