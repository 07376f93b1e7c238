/* SPDX-License-Identifier: Apache-2.0 */
#include "train/account/carbon_counter.h"

#include <math.h>
#include <stdlib.h>

#include "meter/meter.h"

/* ---- what the meter says ---- */

/* How much of a device's energy was taken. */
struct carbon_taken {
    bool known; /* false: the amount is not known */
    bool first; /* nothing was taken yet: any source will do */
    enum fly_energy_source source;
    double energy_j, integral_j; /* in the device's two figures */
    /* At the last look. */
    double used_j; /* used since; NAN: not known; never below 0 */
    bool same;     /* from the same source */
};

static void begin(struct carbon_energy *energy)
{
    for (size_t i = 0; i < energy->count; i++)
        energy->taken[i] = (struct carbon_taken){.known = true, .first = true};
    energy->is_open =
        energy->meter != NULL && meter_begin_at_once(energy->meter, "carbon", &energy->window, NULL) == 0;
}

static void end(struct carbon_energy *energy)
{
    struct fly_measurement measured = {.size = sizeof measured};

    if (energy->is_open)
        (void)meter_end_at_once(energy->meter, energy->window, &measured, NULL);
    energy->is_open = false;
}

/* Returns false without memory. */
static bool carbon_energy_init(struct carbon_energy *energy, struct fly_meter *meter)
{
    *energy = (struct carbon_energy){.meter = meter};
    if (meter != NULL)
        energy->count = fly_meter_device_count(meter);
    energy->devices = calloc(energy->count + 1, sizeof energy->devices[0]);
    energy->taken = calloc(energy->count + 1, sizeof energy->taken[0]);
    if (energy->devices == NULL || energy->taken == NULL) {
        free(energy->devices);
        free(energy->taken);
        *energy = (struct carbon_energy){.meter = NULL};
        return false;
    }
    for (size_t i = 0; i < energy->count; i++)
        energy->has_gpu |= meter_devices(meter)->devices[i].info.kind == DEVICE_GPU;
    begin(energy);
    return true;
}

void carbon_energy_deinit(struct carbon_energy *energy)
{
    end(energy);
    free(energy->devices);
    free(energy->taken);
    energy->devices = NULL;
    energy->taken = NULL;
    energy->count = 0;
}

/* Finds what a device used since energy was last taken from it. */
static void compare(const struct fly_device_energy *now, struct carbon_taken *taken)
{
    double used_j = NAN;

    taken->same = taken->first || now->source == taken->source;
    if (taken->known && now->source != FLY_ENERGY_UNAVAILABLE)
        used_j = taken->same ? now->energy_j - taken->energy_j : now->integral_j - taken->integral_j;
    /* A reading may be a little lower than the one before; the next one makes up for it. */
    taken->used_j = used_j < 0.0 ? 0.0 : used_j;
}

static struct slicer_energy carbon_energy_look(struct carbon_energy *energy)
{
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = energy->devices, .device_capacity = energy->count};
    struct slicer_energy sum = {
        .gpu_j = energy->has_gpu ? 0.0 : NAN, .host_j = NAN, .has_gpu = energy->has_gpu};
    double host_j = 0.0;
    bool has_host = false;

    if (!energy->is_open || meter_peek_at_once(energy->meter, energy->window, &measured, NULL) < 0) {
        for (size_t i = 0; i < energy->count; i++)
            energy->devices[i].source = FLY_ENERGY_UNAVAILABLE;
    }
    for (size_t i = 0; i < energy->count; i++) {
        bool gpu = meter_devices(energy->meter)->devices[i].info.kind == DEVICE_GPU;

        compare(&energy->devices[i], &energy->taken[i]);
        *(gpu ? &sum.gpu_j : &host_j) += energy->taken[i].used_j;
        has_host |= !gpu;
    }
    if (has_host)
        sum.host_j = host_j;
    return sum;
}

/* The part that is not taken stays for the next look; if it is not known now, it counts as nothing then. */
static void take(const struct fly_device_energy *now, struct carbon_taken *taken, double share)
{
    double integral_j = now->integral_j - taken->integral_j;

    if (now->source == FLY_ENERGY_UNAVAILABLE) {
        *taken = (struct carbon_taken){.known = false};
        return;
    }
    if (isfinite(taken->used_j) && taken->same)
        taken->energy_j += share * taken->used_j;
    else
        taken->energy_j = now->energy_j - (isfinite(taken->used_j) ? (1.0 - share) * taken->used_j : 0.0);
    taken->integral_j = now->integral_j - (isfinite(integral_j) ? (1.0 - share) * integral_j : 0.0);
    taken->source = now->source;
    taken->known = true;
    taken->first = false;
}

static void carbon_energy_take(struct carbon_energy *energy, double share)
{
    for (size_t i = 0; i < energy->count && share > 0.0; i++)
        take(&energy->devices[i], &energy->taken[i], share);
}

/* Gives up what was used up to now. */
static void carbon_energy_anew(struct carbon_energy *energy)
{
    end(energy);
    begin(energy);
}

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

void counter_go(struct carbon_counter *counter)
{
    struct wall_time date;
    struct mono_time now;

    if (!counter->rests)
        return;
    if (!counter->begun) {
        counter_clocks(counter->clock, &now, &date);
        slicer_init(&counter->slicer, now, date);
        carbon_energy_anew(&counter->energy);
        counter->begun = true;
    } else if (is_other_limit(counter->rest_limit_w, counter->slicer.limit_w))
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
