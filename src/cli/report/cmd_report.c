/* SPDX-License-Identifier: Apache-2.0 */
/* Who used what energy and GPU time in recurring jobs, and what remains of the meters' sum. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/iso_time.h"
#include "cli/frame/call.h"
#include "cli/frame/parse.h"
#include "cli/kit/amount.h"
#include "cli/options/store_option.h"
#include "cli/report/report_commands.h"
#include "cli/report/report_rows.h"
#include "shapes/json_number.h"
#include "shapes/shape_told.h"

/* What a report has besides its rows: members for programs, a summary and notes for people. */

/* A negative remainder below this part of what was counted is due to rounding. */
static const double rounding = 1e-9;

/* ---- members ---- */

static const char not_known[] = "it is not known";

static json_t *total_value(const struct usage_sums *sums)
{
    json_t *value = json_object();

    json_number_set(value, "energy_j", sums->energy_j, not_known);
    json_number_set(value, "gpu_time_s", sums->gpu_time_s, not_known);
    for (size_t i = 0; report_count_key(i) != NULL; i++)
        json_object_set_new(value, report_count_key(i), json_integer((json_int_t)report_count_in(sums, i)));
    return value;
}

static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(usage_meter, uuid), TOLD_ANY_TEXT},
    {SHAPE_AT(usage_meter, host), TOLD_TEXT},
    {SHAPE_AT(usage_meter, energy_j), TOLD_NUMBER, TOLD_ELSE(not_known)},
    {SHAPE_AT(usage_meter, time_s), TOLD_NUMBER, TOLD_ELSE(not_known)},
};

static const struct shape gpu_shape = {SHAPE_OF(usage_meter, gpu_rows)};

static json_t *meters_value(const struct report *report)
{
    const struct report_meters *meters = report->meters;
    json_t *value = json_pack("{s:I, s:I, s:o}", "gpus_without_figure", (json_int_t)meters->without_figure,
                              "other_devices", (json_int_t)meters->others, "gpus",
                              shape_tell_list(&gpu_shape, meters->gpus, meters->count));
    json_number_set(value, "energy_j", report->balance.metered_j, not_known);
    json_number_set(value, "time_s", report->balance.metered_s, not_known);
    json_number_set(value, "other_devices_j", meters->others_j, not_known);
    return value;
}

static json_t *attributed_value(const struct report_attributed *attributed)
{
    json_t *value = json_pack("{s:I, s:I}", "processes_in_logs", (json_int_t)attributed->told,
                              "processes_without_figure", (json_int_t)attributed->unknown);

    json_number_set(value, "energy_j", attributed->energy_j, not_known);
    json_number_set(value, "half_width_j", attributed->half_width_j, not_known);
    return value;
}

static const struct shape_field trouble_rows[] = {
    {SHAPE_AT(report_trouble, job), TOLD_ANY_TEXT},
    {SHAPE_AT_AS("reason", report_trouble, text), TOLD_ANY_TEXT},
};

static const struct shape trouble_shape = {SHAPE_OF(report_trouble, trouble_rows)};

static void add_members(struct table *table, const struct report *report)
{
    char date[ISO_TIME_TEXT_MAX];

    table_member(table, "by", json_string(report_keys[report->key]));
    table_member(table, "since", json_string(iso_time_format_us(report->since_us, date)));
    table_member(table, "until", json_string(iso_time_format_us(report->until_us, date)));
    table_member(table, "total", total_value(usage_total(report->usage)));
    if (report->meters != NULL) {
        table_member(table, "meters", meters_value(report));
        table_member(table, "attributed", attributed_value(&report->attributed));
    } else {
        table_member(table, "meters", json_null());
        table_member(table, "meters_unavailable", json_string(report_no_meters));
    }
    table_member(table, "jobs_left_out",
                 shape_tell_list(&trouble_shape, report->troubles, report->trouble_count));
}

/* ---- all of it ---- */

