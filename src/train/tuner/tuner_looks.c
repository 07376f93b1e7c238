/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second looks. One window per limit cannot tell how much windows differ. So the highest limit is measured
 * again, and then each limit that could still turn out better than the best, or beyond the bound, as long as
 * the search has cost less than trying every limit would have. Decided from figures that the ranks have
 * joined, so all decide alike.
 */
#include <math.h>

#include "train/tuner/tuner_choice.h"

enum { LOOKS_MAX = 16 };
/* A limit that could be better by less than this is not measured again. */
static const double worth_looking = 0.99;
/* The share of the cost of trying every limit that the search may cost. */
static const double affordable_share = 0.97;

/* The nearest measured limit at this place or above; NULL for none. */
static const struct fly_tuner_point *measured_above(const struct fly_tuner *tuner, size_t place)
{
    for (size_t i = place + 1; i-- > 0;) {
        if (tuner->points[i].mark == FLY_TUNER_VALID)
            return &tuner->points[i];
    }
    return NULL;
}

/*
 * The least that warm-up and window of every limit cost: lower limits are no faster, and their power falls at
 * most in proportion to the limit.
 */
static void add_up_all(const struct fly_tuner *tuner, double *out_time_s, double *out_energy_j)
{
    double steps = (double)tuner->options.warmup_steps + (double)tuner->options.profile_steps;

    *out_time_s = *out_energy_j = 0.0;
    for (size_t i = 0; i < tuner->limit_count; i++) {
        const struct fly_tuner_point *point = measured_above(tuner, i);

        if (point == NULL)
            continue;
        *out_time_s += steps * point->time_s;
        *out_energy_j += steps * point->time_s * point->power_w * tuner->points[i].limit_w / point->limit_w;
    }
}

static bool is_affordable(const struct fly_tuner *tuner, size_t place)
{
    const struct fly_tuner_point *point = &tuner->points[place];
    double time_s, energy_j, look_s = (tuner->options.warmup_steps + tuner_look_steps(tuner)) * point->time_s;

    add_up_all(tuner, &time_s, &energy_j);
    return tuner->spent_s + look_s <= affordable_share * time_s &&
           tuner->spent_j + look_s * point->power_w <= affordable_share * energy_j;
}

/*
 * Finds the limit that could still turn out the best of all: the chosen one too, when it could be clearly
 * better than it seems. False for none.
 */
static bool find_contender(const struct fly_tuner *tuner, size_t chosen, size_t *out_place)
{
    struct tuner_arms arms;
    double least;
    bool found = false;

    tuner_take_arms(tuner, &arms);
    least = worth_looking * limit_arms_score(&arms.arms, chosen);
    for (size_t i = 0; i < tuner->limit_count; i++) {
        double low;

        if (tuner->points[i].mark != FLY_TUNER_VALID || !limit_arms_may_keep_bound(&arms.arms, i))
            continue;
        low = limit_arms_score(&arms.arms, i) * (1.0 - limit_arms_deviation(&arms.arms, i));
        if (low < least) {
            least = low;
            *out_place = i;
            found = true;
        }
    }
    return found;
}

uint32_t tuner_look_steps(const struct fly_tuner *tuner)
{
    return tuner->options.profile_steps > 1 ? tuner->options.profile_steps / 2 : 1;
}

bool tuner_next_look(const struct fly_tuner *tuner, size_t *out_place)
{
    bool bounded = isfinite(tuner->options.objective.max_slowdown);
    size_t chosen, place = 0;

    if (tuner->report.looks >= LOOKS_MAX || tuner->spent_s == 0.0 || tuner->limit_count < 2 ||
        tuner->points[0].mark != FLY_TUNER_VALID || !tuner_choose(tuner, &chosen))
        return false;
    if (tuner->noise.degrees > 0 && !find_contender(tuner, chosen, &place))
        return false;
    /* The bound is relative to the highest limit. A limit that already stands gives no new window. */
    if ((bounded && tuner->visits[0].count <= tuner->visits[place].count) || place == tuner->at)
        place = 0;
    if (place == tuner->at || !is_affordable(tuner, place))
        return false;
    *out_place = place;
    return true;
}

/* Computes a limit's point anew from all its visits. */
static void refresh(struct fly_tuner *tuner, size_t place)
{
    const struct tuner_visits *visits = &tuner->visits[place];
    struct fly_tuner_point *point = &tuner->points[place];

    if (visits->count == 0 || point->mark != FLY_TUNER_VALID)
        return;
    point->time_s = visits->time_s / visits->steps;
    point->power_w = visits->energy_j / visits->energy_s;
    /* A visit's own deviation does not shrink with its steps, so all visits count the same. */
    if (tuner->noise.time > 0.0)
        point->time_s = visits->step_s / visits->count;
    if (tuner->noise.power > 0.0)
        point->power_w = visits->power_w / visits->count;
    point->time_error = sqrt(visits->error_s2) / visits->time_s;
    point->energy_error = sqrt(visits->half_j2) / visits->energy_j;
}

/* Computes the noise and all points anew. */
static void refresh_all(struct fly_tuner *tuner)
{
    tuner->noise = tuner_visits_noise(tuner->visits, tuner->limit_count);
    tuner->report.noise = tuner->noise.degrees > 0 ? tuner->noise.time : NAN;
    for (size_t i = 0; i < tuner->limit_count; i++)
        refresh(tuner, i);
}

void tuner_add_visit(struct fly_tuner *tuner, size_t place, const struct tuner_visit *visit)
{
    tuner_visits_add(&tuner->visits[place], visit);
    tuner->points[place].mark = FLY_TUNER_VALID;
    refresh_all(tuner);
}

void tuner_set_visits(struct fly_tuner *tuner, size_t place, const struct tuner_visits *visits,
                      const struct fly_tuner_point *point)
{
    tuner->visits[place] = *visits;
    tuner->points[place] = *point;
    refresh_all(tuner);
}
