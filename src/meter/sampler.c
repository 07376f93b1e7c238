/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/sampler.h"

#include <time.h>

#include "base/thread/pool.h"
#include "base/wait.h"

enum {
    /* Rounds between two readings of slow quantities. */
    SLOW_ROUNDS = 10,
    /* Read in a call of its own, so that its stamp is precise. */
    ENERGY = QUANTITY_BIT(QUANTITY_ENERGY) | QUANTITY_BIT(QUANTITY_POWER_INSTANT) |
             QUANTITY_BIT(QUANTITY_POWER_AVERAGE),
    FAST = QUANTITY_BIT(QUANTITY_UTILIZATION) | QUANTITY_BIT(QUANTITY_THROTTLE),
    SLOW = FAST | QUANTITY_BIT(QUANTITY_TEMPERATURE) | QUANTITY_BIT(QUANTITY_POWER_LIMIT) |
           QUANTITY_BIT(QUANTITY_CLOCK_GPU) | QUANTITY_BIT(QUANTITY_CLOCK_MEMORY) |
           QUANTITY_BIT(QUANTITY_UTILIZATION_MEMORY),
};

static void sample_device(struct account *account, const struct clock *clock, quantity_set others,
                          struct timeline *timeline)
{
    struct device_reading reading, other;

    device_read(account->device, clock, ENERGY, &reading);
    device_read(account->device, clock, others, &other);
    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if (others & QUANTITY_BIT(i))
            reading.values[i] = other.values[i];
    }
    account_sample(account, &reading);
    if (timeline != NULL) {
        struct fly_sample sample = timeline_sample(&reading, clock);

        timeline_add(timeline, &sample);
    }
}

static void take_round(struct sampler *sampler)
{
    quantity_set others = sampler->taken % SLOW_ROUNDS == 0 ? SLOW : FAST;
    struct timeline *timelines = atomic_load(&sampler->timelines);
    struct mono_time now;

    if (timelines != NULL)
        others |= QUANTITY_BIT(QUANTITY_TEMPERATURE);
    for (size_t i = 0; i < sampler->count; i++)
        sample_device(&sampler->accounts[i], sampler->clock, others,
                      timelines != NULL ? &timelines[i] : NULL);
    sampler->taken++;
    now = sampler->clock->now(sampler->clock->state);
    do
        sampler->round = mono_after_s(sampler->round, sampler->period_s);
    while (sampler->round.ns <= now.ns);
}

static void take_extras(struct sampler *sampler, struct mono_time now)
{
    for (size_t i = 0; i < sampler->count; i++) {
        struct account *account = &sampler->accounts[i];
        struct device_reading reading;

        if (account_next_extra(account, now).ns > now.ns)
            continue;
        device_read(account->device, sampler->clock, QUANTITY_BIT(QUANTITY_ENERGY), &reading);
        account_extra(account, &reading);
    }
}

void sampler_take(struct sampler *sampler)
{
    struct mono_time now = sampler->clock->now(sampler->clock->state);

    if (sampler->next.ns < sampler->round.ns && now.ns < sampler->round.ns)
        take_extras(sampler, now);
    else
        take_round(sampler);
    now = sampler->clock->now(sampler->clock->state);
    sampler->next = sampler->round;
    for (size_t i = 0; i < sampler->count; i++) {
        struct mono_time extra = account_next_extra(&sampler->accounts[i], now);

        if (extra.ns < sampler->next.ns)
            sampler->next = extra;
    }
}

void sampler_init(struct sampler *sampler, struct account *accounts, size_t count, const struct clock *clock,
                  double period_s)
{
    *sampler = (struct sampler){.accounts = accounts, .count = count, .clock = clock, .period_s = period_s};
    pthread_mutex_init(&sampler->lock, NULL);
    mono_cond_init(&sampler->wake);
    sampler->next = sampler->round = clock->now(clock->state);
    sampler_take(sampler);
}

/* Waits until the deadline; returns true if the thread has to end. */
static bool wait_for_deadline(struct sampler *sampler)
{
    bool stopping;

    pthread_mutex_lock(&sampler->lock);
    while (!sampler->stopping && mono_wait(&sampler->wake, &sampler->lock, sampler->next))
        ;
    stopping = sampler->stopping;
    pthread_mutex_unlock(&sampler->lock);
    return stopping;
}

static void *run(void *data)
{
    struct sampler *sampler = data;

    while (!wait_for_deadline(sampler)) {
        struct timespec used;

        sampler_take(sampler);
        if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0)
            atomic_store_explicit(&sampler->cpu_ns, (int64_t)used.tv_sec * 1000000000 + used.tv_nsec,
                                  memory_order_relaxed);
    }
    return NULL;
}

bool sampler_start(struct sampler *sampler)
{
    return pool_add(&sampler->pool, 0, run, sampler) == 0;
}

void sampler_stop(struct sampler *sampler)
{
    if (sampler->pool.count == 0)
        return;
    pthread_mutex_lock(&sampler->lock);
    sampler->stopping = true;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->lock);
    pool_join(&sampler->pool);
}