static int emit_summary(const struct cli_call *call, const struct report *report, struct fly_error *out_error)
{
    const struct usage_sums *total = usage_total(report->usage);
    char used[AMOUNT_MAX], metered[AMOUNT_MAX], since[ISO_TIME_TEXT_MAX], until[ISO_TIME_TEXT_MAX];
    char text[1024];
    size_t length;

    length = (size_t)snprintf(text, sizeof text, "\n%s to %s: %s in %llu trial%s of %llu recurrence%s",
                              iso_time_format_us(report->since_us, since),
                              iso_time_format_us(report->until_us, until),
                              amount_energy(total->energy_j, NAN, "", used),
                              (unsigned long long)total->trials, total->trials == 1 ? "" : "s",
                              (unsigned long long)total->recurrences, total->recurrences == 1 ? "" : "s");
    if (report->meters != NULL)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "; the meters of %zu GPU%s counted %s",
                             report->meters->count, report->meters->count == 1 ? "" : "s",
                             amount_energy(report->balance.metered_j, NAN, "", metered));
    if (report->attributed.count > 0)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "; flyballd attributed %s beside trials",
                             amount_energy(report->attributed.energy_j, report->attributed.half_width_j,
                                           amount_plus_minus(), used));
    snprintf(text + length, sizeof text - length, "\n");
    return cli_emit_text(call, text, out_error);
}

/* Prints the table, and for people a line below it. */
static int report_emit(const struct cli_call *call, const struct report *report, struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct meaning columns[REPORT_COLUMNS_MAX];
    struct table *table = report_rows(report, for_people, columns);
    int code;

    add_members(table, report);
    code = cli_emit_table(call, table, out_error);
    if (code == 0 && for_people)
        code = emit_summary(call, report, out_error);
    table_free(table);
    return code;
}

static void note_negative(const struct cli_call *call, const struct report *report,
                          const struct usage_remainder *remainder)
{
    char text[AMOUNT_MAX];
    const char *place = remainder->name[0] != '\0' ? remainder->name : "an unknown place";

    if (remainder->energy_j >= -rounding * (report->balance.metered_j + usage_total(report->usage)->energy_j))
        return;
    amount_energy(-remainder->energy_j, NAN, "", text);
    if (remainder->meters == 0 && report_is_placed(report))
        cli_note(call, "%s used on %s were not metered: none of the records has a GPU of it", text, place);
    else
        cli_note(call,
                 "%s more than the meters counted%s%s are attributed: a record that does not cover the "
                 "whole period, a host without one, or clocks that differ",
                 text, report_is_placed(report) ? " on " : "", report_is_placed(report) ? place : "");
}

/* Prints notes that readers of the figures must know. */
static void report_put_notes(const struct cli_call *call, const struct report *report)
{
    const struct report_meters *meters = report->meters;

    for (size_t i = 0; i < report->trouble_count; i++)
        cli_note(call, "job '%s' is left out: %s", report->troubles[i].job, report->troubles[i].text);
    if (meters == NULL)
        return;
    for (size_t i = 0; i < report->balance.count; i++)
        note_negative(call, report, &report->balance.remainders[i]);
    if (meters->count == 0)
        cli_note(call, "the meters' records have no GPU within the period");
    if (meters->without_figure > 0)
        cli_note(call, "%zu GPUs of the meters' records have no figure", meters->without_figure);
    if (meters->others > 0)
        cli_note(
            call,
            "%zu processors and memories of the meters' records are left out: a trial's energy is that of "
            "its GPUs",
            meters->others);
    if (meters->used.damaged > 0)
        cli_note(call, "%zu lines of flyballd's record are damaged, and left out", meters->used.damaged);
    if (report->attributed.unknown > 0)
        cli_note(call,
                 "the energy of %zu processes is not known apart from others'; it is in what is unattributed",
                 report->attributed.unknown);
    if (meters->recorded.emulated + meters->reports.emulated + meters->used.emulated > 0)
        cli_note(call, "some of the meters are of emulated devices; nothing in them was measured");
}

enum { MEMORY_MAX = 256 << 20 };

static const double us_per_s = 1e6;

