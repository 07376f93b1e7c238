/* SPDX-License-Identifier: Apache-2.0 */
#include "train/account/carbon_counter.h"

#include <math.h>

enum { CLOCK_TRIES = 3, CLOCK_APART_NS = 1000000 };

/* The monotonic time is that of the middle, when the date was read. */
void counter_clocks(const struct clock *clock, struct mono_time *out_now, struct wall_time *out_date)
{
    for (int i = 0; i < CLOCK_TRIES; i++) {
        struct mono_time before = clock->now(clock->state), after;

        *out_date = clock->date(clock->state);
        after = clock->now(clock->state);
        *out_now = mono_middle(before, after);
        if (after.ns - before.ns < CLOCK_APART_NS)
            return;
    }
}

static void cut_at(struct carbon_counter *counter, enum slicer_cut_kind kind,
                   const struct counter_moment *moment)
{
    struct slicer_result result;

    counter->slicer.steps += atomic_exchange(&counter->steps, 0);
    result = slicer_cut(&counter->slicer, kind, moment->now, moment->date, &moment->used);
    if (result.anew)
        carbon_energy_anew(&counter->energy);
    else
        carbon_energy_take(&counter->energy, result.share);
}

static void cut_now(struct carbon_counter *counter, enum slicer_cut_kind kind)
{
    struct counter_moment moment;

    counter_clocks(counter->clock, &moment.now, &moment.date);
    if (kind == CUT_BORDERS && !slicer_is_due(&counter->slicer, moment.now, moment.date))
        return;
    moment.used = carbon_energy_look(&counter->energy);
    cut_at(counter, kind, &moment);
}

/* Cuts where the last program ended. If the energy was not known then, the one of now is used. */
static void cut_rest(struct carbon_counter *counter, enum slicer_cut_kind kind)
{
    if (!counter->begun)
        return;
    if (counter->rest.used.has_gpu && isnan(counter->rest.used.gpu_j))
        counter->rest.used = carbon_energy_look(&counter->energy);
    cut_at(counter, kind, &counter->rest);
}

static bool is_other_limit(double limit_w, double other_w)
{
    return limit_w != other_w && !(isnan(limit_w) && isnan(other_w));
}

/* Begins: nothing was used yet. */
static void begin(struct carbon_counter *counter)
{
    struct wall_time date;
    struct mono_time now;

    counter_clocks(counter->clock, &now, &date);
    slicer_init(&counter->slicer, now, date);
    carbon_energy_anew(&counter->energy);
    counter->begun = true;
}

void counter_go(struct carbon_counter *counter)
{
    if (!counter->rests)
        return;
    if (!counter->begun)
        begin(counter);
    else if (is_other_limit(counter->rest_limit_w, counter->slicer.limit_w))
        cut_rest(counter, CUT_NOW);
    counter->slicer.limit_w = counter->rest_limit_w;
    counter->rests = false;
}

void counter_rest(struct carbon_counter *counter)
{
    if (counter->rests)
        return;
    counter_clocks(counter->clock, &counter->rest.now, &counter->rest.date);
    counter->rest.used = carbon_energy_look(&counter->energy);
    counter->rest_limit_w = counter->slicer.limit_w;
    counter->rests = true;
}

void counter_cut(struct carbon_counter *counter, enum slicer_cut_kind kind)
{
    if (!counter->rests)
        cut_now(counter, kind);
    else if (kind == CUT_LAST)
        cut_rest(counter, kind);
}

bool counter_limit(struct carbon_counter *counter, double limit_w)
{
    bool other = !counter->rests && is_other_limit(limit_w, counter->slicer.limit_w);

    counter->rest_limit_w = limit_w;
    if (other) {
        cut_now(counter, CUT_NOW);
        counter->slicer.limit_w = limit_w;
    }
    return other;
}

bool counter_init(struct carbon_counter *out_counter, const struct clock *clock, struct fly_meter *meter,
                  bool rests)
{
    struct wall_time date;
    struct mono_time now;

    out_counter->clock = clock;
    out_counter->rests = rests;
    out_counter->begun = !rests;
    out_counter->rest_limit_w = NAN;
    counter_clocks(clock, &now, &date);
    slicer_init(&out_counter->slicer, now, date);
    return carbon_energy_init(&out_counter->energy, meter);
}
