/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/counter_clock.h"

#include <math.h>

#include "base/math/philox.h"

/* Of random numbers; sensor.c has those before it. */
enum { STREAM_UPDATES = 16 };

static const double ns_per_s = 1e9;

/* How far the slew has moved the clock after `since_ns`, in nanoseconds. */
static double slewed_ns(const struct counter_clock *clock, double since_ns)
{
    double whole_ns = clock->slew_s * ns_per_s, share = clock->slew_ppm * 1e-6;
    double turn;

    if (clock->slew_ppm == 0.0 || whole_ns <= 0.0)
        return 0.0;
    turn = since_ns / whole_ns;
    if (!clock->slew_steps)
        return share * whole_ns * (1.0 - cos(2.0 * M_PI * turn)) / (2.0 * M_PI);
    turn -= floor(turn);
    return share * whole_ns * (turn < 0.5 ? turn : 1.0 - turn);
}

/* The machine's moment less the counter's, for a moment of the counter's clock. */
static double ahead_ns(const struct counter_clock *clock, int64_t counter_ns)
{
    double since_ns = (double)(counter_ns - clock->origin_ns);

    return clock->drift_ppm * 1e-6 * since_ns + slewed_ns(clock, since_ns);
}

struct update {
    int64_t late_ns;
    bool skipped;
};

static struct update update_of(const struct counter_clock *clock, int64_t index)
{
    struct philox_key key = {.seed = clock->seed, .job = clock->gpu};
    int64_t most_ns = clock->jitter_ns < clock->period_ns ? clock->jitter_ns : clock->period_ns;
    struct philox random;
    struct update update = {.late_ns = 0};

    if (clock->jitter_ns <= 0 && clock->skipped <= 0.0)
        return update;
    random = philox_open(key, STREAM_UPDATES, (uint64_t)index, 0);
    update.late_ns = (int64_t)((double)(philox_u64(&random) >> 11) * 0x1p-53 * (double)most_ns);
    update.skipped = (double)(philox_u64(&random) >> 11) * 0x1p-53 < clock->skipped;
    return update;
}

/* When update `index` comes, on a clock that goes on while the machine sleeps. */
static int64_t update_ns(const struct counter_clock *clock, int64_t index)
{
    int64_t due_ns = clock->phase_ns + index * clock->period_ns;

    return due_ns + (int64_t)llround(ahead_ns(clock, due_ns)) + update_of(clock, index).late_ns;
}

/* An update that is due no earlier than the last one before `awake_ns`. */
static int64_t index_near(const struct counter_clock *clock, int64_t awake_ns)
{
    int64_t counter_ns = awake_ns;

    /* Each round divides the error by a thousand or more: drift and slew are that small. */
    for (int i = 0; i < 4; i++)
        counter_ns = awake_ns - (int64_t)llround(ahead_ns(clock, counter_ns));
    return (counter_ns - clock->phase_ns) / clock->period_ns + 1;
}

int64_t counter_clock_made_ns(const struct counter_clock *clock, int64_t at_ns)
{
    int64_t awake_ns = at_ns + sleeps_up_to_ns(&clock->sleeps, at_ns);
    int64_t index;

    if (clock->period_ns <= 0)
        return at_ns;
    index = index_near(clock, awake_ns);
    while (update_ns(clock, index) > awake_ns || update_of(clock, index).skipped)
        index--;
    return sleeps_left_out_ns(&clock->sleeps, update_ns(clock, index));
}
