/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the grid. The search measures every limit that the bound leaves time for. Then the governor, asked
 * every few seconds, sets the limit. Rank 0's answer counts for all ranks, and all learn it at the same step.
 */
#include <errno.h>
#include <math.h>

#include "base/error.h"
#include "base/thread/fork_guard.h"
#include "model/objective_check.h"
#include "train/carbon/carbon_governor.h"
#include "train/carbon/carbon_head.h"
#include "train/tuner/tuner_private.h"

/* The share of the time left by the bound that measuring may take. */
static const double search_share = 0.3;

static struct carbon_governor_options governor_options(const struct fly_tuner_options *options)
{
    const char *name = "";

    return (struct carbon_governor_options){
        .carbon = *options->carbon,
        .meter = options->meter,
        .max_slowdown = objective_bound(&options->objective),
        .job = options->job_name,
        .program = program_invocation_short_name,
        .gpus = (uint32_t)tuner_count_gpus(options->meter, &name),
        .rank = options->rank,
    };
}

int tuner_carbon_check(const struct fly_tuner_options *options, struct fly_error *out_error)
{
    struct carbon_governor_options wanted;
    struct ledger_head head;

    if (options->carbon == NULL)
        return 0;
    if (options->knob != FLY_TUNER_POWER_LIMIT && options->knob != FLY_TUNER_AUTO)
        return error_set(out_error, FLY_EUSAGE,
                         "tuner: following the grid turns power limits, and the knob is '%s'; take 'power'",
                         fly_tuner_knob_name(options->knob));
    if (options->objective.kind == FLY_OBJECTIVE_TIME ||
        options->objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT)
        return error_set(
            out_error, FLY_EUSAGE,
            "tuner: the objective '%s' leaves one limit alone, and none to follow the grid with; "
            "take 'energy'",
            options->objective.kind == FLY_OBJECTIVE_TIME ? "time" : "lowest limit");
    wanted = governor_options(options);
    return carbon_governor_head(&wanted, &head, out_error);
}

struct fly_objective tuner_carbon_objective(const struct fly_tuner_options *options)
{
    struct carbon_governor_options wanted = governor_options(options);
    struct ledger_head head = {.max_slowdown = NAN};

    (void)carbon_governor_head(&wanted, &head, NULL);
    return (struct fly_objective){.kind = FLY_OBJECTIVE_ENERGY,
                                  .max_slowdown = isnan(head.max_slowdown) ? INFINITY : head.max_slowdown};
}

int tuner_carbon_open(struct fly_tuner *tuner, const struct fly_tuner_options *options,
                      struct carbon_keeper *keeper, struct fly_error *out_error)
{
    struct carbon_governor_options wanted;
    struct fly_error error = {.text = ""};
    double nothing = 0.0, host_w;
    int code;

    if (options->carbon == NULL)
        return 0;
    wanted = governor_options(options);
    host_w = wanted.carbon.host_w;
    if (tuner->state != FLY_TUNER_STOPPED)
        (void)tuner_exchange(tuner, &host_w, 1, &nothing, 0);
    wanted.clock = tuner->clock;
    wanted.keeper = keeper;
    wanted.all_gpus = (uint32_t)tuner->key.gpu_count;
    wanted.all_host_w = host_w;
    code = carbon_governor_open(&wanted, &tuner->carbon.governor, &error);
    if (code < 0) {
        error_set(out_error, code, "%s", error.text);
        tuner_fault(tuner, FLY_TUNER_NO_MEMORY, "%s", error.text);
    } else {
        carbon_governor_stands(tuner->carbon.governor, NAN);
    }
    if (tuner->state != FLY_TUNER_STOPPED)
        (void)tuner_exchange(tuner, &nothing, 0, &nothing, 0);
    tuner->carbon.steps = options->carbon->steps;
    tuner_measure_every_limit(tuner);
    return code;
}

void tuner_carbon_profile(struct fly_tuner *tuner)
{
    struct fly_power_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct fly_error error;

    if (tuner->carbon.governor == NULL)
        return;
    if (carbon_governor_profile(tuner->carbon.governor, points, tuner_measured_points(tuner, points),
                                &error) < 0)
        tuner_fault(tuner, FLY_TUNER_NO_CHOICE, "%s", error.text);
    tuner->carbon.due = tuner->count.begun + 1;
}

void tuner_carbon_settle(struct fly_tuner *tuner)
{
    struct tuner_carbon *carbon = &tuner->carbon;

    carbon->check_due = tuner->count.begun + tuner->options.check_every_steps + 1;
    tuner_rest(tuner, carbon->governor != NULL ? 0 : tuner->options.check_every_steps);
}

/* Sets the governor's limit; begins a check under way anew. */
static void turn_to(struct fly_tuner *tuner, double limit_w)
{
    char text[TUNER_SETTING_MAX];

    for (size_t i = 0; i < tuner->limit_count; i++) {
        if (tuner->points[i].limit_w == limit_w)
            tuner->chosen = i;
    }
    tuner_turn(tuner, limit_w);
    if (tuner->reason == FLY_TUNER_GOES_ON && !tuner->honoured)
        tuner_fault(tuner, FLY_TUNER_SET_FAILED, "the %s was set, and reads back as %g",
                    tuner_setting_text(tuner, limit_w, text), tuner->standing_w);
    if (tuner->state == FLY_TUNER_CHECKING)
        tuner_check_anew(tuner);
}

