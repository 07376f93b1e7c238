/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of what a job's log tells: the job, its hardware and its trials. */
#include <math.h>
#include <stdlib.h>

#include "job/core/grid_amount.h"
#include "job/core/job_words.h"
#include "job/past/job_unknown.h"
#include "job/read/read_private.h"
#include "model/objective_check.h"

enum { HISTORY_MAX = 1 << 30 };

/* ---- reading ---- */

static void count(struct fly_job *job)
{
    for (size_t i = 0; i < job->history.count; i++) {
        const struct job_row *row = &job->history.rows[i];

        if (row->recurrence >= job->recurrences)
            job->recurrences = row->recurrence + 1;
        job->running += row->running;
    }
}

static int read_all(const struct jobs *jobs, const char *name, struct fly_job *job,
                    struct fly_error *out_error)
{
    struct job_profiles profiles;
    int code = job_history_read(jobs, name, &job->arena, &job->history, out_error);

    if (code < 0)
        return job_unknown_explain(jobs, name, code, out_error);
    count(job);
    job->frontiers = arena_alloc(&job->arena, job->history.machine_count + 1, sizeof job->frontiers[0]);
    if (job->frontiers == NULL)
        return error_no_memory(out_error);
    code = job_profiles_read(jobs, &job->history, &job->arena, &profiles, out_error);
    for (size_t i = 0; i < job->history.machine_count && code == 0; i++)
        code =
            job_frontier_read(jobs, &job->history, &profiles, i, &job->arena, &job->frontiers[i], out_error);
    return code;
}

int fly_job_read(struct fly_jobs *jobs, const char *name, struct fly_job **out_job,
                 struct fly_error *out_error)
{
    struct fly_job *job;
    int code = jobs_handle_check(jobs, out_error);

    if (code < 0)
        return code;
    if (jobs->jobs.backend == NULL)
        return job_unknown_explain(&jobs->jobs, name, FLY_ENOTFOUND, out_error);
    job = calloc(1, sizeof *job);
    if (job == NULL)
        return error_no_memory(out_error);
    arena_init(&job->arena, HISTORY_MAX);
    code = read_all(&jobs->jobs, name, job, out_error);
    if (code < 0)
        fly_job_free(job);
    else
        *out_job = job;
    return code;
}

void fly_job_free(struct fly_job *job)
{
    if (job == NULL)
        return;
    arena_deinit(&job->arena);
    free(job);
}

/* ---- telling ---- */

static const char *revision_of(const struct job_history *history, size_t number)
{
    const struct job_brought_past *revision = job_history_revision(history, number);

    return revision != NULL ? revision->revision : "";
}

int fly_job_facts(const struct fly_job *job, struct fly_job_facts *out_facts)
{
    const struct job_history *history = &job->history;
    const struct fly_job_facts facts = {
        .size = sizeof facts,
        .name = history->definition.name,
        .policy = history->policy,
        .objective = objective_kind_name(history->objective.kind),
        .eta = objective_eta(&history->objective),
        .max_slowdown = history->objective.max_slowdown,
        .revision = revision_of(history, history->revision),
        .default_batch_size = history->definition.default_batch_size,
        .pin_batch_size = history->pin_batch_size,
        .pin_limit_w = history->pin_limit_w,
        .recurrences = job->recurrences,
        .trials = history->count,
        .running = job->running,
        .hardware_count = history->machine_count,
    };

    return read_give(out_facts, &facts, sizeof facts);
}

int fly_job_hardware(const struct fly_job *job, size_t hardware, struct fly_job_hardware *out_hardware)
{
    const struct job_machine *machine;
    struct fly_job_hardware told;

    if (hardware == 0 || hardware > job->history.machine_count)
        return FLY_EUSAGE;
    machine = &job->history.machines[hardware - 1];
    told = (struct fly_job_hardware){
        .size = sizeof told,
        .gpu_model = machine->gpu_model,
        .gpu_count = machine->gpu_count,
        .world_size = machine->world_size,
        .gpu_memory_bytes = machine->gpu_memory_bytes,
        .highest_limit_w = machine->highest_limit_w,
        .max_power_w = machine->max_power_w,
    };
    return read_give(out_hardware, &told, sizeof told);
}

size_t fly_job_trial_count(const struct fly_job *job)
{
    return job->history.count;
}

/* Who and where: the rest of a trial. */
static void tell_origin(const struct fly_job *job, const struct job_row *row, struct fly_job_trial *trial)
{
    bool money = job_counts_money(&job->history.definition);

    trial->carbon_g = money ? NAN : row->grid_amount;
    trial->money = money ? row->grid_amount : NAN;
    trial->hardware = row->machine + 1;
    trial->revision = revision_of(&job->history, row->revision);
    trial->user = row->user;
    trial->account = row->account;
    trial->host = row->host;
    trial->gpus = row->gpus;
    trial->cause = row->text;
}

int fly_job_trial(const struct fly_job *job, size_t place, struct fly_job_trial *out_trial)
{
    const struct job_row *row;
    struct fly_job_trial trial;
    bool untold;

    if (place >= job->history.count)
        return FLY_EUSAGE;
    row = &job->history.rows[place];
    untold = job_row_is_untold(row);
    trial = (struct fly_job_trial){
        .size = sizeof trial,
        .trial = row->trial,
        .recurrence = row->recurrence,
        .try_number = row->try_number,
        .attempts = row->attempts,
        .batch_size = row->batch_size,
        .epochs = row->epochs,
        .limit_w = row->limit_w,
        .reason = job_reason_name(row->reason),
        .outcome = job_row_outcome(row),
        .stop = job_stop_name(row->stop),
        .metric = row->metric,
        .energy_j = untold ? NAN : row->energy_j,
        .time_s = untold ? NAN : row->time_s,
        .cost_j = untold ? NAN : row->cost_j,
        .whole_energy_j = untold ? NAN : row->run_energy_j,
        .whole_time_s = untold ? NAN : row->run_time_s,
        .begun_unix_s = read_unix_s(row->proposed_us),
        .ended_unix_s = read_unix_s(row->ended_us),
        .late = row->late,
        .profiled = row->profiled,
    };
    tell_origin(job, row, &trial);
    return read_give(out_trial, &trial, sizeof trial);
}
