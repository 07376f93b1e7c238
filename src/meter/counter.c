/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/counter.h"

#include <math.h>

#include "device/device.h"

/*
 * A value that stayed for longer shows that the counter had stopped, and tells nothing about its
 * period. What was seen once does not count for ever.
 */
static const double held_most_s = 2.0, held_fade_s = 60.0;

/* Gives the microjoules from one reading to a later one; false if the counter was reset in between. */
static bool advance(const struct counter *counter, uint64_t before_uj, uint64_t after_uj, double elapsed_s,
                    uint64_t *out_uj)
{
    uint64_t delta_uj;

    if (!counter_delta_uj(counter->modulus_uj, before_uj, after_uj, &delta_uj))
        return false;
    /* No device could have caused this wrap in so short a time. A plain rise is always believed. */
    if (after_uj < before_uj && (double)delta_uj * 1e-6 > COUNTER_POWER_MAX_W * fmax(elapsed_s, 1e-3))
        return false;
    *out_uj = delta_uj;
    return true;
}

static void step(struct counter *counter, struct mono_time at, uint64_t value_uj, double fill_j)
{
    uint64_t delta_uj;

    if (advance(counter, counter->value_uj, value_uj, mono_elapsed_s(counter->at, at), &delta_uj)) {
        counter->total_uj += delta_uj;
    } else if (isfinite(fill_j) && fill_j >= 0.0) {
        counter->resets++;
        counter->total_uj += (uint64_t)(fill_j * 1e6);
        counter->filled_uj += (uint64_t)(fill_j * 1e6);
    } else {
        counter->holes++;
    }
    if (value_uj != counter->value_uj) {
        double held_s = mono_elapsed_s(counter->same_since, counter->at);

        counter->held_s *= exp(-mono_elapsed_s(counter->same_since, at) / held_fade_s);
        if (held_s > counter->held_s && held_s <= held_most_s)
            counter->held_s = held_s;
        counter->other_until = counter->at;
        counter->same_since = at;
    }
    counter->value_uj = value_uj;
    counter->at = at;
}

static struct counter_edge edge_here(const struct counter *counter)
{
    bool seen_change = counter->other_until.ns != counter->same_since.ns;

    return (struct counter_edge){
        .known = true,
        .total_uj = counter->total_uj,
        .resets = counter->resets,
        .holes = counter->holes,
        .filled_uj = counter->filled_uj,
        .age_low_s = mono_elapsed_s(counter->same_since, counter->at),
        .age_high_s = seen_change ? mono_elapsed_s(counter->other_until, counter->at) : INFINITY,
    };
}

/*
 * Returns the difference from the last reading to one of about the same time, which may be lower
 * or higher.
 */
static int64_t signed_delta_uj(const struct counter *counter, uint64_t value_uj)
{
    uint64_t modulus_uj = counter->modulus_uj;
    int64_t delta_uj = (int64_t)(value_uj - counter->value_uj);

    if (modulus_uj > 0 && delta_uj > (int64_t)(modulus_uj / 2))
        delta_uj -= (int64_t)modulus_uj;
    else if (modulus_uj > 0 && delta_uj < -(int64_t)(modulus_uj / 2))
        delta_uj += (int64_t)modulus_uj;
    return delta_uj;
}

/*
 * Handles a reading stamped earlier than the last, and returns the total as it was then. That may
 * even be the higher one, since a stamp is only the middle of the time that a reading took.
 */
static struct counter_edge edge_before(const struct counter *counter, struct mono_time at, uint64_t value_uj)
{
    struct counter_edge edge = edge_here(counter);
    int64_t delta_uj = signed_delta_uj(counter, value_uj);
    double most_j = COUNTER_POWER_MAX_W * fmax(mono_elapsed_s(at, counter->at), 1e-3);

    edge.age_low_s = 0.0;
    edge.age_high_s = INFINITY;
    edge.known = fabs((double)delta_uj) * 1e-6 <= most_j;
    edge.total_uj += (uint64_t)delta_uj;
    return edge;
}

struct counter_edge counter_take(struct counter *counter, struct mono_time at, uint64_t value_uj,
                                 double fill_j)
{
    if (!counter->known) {
        counter->known = true;
        counter->value_uj = value_uj;
        counter->at = counter->same_since = counter->other_until = at;
        /* Leaves room for readings that are older than the first and come after it. */
        counter->total_uj = UINT64_C(1) << 40;
        return edge_here(counter);
    }
    if (at.ns < counter->at.ns)
        return edge_before(counter, at, value_uj);
    step(counter, at, value_uj, fill_j);
    return edge_here(counter);
}
