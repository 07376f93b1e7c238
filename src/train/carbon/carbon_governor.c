/* SPDX-License-Identifier: Apache-2.0 */
#include "train/carbon/carbon_governor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "policy/carbon/carbon_plan.h"
#include "train/carbon/carbon_ahead.h"

/* How often it is to be asked, and for how long an answer that hangs on no period is good at most. */
static const double every_s = 5.0, static_s = 300.0;
/* Steps that take another time than when the plan was made, by that share, ask for another. */
static const double pace_change = 0.01;
/* Of the work that is left, for what its profile may be wrong by, where a deadline is a moment. */
static const double deadline_reserve = 0.002;
/* A clock on the wall that moves by more than that beside the monotonic one was set. */
static const double jump_s = 2.0;
static const struct carbon_plan_settings settings = {
    .least_gain = 0.002, .dwell_s = 300.0, .doubt = CARBON_USUAL_DOUBT};

/* What was decided, in seconds of the governor's clock. */
struct decided {
    bool made;
    struct carbon_point first, second;
    double first_until_s, until_s;
    double finish_s;
    double pace;        /* the factor that it was made with */
    double wall_lead_s; /* of the wall's clock before the governor's */
    bool behind;
    enum carbon_reason reason;
    const char *text;
};

struct carbon_governor {
    struct ledger_head head; /* what is wanted */
    double all_host_w, gpu_share;
    bool leads; /* rank 0 */
    const struct clock *clock;
    struct mono_time opened;
    struct carbon_keeper *keeper;
    bool keeper_owned;
    double steps_told; /* to a keeper of its own */

    struct carbon_ahead ahead;
    bool figures_changed;
    struct carbon_pace pace;
    struct carbon_plan plan;
    size_t plan_capacity; /* 0: there is none */
    struct decided decided;

    bool fresh;        /* nothing was decided since the newest profile */
    double standing_w; /* NAN: none of the profile's, or not known */
    double stands_since_s;
    double asked_w; /* what the newest answer wanted to be set; NAN */
    uint32_t decisions, changes;
};

static double now_of(const struct carbon_governor *governor)
{
    return mono_elapsed_s(governor->opened, governor->clock->now(governor->clock->state));
}

static double date_of(const struct carbon_governor *governor)
{
    return (double)governor->clock->date(governor->clock->state).ns * 1e-9;
}

uint64_t carbon_governor_every(double step_time_s)
{
    double steps = floor(every_s / step_time_s);

    return steps >= 1.0 ? (uint64_t)fmin(steps, 1e6) : 1;
}

static int open_keeper(struct carbon_governor *governor, const struct carbon_governor_options *options,
                       struct fly_error *out_error)
{
    const struct carbon_keeper_options wanted = {
        .clock = options->clock,
        .meter = options->meter,
        .directory = options->carbon.directory,
        .head = governor->head,
        /* Other ranks' figures come from rank 0. */
        .cached_only = options->cached_only || options->rank != 0,
    };
    int code = carbon_keeper_open(&wanted, &governor->keeper, out_error);

    governor->keeper_owned = code == 0;
    return code;
}

int carbon_governor_open(const struct carbon_governor_options *options, struct carbon_governor **out_governor,
                         struct fly_error *out_error)
{
    struct carbon_governor *governor = calloc(1, sizeof *governor);
    int code;

    if (governor == NULL)
        return error_no_memory(out_error);
    code = carbon_governor_head(options, &governor->head, out_error);
    if (code == 0) {
        governor->clock = options->clock != NULL ? options->clock : &clock_real;
        governor->opened = governor->clock->now(governor->clock->state);
        governor->leads = options->rank == 0;
        governor->all_host_w = options->all_host_w > 0.0 ? options->all_host_w : options->carbon.host_w;
        governor->gpu_share = options->all_gpus > 0 ? (double)options->gpus / options->all_gpus : 1.0;
        governor->standing_w = governor->asked_w = NAN;
        governor->fresh = true;
        carbon_pace_init(&governor->pace);
        governor->keeper = options->keeper;
        if (governor->keeper == NULL)
            code = open_keeper(governor, options, out_error);
    }
    if (code < 0)
        carbon_governor_close(governor);
    else
        *out_governor = governor;
    return code;
}