/* Asks the governor, and tells all ranks. */
static void ask(struct fly_tuner *tuner)
{
    struct tuner_carbon *carbon = &tuner->carbon;
    struct carbon_progress progress = tuner_progress(tuner);
    double steps = progress.steps_done - carbon->asked.steps_done, nothing = 0.0;
    double limit_w = carbon_governor_decide(carbon->governor, &progress);
    double maxima[] = {isfinite(limit_w) ? limit_w : 0.0,
                       steps > 0.0 ? (progress.step_time_s - carbon->asked.step_time_s) / steps : 0.0};

    carbon->asked = progress;
    if (!tuner_exchange(tuner, &nothing, 0, maxima, 2))
        return;
    carbon->due = tuner->count.begun + (maxima[1] > 0.0 ? carbon_governor_every(maxima[1]) : 1);
    if (maxima[0] > 0.0)
        turn_to(tuner, maxima[0]);
}

bool tuner_carbon_step(struct fly_tuner *tuner)
{
    struct tuner_carbon *carbon = &tuner->carbon;
    uint64_t begun = tuner->count.begun, next;

    tuner_rest(tuner, 0);
    if (tuner->state == FLY_TUNER_SEARCHING)
        return false;
    if (begun >= carbon->due)
        ask(tuner);
    if (tuner->state != FLY_TUNER_SETTLED)
        return tuner->state == FLY_TUNER_STOPPED;
    next = carbon->due < carbon->check_due ? carbon->due : carbon->check_due;
    if (begun >= carbon->check_due)
        return false;
    tuner_rest(tuner, next > begun ? next - begun - 1 : 0);
    return true;
}

void tuner_carbon_epoch_end(struct fly_tuner *tuner)
{
    if (tuner->carbon.governor == NULL)
        return;
    step_count_epoch_end(&tuner->count, tuner->clock);
    carbon_governor_count(tuner->carbon.governor, (double)step_count_done(&tuner->count));
    if (tuner->state != FLY_TUNER_STOPPED)
        tuner_rest(tuner, 0); /* the next step begins a new stretch */
}

/* Rank 0's verdict, for all ranks. */
static bool do_all(struct fly_tuner *tuner, bool verdict)
{
    double says = verdict && tuner->options.rank == 0, nothing = 0.0;

    return tuner_exchange(tuner, &nothing, 0, &says, 1) && says > 0.0;
}

/* The extra time of a limit's warm-up and window against the highest limit. */
static double window_extra_s(const struct fly_tuner *tuner, double time_s)
{
    double steps = (double)tuner->options.warmup_steps + (double)tuner->options.profile_steps;

    return steps * fmax(time_s - tuner->points[0].time_s, 0.0);
}

bool tuner_carbon_has_enough(struct fly_tuner *tuner)
{
    struct carbon_progress progress = tuner_progress(tuner);
    const struct fly_tuner_point *point = &tuner->points[tuner->at];
    double step_s = tuner->points[0].time_s, next_s = point->time_s, spent_s, spare_s;

    if (tuner->points[0].mark != FLY_TUNER_VALID || point->mark != FLY_TUNER_VALID)
        return do_all(tuner, false);
    /* The next limit is at least as slow as this one. */
    if (tuner->at > 0 && tuner->points[tuner->at - 1].mark == FLY_TUNER_VALID)
        next_s *= fmax(point->time_s / tuner->points[tuner->at - 1].time_s, 1.0);
    spent_s = tuner->spent_s - (double)tuner->spent_steps * step_s;
    spare_s = carbon_governor_spare_s(tuner->carbon.governor, &progress, step_s) + spent_s;
    return do_all(tuner, spent_s + window_extra_s(tuner, next_s) > search_share * spare_s);
}

bool tuner_carbon_may_search(struct fly_tuner *tuner, double time_s)
{
    struct carbon_progress progress;
    double slower = time_s / tuner->points[tuner->chosen].time_s, step_s = tuner->points[0].time_s * slower;
    double extra_s = 0.0;

    if (tuner->carbon.governor == NULL)
        return true;
    progress = tuner_progress(tuner);
    for (size_t i = 0; i < tuner->limit_count; i++) {
        if (tuner->points[i].mark == FLY_TUNER_VALID)
            extra_s += window_extra_s(tuner, tuner->points[i].time_s) * slower;
    }
    return do_all(tuner, extra_s <= search_share *
                                        carbon_governor_spare_s(tuner->carbon.governor, &progress, step_s));
}

void tuner_carbon_close(struct fly_tuner *tuner)
{
    carbon_governor_close(tuner->carbon.governor);
    tuner->carbon.governor = NULL;
}

int fly_tuner_carbon(const struct fly_tuner *tuner, struct fly_carbon_report *out_report)
{
    if (out_report->size < sizeof *out_report)
        return FLY_EUSAGE;
    if (tuner->carbon.governor == NULL || tuner->forks != fork_generation())
        return FLY_ESTATE;
    carbon_governor_report(tuner->carbon.governor, out_report);
    return 0;
}
