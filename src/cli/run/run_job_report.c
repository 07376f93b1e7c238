/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/kit/amount.h"
#include "cli/run/run_job.h"
#include "shapes/shape_told.h"

/* The words for people, and for programs. */
static const char *const titles[] = {
    [RUN_JOB_REACHED] = "target reached",
    [RUN_JOB_NOT_REACHED] = "target not reached",
    [RUN_JOB_STOPPED] = "stopped",
    [RUN_JOB_OUT_OF_MEMORY] = "out of memory",
    [RUN_JOB_CRASHED] = "failed",
    [RUN_JOB_NOT_STARTED] = JOB_END_WITHOUT_STEP,
    [RUN_JOB_INTERRUPTED] = "interrupted; the same run may go on with it",
    [RUN_JOB_SILENT] = "nothing learnt",
    [RUN_JOB_SPOKE] = "reported by the program's own session",
};
static const char *const words[] = {
    [RUN_JOB_REACHED] = "reached",         [RUN_JOB_NOT_REACHED] = "not_reached",
    [RUN_JOB_STOPPED] = "stopped",         [RUN_JOB_OUT_OF_MEMORY] = "out_of_memory",
    [RUN_JOB_CRASHED] = "crashed",         [RUN_JOB_INTERRUPTED] = "interrupted",
    [RUN_JOB_NOT_STARTED] = "not_started", [RUN_JOB_SILENT] = "silent",
    [RUN_JOB_SPOKE] = "session",
};
_Static_assert(sizeof titles / sizeof titles[0] == RUN_JOB_END_COUNT, "a title for each end");
_Static_assert(sizeof words / sizeof words[0] == RUN_JOB_END_COUNT, "a word for each end");

static const char *title_of(const struct run_job *job, const struct run_job_try *attempt)
{
    bool has_target = job->options.target != FLY_TARGET_NONE;

    return attempt->end == RUN_JOB_REACHED && !has_target ? "all epochs" : titles[attempt->end];
}

static void put_try(const struct run_job *job, size_t number, struct buffer *out)
{
    const struct run_job_try *attempt = &job->tries[number];
    const struct fly_session_status *status = &attempt->status;
    char energy[AMOUNT_MAX], time[AMOUNT_MAX];

    /* The number within the recurrence, whose first tries another process may have made. */
    buffer_printf(out, "  try %zu: ", status->trial > 0 ? (size_t)status->try_number + 1 : number + 1);
    if (status->trial > 0)
        buffer_printf(out, "trial %" PRIu64 "%s, ", status->trial, status->attempt > 1 ? " goes on" : "");
    buffer_printf(out, "batch size %" PRIu32, status->batch_size);
    if (!isnan(status->limit_w))
        buffer_printf(out, ", %g W", status->limit_w);
    if (status->epoch > 0)
        buffer_printf(out, ", %" PRIu32 " epoch%s", status->epoch, status->epoch == 1 ? "" : "s");
    if (!isnan(attempt->metric))
        buffer_printf(out, ", metric %g", attempt->metric);
    if (!isnan(status->energy_j))
        buffer_printf(out, ", %s in %s", amount_energy(status->energy_j, NAN, "", energy),
                      amount_time(status->time_s, time));
    if (attempt->startup_time_s > 0.0)
        buffer_printf(out, ", start-up %s", amount_time(attempt->startup_time_s, time));
    buffer_printf(out, ": %s%s%s\n", title_of(job, attempt), attempt->cause[0] != '\0' ? ", " : "",
                  attempt->cause);
    if (status->why[0] != '\0')
        buffer_printf(out, "    %s\n", status->why);
}

