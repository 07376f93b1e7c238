/* SPDX-License-Identifier: Apache-2.0 */
#include "train/account/carbon_slicer.h"

#include <math.h>
#include <stdlib.h>

static const int64_t border_ns = ENERGY_SLICE_BORDER_S * INT64_C(1000000000);
static const int64_t jump_ns = (int64_t)(SLICER_JUMP_S * 1e9);

/* Slices shorter than these are not worth a line, or have no length as doubles. */
static const int64_t short_ns = 1000000, nothing_ns = 2000;

/* The first border after a moment. */
static int64_t next_border(int64_t time_ns)
{
    int64_t period = time_ns / border_ns - (time_ns % border_ns < 0);

    return (period + 1) * border_ns;
}

void slicer_init(struct carbon_slicer *slicer, struct mono_time now, struct wall_time date)
{
    *slicer =
        (struct carbon_slicer){.limit_w = NAN, .from_ns = date.ns, .ahead_ns = date.ns - now.ns, .steps = 0};
}

struct mono_time slicer_next(const struct carbon_slicer *slicer)
{
    return (struct mono_time){next_border(slicer->from_ns) - slicer->ahead_ns};
}

static bool has_jumped(const struct carbon_slicer *slicer, struct mono_time now, struct wall_time date)
{
    return llabs(date.ns - now.ns - slicer->ahead_ns) > jump_ns;
}

bool slicer_is_due(const struct carbon_slicer *slicer, struct mono_time now, struct wall_time date)
{
    return now.ns >= slicer_next(slicer).ns || has_jumped(slicer, now, date);
}

static struct energy_slice *slot(struct carbon_slicer *slicer, uint64_t number)
{
    return &slicer->queue[number % SLICER_QUEUE_MAX];
}

static void push(struct carbon_slicer *slicer, const struct energy_slice *slice)
{
    if (slicer->end - slicer->first == SLICER_QUEUE_MAX) {
        slicer->first++;
        slicer->lost++;
    }
    *slot(slicer, slicer->end++) = *slice;
    slicer->awaiting++;
    slicer->awaiting_s += slice->end_s - slice->start_s;
    if (slicer->awaiting > slicer->end - slicer->first)
        slicer->awaiting = slicer->end - slicer->first;
}

/* A cut while it is made. */
struct cutting {
    int64_t from_ns, to_ns; /* the time to be cut, up to now */
    uint64_t steps;         /* in all of that time */
    bool jumped;
};

/* Steps that began before a moment, if they came evenly. */
static uint64_t steps_before(const struct cutting *cutting, int64_t time_ns)
{
    double share = (double)(time_ns - cutting->from_ns) / (double)(cutting->to_ns - cutting->from_ns);

    return time_ns >= cutting->to_ns ? cutting->steps : (uint64_t)((double)cutting->steps * share + 0.5);
}

/* Ends the open slice at a moment, where the next one begins. */
static void end_slice(struct carbon_slicer *slicer, const struct cutting *cutting, int64_t end_ns)
{
    uint64_t given = cutting->steps - slicer->steps, before = steps_before(cutting, end_ns);
    const struct energy_slice slice = {.start_s = (double)slicer->from_ns * 1e-9,
                                       .end_s = (double)end_ns * 1e-9,
                                       .gpu_j = NAN,
                                       .host_j = NAN,
                                       .limit_w = slicer->limit_w,
                                       .steps = (double)(before - given),
                                       .jumped = cutting->jumped};

    if (end_ns - slicer->from_ns >= nothing_ns) {
        push(slicer, &slice);
        slicer->steps = cutting->steps - before;
    }
    slicer->from_ns = end_ns;
}

/* Gives each slice that waits its part of the energy of `time_s`. */
static void spread(struct carbon_slicer *slicer, const struct slicer_energy *energy, double time_s)
{
    for (uint64_t i = slicer->end - slicer->awaiting; i < slicer->end; i++) {
        struct energy_slice *slice = slot(slicer, i);
        double share = (slice->end_s - slice->start_s) / time_s;

        slice->gpu_j = energy->gpu_j * share;
        slice->host_j = energy->host_j * share;
    }
}

struct slicer_result slicer_cut(struct carbon_slicer *slicer, enum slicer_cut_kind kind, struct mono_time now,
                                struct wall_time date, const struct slicer_energy *energy)
{
    const bool known = isfinite(energy->gpu_j) || !energy->has_gpu, jumped = has_jumped(slicer, now, date);
    const int64_t shift_ns = jumped ? date.ns - now.ns - slicer->ahead_ns : 0;
    struct slicer_result result = {.share = 0.0};
    struct cutting cutting = {.steps = slicer->steps, .jumped = jumped};
    double time_s;

    slicer->ahead_ns += shift_ns;
    slicer->from_ns += shift_ns;
    cutting.from_ns = slicer->from_ns;
    cutting.to_ns = now.ns + slicer->ahead_ns;
    time_s = slicer->awaiting_s + (double)(cutting.to_ns - cutting.from_ns) * 1e-9;
    if (cutting.to_ns - cutting.from_ns < (kind == CUT_NOW ? short_ns : 1) &&
        !(kind == CUT_LAST && slicer->awaiting > 0))
        return result;
    result.anew = !known && (kind == CUT_LAST || time_s >= SLICER_AWAIT_S);
    for (int64_t at = next_border(slicer->from_ns); at <= cutting.to_ns; at += border_ns)
        end_slice(slicer, &cutting, at);
    if ((kind != CUT_BORDERS || jumped || result.anew) && cutting.to_ns > slicer->from_ns)
        end_slice(slicer, &cutting, cutting.to_ns);
    if (!known && !result.anew)
        return result;
    if (slicer->awaiting > 0) {
        /* Uses the slices' own lengths, so that they add up. */
        time_s = slicer->awaiting_s + (double)(cutting.to_ns - slicer->from_ns) * 1e-9;
        spread(slicer, energy, time_s);
        result.share = slicer->awaiting_s / time_s;
    }
    slicer->awaiting = 0;
    slicer->awaiting_s = 0.0;
    return result;
}

bool slicer_front(const struct carbon_slicer *slicer, struct energy_slice *out_slice, uint64_t *out_number)
{
    if (slicer->first == slicer->end - slicer->awaiting)
        return false;
    *out_slice = slicer->queue[slicer->first % SLICER_QUEUE_MAX];
    *out_number = slicer->first;
    return true;
}

void slicer_pop(struct carbon_slicer *slicer, uint64_t number)
{
    if (slicer->first == number && slicer->first < slicer->end)
        slicer->first++;
}
