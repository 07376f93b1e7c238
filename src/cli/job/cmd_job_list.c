/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a store. */
#include <stdio.h>

#include "base/text/iso_time.h"
#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/options/store_option.h"

enum {
    MEMORY_MAX = 256 << 20,
    TITLE_MAX = 512,
    UNDERSTOOD = 4 /* columns that only an intelligible log has */
};

static const struct meaning columns[] = {
    {"job", "job", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of the job."},
    {"policy", "policy", MEANING_TEXT, 0, NULL, MEANING_FACT, "Policy that chooses what to run."},
    {"recurrences", "recurrences", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Recurrences that have begun."},
    {"trials", "trials", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Trials that have begun."},
    {"running", "running", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Trials that have not ended."},
    {"events", "events", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Events in the job's log."},
    {"owners", "owners", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Who may change it in a service, with commas; operator: the service's operator alone."},
    {"made", "made", MEANING_DATE, 0, NULL, MEANING_FACT, "When the job was made."},
    {"changed", "changed", MEANING_DATE, 0, NULL, MEANING_FACT, "When the newest event was written."},
};
static const struct quantities quantities = {"a job", QUANTITIES(columns)};

/* For people: how many jobs there are, how many of them run, and which was heard of last. */
static int emit_first(const struct cli_call *call, const struct job_list *list, struct fly_error *out_error)
{
    const struct job_summary *newest = &list->jobs[0];
    char date[ISO_TIME_TEXT_MAX], text[TITLE_MAX];
    size_t running = 0;

    for (size_t i = 0; i < list->count; i++) {
        running += list->jobs[i].running > 0;
        if (list->jobs[i].changed_us > newest->changed_us)
            newest = &list->jobs[i];
    }
    snprintf(text, sizeof text, "%zu job%s, %zu running; last heard of '%s', on %s.\n\n", list->count,
             list->count == 1 ? "" : "s", running, newest->name,
             iso_time_format_us(newest->changed_us, date));
    return cli_emit_text(call, text, out_error);
}

static int emit(const struct cli_call *call, const struct job_list *list, struct fly_error *out_error)
{
    struct table *table = table_new("flyball.job.list/1", columns, quantities.count);
    char date[ISO_TIME_TEXT_MAX];
    int code;

    for (size_t i = 0; i < list->count; i++) {
        const struct job_summary *job = &list->jobs[i];

        table_add_text(table, job->name);
        if (job->trouble == NULL) {
            table_add_text(table, job->policy);
            table_add_integer(table, (int64_t)job->recurrences);
            table_add_integer(table, (int64_t)job->trials);
            table_add_integer(table, (int64_t)job->running);
        } else {
            for (int column = 0; column < UNDERSTOOD; column++)
                table_add_unavailable(table, "?", job->trouble);
        }
        table_add_integer(table, (int64_t)job->events);
        if (job->trouble != NULL || job->owners == NULL || job->owners[0] == '\0')
            table_add_unavailable(table, "?", job->trouble != NULL ? job->trouble : "the service is older");
        else
            table_add_text(table, job->owners);
        table_add_text(table, iso_time_format_us(job->made_us, date));
        table_add_text(table, iso_time_format_us(job->changed_us, date));
    }
    if (list->count == 0 && cli_format(call) == TABLE_FORMAT_TABLE) {
        cli_note(call, "there are no jobs in the store");
        code = 0;
    } else {
        code = cli_format(call) == TABLE_FORMAT_TABLE ? emit_first(call, list, out_error) : 0;
        if (code == 0)
            code = cli_emit_table(call, table, out_error);
    }
    table_free(table);
    return code;
}

static int job_list_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct job_list list = {.count = 0};
    struct arena arena;
    struct jobs jobs;
    int code = store_option_open_any(call, &jobs, out_error);

    if (code != 0)
        return code;
    if (jobs.backend != NULL)
        job_view_deliver(call, &jobs);
    arena_init(&arena, MEMORY_MAX);
    code = store_option_list(&jobs, &arena, &list, out_error);
    if (code == 0)
        code = emit(call, &list, out_error);
    arena_deinit(&arena);
    jobs_close(&jobs);
    return code;
}

const struct cli_command cmd_job_list = {
    .words = "job list",
    .summary = "list the recurring jobs of a store",
    .paragraphs =
        {"Lists the recurring jobs of which a log is kept: how often each was submitted, the trials "
         "that took, how many run now, and when it was first and last heard of."},
    .shared = {&store_options},
    .examples = {{"flyball job list", "list your own jobs"},
                 {"flyball job list --store /srv/jobs.sqlite --format csv", "list those of another store"}},
    .outputs = {&quantities},
    .run = job_list_run,
};
