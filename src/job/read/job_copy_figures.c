/* SPDX-License-Identifier: Apache-2.0 */
/* What the copy of a job's log comes to: savings and the frontier's points. */
#include <inttypes.h>
#include <math.h>

#include <flyball/cost.h>

#include "job/past/savings.h"
#include "job/read/read_private.h"

/* The index of a kind of hardware that was named by its number; the count of kinds: there is none. */
static size_t place_of(const struct fly_job *job, size_t hardware)
{
    const struct job_history *history = &job->history;

    if (hardware == 0 && history->count > 0)
        return history->rows[history->count - 1].machine;
    return hardware == 0 || hardware > history->machine_count ? history->machine_count : hardware - 1;
}

/* ---- savings ---- */

static struct fly_job_runs runs_of(const struct saving_group *group)
{
    return (struct fly_job_runs){
        .runs = group->runs,
        .failed = group->failed,
        .model_energy_j = group->model_energy_j,
        .model_time_s = group->model_time_s,
        .spread = group->spread,
        .mean_metric = group->mean_metric,
        .newest_unix_s = read_unix_s(group->newest_us),
    };
}

static struct fly_job_range range_of(const struct saving *saving)
{
    return (struct fly_job_range){saving->saving, saving->low, saving->high};
}

static struct fly_job_saving saving_of(const struct job_savings *savings, size_t machine)
{
    const struct saving_balance *balance = &savings->balance;

    return (struct fly_job_saving){
        .size = sizeof(struct fly_job_saving),
        .hardware = machine + 1,
        .known = savings->known,
        .doubt = savings->known ? "" : saving_doubt_text(savings->doubt),
        .baseline = runs_of(&savings->baseline),
        .tuned = runs_of(&savings->tuned),
        .energy = range_of(&savings->energy),
        .time = range_of(&savings->time),
        .cost = range_of(&savings->cost),
        .searching = savings->searching,
        .searching_failed = savings->searching_failed,
        .exploration_j = savings->exploration_j,
        .ahead_j = balance->ahead_j,
        .recent = balance->recent,
        .recent_ahead_j = balance->recent_ahead_j,
        .paid_off = balance->paid_off,
        .paid_off_at = balance->paid_off_at,
        .outdated = savings->outdated,
        .unknown = savings->unknown,
        .failed = savings->failed,
        .earlier = savings->earlier.recurrences,
        .earlier_ahead_j = savings->earlier.ahead_j,
        .earlier_unknown = savings->earlier.unknown,
    };
}

int fly_job_saving(const struct fly_job *job, size_t hardware, struct fly_job_saving *out_saving,
                   struct fly_error *out_error)
{
    const struct job_history *history = &job->history;
    size_t machine = place_of(job, hardware);
    struct fly_job_saving saving;
    struct job_savings savings;
    int code;

    if (history->count == 0)
        return error_set(out_error, FLY_EEXHAUSTED, "job '%s' has not run yet", history->definition.name);
    if (machine == history->machine_count)
        return error_set(out_error, FLY_EUSAGE,
                         "job '%s' ran on %zu kinds of hardware, and there is no number %zu",
                         history->definition.name, history->machine_count, hardware);
    code = job_savings_of(history, machine, &savings, out_error);
    if (code < 0)
        return code;
    saving = saving_of(&savings, machine);
    if (read_give(out_saving, &saving, sizeof saving) < 0)
        return error_set(out_error, FLY_EUSAGE, "struct fly_job_saving has size %zu, which is too small",
                         out_saving->size);
    return 0;
}

/* ---- points ---- */

/* NULL: no such hardware. */
static const struct job_frontier *frontier_of(const struct fly_job *job, size_t hardware)
{
    size_t machine = place_of(job, hardware);

    return machine < job->history.machine_count ? &job->frontiers[machine] : NULL;
}

static const struct job_frontier_batch *batch_of(const struct fly_job *job,
                                                 const struct job_frontier *frontier, uint32_t size)
{
    size_t i = 0;

    while (i + 1 < job->history.definition.batch_count && frontier->batches[i].epoch.batch_size != size)
        i++;
    return &frontier->batches[i];
}

static struct fly_job_range bounded(double value, const struct saving_bounds *bounds)
{
    return (struct fly_job_range){value, saving_bounds_low(value, bounds), saving_bounds_high(value, bounds)};
}

size_t fly_job_point_count(const struct fly_job *job, size_t hardware)
{
    const struct job_frontier *frontier = frontier_of(job, hardware);

    return frontier != NULL ? frontier->points.count : 0;
}

int fly_job_point(const struct fly_job *job, size_t hardware, size_t place, struct fly_job_point *out_point)
{
    const struct job_frontier *frontier = frontier_of(job, hardware);
    const struct fly_operating_point *point;
    const struct job_frontier_batch *batch;
    struct fly_job_point told;

    if (frontier == NULL || place >= frontier->points.count)
        return FLY_EUSAGE;
    point = &frontier->points.points[place];
    batch = batch_of(job, frontier, point->batch_size);
    told = (struct fly_job_point){
        .size = sizeof told,
        .batch_size = point->batch_size,
        .limit_w = point->power_limit_w,
        .trials = batch->epoch.trials,
        .time_s = bounded(point->time_s, &batch->epoch.time),
        .energy_j = bounded(point->energy_j, &batch->epoch.energy),
        .cost_j = fly_cost(frontier->objective.eta, frontier->max_power_w, point->energy_j, point->time_s),
        .on_frontier = frontier->points.on_frontier[place],
        .is_default = place == frontier->points.default_point,
        .is_chosen = place == frontier->chosen,
    };
    return read_give(out_point, &told, sizeof told);
}

size_t fly_job_left_out_count(const struct fly_job *job, size_t hardware)
{
    const struct job_frontier *frontier = frontier_of(job, hardware);

    return frontier != NULL ? frontier->points.left_out_count : 0;
}

int fly_job_left_out(const struct fly_job *job, size_t hardware, size_t place, uint32_t *out_batch_size,
                     const char **out_why)
{
    const struct job_frontier *frontier = frontier_of(job, hardware);
    const struct left_out *out;
    const char *barred;

    if (frontier == NULL || place >= frontier->points.left_out_count)
        return FLY_EUSAGE;
    out = &frontier->points.left_out[place];
    barred = batch_of(job, frontier, out->batch_size)->barred;
    *out_batch_size = out->batch_size;
    *out_why = barred != NULL ? barred : job_frontier_left_out[out->reason];
    return 0;
}
