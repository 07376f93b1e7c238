/* SPDX-License-Identifier: Apache-2.0 */
#include "train/account/carbon_replay.h"

#include <math.h>

/* The limit that was set may differ this much from the one asked for. */
static const double limit_near_w = 0.5;

/* Steps are counted in lots of some seconds. */
static const double told_within_s = 30.0;

int carbon_replay_init(struct carbon_replay *replay, const struct ledger_content *ledger,
                       struct fly_error *out_error)
{
    const struct carbon_surroundings none = {0.0, 1.0};
    struct carbon_surroundings stated = ledger->head.surroundings;
    int code = carbon_profile_init(&replay->bare, ledger->points, ledger->point_count, &none, out_error);

    if (!(stated.pue >= 1.0))
        stated.pue = 1.0;
    if (code == 0)
        code = carbon_profile_init(&replay->whole, ledger->points, ledger->point_count, &stated, out_error);
    replay->step_s = INFINITY;
    for (size_t i = 0; i < ledger->point_count; i++)
        replay->step_s = fmin(replay->step_s, ledger->points[i].time_s);
    return code;
}

bool carbon_replay_point(const struct carbon_replay *replay, double limit_w, struct carbon_point *out_point)
{
    const struct carbon_point *points = replay->bare.points;
    size_t count = replay->bare.count;

    for (size_t i = 0; i < count; i++) {
        if (fabs(points[i].limit_w - limit_w) <= limit_near_w) {
            *out_point = points[i];
            return true;
        }
    }
    for (size_t i = 1; i < count; i++) {
        const struct carbon_point *low = &points[i - 1], *high = &points[i];
        double share = (limit_w - low->limit_w) / (high->limit_w - low->limit_w);

        if (!(share > 0.0 && share < 1.0))
            continue;
        *out_point = (struct carbon_point){
            .limit_w = limit_w,
            .power_w = low->power_w + share * (high->power_w - low->power_w),
            .rate = low->rate + share * (high->rate - low->rate),
        };
        return true;
    }
    return false;
}

bool carbon_replay_covers(const struct carbon_replay *replay, const struct energy_slice *slice, bool counted,
                          struct carbon_point *out_point)
{
    if (!carbon_replay_point(replay, slice->limit_w, out_point))
        return false;
    /*
     * No step began in a slice that has room for two and in which they would have been told: evaluating or
     * waiting.
     */
    return !counted || slice->steps > 0.0 ||
           slice->end_s - slice->start_s < fmax(told_within_s, 2.0 * replay->step_s / out_point->rate);
}

struct carbon_stretch carbon_replay_slice(const struct carbon_replay *replay,
                                          const struct energy_slice *slice, bool counted,
                                          const struct carbon_point *to, double *shift_s)
{
    double time_s = slice->end_s - slice->start_s;
    struct carbon_stretch made = {.start_s = slice->start_s + *shift_s, .time_share = 1.0};
    struct carbon_point from;

    if (slice->limit_w == 0.0) {
        made.end_s = made.start_s;
        made.gpu_j = 0.0;
        made.time_share = 0.0;
        *shift_s -= time_s;
        return made;
    }
    made.end_s = slice->end_s + *shift_s;
    made.gpu_j = slice->gpu_j;
    if (carbon_replay_covers(replay, slice, counted, &from)) {
        double ratio = from.rate / to->rate;

        made.gpu_j *= ratio * to->power_w / from.power_w;
        made.time_share = ratio;
        *shift_s += time_s * (ratio - 1.0);
        made.end_s = made.start_s + time_s * ratio;
    }
    return made;
}

size_t carbon_replay_static(const struct carbon_replay *replay, const struct ledger_content *ledger,
                            bool counted, double *out_bound)
{
    const struct ledger_head *head = &ledger->head;
    double work_s = 0.0, other_s = 0.0, steps = 0.0, given_s;
    struct carbon_point at;

    *out_bound = isfinite(head->max_slowdown) && head->max_slowdown >= 1.0 ? head->max_slowdown
                                                                           : carbon_usual_slowdown;
    for (size_t i = 0; i < ledger->slice_count; i++) {
        const struct energy_slice *slice = &ledger->slices[i];
        double time_s = slice->end_s - slice->start_s;

        if (slice->limit_w > 0.0 && carbon_replay_covers(replay, slice, counted, &at))
            work_s += time_s * at.rate;
        else if (slice->limit_w != 0.0)
            other_s += time_s;
        steps += slice->steps;
    }
    if (head->finish_by_s > 0 && ledger->slice_count > 0 && work_s > 0.0) {
        /* All of the training must be done by then, not only what is done so far. */
        double whole = steps > 0.0 && (double)head->steps > steps ? (double)head->steps / steps : 1.0;

        given_s = (double)head->finish_by_s - ledger->slices[0].start_s - other_s * whole;
        *out_bound = given_s > 0.0 ? given_s / (work_s * whole) : 0.0;
    }
    return carbon_profile_static(&replay->whole, 1.0, *out_bound);
}

struct carbon_mix carbon_replay_mix(const struct carbon_replay *replay, double bound)
{
    struct carbon_mix mix = carbon_profile_mix(&replay->whole, 1.0, bound);

    (void)carbon_replay_point(replay, mix.low.limit_w, &mix.low);
    (void)carbon_replay_point(replay, mix.high.limit_w, &mix.high);
    return mix;
}
