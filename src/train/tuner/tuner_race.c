/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out the pure race (policy/limit_race.h): which limit is measured next and for how many steps, and
 * once settled, which one gets another look. Decided from figures that the ranks have joined, so all decide
 * alike.
 */
#include <math.h>

#include "policy/limit_race.h"
#include "train/tuner/tuner_choice.h"

/* The share of the run that looks may cost when settled. */
static const double looks_share = 0.002;
/* A look that fails so often on end is the last one. */
enum { FAILED_LOOKS_MAX = 3 };
/* A check this many standard errors off the profile's time means that the workload has drifted. */
static const double drift_errors = 3.0;

struct tuner_race {
    struct tuner_arms arms;
    struct limit_race race;
};

static void take_race(const struct fly_tuner *tuner, uint64_t spent_steps, struct tuner_race *out_race)
{
    tuner_take_arms(tuner, &out_race->arms);
    out_race->race = (struct limit_race){
        .arms = out_race->arms.arms,
        .is_clock = tuner->options.knob == FLY_TUNER_CLOCK,
        .least_steps = tuner->least_steps,
        .scattering_s = tuner->options.window_max_s,
        .spent_steps = (double)spent_steps,
        .standing = SIZE_MAX,
        .resting = tuner->visits[tuner->at].count > 0 ? tuner->at : SIZE_MAX,
    };
}

uint32_t tuner_race_warmup(const struct fly_tuner *tuner, size_t place)
{
    const struct fly_tuner_point *points = tuner->points;

    if (!tuner->races || tuner->fixed_warmup)
        return tuner->options.warmup_steps;
    if (tuner->racing && place == tuner->at && tuner->visits[place].count > 0)
        return 0; /* it stands */
    if (points[place].mark == FLY_TUNER_VALID)
        return limit_race_warmup_steps(points[place].time_s);
    if (points[0].mark == FLY_TUNER_VALID)
        return limit_race_warmup_steps(points[0].time_s);
    return tuner->options.warmup_steps; /* a program that begins has to get going too */
}

uint32_t tuner_race_check_steps(const struct fly_tuner *tuner)
{
    struct tuner_race race;

    if (!tuner->races || !tuner->confirming)
        return tuner->options.profile_steps;
    take_race(tuner, tuner->spent_steps, &race);
    return limit_race_first_steps(&race.race, tuner->points[tuner->chosen].time_s);
}

bool tuner_race_next(const struct fly_tuner *tuner, size_t *out_place, uint32_t *out_steps)
{
    struct tuner_race race;
    struct limit_race_action action;

    if (tuner->failed_looks > 0)
        return false;
    take_race(tuner, tuner->spent_steps, &race);
    action = limit_race_next(&race.race);
    *out_place = action.place;
    *out_steps = action.steps;
    return action.verb == LIMIT_RACE_MEASURE;
}

uint32_t tuner_race_more(struct fly_tuner *tuner, const struct tuner_visit *visit)
{
    struct tuner_visits visits = tuner->visits[tuner->at];
    struct fly_tuner_point point = tuner->points[tuner->at];
    struct limit_race_action action;
    struct tuner_race race;
    double step_s = visit->time_s / visit->steps, first;

    take_race(tuner, tuner->spent_steps, &race);
    first = limit_race_first_steps(&race.race, step_s);
    if (visits.count == 0 && visit->steps < first)
        return (uint32_t)(first - visit->steps);
    if (visit->time_s >= tuner->options.window_max_s)
        return 0;
    tuner_add_visit(tuner, tuner->at, visit);
    take_race(tuner, tuner->cost.steps, &race);
    race.race.standing = tuner->at;
    race.race.resting = SIZE_MAX;
    action = limit_race_next(&race.race);
    tuner_set_visits(tuner, tuner->at, &visits, &point);
    if (action.verb != LIMIT_RACE_MEASURE || action.place != tuner->at)
        return 0;
    return (uint32_t)fmax(fmin(action.steps, (tuner->options.window_max_s - visit->time_s) / step_s), 1.0);
}

