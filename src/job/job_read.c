/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as programs read them (flyball/job.h): a list, an explanation, or a copy of what a job's log tells. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <flyball/cost.h>
#include <flyball/job.h>

#include "base/thread/fork_guard.h"
#include "job/jobs.h"
#include "job/past/history.h"
#include "job/past/job_frontier.h"
#include "job/past/savings.h"
#include "model/objective_check.h"

enum { LIST_MAX = 256 << 20, EXPLANATION_MAX = 4 << 20, HISTORY_MAX = 1 << 30 };

struct fly_jobs {
    struct jobs jobs;    /* without a back end: there is no store of the user's own yet */
    uint64_t generation; /* of forks, when it was opened */
    struct arena listed; /* holds the list */
    struct job_list list;
    struct arena explained; /* holds the newest explanation's texts */
};

struct fly_job {
    struct arena arena; /* holds all else */
    struct job_history history;
    struct job_frontier *frontiers; /* in the order of history.machines */
    uint64_t recurrences, running;
};

/* FLY_ESTATE in a child that was forked after the handle was opened. */
static int jobs_handle_check(const struct fly_jobs *jobs, struct fly_error *out_error)
{
    return jobs->generation == fork_generation()
               ? 0
               : error_set(out_error, FLY_ESTATE,
                           "the jobs were opened before a fork and are the parent's; open them anew here");
}

/*
 * Copies as much of an answer as the caller's struct has room for. Both begin with their size. FLY_EUSAGE if
 * the caller's is less than `least`.
 */
static int read_give(void *out, const void *answer, size_t least)
{
    size_t room, whole;

    memcpy(&room, out, sizeof room);
    memcpy(&whole, answer, sizeof whole);
    if (room < least)
        return FLY_EUSAGE;
    if (whole > room)
        whole = room;
    memcpy((char *)out + sizeof room, (const char *)answer + sizeof room, whole - sizeof room);
    return 0;
}

int fly_jobs_open(const char *store, double wait_s, struct fly_jobs **out_jobs, struct fly_error *out_error)
{
    const struct job_options to_read = {.existing = true, .wait_s = wait_s};
    const char *address = store != NULL ? store : getenv("FLYBALL_STORE");
    bool own = address == NULL || address[0] == '\0';
    struct fly_jobs *jobs;
    int code;

    if (!(wait_s >= 0.0 && isfinite(wait_s)))
        return error_set(out_error, FLY_EUSAGE, "wait_s %g: expected seconds from 0 on", wait_s);
    jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL)
        return error_no_memory(out_error);
    code = jobs_open(own ? NULL : address, &to_read, &jobs->jobs, out_error);
    if (code < 0 && !(own && code == FLY_ENOTFOUND)) {
        free(jobs);
        return code;
    }
    jobs->generation = fork_generation();
    arena_init(&jobs->listed, LIST_MAX);
    arena_init(&jobs->explained, EXPLANATION_MAX);
    *out_jobs = jobs;
    return 0;
}

void fly_jobs_close(struct fly_jobs *jobs)
{
    if (jobs == NULL)
        return;
    arena_deinit(&jobs->listed);
    arena_deinit(&jobs->explained);
    jobs_close(&jobs->jobs);
    free(jobs);
}

int fly_jobs_list(struct fly_jobs *jobs, size_t *out_count, struct fly_error *out_error)
{
    int code = jobs_handle_check(jobs, out_error);

    if (code < 0)
        return code;
    arena_deinit(&jobs->listed);
    arena_init(&jobs->listed, LIST_MAX);
    jobs->list = (struct job_list){.count = 0};
    if (jobs->jobs.backend != NULL)
        code = jobs->jobs.backend->list(jobs->jobs.self, &jobs->listed, &jobs->list, out_error);
    if (code == 0)
        *out_count = jobs->list.count;
    return code;
}