static const struct cli_option options[] = {
    {.name = "by",
     .type = CLI_CHOICE,
     .placeholder = "KEY",
     .choices = report_keys,
     .default_text = "user",
     .help = "What a row stands for."},
    {.name = "since",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .default_text = "30d",
     .help = "Begin of the period: so long ago (30d, 12h, 90m), or a date (2026-11-22, 2026-11-22T07:30)."},
    {.name = "until",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "End of the period, likewise; if not given, now."},
    {.name = "meters",
     .type = CLI_TEXT,
     .placeholder = "PATH",
     .help = "What the GPUs' meters counted: a recording of 'flyball record', a report of 'flyball run "
             "--output', a directory of such, or flyballd's directory /var/lib/flyballd; HOST=PATH says on "
             "which host a recording was made. Operands are more of "
             "them."},
};

/* The data of a run of the command. */
struct work {
    const struct cli_call *call;
    struct jobs jobs;
    struct arena arena; /* for the jobs' names and their troubles */
    struct report report;
    struct report_meters meters;
    struct report_trouble *troubles; /* in the arena */
    int64_t end_us;                  /* of the period; if that is now, events of clocks ahead count too */
};

static int read_period(struct work *work, struct fly_error *out_error)
{
    static const char expected[] = "a time as in 30d, 12h, 2026-11-22 or 2026-11-22T07:30";
    const struct cli_call *call = work->call;
    struct report *report = &work->report;
    int64_t now_us = clock_real.date(clock_real.state).ns / 1000;

    if (!report_moment_parse(cli_text(call, "since"), now_us, &report->since_us))
        return cli_value_error(call, "since", cli_text(call, "since"), expected, out_error);
    report->until_us = now_us;
    work->end_us = INT64_MAX;
    if (cli_set(call, "until")) {
        if (!report_moment_parse(cli_text(call, "until"), now_us, &report->until_us))
            return cli_value_error(call, "until", cli_text(call, "until"), expected, out_error);
        work->end_us = report->until_us;
    }
    if (report->until_us <= report->since_us)
        return cli_usage(call, out_error, "the period ends before it begins: --since %s, --until %s",
                         cli_text(call, "since"), cli_set(call, "until") ? cli_text(call, "until") : "now");
    return 0;
}

/* A job that cannot be summed up does not stop the others. */
static int add_job(struct work *work, const struct job_summary *job, struct fly_error *out_error)
{
    struct report *report = &work->report;
    struct fly_error trouble = {.code = 0};
    int code;

    if (job->changed_us < report->since_us)
        return 0;
    code = usage_add_job(report->usage, &work->jobs, job->name, &trouble);
    if (code == FLY_ENOTFOUND) /* it was removed meanwhile */
        return 0;
    if (code == FLY_EUNSUPPORTED || code == FLY_EDATA) {
        work->troubles[report->trouble_count++] =
            (struct report_trouble){job->name, arena_strdup(&work->arena, trouble.text)};
        return work->troubles[report->trouble_count - 1].text != NULL ? 0 : error_no_memory(out_error);
    }
    return code < 0 ? error_set(out_error, code, "job '%s': %s", job->name, trouble.text) : 0;
}

static int add_jobs(struct work *work, struct fly_error *out_error)
{
    const struct usage_options usage_options = {.key = work->report.key,
                                                .since_us = work->report.since_us,
                                                .until_us = work->end_us,
                                                .ends_us = work->report.until_us};
    struct job_list list = {.count = 0};
    int code = usage_new(&usage_options, &work->report.usage, out_error);

    if (code == 0)
        code = store_option_list(&work->jobs, &work->arena, &list, out_error);
    if (code == 0) {
        work->troubles = arena_alloc(&work->arena, list.count + 1, sizeof work->troubles[0]);
        work->report.troubles = work->troubles;
        if (work->troubles == NULL)
            code = error_no_memory(out_error);
    }
    for (size_t i = 0; i < list.count && code == 0; i++)
        code = add_job(work, &list.jobs[i], out_error);
    if (code == 0)
        code = usage_rows(work->report.usage, &work->report.rows, &work->report.row_count, out_error);
    return code;
}