void tuner_race_note_level(struct fly_tuner *tuner, double time_s)
{
    const struct fly_tuner_point *point = &tuner->points[tuner->chosen];
    double level = time_s / point->time_s;
    double error = hypot(hypot(tuner->check.time_error, point->time_error), tuner->noise.time);

    tuner->level = fabs(level - 1.0) > drift_errors * error ? level : 1.0;
}

static void begin_look(struct fly_tuner *tuner, const struct limit_race_action *action, size_t *out_place,
                       uint32_t *out_steps)
{
    tuner->look_from = tuner->count.begun;
    tuner->check = (struct tuner_visit){0};
    tuner->looking = true;
    tuner->report.looks++;
    *out_place = action->place;
    *out_steps = action->steps;
}

bool tuner_race_look(struct fly_tuner *tuner, size_t *out_place, uint32_t *out_steps)
{
    struct tuner_race race;
    struct limit_race_action action;
    double allowance = looks_share * (double)tuner->count.begun - tuner->looks_cost;

    if (!tuner->races || tuner->points[tuner->chosen].mark != FLY_TUNER_VALID ||
        tuner->failed_looks >= FAILED_LOOKS_MAX)
        return false;
    take_race(tuner, tuner->spent_steps, &race);
    race.race.resting = tuner->chosen;
    action = limit_race_look(&race.race, tuner->chosen, allowance);
    if (action.verb != LIMIT_RACE_MEASURE)
        return false;
    begin_look(tuner, &action, out_place, out_steps);
    return true;
}

bool tuner_race_resume(struct fly_tuner *tuner, size_t *out_place, uint32_t *out_steps)
{
    struct tuner_race race;
    struct limit_race_action action;

    if (!tuner->races || tuner->failed_looks > 0)
        return false;
    take_race(tuner, tuner->spent_steps + tuner->count.begun - tuner->searched_at, &race);
    action = limit_race_next(&race.race);
    if (action.verb != LIMIT_RACE_MEASURE)
        return false;
    begin_look(tuner, &action, out_place, out_steps);
    return true;
}

void tuner_race_add_check(struct fly_tuner *tuner)
{
    struct tuner_visit visit = tuner->check;

    visit.time_s /= tuner->level;
    visit.energy_j /= tuner->level;
    visit.half_j /= tuner->level;
    tuner_add_visit(tuner, tuner->at, &visit);
}

/* Whether the limit that was chosen with confidence is the better one and, by all figures, keeps the bound.
 */
static bool is_still_good(const struct limit_arms *arms, size_t chosen, size_t other)
{
    return limit_arms_score(arms, chosen) < limit_arms_score(arms, other) &&
           arms->arms[chosen].time_s <= arms->objective.max_slowdown * arms->arms[0].time_s;
}

bool tuner_race_end_look(struct fly_tuner *tuner)
{
    size_t chosen = tuner->chosen;
    struct tuner_race race;

    tuner->looking = false;
    tuner->failed_looks = tuner->check.steps > 0.0 ? 0 : tuner->failed_looks + 1;
    if (tuner->check.steps > 0.0)
        tuner_race_add_check(tuner);
    take_race(tuner, tuner->spent_steps, &race);
    if (!tuner->confirming && limit_arms_known(&race.arms.arms, tuner->at))
        tuner->looks_cost +=
            limit_race_cost(&race.race, tuner->at, chosen, (double)(tuner->count.begun - tuner->look_from));
    if (!limit_arms_choose(&race.arms.arms, &tuner->chosen) ||
        (!tuner->confirming && is_still_good(&race.arms.arms, chosen, tuner->chosen)))
        tuner->chosen = chosen;
    tuner->report.ties = tuner_ties(tuner, tuner->chosen);
    return tuner->chosen != chosen;
}
