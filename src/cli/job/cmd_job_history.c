/* SPDX-License-Identifier: Apache-2.0 */
/* The trials of a job. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/iso_time.h"
#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/kit/amount.h"
#include "cli/options/store_option.h"
#include "job/core/grid_amount.h"
#include "job/core/job_words.h"
#include "shapes/shape_told.h"
#include "shapes/table.h"

static const struct cli_option options[] = {
    {.name = "last",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1e12,
     .help = "Show the newest trials alone, so many of them."},
};

static const struct meaning columns[] = {
    {"trial", "trial", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Number of the trial in the job's log."},
    {"recurrence", "recurrence", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Number of the recurrence, from 0."},
    {"try", "try", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Number of the try within its recurrence, from 0."},
    {"batch_size", "batch", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Global batch size that it ran with."},
    {"power_limit_w", "limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
     "Power limit of each GPU that it ran with."},
    {"reason", "reason", MEANING_TEXT, 0, NULL, MEANING_FACT, "Why this batch size and limit were chosen."},
    {"outcome", "outcome", MEANING_TEXT, 0, NULL, MEANING_FACT, "How it ended, or that it runs."},
    {"epochs", "epochs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Epochs that were reported."},
    {"metric", "metric", MEANING_REAL, 4, NULL, MEANING_GAUGE, "Metric of the last epoch."},
    {"energy_j", "energy (J)", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_COUNTER,
     "Energy of its GPUs until it reached its target or ended."},
    {"time_s", "time (s)", MEANING_REAL, MEANING_DIGITS(3), "s", MEANING_COUNTER,
     "Time until it reached its target or ended."},
    {"cost_j", "score", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_COUNTER,
     "Score of that energy and time by the job's objective."},
    {"begun", "begun", MEANING_DATE, 0, NULL, MEANING_FACT, "When it was proposed."},
    /* Only for programs. */
    {"whole_energy_j", "whole (J)", MEANING_REAL, 0, "J", MEANING_COUNTER,
     "Energy of its GPUs until its end, which may be after the target."},
    {"whole_time_s", "whole (s)", MEANING_REAL, 1, "s", MEANING_COUNTER, "Time until its end."},
    {"ended", "ended", MEANING_DATE, 0, NULL, MEANING_FACT, "When it ended."},
    {"stop", "stop", MEANING_TEXT, 0, NULL, MEANING_FACT, "Why it was told to stop."},
    {"attempts", "attempts", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Times that it was begun or resumed."},
    {"late", "late", MEANING_WHOLE, 0, NULL, MEANING_FACT,
     "1 if it had expired and ended after all, else 0."},
    {"profiled", "profiled", MEANING_WHOLE, 0, NULL, MEANING_FACT,
     "1 if it measured a power profile, else 0."},
    {"hardware", "hardware", MEANING_WHOLE, 0, NULL, MEANING_FACT,
     "Number of its kind of hardware, from 1, as 'flyball job show' counts them."},
    {"gpu_model", "GPU", MEANING_TEXT, 0, NULL, MEANING_FACT, "Model of its GPUs."},
    {"gpu_count", "GPUs", MEANING_WHOLE, 0, NULL, MEANING_FACT, "GPUs that it ran on."},
    {"user", "user", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Who ran it: uid:NUMBER or token:NAME; said:NAME where only the program or an import said so."},
    {"account", "account", MEANING_TEXT, 0, NULL, MEANING_FACT, "Account that it was charged to."},
    {"host", "host", MEANING_TEXT, 0, NULL, MEANING_FACT, "Machine that it ran on."},
    {"gpus", "GPU UUIDs", MEANING_TEXT, 0, NULL, MEANING_FACT, "UUIDs of its GPUs."},
    {"cause", "cause", MEANING_TEXT, 0, NULL, MEANING_FACT, "A word on the cause of its end."},
    {"reference_per_kwh", "reference", MEANING_REAL, 4, NULL, MEANING_GAUGE,
     "Mean of the grid's figures that was frozen when it ended, in grams or money."},
    {"carbon_g", "CO2 (g)", MEANING_REAL, 3, "g", MEANING_COUNTER, "CO2 of its energy, by that mean."},
    {"money", "money", MEANING_REAL, 6, "money", MEANING_COUNTER, "Money for its energy, by that mean."},
    {"whole_carbon_g", "whole CO2 (g)", MEANING_REAL, 3, "g", MEANING_COUNTER,
     "CO2 of its whole energy, by that mean."},
    {"whole_money", "whole money", MEANING_REAL, 6, "money", MEANING_COUNTER,
     "Money for its whole energy, by that mean."},
    {"revision", "revision", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Revision under which it ran, as --revision told it; empty before the first."},
    {"brought", "brought", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "What came along to the job right before it: from other hardware, another job or before a revision."},
    {"startup_energy_j", "start-up (J)", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_COUNTER,
     "Energy of its GPUs before its first step, which belongs to no epoch."},
    {"startup_time_s", "start-up (s)", MEANING_REAL, MEANING_DIGITS(3), "s", MEANING_COUNTER,
     "Time before its first step, which belongs to no epoch."},
};
static const struct quantities quantities = {"a trial", QUANTITIES(columns)};
enum {
    COLUMN_COUNT = sizeof columns / sizeof columns[0],
    SHARED_COUNT = 13,
    STARTUP_COUNT = 2, /* the last columns; for people they follow the shared ones */
    BROUGHT_MAX = 2 * JOB_BROUGHT_TEXT_MAX,
    TEXT_MAX = 1 << 20
};

/* The last column for people, of a job that names a grid; it depends on whether the job counts money. */
static const struct meaning amount_columns[] = {
    {"carbon_g", "CO2 (g)", MEANING_REAL, 3, "g", MEANING_COUNTER, "CO2 of its energy, by that mean."},
    {"money", "money", MEANING_REAL, 6, "money", MEANING_COUNTER, "Money for its energy, by that mean."}};

/* What a trial took so far, which nobody knows before its first report. */
static void add_taken(struct table *table, const struct job_row *row, double value, const char *otherwise)
{
    if (job_row_is_untold(row))
        table_add_unavailable(table, "-", "it has reported no epoch yet");
    else
        table_add_known(table, value, otherwise);
}

/* People count recurrences and tries from 1, programs from 0. */
static void add_shared(struct table *table, const struct job_row *row, bool for_people)
{
    char date[ISO_TIME_TEXT_MAX];

    table_add_integer(table, (int64_t)row->trial.trial);
    table_add_integer(table, (int64_t)row->trial.recurrence + for_people);
    table_add_integer(table, (int64_t)row->trial.try_number + for_people);
    table_add_integer(table, row->trial.batch_size);
    table_add_known(table, row->trial.limit_w, "no limit was set, or its profile is not measured yet");
    table_add_text(table, job_reason_name(row->reason));
    table_add_text(table, for_people ? job_row_said(row) : job_row_outcome(row));
    table_add_integer(table, row->trial.epochs);
    table_add_known(table, row->trial.metric, "none was reported");
    add_taken(table, row, row->trial.energy_j, "no energy was reported");
    add_taken(table, row, row->trial.time_s, "");
    add_taken(table, row, row->trial.cost_j,
              isnan(row->trial.energy_j) ? "no energy was reported" : "the GPUs' highest power is not known");
    table_add_text(table, iso_time_format_us(row->proposed_us, date));
}

static const char no_reference[] = "what a kWh came to in its grid was not known";

/* Adds grams, or money: a grid has one of the two. */
static void add_amount(struct table *table, const struct job_history *history, double amount)
{
    bool money = job_counts_money(&history->definition);

    table_add_known(table, money ? NAN : amount, money ? "the job counts money" : no_reference);
    table_add_known(table, money ? amount : NAN, money ? no_reference : "the job does not count money");
}

/* Says what came along between a trial and the one before it. */
static void add_brought(struct table *table, const struct job_history *history, uint64_t trial)
{
    char text[BROUGHT_MAX] = "", one[JOB_BROUGHT_TEXT_MAX];

    for (size_t i = 0; i < history->brought_count; i++) {
        size_t length = strlen(text);

        if (history->brought[i].before == trial)
            snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? "; " : "",
                     job_brought_text(&history->brought[i], one));
    }
    if (text[0] != '\0')
        table_add_text(table, text);
    else
        table_add_unavailable(table, NULL, "nothing came along right before it");
}

static void add_revision(struct table *table, const struct job_history *history, size_t number)
{
    const struct job_brought_past *revision = job_history_revision(history, number);

    table_add_text(table, revision != NULL ? revision->revision : "");
}

static void add_startup(struct table *table, const struct job_row *row)
{
    static const char otherwise[] = "no report said when its first step began";

    table_add_known(table, row->startup_energy_j, otherwise);
    table_add_known(table, row->startup_time_s, otherwise);
}

static void add_rest(struct table *table, const struct job_history *history, const struct job_row *row)
{
    const struct fly_job_hardware *machine = &history->machines[row->machine];
    char date[ISO_TIME_TEXT_MAX];

    add_taken(table, row, row->trial.whole_energy_j, "no energy was reported");
    add_taken(table, row, row->trial.whole_time_s, "");
    if (row->ended_us > 0)
        table_add_text(table, iso_time_format_us(row->ended_us, date));
    else
        table_add_unavailable(table, NULL, "it runs");
    table_add_text(table, job_stop_name(row->stop));
    table_add_integer(table, row->trial.attempts);
    table_add_integer(table, row->trial.late);
    table_add_integer(table, row->trial.profiled);
    table_add_integer(table, (int64_t)row->machine + 1);
    table_add_text(table, machine->gpu_model);
    table_add_integer(table, machine->gpu_count);
    table_add_text(table, row->trial.user);
    table_add_text(table, row->trial.account);
    table_add_text(table, row->trial.host);
    table_add_text(table, row->trial.gpus);
    table_add_text(table, row->trial.cause);
    table_add_known(table, row->reference_per_kwh, no_reference);
    add_amount(table, history, row->grid_amount);
    add_amount(table, history, row->run_grid_amount);
    add_revision(table, history, row->revision);
    add_brought(table, history, row->trial.trial);
    add_startup(table, row);
}

/* ---- what came along ---- */

struct told_brought {
    const char *from, *source, *revision, *gpu_model;
    uint64_t before_trial, runs;
    size_t batch_sizes;
    char date[ISO_TIME_TEXT_MAX], text[JOB_BROUGHT_TEXT_MAX];
};

static const struct shape_field brought_rows[] = {
    {SHAPE_AT(told_brought, before_trial), TOLD_U64},
    {SHAPE_AT(told_brought, date), TOLD_CHARS(told_brought, date)},
    {SHAPE_AT(told_brought, from), TOLD_ANY_TEXT},
    {SHAPE_AT(told_brought, source), TOLD_ANY_TEXT},
    {SHAPE_AT(told_brought, revision), TOLD_TEXT, TOLD_ELSE("it was no revision")},
    {SHAPE_AT(told_brought, gpu_model), TOLD_TEXT, TOLD_ELSE("it came along for all hardware")},
    {SHAPE_AT(told_brought, runs), TOLD_U64},
    {SHAPE_AT(told_brought, batch_sizes), TOLD_SIZE},
    {SHAPE_AT(told_brought, text), TOLD_CHARS(told_brought, text)},
};
static const struct shape brought_shape = {SHAPE_OF(told_brought, brought_rows)};

struct told_history {
    const char *job;
    const struct told_brought *brought;
    size_t brought_count;
};

static const struct shape_field history_rows[] = {
    {SHAPE_AT(told_history, job), TOLD_ANY_TEXT},
    {SHAPE_AT(told_history, brought),
     SHAPE_IS_STRUCTS(&brought_shape, UINT32_MAX, told_history, brought_count)},
};
static const struct shape history_shape = {SHAPE_OF(told_history, history_rows)};

/* What stands beside the rows; it does not depend on --last. */
static int add_members(struct table *table, const struct job_history *history, struct fly_error *out_error)
{
    struct told_brought *told = calloc(history->brought_count + 1, sizeof told[0]);

    if (told == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < history->brought_count; i++) {
        const struct job_brought_past *past = &history->brought[i];

        told[i] = (struct told_brought){.from = job_past_words[past->kind],
                                        .source = past->source,
                                        .revision = past->revision,
                                        .gpu_model = past->gpu_model,
                                        .before_trial = past->before,
                                        .runs = past->runs,
                                        .batch_sizes = past->batch_count};
        iso_time_format_us(past->time_us, told[i].date);
        job_brought_text(past, told[i].text);
    }
    table_members(table, &history_shape,
                  &(struct told_history){history->definition.name, told, history->brought_count});
    free(told);
    return 0;
}

/* For people, below the trials: what came along before those that are shown, or after the newest. */
static int emit_brought(const struct cli_call *call, const struct job_history *history, uint64_t first,
                        struct fly_error *out_error)
{
    char date[ISO_TIME_TEXT_MAX], words[JOB_BROUGHT_TEXT_MAX];
    struct buffer text;
    int code = 0;

    buffer_init(&text, TEXT_MAX);
    for (size_t i = 0; i < history->brought_count; i++) {
        const struct job_brought_past *past = &history->brought[i];

        if (past->before < first)
            continue;
        buffer_printf(&text, "%sBefore trial %" PRIu64 ", on %s: %s.\n",
                      text.length == 0 && history->count > 0 ? "\n" : "", past->before,
                      iso_time_format_us(past->time_us, date), job_brought_text(past, words));
    }
    if (text.error < 0)
        code = error_no_memory(out_error);
    else if (text.length > 0)
        code = cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

/* Whether a trial from this one on told of its start-up: only then people see its columns. */
static bool tells_startup(const struct job_history *history, size_t first)
{
    for (size_t i = first; i < history->count; i++) {
        if (!isnan(history->rows[i].startup_time_s))
            return true;
    }
    return false;
}

static int emit(const struct cli_call *call, const struct job_history *history, struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    bool of_grid = history->definition.grid != NULL && history->definition.grid[0] != '\0';
    struct meaning shown[COLUMN_COUNT];
    size_t first = 0, count = COLUMN_COUNT;
    struct table *table;
    uint64_t first_trial;
    bool startup;
    int code;

    if (cli_set(call, "last") && (uint64_t)cli_integer(call, "last") < history->count)
        first = history->count - (size_t)cli_integer(call, "last");
    startup = tells_startup(history, first);
    memcpy(shown, columns, sizeof columns);
    if (for_people) {
        count = SHARED_COUNT;
        for (size_t i = 0; startup && i < STARTUP_COUNT; i++)
            shown[count++] = columns[COLUMN_COUNT - STARTUP_COUNT + i];
        if (of_grid)
            shown[count++] = amount_columns[job_counts_money(&history->definition)];
    }
    table = table_new("flyball.job.history/2", shown, count);
    for (size_t i = first; i < history->count; i++) {
        add_shared(table, &history->rows[i], for_people);
        if (!for_people)
            add_rest(table, history, &history->rows[i]);
        else if (startup)
            add_startup(table, &history->rows[i]);
        if (for_people && of_grid)
            table_add_known(table, history->rows[i].grid_amount, no_reference);
    }
    code = add_members(table, history, out_error);
    if (code == 0 && for_people && history->count == 0) {
        cli_note(call, "job '%s' has not run yet", history->definition.name);
    } else if (code == 0) {
        code = cli_emit_table(call, table, out_error);
    }
    table_free(table);
    first_trial = history->count > 0 ? history->rows[first].trial.trial : 0;
    if (code == 0 && for_people)
        code = emit_brought(call, history, first_trial > 1 ? first_trial : 0, out_error);
    return code;
}

static int job_history_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct job_view view;
    uint64_t newest = cli_set(call, "last") ? (uint64_t)cli_integer(call, "last") : 0;
    int code = job_view_read(call, newest, &view, out_error);

    if (code < 0)
        return code;
    code = emit(call, &view.history, out_error);
    job_view_close(&view);
    return code;
}

const struct cli_command cmd_job_history = {
    .words = "job history",
    .summary = "list the trials of a recurring job",
    .paragraphs =
        {"Lists every trial of a job: its recurrence and try, what it ran and why, how it ended, "
         "its epochs and the metric of the last one, and the energy and time until it reached its "
         "target or ended. What it took before its first step, for imports, data and compilation, is a part "
         "of "
         "both and stands apart as well. A program that failed before its first step is listed as "
         "nothing_learnt.",
         "Below them are what came along to the job from elsewhere, by --like, --revision or from other "
         "hardware, and before which trial.",
         "CSV and JSON also tell what the whole run took, which may go on after the target, and "
         "where and for whom it ran; there recurrences and tries are counted from 0, in the table from 1.",
         "Of a job that names a grid a further column has the grams of CO2, or the money, of that "
         "energy, by the mean of the grid's figures that was frozen when the trial ended. What "
         "really was emitted, hour by hour, is told by 'flyball carbon report'."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&store_options},
    .operands = "JOB",
    .operand_maximum = 1,
    .examples = {{"flyball job history digits --last 20", "show the newest trials"},
                 {"flyball job history digits --format csv > digits.csv", "take all of them along"}},
    .outputs = {&quantities},
    .run = job_history_run,
};