/* What trials used and what flyballd attributed beside them, against what the meters counted. */
static int make_balance(struct work *work, struct fly_error *out_error)
{
    struct report *report = &work->report;
    size_t count = report->row_count + report->attributed.count;
    struct usage_row *rows = arena_alloc(&work->arena, count + 1, sizeof rows[0]);

    if (rows == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count; i++)
        rows[i] = i < report->row_count ? report->rows[i] : report->attributed.rows[i - report->row_count];
    return usage_balance_make(report->key, rows, count, work->meters.gpus, work->meters.count,
                              &report->balance, out_error);
}

static int read_meters(struct work *work, struct fly_error *out_error)
{
    const struct cli_call *call = work->call;
    struct report *report = &work->report;
    int code = report_meters_read(&work->meters, cli_text(call, "meters"), out_error);

    for (size_t i = 0; i < cli_operand_count(call) && code == 0; i++)
        code = report_meters_read(&work->meters, cli_operand(call, i), out_error);
    if (code == 0)
        code = report_meters_sum(&work->meters, report->usage, out_error);
    if (code == 0)
        code = report_attributed_make(report->key, report->usage, &work->meters.used, &report->attributed,
                                      out_error);
    if (code == 0)
        code = make_balance(work, out_error);
    if (code == 0)
        report->meters = &work->meters;
    return code;
}

static int report_jobs(struct work *work, struct fly_error *out_error)
{
    struct report *report = &work->report;
    int code = add_jobs(work, out_error);

    report_meters_init(&work->meters, (double)report->since_us / us_per_s, (double)work->end_us / us_per_s);
    if (code == 0 && cli_set(work->call, "meters"))
        code = read_meters(work, out_error);
    if (code == 0)
        code = report_emit(work->call, report, out_error);
    if (code == 0)
        report_put_notes(work->call, report);
    if (report->meters != NULL)
        usage_balance_deinit(&report->balance);
    report_attributed_deinit(&report->attributed);
    report_meters_deinit(&work->meters);
    usage_free(report->usage);
    return code;
}

static int report_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct work work = {.call = call};
    int code = read_period(&work, out_error);

    if (code == 0 && cli_operand_count(call) > 0 && !cli_set(call, "meters"))
        code = cli_usage(call, out_error, "unexpected operand '%s'; --meters names the meters' records",
                         cli_operand(call, 0));
    if (code == 0)
        code = store_option_open_any(call, &work.jobs, out_error);
    if (code != 0)
        return code;
    work.report.key = (enum usage_key)cli_choice(call, "by");
    arena_init(&work.arena, MEMORY_MAX);
    code = report_jobs(&work, out_error);
    arena_deinit(&work.arena);
    jobs_close(&work.jobs);
    return code;
}

const struct cli_command cmd_report = {
    .words = "report",
    .summary = "add up who used what energy in recurring jobs",
    .paragraphs =
        {"Adds up the energy and the GPU time of the trials of all recurring jobs of a store "
         "within a period, by "
         "user, account, job, host or GPU, with the number of trials, of recurrences that began, "
         "and of outcomes. "
         "A trial counts in each row that has a part in it.",
         "With --meters, the rows 'unattributed' hold what the GPUs' meters counted beyond that: "
         "other programs, "
         "and idling. All rows together are what the meters counted. Without, it reads unknown. By "
         "host and by "
         "GPU each has its own; one is negative where more is attributed than was counted, and a "
         "note says so.",
         "From flyballd's record also come rows 'by flyballd': what it attributed to processes "
         "that held a GPU while no trial did. They are estimates; those of users, of FLYBALL_JOB_NAME, of "
         "hosts and of GPUs.",
         "What lies across a border of the period is cut by the times of the reports around it. "
         "'No energy' are "
         "trials of which no figure is on record; 'cut off' those of which the last part is not, "
         "since they were "
         "killed or fell silent."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&store_options},
    .operands = "[PATH...]",
    .operand_maximum = LINE_OPERANDS_MAX,
    .examples =
        {{"flyball report --by account", "add up the last 30 days by account"},
         {"flyball report --by host --since 2026-11-01 --until 2026-12-01 --meters node1=/var/log/flyball",
          "add up a month, with what was not attributed on each host"}},
    .outputs = {&report_name_quantities, &report_amount_quantities, &report_count_quantities},
    .run = report_run,
};