void carbon_governor_close(struct carbon_governor *governor)
{
    struct carbon_keeper_summary summary;

    if (governor == NULL)
        return;
    if (governor->keeper_owned)
        carbon_keeper_close(governor->keeper, &summary);
    if (governor->plan_capacity > 0)
        carbon_plan_deinit(&governor->plan);
    carbon_ahead_deinit(&governor->ahead);
    free(governor);
}

int carbon_governor_profile(struct carbon_governor *governor, const struct fly_power_point *points,
                            size_t count, struct fly_error *out_error)
{
    const struct carbon_surroundings around = {governor->all_host_w, governor->head.surroundings.pue};
    struct fly_power_point own[CARBON_POINTS_MAX];
    struct carbon_profile profile;
    double fastest_s = INFINITY;
    int code = carbon_profile_init(&profile, points, count, &around, out_error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        own[i] = points[i];
        own[i].power_w *= governor->gpu_share;
        fastest_s = fmin(fastest_s, points[i].time_s);
    }
    carbon_pace_profile(&governor->pace, &profile, fastest_s);
    carbon_pace_stands(&governor->pace, governor->standing_w, false);
    carbon_keeper_profile(governor->keeper, own, count);
    if (governor->plan_capacity > 0)
        carbon_plan_restart(&governor->plan);
    governor->decided.made = false;
    governor->fresh = true;
    return 0;
}

void carbon_governor_bound(struct carbon_governor *governor, double max_slowdown)
{
    if (governor->head.finish_by_s > 0 || !(max_slowdown >= 1.0) ||
        max_slowdown == governor->head.max_slowdown)
        return;
    governor->head.max_slowdown = max_slowdown;
    governor->decided.made = false;
}

void carbon_governor_stands(struct carbon_governor *governor, double limit_w)
{
    bool asked = limit_w == governor->asked_w;

    carbon_keeper_limit(governor->keeper, limit_w);
    carbon_pace_stands(&governor->pace, limit_w, asked);
    governor->asked_w = NAN;
    if (limit_w == governor->standing_w)
        return;
    governor->changes += asked && !governor->fresh;
    governor->standing_w = limit_w;
    governor->stands_since_s = now_of(governor);
    governor->fresh = governor->fresh && !asked;
}

static void take_figures(struct carbon_governor *governor)
{
    if (governor->leads && carbon_ahead_take(&governor->ahead, governor->keeper, date_of(governor)))
        governor->figures_changed = true;
}

/* A plan for so many spans; what it held stays held. */
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

/* How much of the time on the wall is spent in steps. */
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

/* What may be lost until the next answer, of which there is one every few steps. */
static double reserve_s(const struct carbon_governor *governor)
{
    const struct carbon_pace *pace = &governor->pace;
    double lowest = lowest_rate(&pace->profile), step_s = pace->fastest_s * pace->factor / lowest;
    double reserve = (every_s + 2.0 * step_s) * (1.0 - lowest);

    if (governor->head.finish_by_s > 0)
        reserve += every_s + deadline_reserve * carbon_pace_work_s(pace);
    return reserve;
}

/* Time in steps up to the deadline; NAN where no work is known. */
static double time_left_s(const struct carbon_governor *governor)
{
    const struct carbon_pace *pace = &governor->pace;

    if (governor->head.finish_by_s > 0)
        return (double)governor->head.finish_by_s - date_of(governor) - carbon_pace_other_left_s(pace) -
               reserve_s(governor);
    return carbon_pace_allowed_s(pace, governor->head.max_slowdown) - reserve_s(governor);
}

double carbon_governor_spare_s(const struct carbon_governor *governor, const struct carbon_progress *progress,
                               double step_s)
{
    if (!(progress->steps_left > 0.0))
        return INFINITY;
    if (governor->head.finish_by_s > 0)
        return (double)governor->head.finish_by_s - date_of(governor) -
               progress->steps_left * (step_s + carbon_pace_other_s(&governor->pace));
    return carbon_pace_spare_s(&governor->pace, governor->head.max_slowdown, progress, step_s);
}

