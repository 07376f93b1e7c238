/* SPDX-License-Identifier: Apache-2.0 */
/* The governor's plan: when to make another, what to ask of it, and what to take from its answer. */
#include <math.h>

#include "train/carbon/carbon_governor_private.h"

/*
 * How often the governor should be asked, and how long an answer that depends on no period stays valid at
 * most.
 */
static const double every_s = 5.0, static_s = 300.0;
/* A new plan is made when the time of steps has changed by this share. */
static const double pace_change = 0.01;
/* The share of the remaining work that is reserved for errors of its profile, when the bound is a moment. */
static const double deadline_reserve = 0.002;
/* A wall clock that moves by more than this against the monotonic one was set. */
static const double jump_s = 2.0;
static const struct carbon_plan_settings settings = {
    .least_gain = 0.002, .dwell_s = 300.0, .doubt = CARBON_USUAL_DOUBT};

double governor_now_s(const struct carbon_governor *governor)
{
    return mono_elapsed_s(governor->opened, governor->clock->now(governor->clock->state));
}

double governor_date_s(const struct carbon_governor *governor)
{
    return (double)governor->clock->date(governor->clock->state).ns * 1e-9;
}

uint64_t carbon_governor_every(double step_time_s)
{
    double steps = floor(every_s / step_time_s);

    return steps >= 1.0 ? (uint64_t)fmin(steps, 1e6) : 1;
}

/* Makes room for a plan of so many spans; a held limit stays held. */
static int make_plan(struct carbon_governor *governor, size_t capacity)
{
    double held_w = governor->plan_capacity > 0 ? governor->plan.held_static_w : 0.0;
    int code;

    if (governor->plan_capacity >= capacity)
        return 0;
    if (governor->plan_capacity > 0)
        carbon_plan_deinit(&governor->plan);
    governor->plan_capacity = 0;
    code = carbon_plan_init(&governor->plan, &settings, capacity, NULL);
    if (code < 0)
        return code;
    governor->plan_capacity = capacity;
    governor->plan.held_static_w = held_w;
    return 0;
}

/* The share of wall-clock time that is spent in steps. */
static double step_share(const struct carbon_governor *governor)
{
    double other_s = carbon_pace_other_s(&governor->pace);
    double step_s = governor->pace.fastest_s * governor->pace.factor;

    return step_s / (step_s + other_s);
}

static double lowest_rate(const struct carbon_profile *profile)
{
    double rate = 1.0;

    for (size_t i = 0; i < profile->count; i++)
        rate = fmin(rate, profile->points[i].rate);
    return rate;
}

/* What may be lost until the next answer, which comes after a few steps. */
static double reserve_s(const struct carbon_governor *governor)
{
    const struct carbon_pace *pace = &governor->pace;
    double lowest = lowest_rate(&pace->profile), step_s = pace->fastest_s * pace->factor / lowest;
    double reserve = (every_s + 2.0 * step_s) * (1.0 - lowest);

    if (governor->head.finish_by_s > 0)
        reserve += every_s + deadline_reserve * carbon_pace_work_s(pace);
    return reserve;
}

/* Time in steps up to the deadline; NAN when the amount of work is not known. */
static double time_left_s(const struct carbon_governor *governor)
{
    const struct carbon_pace *pace = &governor->pace;

    if (governor->head.finish_by_s > 0)
        return (double)governor->head.finish_by_s - governor_date_s(governor) -
               carbon_pace_other_left_s(pace) - reserve_s(governor);
    return carbon_pace_allowed_s(pace, governor->head.max_slowdown) - reserve_s(governor);
}

double carbon_governor_spare_s(const struct carbon_governor *governor, const struct carbon_progress *progress,
                               double step_s)
{
    if (!(progress->steps_left > 0.0))
        return INFINITY;
    if (governor->head.finish_by_s > 0)
        return (double)governor->head.finish_by_s - governor_date_s(governor) -
               progress->steps_left * (step_s + carbon_pace_other_s(&governor->pace));
    return carbon_pace_spare_s(&governor->pace, governor->head.max_slowdown, progress, step_s);
}

