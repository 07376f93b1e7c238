/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SAMPLER_H
#define FLYBALL_METER_SAMPLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "meter/account.h"

/*
 * Reads all devices at a steady rate into their accounts, on a thread of its
 * own with all signals blocked, or step by step where time is virtual. Deadlines
 * are absolute, so that the rate holds however long reading takes; deadlines
 * that were missed are left out, not made up for. Allocates nothing but the
 * thread.
 */
struct sampler {
    struct account *accounts; /* borrowed */
    size_t count;
    const struct clock *clock;
    double period_s;
    uint64_t taken;        /* rounds */
    struct mono_time next; /* deadline; read by others in virtual time only */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool started, stopping;
    _Atomic int64_t cpu_ns;
};

/* Takes the first sample. */
void sampler_init(struct sampler *sampler, struct account *accounts, size_t count, const struct clock *clock,
                  double period_s);

/* Starts the thread; false where none can be had. */
bool sampler_start(struct sampler *sampler);
/* Ends the thread, if it runs. */
void sampler_stop(struct sampler *sampler);

/* One round now; the next is due a period after the last one was. */
void sampler_take(struct sampler *sampler);

#endif
