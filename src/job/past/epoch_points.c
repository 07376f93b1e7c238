/* SPDX-License-Identifier: Apache-2.0 */
#include "job/past/epoch_points.h"

#include <math.h>
#include <stdlib.h>

#include <flyball/cost.h>

#include "job/past/saving_run.h"
#include "model/job_spec.h"

enum { LIMITS_MEASURED_MAX = 256 };

/* A ratio this close to 1 is only rounding. */
static const double rounding = 1e-9;

/* Which trials of a batch size count. */
enum trials_wanted { WANT_ALL, WANT_UNSTOPPED, WANT_DEFAULT };

struct gathering {
    const struct job_history *history;
    size_t machine;
    uint32_t batch_size;
    enum trials_wanted wanted;
    const struct job_batch_profile *profile; /* NULL: none */
    double units;                            /* units of the profile per epoch; 1 when not known */
    /* Sums over the trials that take part. */
    double energy_j, time_s;
    /* Over those under one limit of the profile: what they took, and what the profile predicts. */
    double measured_j, measured_s, expected_j, expected_s;
};

/* Sum of all GPUs' highest limits; 1 when not known, and then only energy counts. */
static double max_power_of(const struct fly_job_hardware *machine)
{
    return machine->max_power_w > 0.0 ? machine->max_power_w : 1.0;
}

static bool observed(const struct job_row *trial)
{
    return !trial->running && outcome_observed(trial->outcome) && !isnan(trial->trial.energy_j) &&
           trial->stop != JOB_STOP_DEADLINE;
}

/* Whether the trial shows what an epoch takes, under the revision that holds. */
static bool tells_epochs(const struct gathering *gathering, const struct job_row *trial)
{
    return trial->machine == gathering->machine && trial->trial.batch_size == gathering->batch_size &&
           trial->revision == gathering->history->revision && observed(trial);
}

/* Whether it also shows what a model takes. */
static bool takes_part(const struct gathering *gathering, const struct job_row *trial)
{
    return tells_epochs(gathering, trial) &&
           (gathering->wanted == WANT_ALL || trial->outcome != TRIAL_STOPPED) &&
           (gathering->wanted != WANT_DEFAULT || saving_is_default(gathering->history, trial));
}

static enum trials_wanted wanted_of(const struct job_history *history, size_t machine, uint32_t batch_size)
{
    const struct gathering unstopped = {
        .history = history, .machine = machine, .batch_size = batch_size, .wanted = WANT_UNSTOPPED};

    if (batch_size != history->definition.default_batch_size)
        return isfinite(history->objective.max_slowdown) ? WANT_UNSTOPPED : WANT_ALL;
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *trial = &history->rows[i];

        if (takes_part(&unstopped, trial) && trial->outcome == TRIAL_REACHED &&
            saving_is_default(history, trial))
            return WANT_DEFAULT;
    }
    return WANT_UNSTOPPED;
}

static void take_epochs(struct gathering *gathering, const struct job_row *trial)
{
    const struct job_batch_profile *profile = gathering->profile;

    for (size_t i = 0; profile != NULL && i < profile->count && !trial->trial.profiled; i++) {
        double expected_s = trial->trial.epochs * profile->points[i].time_s * gathering->units;

        if (profile->points[i].limit_w != trial->trial.limit_w)
            continue;
        gathering->measured_j += trial->trial.energy_j;
        gathering->measured_s += trial->trial.time_s;
        gathering->expected_j += expected_s * profile->points[i].power_w;
        gathering->expected_s += expected_s;
    }
}

static void take_part(struct gathering *gathering, const struct job_row *trial, struct epoch_points *points)
{
    gathering->energy_j += trial->trial.energy_j;
    gathering->time_s += trial->trial.time_s;
    points->trials++;
    points->reached += trial->outcome == TRIAL_REACHED;
    points->epochs += trial->trial.epochs;
}

static size_t cheapest(const struct gathering *gathering, double power_scale)
{
    const struct job_batch_profile *profile = gathering->profile;
    double eta = objective_eta(&gathering->history->objective),
           max_power_w = max_power_of(&gathering->history->machines[gathering->machine]);
    double least_j = INFINITY;
    size_t best = 0;

    for (size_t i = 0; i < profile->count; i++) {
        const struct fly_power_point *point = &profile->points[i];
        double cost_j =
            fly_cost(eta, max_power_w, point->time_s * point->power_w * power_scale, point->time_s);

        if (cost_j < least_j) {
            least_j = cost_j;
            best = i;
        }
    }
    return best;
}

static double scale_to(double measured, double expected)
{
    double scale = measured / expected;

    return !isfinite(scale) || scale <= 0.0 || fabs(scale - 1.0) < rounding ? 1.0 : scale;
}

/* What trials took under one limit. */
struct under_limit {
    double limit_w, energy_j, time_s;
    uint64_t epochs;
};

static int by_limit(const void *left, const void *right)
{
    const struct fly_power_point *a = left, *b = right;

    return (a->limit_w > b->limit_w) - (a->limit_w < b->limit_w);
}

/*
 * The trial's limit; when limits cannot be set and the GPU's own is not known, one GPU's share of
 * `max_power_of`.
 */
static double limit_of(const struct job_history *history, const struct job_row *trial)
{
    const struct fly_job_hardware *machine = &history->machines[trial->machine];
    double limit_w = job_history_limit_w(history, trial);
    bool unknown = isnan(limit_w) && !(machine->max_power_w > 0.0);

    return unknown ? max_power_of(machine) / machine->gpu_count : limit_w;
}