int fly_jobs_summary(const struct fly_jobs *jobs, size_t place, struct fly_job_summary *out_summary)
{
    const struct job_summary *job;
    struct fly_job_summary summary;

    if (place >= jobs->list.count)
        return FLY_EUSAGE;
    job = &jobs->list.jobs[place];
    summary = (struct fly_job_summary){
        .size = sizeof summary,
        .name = job->name,
        .policy = job->policy,
        .trouble = job->trouble != NULL ? job->trouble : "",
        .recurrences = job->recurrences,
        .trials = job->trials,
        .running = job->running,
        .events = job->events,
        .made_unix_s = job_unix_s(job->made_us),
        .changed_unix_s = job_unix_s(job->changed_us),
    };
    return read_give(out_summary, &summary, sizeof summary);
}

int fly_job_why(struct fly_jobs *jobs, const char *job, uint64_t trial, struct fly_job_why *out_why,
                struct fly_error *out_error)
{
    struct fly_job_why why;
    int code = jobs_handle_check(jobs, out_error);

    if (code < 0)
        return code;
    if (jobs->jobs.backend == NULL)
        return job_unknown_explain(&jobs->jobs, job, FLY_ENOTFOUND, out_error);
    arena_deinit(&jobs->explained);
    arena_init(&jobs->explained, EXPLANATION_MAX);
    code = job_explain(&jobs->jobs, job, trial, &jobs->explained, &why, out_error);
    if (code < 0)
        return code;
    if (read_give(out_why, &why, sizeof why) < 0)
        return error_set(out_error, FLY_EUSAGE, "struct fly_job_why has size %zu, which is too small",
                         out_why->size);
    return 0;
}

/* ---- a job ---- */

static void count(struct fly_job *job)
{
    for (size_t i = 0; i < job->history.count; i++) {
        const struct job_row *row = &job->history.rows[i];

        if (row->trial.recurrence >= job->recurrences)
            job->recurrences = row->trial.recurrence + 1;
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

int fly_job_facts(const struct fly_job *job, struct fly_job_facts *out_facts)
{
    const struct job_history *history = &job->history;
    const struct job_brought_past *revision = job_history_revision(history, history->revision);
    const struct fly_job_facts facts = {
        .size = sizeof facts,
        .name = history->definition.name,
        .policy = history->policy,
        .objective = objective_kind_name(history->objective.kind),
        .eta = objective_eta(&history->objective),
        .max_slowdown = history->objective.max_slowdown,
        .revision = revision != NULL ? revision->revision : "",
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
    if (hardware == 0 || hardware > job->history.machine_count)
        return FLY_EUSAGE;
    return read_give(out_hardware, &job->history.machines[hardware - 1], sizeof *out_hardware);
}

size_t fly_job_trial_count(const struct fly_job *job)
{
    return job->history.count;
}

int fly_job_trial(const struct fly_job *job, size_t place, struct fly_job_trial *out_trial)
{
    if (place >= job->history.count)
        return FLY_EUSAGE;
    return read_give(out_trial, &job->history.rows[place].trial, sizeof *out_trial);
}

/* The index of a kind of hardware that was named by its number; the count of kinds: there is none. */
static size_t place_of(const struct fly_job *job, size_t hardware)
{
    const struct job_history *history = &job->history;

    if (hardware == 0 && history->count > 0)
        return history->rows[history->count - 1].machine;
    return hardware == 0 || hardware > history->machine_count ? history->machine_count : hardware - 1;
}

/* ---- savings ---- */

static struct fly_job_saving saving_of(const struct job_savings *savings, size_t machine)
{
    const struct saving_balance *balance = &savings->balance;

    return (struct fly_job_saving){
        .size = sizeof(struct fly_job_saving),
        .hardware = machine + 1,
        .known = savings->known,
        .doubt = savings->known ? "" : saving_doubt_text(savings->doubt),
        .baseline = savings->baseline,
        .tuned = savings->tuned,
        .energy = savings->energy,
        .time = savings->time,
        .cost = savings->cost,
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