/* Writes what kept it from the log, or from a limit, once each. */
static void put_faults(const struct run_job *job, bool brief, struct buffer *out)
{
    const struct fly_session_status *last;
    char hook[STEP_HOOK_SENTENCE_MAX];

    if (job->off[0] != '\0')
        buffer_printf(out, "  not followed: %s\n", job->off);
    if (job->try_count == 0)
        return;
    last = &job->tries[job->try_count - 1].status;
    if (job->kept.text[0] != '\0')
        buffer_printf(out, "  the job's log is not used: %s\n", job->kept.text);
    if (job->kept.kept > 0)
        buffer_printf(out, "  %" PRIu64 " report%s kept here until it can be reached\n", job->kept.kept,
                      job->kept.kept == 1 ? " is" : "s are");
    if (job->kept.lost > 0)
        buffer_printf(out, "  %" PRIu64 " report%s lost\n", job->kept.lost,
                      job->kept.lost == 1 ? " is" : "s are");
    if ((!brief || job->tries[job->try_count - 1].steps == 0) &&
        step_hook_sentence(&job->seen, job->tries[job->try_count - 1].steps, hook)[0] != '\0')
        buffer_printf(out, "  steps: %" PRIu64 "; %s\n", job->tries[job->try_count - 1].steps, hook);
    if (last->limit_text[0] != '\0')
        buffer_printf(out, "  power limit left alone: %s\n", last->limit_text);
}

/* For a job on record that counts grams or money; an account that was asked for has lines of its own. */
static void put_grid(const struct run_job *job, struct buffer *out)
{
    const struct fly_carbon_report *report = &job->carbon_report;

    if (report->size == 0 || job->parts.keeper != NULL)
        return;
    buffer_printf(out, "  the grid: %s\n", report->reason);
    if (report->account[0] != '\0')
        buffer_printf(out, "  account of energy: %s\n", report->account);
    if (report->text[0] != '\0')
        buffer_printf(out, "  %s\n", report->text);
}

void run_job_status(const struct run_job *job, char text[STATUS_TEXT_MAX])
{
    struct fly_session_status status = {.size = sizeof status};
    char metric[STATUS_TEXT_MAX / 4] = "", limit[STATUS_TEXT_MAX / 4] = "";

    (void)fly_session_status(job->session, &status);
    if (!isnan(job->metric_now))
        snprintf(metric, sizeof metric, ", metric %.6g", job->metric_now);
    if (isfinite(status.limit_w))
        snprintf(limit, sizeof limit, ", %s %.4g W", job->session->limit.tuner != NULL ? "trying" : "at",
                 status.limit_w);
    snprintf(text, STATUS_TEXT_MAX, "flyball: try %zu, batch size %" PRIu32 ", %" PRIu32 " epochs%s%s%s",
             job->try_count + 1, status.batch_size, status.epoch, metric, limit, job->ends ? ", ended" : "");
}

void run_job_answer(const struct run_job *job, bool brief, struct buffer *out)
{
    const struct run_job_try *last = job->try_count > 0 ? &job->tries[job->try_count - 1] : NULL;
    char energy[AMOUNT_MAX], time[AMOUNT_MAX];

    buffer_printf(out, "job '%s'", job->options.job_name);
    if (last != NULL && last->status.trial > 0)
        buffer_printf(out, ", run %" PRIu64, last->status.recurrence + 1);
    if (last == NULL) {
        buffer_printf(out, ": %s\n", job->off[0] != '\0' ? job->off : "nothing was started");
        return;
    }
    buffer_printf(out, ": %s with batch size %" PRIu32, title_of(job, last), last->status.batch_size);
    if (!isnan(last->status.limit_w))
        buffer_printf(out, " at %g W", last->status.limit_w);
    if (last->status.epoch > 0)
        buffer_printf(out, ", %" PRIu32 " epoch%s", last->status.epoch, last->status.epoch == 1 ? "" : "s");
    if (!isnan(last->status.energy_j))
        buffer_printf(out, ": %s in %s", amount_energy(last->status.energy_j, NAN, "", energy),
                      amount_time(last->status.time_s, time));
    if (job->try_count > 1)
        buffer_printf(out, ", in try %zu", job->try_count);
    buffer_printf(out, "%s%s\n", last->cause[0] != '\0' ? "; " : "", last->cause);
    if (!brief)
        return;
    if (last->status.why[0] != '\0')
        buffer_printf(out, "  %s\n", last->status.why);
    put_faults(job, true, out);
}

void run_job_text(const struct run_job *job, struct buffer *out)
{
    buffer_printf(out, "  job '%s'", job->options.job_name);
    if (job->try_count > 0 && job->tries[0].status.trial > 0)
        buffer_printf(out, ", recurrence %" PRIu64, job->tries[0].status.recurrence + 1);
    buffer_puts(out, "\n");
    for (size_t i = 0; i < job->try_count; i++)
        put_try(job, i, out);
    put_faults(job, false, out);
    put_grid(job, out);
}