/* Without a profile (limits cannot be set, or the policy chooses them itself) only trials tell. */
static void add_measured(const struct gathering *gathering, struct epoch_points *points)
{
    const struct job_history *history = gathering->history;
    struct under_limit limits[LIMITS_MEASURED_MAX];
    size_t count = 0;

    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *trial = &history->rows[i];
        double limit_w = limit_of(history, trial);
        size_t at = 0;

        if (!tells_epochs(gathering, trial) || trial->trial.profiled || isnan(limit_w))
            continue;
        while (at < count && limits[at].limit_w != limit_w)
            at++;
        if (at == LIMITS_MEASURED_MAX)
            continue;
        if (at == count)
            limits[count++] = (struct under_limit){.limit_w = limit_w};
        limits[at].energy_j += trial->trial.energy_j;
        limits[at].time_s += trial->trial.time_s;
        limits[at].epochs += trial->trial.epochs;
    }
    for (size_t i = 0; i < count; i++) {
        if (limits[i].epochs > 0 && limits[i].time_s > 0.0 && limits[i].energy_j > 0.0)
            points->points[points->count++] =
                (struct fly_power_point){limits[i].limit_w, limits[i].energy_j / limits[i].time_s,
                                         limits[i].time_s / (double)limits[i].epochs};
    }
    qsort(points->points, points->count, sizeof points->points[0], by_limit);
}

static void add_profile(const struct gathering *gathering, struct epoch_points *points)
{
    const struct job_batch_profile *profile = gathering->profile;
    bool units_known = profile->units_per_epoch > 0.0;
    double time_scale = 1.0, power_scale = 1.0;

    if (gathering->expected_s > 0.0) {
        time_scale = scale_to(gathering->measured_s, gathering->expected_s);
        power_scale = scale_to(gathering->measured_j, gathering->expected_j * time_scale);
        if (cheapest(gathering, power_scale) != cheapest(gathering, 1.0))
            power_scale = 1.0;
    } else if (!units_known && points->epochs > 0) {
        /* Only trials that measured the profile too tell what an epoch takes. */
        time_scale =
            gathering->time_s / (double)points->epochs / profile->points[cheapest(gathering, 1.0)].time_s;
    } else if (!units_known) {
        return;
    }
    for (size_t i = 0; i < profile->count && time_scale > 0.0; i++)
        points->points[points->count++] =
            (struct fly_power_point){profile->points[i].limit_w, profile->points[i].power_w * power_scale,
                                     profile->points[i].time_s * gathering->units * time_scale};
}

/* Runs of the default ran only under the highest limit: what they took is that limit's point. */
static void set_default(const struct gathering *gathering, struct epoch_points *points)
{
    double highest_w = gathering->history->machines[gathering->machine].highest_limit_w;

    for (size_t i = 0; i < points->count && points->epochs > 0 && gathering->wanted == WANT_DEFAULT; i++) {
        if (points->points[i].limit_w == highest_w)
            points->points[i] = (struct fly_power_point){highest_w, gathering->energy_j / gathering->time_s,
                                                         gathering->time_s / (double)points->epochs};
    }
}

/* What each trial took, in epochs at its limit, so that trials under different limits can be compared. */
static struct saving_sample sample_of(const struct epoch_points *points, const struct job_row *trial,
                                      bool time)
{
    struct saving_sample sample = {
        .delivered = trial->outcome == TRIAL_REACHED, .amount = trial->trial.epochs, .step = 1.0};

    for (size_t i = 0; i < points->count && !trial->trial.profiled; i++) {
        const struct fly_power_point *point = &points->points[i];

        if (point->limit_w == trial->trial.limit_w)
            sample.amount = time ? trial->trial.time_s / point->time_s
                                 : trial->trial.energy_j / (point->time_s * point->power_w);
    }
    return sample;
}

static void add_bounds(const struct gathering *gathering, struct saving_sample *samples,
                       struct epoch_points *points)
{
    for (int time = 0; time < 2; time++) {
        size_t count = 0;

        for (size_t i = 0; i < gathering->history->count; i++) {
            if (takes_part(gathering, &gathering->history->rows[i]))
                samples[count++] = sample_of(points, &gathering->history->rows[i], time == 1);
        }
        *(time == 1 ? &points->time : &points->energy) = saving_bounds_of(samples, count);
    }
}

int epoch_points_of(const struct job_history *history, const struct job_profiles *profiles, size_t machine,
                    uint32_t batch_size, struct epoch_points *out_points, struct fly_error *out_error)
{
    struct gathering gathering = {.history = history,
                                  .machine = machine,
                                  .batch_size = batch_size,
                                  .wanted = wanted_of(history, machine, batch_size),
                                  .units = 1.0};
    struct saving_sample *samples = calloc(history->count + 1, sizeof samples[0]);

    if (samples == NULL)
        return error_no_memory(out_error);
    gathering.profile = job_profiles_find(profiles, machine, batch_size);
    if (gathering.profile != NULL && gathering.profile->units_per_epoch > 0.0)
        gathering.units = gathering.profile->units_per_epoch;
    out_points->batch_size = batch_size;
    out_points->trials = out_points->reached = out_points->epochs = 0;
    out_points->count = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *trial = &history->rows[i];

        if (tells_epochs(&gathering, trial))
            take_epochs(&gathering, trial);
        if (takes_part(&gathering, trial))
            take_part(&gathering, trial, out_points);
    }
    if (gathering.profile != NULL)
        add_profile(&gathering, out_points);
    else
        add_measured(&gathering, out_points);
    set_default(&gathering, out_points);
    add_bounds(&gathering, samples, out_points);
    free(samples);
    return 0;
}
