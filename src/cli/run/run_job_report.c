/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/kit/amount.h"
#include "cli/run/run_job.h"
#include "shapes/json_number.h"
#include "shapes/text_value.h"

/* The words for people, and for programs. */
static const struct {
    const char *title, *word;
} ends[] = {
    [RUN_JOB_REACHED] = {"target reached", "reached"},
    [RUN_JOB_NOT_REACHED] = {"target not reached", "not_reached"},
    [RUN_JOB_STOPPED] = {"stopped", "stopped"},
    [RUN_JOB_OUT_OF_MEMORY] = {"out of memory", "out_of_memory"},
    [RUN_JOB_CRASHED] = {"failed", "crashed"},
    [RUN_JOB_INTERRUPTED] = {"interrupted; the same run may go on with it", "interrupted"},
    [RUN_JOB_SILENT] = {"nothing learnt", "silent"},
    [RUN_JOB_SPOKE] = {"reported by the program's own session", "session"},
};
_Static_assert(sizeof ends / sizeof ends[0] == RUN_JOB_END_COUNT, "a title for each end");

static const char *title_of(const struct run_job *job, const struct run_job_try *attempt)
{
    bool has_target = job->options.target != FLY_TARGET_NONE;

    return attempt->end == RUN_JOB_REACHED && !has_target ? "all epochs" : ends[attempt->end].title;
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
    buffer_printf(out, ": %s%s%s\n", title_of(job, attempt), attempt->cause[0] != '\0' ? ", " : "",
                  attempt->cause);
    if (status->why[0] != '\0')
        buffer_printf(out, "    %s\n", status->why);
}

/* Writes what kept it from the log, or from a limit, once each. */
static void put_faults(const struct run_job *job, struct buffer *out)
{
    const struct fly_session_status *last;

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

void run_job_text(const struct run_job *job, struct buffer *out)
{
    buffer_printf(out, "  job '%s'", job->options.job_name);
    if (job->try_count > 0 && job->tries[0].status.trial > 0)
        buffer_printf(out, ", recurrence %" PRIu64, job->tries[0].status.recurrence + 1);
    buffer_puts(out, "\n");
    for (size_t i = 0; i < job->try_count; i++)
        put_try(job, i, out);
    put_faults(job, out);
    put_grid(job, out);
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *try_json(const struct run_job_try *attempt)
{
    const struct fly_session_status *status = &attempt->status;
    json_t *object = json_object();

    set(object, "trial", status->trial > 0 ? json_integer((json_int_t)status->trial) : json_null());
    set(object, "attempt", status->trial > 0 ? json_integer(status->attempt) : json_null());
    set(object, "batch_size", json_integer(status->batch_size));
    set(object, "local_batch_size", json_integer(status->local_batch_size));
    set(object, "limit_w", json_number_or_null(status->limit_w));
    set(object, "last_try", json_boolean(status->last_try));
    set(object, "epochs", json_integer(status->epoch));
    set(object, "metric", json_number_or_null(attempt->metric));
    set(object, "energy_j", json_number_or_null(status->energy_j));
    set(object, "time_s", json_number_or_null(status->time_s));
    set(object, "end", json_string(ends[attempt->end].word));
    set(object, "cause", text_or_null(attempt->cause));
    set(object, "ended_by_flyball", json_boolean(attempt->ended_by_us));
    set(object, "exit_status", json_integer(attempt->exit_status));
    set(object, "why", text_or_null(status->why));
    return object;
}

json_t *run_job_json(const struct run_job *job)
{
    const struct fly_session_status *last =
        job->try_count > 0 ? &job->tries[job->try_count - 1].status : NULL;
    json_t *object = json_object(), *tries = json_array();

    for (size_t i = 0; i < job->try_count; i++)
        json_array_append_new(tries, try_json(&job->tries[i]));
    set(object, "job", json_string(job->options.job_name));
    set(object, "recurrence",
        last != NULL && last->trial > 0 ? json_integer((json_int_t)last->recurrence) : json_null());
    set(object, "tries", tries);
    set(object, "log_unavailable", text_or_null(job->kept.text));
    set(object, "limit_unavailable", last != NULL ? text_or_null(last->limit_text) : json_null());
    set(object, "kept_reports", json_integer((json_int_t)job->kept.kept));
    set(object, "not_followed", text_or_null(job->off));
    return object;
}
