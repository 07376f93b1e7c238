/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_METER_SAMPLER_H
#define FLYBALL_METER_SAMPLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/thread/pool.h"
#include "meter/account.h"
#include "meter/timeline.h"

/*
 * Reads all devices at a steady rate into their accounts: on a thread of its own with all signals
 * blocked, or step by step in virtual time. Deadlines are absolute, so the rate does not depend
 * on how long reading takes. Missed deadlines are skipped, not made up for. In between it makes
 * the extra readings of counters that accounts ask for. Allocates nothing but the thread.
 */
struct sampler {
    struct account *accounts; /* borrowed */
    size_t count;
    const struct clock *clock;
    double period_s;
    uint64_t taken;         /* number of rounds */
    struct mono_time round; /* deadline of the next round */
    struct mono_time next;  /* deadline of it or of an extra reading; other threads read it only in virtual
                             * time */
    struct pool pool;       /* of its thread */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
    _Atomic(struct timeline *) timelines; /* one for each account, to keep samples in; NULL: none is kept */
    _Atomic int64_t cpu_ns;
};

/* Takes the first sample. */
void sampler_init(struct sampler *sampler, struct account *accounts, size_t count, const struct clock *clock,
                  double period_s);

/* Starts the thread; returns false if that fails. */
bool sampler_start(struct sampler *sampler);
/* Stops the thread if it runs. */
void sampler_stop(struct sampler *sampler);

/*
 * Makes the extra readings that are due, if the next round is not; else takes a round. The next
 * round is due a period after the last one was due.
 */
void sampler_take(struct sampler *sampler);

#endif