/* The question where nobody knows how much is left: a share of the time for the same share of the work. */
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
        .wall_lead_s = date_of(governor) - now_s,
        .behind = decision->reason == CARBON_BEHIND,
        .reason = decision->reason,
        .text = text_of(governor, decision->reason, known),
    };
    governor->figures_changed = false;
    governor->decisions++;
}

/* Makes a plan. Where that fails, what stands is to stay until it is tried again. */
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
        carbon_ahead_look(&governor->ahead, &governor->head.objective, date_of(governor),
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

static double limit_of(const struct decided *decided, double now_s)
{
    return now_s < decided->first_until_s ? decided->first.limit_w : decided->second.limit_w;
}

static bool needs_decision(const struct carbon_governor *governor, double now_s)
{
    const struct decided *decided = &governor->decided;
    double work_s = carbon_pace_work_s(&governor->pace), pace = governor->pace.factor;

    return !decided->made || now_s >= decided->until_s || governor->figures_changed ||
           fabs(pace - decided->pace) > pace_change * decided->pace ||
           fabs(date_of(governor) - now_s - decided->wall_lead_s) > jump_s ||
           (!decided->behind && work_s >= time_left_s(governor));
}

void carbon_governor_count(struct carbon_governor *governor, double steps_done)
{
    double steps = steps_done - governor->steps_told;

    if (!governor->keeper_owned || !(steps > 0.0))
        return;
    carbon_keeper_steps(governor->keeper, (uint64_t)steps);
    governor->steps_told += floor(steps);
}

double carbon_governor_decide(struct carbon_governor *governor, const struct carbon_progress *progress)
{
    double now_s = now_of(governor), wanted_w;

    carbon_governor_count(governor, progress->steps_done - progress->steps_earlier);
    take_figures(governor);
    governor->asked_w = NAN;
    if (!governor->leads || governor->pace.profile.count == 0)
        return NAN;
    carbon_pace_progress(&governor->pace, progress, now_s);
    if (needs_decision(governor, now_s))
        decide(governor, now_s);
    if (!governor->decided.made)
        return NAN;
    wanted_w = limit_of(&governor->decided, now_s);
    if (wanted_w == governor->standing_w) {
        governor->fresh = false;
        return NAN;
    }
    governor->asked_w = wanted_w;
    return wanted_w;
}

double carbon_governor_reference(struct carbon_governor *governor, int signal)
{
    take_figures(governor);
    return carbon_ahead_reference(&governor->ahead, signal, date_of(governor));
}

enum carbon_reason carbon_governor_reason(const struct carbon_governor *governor)
{
    if (!governor->decided.made)
        return CARBON_UNKNOWN_GRID;
    return governor->decided.reason;
}

static const char *text_now(const struct carbon_governor *governor)
{
    if (!governor->leads)
        return "as rank 0 says";
    if (!governor->decided.made)
        return "the power profile is not measured yet";
    return governor->decided.text;
}

void carbon_governor_report(const struct carbon_governor *governor, struct fly_carbon_report *out_report)
{
    const struct decided *decided = &governor->decided;
    struct carbon_keeper_summary summary = carbon_keeper_look(governor->keeper);
    double now_s = now_of(governor);
    struct fly_carbon_report report = {
        .size = out_report->size,
        .limit_w = NAN,
        .finish_s = NAN,
        .intensity_g_per_kwh = carbon_ahead_intensity(&governor->ahead, date_of(governor)),
        .decisions = governor->decisions,
        .changes = governor->changes,
        .energy_j = summary.energy_j,
    };

    if (decided->made) {
        report.limit_w = limit_of(decided, now_s);
        report.finish_s = decided->finish_s > now_s ? decided->finish_s - now_s : NAN;
    }
    snprintf(report.reason, sizeof report.reason, "%s", text_now(governor));
    snprintf(report.account, sizeof report.account, "%.255s", summary.path);
    snprintf(report.text, sizeof report.text, "%.255s", summary.text);
    *out_report = report;
}
