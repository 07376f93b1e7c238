/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_ACCOUNT_H
#define FLYBALL_METER_ACCOUNT_H

#include <pthread.h>

#include <flyball/meter.h>

#include "device/device.h"
#include "meter/counter.h"
#include "meter/integral.h"
#include "meter/sensing.h"
#include "meter/shares.h"
#include "meter/variation.h"

/*
 * All that the readings of one device add up to. Window edges and the sampler
 * bring readings from any thread; totals are kept, so that a window is the
 * difference of two edges however long it was and however many samples lie in
 * it. Thread-safe; the lock is held for arithmetic alone, never for a driver
 * call. Allocates at init only.
 */

/* What is known at one moment, by the device's own stamp. */
struct account_edge {
    struct mono_time at;
    double read_s; /* that the reading took: by so much the stamp is uncertain */
    struct counter_edge counter;
    struct integral_edge integral;
    struct variation_edge variation;
    struct shares shares;
    struct reading power_limit;
    enum reading_state energy_state, power_state; /* of the last attempts */
};

/* An open window's begin, and what cannot be had as a difference. */
struct account_mark {
    struct account_edge begin;
    bool centred;                       /* begin.integral is the sum up to the begin and the lag, */
    struct integral_edge begin_centred; /* and this is it; */
    double jump_w;                      /* how far the power had gone from the begin's by then */
    int64_t temperature_max_c;          /* INT64_MIN: not known */
    uint32_t before, after;             /* in the list of open marks */
};

/* All that is known of a window that has ended. */
struct account_window {
    struct account_mark mark;
    struct account_edge end;
    struct sensing sensing;
    double counter_period_s; /* as stated, or longer where readings show so */
    struct variation_mean variation;
    double edges_w;        /* what two edges miss of powers of late, for each second that they miss */
    double held_j;         /* what holding the last power for the lag, or the window, misses, */
    double counter_held_j; /* and for the counter's lag */
};

struct account {
    const struct device *device; /* borrowed */
    pthread_mutex_t lock;
    struct sensing sensing;
    struct counter counter;
    struct integral integral;
    struct variation variation; /* of the sampler's readings of power, or what those of the counter make */
    struct shares shares;
    struct device_reading
        latest; /* of the sampler: slow quantities are those of the last time they were asked */
    bool sampled;
    struct mono_time sampled_at;
    struct integral_edge sampled_integral;
    struct counter_edge sampled_counter;
    enum reading_state energy_state, power_state;
    quantity_set wanted; /* at a window's edge */
    struct account_mark *marks;
    uint32_t mark_count, first_open; /* mark_count: none */
    uint32_t uncentred;              /* open marks that wait for their lag to pass */
};

bool account_init(struct account *account, const struct device *device, uint32_t mark_count,
                  double sample_period_s);
void account_deinit(struct account *account);

/* What a window's edge has to read: the counter where there is one, else the power. */
quantity_set account_wanted(struct account *account);

/* Takes in a reading of the sampler. */
void account_sample(struct account *account, const struct device_reading *reading);

/* Takes in the reading at a window's begin, and keeps the edge under `mark`. */
void account_begin(struct account *account, uint32_t mark, const struct device_reading *reading);

/* Takes in a reading in the window, and tells all that is known of it up to there. */
void account_peek(struct account *account, uint32_t mark, const struct device_reading *reading,
                  struct account_window *out_window);

/* The same at its end: the mark is free again. */
void account_end(struct account *account, uint32_t mark, const struct device_reading *reading,
                 struct account_window *out_window);

/* The newest reading of the sampler; false before the first. */
bool account_latest(struct account *account, struct device_reading *out_reading);

#endif