/* The question when nobody knows how much is left: do a share of the work in the same share of the time. */
static void ask_without_end(const struct carbon_governor *governor, struct carbon_question *question)
{
    const struct carbon_pace *pace = &governor->pace;

    question->work_s = static_s * pace->usual;
    question->time_s = governor->head.finish_by_s > 0
                           ? question->work_s
                           : static_s * fmin(pace->usual, 1.0) * governor->head.max_slowdown;
}

static const char *text_of(const struct carbon_governor *governor, enum carbon_reason reason, bool known)
{
    if (governor->head.finish_by_s > 0 && !known)
        return "fastest limit: how many steps are left is not known";
    if (reason == CARBON_BEHIND || known)
        return carbon_reason_text(reason);
    return "static limit: how many steps are left is not known";
}

static void take(struct carbon_governor *governor, const struct carbon_decision *decision, bool known,
                 double now_s)
{
    double share = step_share(governor), valid_s = decision->valid_s;
    struct decided *decided = &governor->decided;
    bool is_static = decision->reason >= CARBON_UNKNOWN_GRID;

    if (is_static)
        valid_s = fmin(valid_s, static_s);
    *decided = (struct decided){
        .made = true,
        .first = decision->first,
        .second = decision->second,
        .first_until_s = now_s + fmin(decision->first_s, valid_s) / share,
        .until_s = now_s + valid_s / share,
        .finish_s = known ? now_s + decision->finish_s / share : NAN,
        .pace = governor->pace.factor,
        .wall_lead_s = governor_date_s(governor) - now_s,
        .behind = decision->reason == CARBON_BEHIND,
        .reason = decision->reason,
        .text = text_of(governor, decision->reason, known),
    };
    governor->figures_changed = false;
    governor->decisions++;
}

/* Makes a plan. If that fails, what stands stays until the next attempt. */
static void decide(struct carbon_governor *governor, double now_s)
{
    struct carbon_question question = {
        .profile = &governor->pace.profile,
        .work_s = carbon_pace_work_s(&governor->pace),
        .time_s = time_left_s(governor),
        .limit_w = governor->fresh ? NAN : governor->standing_w,
        .held_s = (now_s - governor->stands_since_s) * step_share(governor),
    };
    bool known = question.work_s > 0.0;
    struct carbon_decision decision;

    if (known)
        carbon_ahead_look(&governor->ahead, &governor->head.objective, governor_date_s(governor),
                          step_share(governor), &question);
    else
        ask_without_end(governor, &question);
    if (make_plan(governor, question.outlook_count + 1) == 0 &&
        carbon_plan_decide(&governor->plan, &question, &decision, NULL) == 0) {
        take(governor, &decision, known, now_s);
        return;
    }
    governor->decided.until_s = governor->decided.first_until_s = now_s + static_s;
}

static bool needs_decision(const struct carbon_governor *governor, double now_s)
{
    const struct decided *decided = &governor->decided;
    double work_s = carbon_pace_work_s(&governor->pace), pace = governor->pace.factor;

    return !decided->made || now_s >= decided->until_s || governor->figures_changed ||
           fabs(pace - decided->pace) > pace_change * decided->pace ||
           fabs(governor_date_s(governor) - now_s - decided->wall_lead_s) > jump_s ||
           (!decided->behind && work_s >= time_left_s(governor));
}

void governor_keep_plan(struct carbon_governor *governor, double now_s)
{
    if (needs_decision(governor, now_s))
        decide(governor, now_s);
}

double governor_limit_w(const struct carbon_governor *governor, double now_s)
{
    const struct decided *decided = &governor->decided;

    return now_s < decided->first_until_s ? decided->first.limit_w : decided->second.limit_w;
}
