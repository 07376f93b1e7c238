/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/counter_lag.h"

#include <math.h>
#include <stddef.h>

static const double fade_s = 60.0;

/* Moments this far apart reach back for more than a second. */
static const double apart_s = 0.05;

/* What is compared has to be a second old, and no older than a gap in the readings allows. */
static const double oldest_s = 2.0;

/* Sums begin anew after so many moments, so that they never grow too large to be exact. */
enum { MOMENTS_MOST = 1 << 15 };

/* A counter that is late misses by much less if it is taken to be. */
static const double much_less = 0.3;
enum { compared_least = 10 };

static const struct counter_lag_moment *moment_before(const struct counter_lag *lag, uint32_t back)
{
    return &lag->ring[(lag->count - back) % COUNTER_LAG_RING];
}

/* The newest moment that is at least a second old; NULL: there is none. */
static const struct counter_lag_moment *second_ago(const struct counter_lag *lag, struct mono_time at)
{
    uint32_t kept = lag->count < COUNTER_LAG_RING ? lag->count : COUNTER_LAG_RING;

    for (uint32_t back = 1; back <= kept; back++) {
        const struct counter_lag_moment *moment = moment_before(lag, back);
        double ago_s = mono_elapsed_s(moment->at, at);

        if (ago_s >= COUNTER_LAG_AVERAGE_S)
            return ago_s <= oldest_s ? moment : NULL;
    }
    return NULL;
}

/* Adds what the last second says of both explanations. */
static void compare(struct counter_lag *lag, const struct counter_lag_moment *now,
                    const struct counter_lag_moment *ago, double elapsed_s)
{
    double changed_j = now->apart_j - ago->apart_j;
    double late_j = changed_j - (now->late_j - ago->late_j);
    double kept = exp(-elapsed_s / fade_s);

    lag->prompt_j2 = lag->prompt_j2 * kept + changed_j * changed_j;
    lag->late_j2 = lag->late_j2 * kept + late_j * late_j;
    lag->compared++;
}

void counter_lag_take(struct counter_lag *lag, struct mono_time at, double counter_j, double energy_j,
                      bool continues)
{
    struct counter_lag_moment now = {.at = at, .apart_j = counter_j - energy_j};
    const struct counter_lag_moment *last, *ago;
    double elapsed_s;

    if (!continues || lag->count == MOMENTS_MOST)
        lag->count = 0;
    if (lag->count == 0)
        lag->origin_j = energy_j;
    energy_j -= lag->origin_j;
    if (lag->count > 0) {
        last = moment_before(lag, 1);
        elapsed_s = mono_elapsed_s(last->at, at);
        if (elapsed_s < apart_s)
            return;
        now.energy_js = last->energy_js + 0.5 * (lag->energy_j + energy_j) * elapsed_s;
        ago = second_ago(lag, at);
        if (ago != NULL) {
            now.known = true;
            now.late_j = (now.energy_js - ago->energy_js) / mono_elapsed_s(ago->at, at) - energy_j;
        }
        if (ago != NULL && ago->known)
            compare(lag, &now, ago, elapsed_s);
    }
    lag->energy_j = energy_j;
    lag->ring[lag->count % COUNTER_LAG_RING] = now;
    lag->count++;
}

bool counter_lag_is_late(const struct counter_lag *lag)
{
    return lag->compared >= compared_least && lag->late_j2 < much_less * lag->prompt_j2;
}