/* ---- for programs ---- */

static const struct shape_field try_rows[] = {
    {SHAPE_AT_AS("trial", run_job_try, status.trial), TOLD_U64, .null = SHAPE_ZERO},
    {SHAPE_AT_AS("attempt", run_job_try, status.attempt), TOLD_U32, .null = SHAPE_ZERO},
    {SHAPE_AT_AS("batch_size", run_job_try, status.batch_size), TOLD_U32},
    {SHAPE_AT_AS("local_batch_size", run_job_try, status.local_batch_size), TOLD_U32},
    {SHAPE_AT_AS("limit_w", run_job_try, status.limit_w), TOLD_NUMBER},
    {SHAPE_AT_AS("last_try", run_job_try, status.last_try), TOLD_BOOL},
    {SHAPE_AT_AS("epochs", run_job_try, status.epoch), TOLD_U32},
    {SHAPE_AT(run_job_try, steps), TOLD_U64},
    {SHAPE_AT(run_job_try, metric), TOLD_NUMBER},
    {SHAPE_AT_AS("energy_j", run_job_try, status.energy_j), TOLD_NUMBER},
    {SHAPE_AT_AS("time_s", run_job_try, status.time_s), TOLD_NUMBER},
    {SHAPE_AT(run_job_try, startup_energy_j), TOLD_NUMBER},
    {SHAPE_AT(run_job_try, startup_time_s), TOLD_NUMBER},
    {SHAPE_AT(run_job_try, end), SHAPE_IS_WORD(words, RUN_JOB_END_COUNT)},
    {SHAPE_AT(run_job_try, cause), TOLD_CHARS(run_job_try, cause)},
    {SHAPE_AT_AS("ended_by_flyball", run_job_try, ended_by_us), TOLD_BOOL},
    {SHAPE_AT(run_job_try, exit_status), TOLD_I32},
    {SHAPE_AT_AS("why", run_job_try, status.why), TOLD_CHARS(run_job_try, status.why)},
};
static const struct shape try_shape = {SHAPE_OF(run_job_try, try_rows)};

struct told_recurrence {
    const char *job;
    int64_t recurrence; /* below 0: not known */
    const struct run_job_try *tries;
    size_t try_count;
    const char *log_unavailable, *limit_unavailable;
    uint64_t kept_reports;
    const char *not_followed;
    char hook[STEP_HOOK_SENTENCE_MAX];
};

static const struct shape_field recurrence_rows[] = {
    {SHAPE_AT(told_recurrence, job), TOLD_ANY_TEXT},
    {SHAPE_AT(told_recurrence, recurrence), TOLD_I64},
    {SHAPE_AT(told_recurrence, tries), SHAPE_IS_STRUCTS(&try_shape, UINT32_MAX, told_recurrence, try_count)},
    {SHAPE_AT(told_recurrence, log_unavailable), TOLD_TEXT},
    {SHAPE_AT(told_recurrence, limit_unavailable), TOLD_TEXT},
    {SHAPE_AT(told_recurrence, kept_reports), TOLD_U64},
    {SHAPE_AT(told_recurrence, not_followed), TOLD_TEXT},
    {SHAPE_AT(told_recurrence, hook), TOLD_CHARS(told_recurrence, hook)},
};
static const struct shape recurrence_shape = {SHAPE_OF(told_recurrence, recurrence_rows)};

json_t *run_job_json(const struct run_job *job)
{
    const struct run_job_try *attempt = job->try_count > 0 ? &job->tries[job->try_count - 1] : NULL;
    const struct fly_session_status *last = attempt != NULL ? &attempt->status : NULL;
    struct told_recurrence told = {
        .job = job->options.job_name,
        .recurrence = last != NULL && last->trial > 0 ? (int64_t)last->recurrence : -1,
        .tries = job->tries,
        .try_count = job->try_count,
        .log_unavailable = job->kept.text,
        .limit_unavailable = last != NULL ? last->limit_text : NULL,
        .kept_reports = job->kept.kept,
        .not_followed = job->off,
    };

    if (attempt != NULL)
        step_hook_sentence(&job->seen, attempt->steps, told.hook);
    return shape_tell(&recurrence_shape, &told);
}
