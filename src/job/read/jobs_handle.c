/* SPDX-License-Identifier: Apache-2.0 */
/* A handle on logs: opens them, lists them, and explains single trials. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/fork_guard.h"
#include "job/core/job_words.h"
#include "job/past/job_unknown.h"
#include "job/read/read_private.h"

enum { LIST_MAX = 256 << 20, EXPLANATION_MAX = 4 << 20 };

int jobs_handle_check(const struct fly_jobs *jobs, struct fly_error *out_error)
{
    return jobs->generation == fork_generation()
               ? 0
               : error_set(out_error, FLY_ESTATE,
                           "the jobs were opened before a fork and are the parent's; open them anew here");
}

int read_give(void *out, const void *answer, size_t least)
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

double read_unix_s(int64_t time_us)
{
    return time_us == 0 ? NAN : (double)time_us / 1e6;
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
        .made_unix_s = read_unix_s(job->made_us),
        .changed_unix_s = read_unix_s(job->changed_us),
    };
    return read_give(out_summary, &summary, sizeof summary);
}

static int explain(struct fly_jobs *jobs, const char *job, uint64_t trial,
                   struct job_explanation *out_explanation, struct fly_error *out_error)
{
    int code = jobs_handle_check(jobs, out_error);

    if (code < 0)
        return code;
    if (jobs->jobs.backend == NULL)
        return job_unknown_explain(&jobs->jobs, job, FLY_ENOTFOUND, out_error);
    arena_deinit(&jobs->explained);
    arena_init(&jobs->explained, EXPLANATION_MAX);
    return job_explain(&jobs->jobs, job, trial, &jobs->explained, out_explanation, out_error);
}

int fly_job_why(struct fly_jobs *jobs, const char *job, uint64_t trial, struct fly_job_why *out_why,
                struct fly_error *out_error)
{
    struct job_explanation explanation = {.trial = trial};
    struct fly_job_why why;
    int code = explain(jobs, job, trial, &explanation, out_error);

    if (code < 0)
        return code;
    why = (struct fly_job_why){
        .size = sizeof why,
        .trial = explanation.trial,
        .recurrence = explanation.recurrence,
        .try_number = explanation.try_number,
        .batch_size = explanation.batch_size,
        .limit_w = explanation.limit_w,
        .proposed_unix_s = read_unix_s(explanation.proposed_us),
        .policy = explanation.policy,
        .reason = job_reason_name(explanation.reason),
        .sentence = explanation.sentence,
        .numbers = explanation.numbers,
        .capped = explanation.capped,
        .last_try = explanation.last_try,
    };
    if (read_give(out_why, &why, sizeof why) < 0)
        return error_set(out_error, FLY_EUSAGE, "struct fly_job_why has size %zu, which is too small",
                         out_why->size);
    return 0;
}
