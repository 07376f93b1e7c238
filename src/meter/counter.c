/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/counter.h"

#include <math.h>

#include "device/device.h"

/*
 * A value that stayed for longer shows that the counter had stopped, and tells nothing about its
 * period. What was seen once does not count for ever.
 */
static const double held_most_s = 2.0, held_fade_s = 60.0;

/* A reading returns to a line only within this time after it was left. */
static const double left_most_s = 60.0;

/* Before a value has changed once, it may be as old as this. */
static const double first_age_s = 2.0;

double counter_power_max_w(int64_t limit_max_mw)
{
    return 2e-3 * (double)limit_max_mw;
}

static struct counter_point point_of(const struct counter *counter)
{
    return (struct counter_point){.known = true,
                                  .at = counter->at,
                                  .value_uj = counter->value_uj,
                                  .total_uj = counter->total_uj,
                                  .filled_uj = counter->filled_uj,
                                  .holes = counter->holes};
}

/* The longest time in which the energy between the last value and the one at a moment can have been drawn. */
static double drawn_s(const struct counter *counter, struct mono_time from, struct mono_time at)
{
    bool seen_change = counter->other_until.ns != counter->same_since.ns;
    double age_s = seen_change ? mono_elapsed_s(counter->other_until, counter->same_since) : first_age_s;

    return mono_elapsed_s(from, at) + fmax(age_s, counter->held_s) + 1e-3;
}

/* Gives the microjoules from one value to a later one; false if the device cannot have drawn that. */
static bool advance(const struct counter *counter, uint64_t before_uj, uint64_t after_uj, double most_s,
                    uint64_t *out_uj)
{
    double power_w = counter->power_max_w > 0.0 ? counter->power_max_w : COUNTER_POWER_MAX_W;

    return counter_delta_uj(counter->modulus_uj, before_uj, after_uj, out_uj) &&
           (double)*out_uj * 1e-6 <= power_w * most_s;
}

/* Returns whether a value lies on the line of which that was the last point. */
static bool lies_on(const struct counter *counter, const struct counter_point *last, struct mono_time at,
                    uint64_t value_uj, uint64_t *out_uj)
{
    return last->known && mono_elapsed_s(last->at, at) <= left_most_s &&
           advance(counter, last->value_uj, value_uj, drawn_s(counter, last->at, at), out_uj);
}

/* Goes on from a point before wrong readings. */
static void pick_up(struct counter *counter, const struct counter_point *from, uint64_t delta_uj)
{
    counter->total_uj = from->total_uj + delta_uj;
    counter->filled_uj = from->filled_uj;
    counter->holes = from->holes;
    counter->resets++;
    counter->left.known = false;
}

static void leave_line(struct counter *counter, uint64_t value_uj, double fill_j)
{
    counter->left = point_of(counter);
    counter->fell_uj = value_uj < counter->value_uj ? counter->value_uj - value_uj : 0;
    counter->resets++;
    if (isfinite(fill_j) && fill_j >= 0.0) {
        counter->total_uj += (uint64_t)(fill_j * 1e6);
        counter->filled_uj += (uint64_t)(fill_j * 1e6);
    } else {
        counter->holes++;
    }
}

static void add_step(struct counter *counter, struct mono_time at, uint64_t value_uj, double fill_j)
{
    uint64_t delta_uj, left_uj;
    bool rose =
        advance(counter, counter->value_uj, value_uj, drawn_s(counter, counter->same_since, at), &delta_uj);

    /* A counter that fell, and now rises by as much at once, has come back. */
    if ((!rose || (counter->fell_uj > 0 && delta_uj >= counter->fell_uj)) &&
        lies_on(counter, &counter->left, at, value_uj, &left_uj))
        pick_up(counter, &counter->left, left_uj);
    else if (rose)
        counter->total_uj += delta_uj;
    else if (lies_on(counter, &counter->before, at, value_uj, &left_uj))
        pick_up(counter, &counter->before, left_uj);
    else
        leave_line(counter, value_uj, fill_j);
}

static void step(struct counter *counter, struct mono_time at, uint64_t value_uj, double fill_j)
{
    struct counter_point last = point_of(counter);

    add_step(counter, at, value_uj, fill_j);
    if (value_uj != counter->value_uj) {
        double held_s = mono_elapsed_s(counter->same_since, counter->at);

        counter->before = last;
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
    double most_j = COUNTER_POWER_MAX_W * drawn_s(counter, at, counter->at);

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
