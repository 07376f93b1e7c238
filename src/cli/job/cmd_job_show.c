/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a job: its definition, its current settings, and what it saves. */
#include <math.h>

#include "base/text/iso_time.h"
#include "cli/job/job_commands.h"
#include "cli/job/job_show.h"
#include "cli/job/job_view.h"
#include "cli/options/store_option.h"
#include "job/core/definition.h"
#include "job/core/grid_amount.h"
#include "shapes/shape_told.h"
#include "shapes/table.h"

enum { TEXT_MAX = 1 << 20 };

/* A row for each kind of hardware. */
static const struct meaning columns[] = {
    {"hardware", "hardware", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Number of the kind of hardware, from 1."},
    {"gpu_model", "GPU", MEANING_TEXT, 0, NULL, MEANING_FACT, "Model of its GPUs."},
    {"gpu_count", "GPUs", MEANING_WHOLE, 0, NULL, MEANING_FACT, "GPUs of a trial."},
    {"gpu_memory_bytes", "memory", MEANING_WHOLE, 0, "B", MEANING_FACT, "Memory of each GPU."},
    {"world_size", "ranks", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Ranks of a trial."},
    {"baseline_runs", "baseline runs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences that ran the default batch size at the highest limit."},
    {"baseline_failed", "failed", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Those of them that delivered no model."},
    {"baseline_energy_per_model_j", "energy (J)", MEANING_REAL, 0, "J", MEANING_GAUGE,
     "Their energy for each model that they delivered."},
    {"baseline_energy_spread", "spread", MEANING_REAL, 3, NULL, MEANING_GAUGE,
     "Standard deviation of their energies, as a part of the mean."},
    {"baseline_time_per_model_s", "time (s)", MEANING_REAL, 1, "s", MEANING_GAUGE,
     "Their time for each model that they delivered."},
    {"baseline_metric", "metric", MEANING_REAL, 4, NULL, MEANING_GAUGE, "Mean of their final metrics."},
    {"baseline_newest", "newest", MEANING_DATE, 0, NULL, MEANING_FACT, "When the newest of them ended."},
    {"tuned_runs", "tuned runs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences that ran what had been chosen, and searched nothing."},
    {"tuned_failed", "failed", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Those of them that delivered no model."},
    {"tuned_energy_per_model_j", "energy (J)", MEANING_REAL, 0, "J", MEANING_GAUGE,
     "Their energy for each model that they delivered."},
    {"tuned_energy_spread", "spread", MEANING_REAL, 3, NULL, MEANING_GAUGE,
     "Standard deviation of their energies, as a part of the mean."},
    {"tuned_time_per_model_s", "time (s)", MEANING_REAL, 1, "s", MEANING_GAUGE,
     "Their time for each model that they delivered."},
    {"tuned_metric", "metric", MEANING_REAL, 4, NULL, MEANING_GAUGE, "Mean of their final metrics."},
    {"tuned_newest", "newest", MEANING_DATE, 0, NULL, MEANING_FACT, "When the newest of them ended."},
    {"energy_saving_percent", "energy saved %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Energy that a model takes less than by the default."},
    {"energy_saving_low_percent", "from %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Lower end of the 95 % interval of that."},
    {"energy_saving_high_percent", "to %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Upper end of the 95 % interval of that."},
    {"time_saving_percent", "time saved %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Time that a model takes less than by the default."},
    {"time_saving_low_percent", "from %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Lower end of the 95 % interval of that."},
    {"time_saving_high_percent", "to %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Upper end of the 95 % interval of that."},
    {"cost_saving_percent", "score saved %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "How much lower the score of a model is than the default's."},
    {"cost_saving_low_percent", "from %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Lower end of the 95 % interval of that."},
    {"cost_saving_high_percent", "to %", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Upper end of the 95 % interval of that."},
    {"searching_recurrences", "searching", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences that searched."},
    {"searching_failed", "failed", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Those of them that delivered no model."},
    {"exploration_energy_j", "exploration (J)", MEANING_REAL, 0, "J", MEANING_COUNTER,
     "Energy that searching took beyond as many tuned models."},
    {"ahead_energy_j", "ahead (J)", MEANING_REAL, 0, "J", MEANING_COUNTER,
     "Energy that all recurrences but the default's took less than the default did around that time."},
    {"recent_recurrences", "recent", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "The newest of these recurrences, which the next figure is of."},
    {"recent_ahead_energy_j", "ahead (J)", MEANING_REAL, 0, "J", MEANING_COUNTER,
     "Energy that they took less."},
    {"paid_off_since_recurrence", "paid off since", MEANING_WHOLE, 0, NULL, MEANING_FACT,
     "Recurrence, from 0, since which searching has paid off."},
    {"outdated_runs", "outdated runs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences that were tuned for what is not wanted any more, and do not count."},
    {"unknown_runs", "unknown runs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences of which some energy is not known, and which do not count."},
    {"failed_runs", "failed runs", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences that delivered no model."},
    {"earlier_recurrences", "earlier", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences except the default's before the revision that holds, under revisions whose saving is "
     "known. All other figures count from that revision."},
    {"earlier_ahead_energy_j", "ahead (J)", MEANING_REAL, 0, "J", MEANING_COUNTER,
     "Energy that they took less than the default did around that time."},
    {"earlier_unknown_recurrences", "unknown", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences except the default's before that revision, under revisions whose saving is not known."},
    {"guard", "guard", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Why the default runs next in the place of what the policy chooses, or why nothing is held against it."},
    {"anew_since_trial", "anew since", MEANING_WHOLE, 0, NULL, MEANING_FACT,
     "Trial with which learning last began anew, since all scores rose or the search stayed too dear."},
    {"anew_since", "since", MEANING_DATE, 0, NULL, MEANING_FACT, "When that trial was proposed."},
    {"anew_times", "times", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "How often learning began anew."},
};
static const struct quantities quantities = {"a kind of hardware of the job", QUANTITIES(columns)};

static void add_hardware(struct table *table, const struct job_history *history, size_t at)
{
    const struct fly_job_hardware *machine = &history->machines[at];

    table_add_integer(table, (int64_t)at + 1);
    table_add_text(table, machine->gpu_model);
    table_add_integer(table, machine->gpu_count);
    if (machine->gpu_memory_bytes > 0)
        table_add_integer(table, (int64_t)machine->gpu_memory_bytes);
    else
        table_add_unavailable(table, NULL, "nobody said");
    table_add_integer(table, machine->world_size);
}

static void add_group(struct table *table, const struct fly_job_runs *group)
{
    static const char no_model[] = "there is no such run that delivered a model";
    char date[ISO_TIME_TEXT_MAX];

    table_add_integer(table, (int64_t)group->runs);
    table_add_integer(table, (int64_t)group->failed);
    table_add_known(table, group->model_energy_j, no_model);
    table_add_known(table, group->spread, "there are no two such runs");
    table_add_known(table, group->model_time_s, no_model);
    table_add_known(table, group->mean_metric, "not every such run has one");
    if (!isnan(group->newest_unix_s))
        table_add_text(table, iso_time_format_us(llround(group->newest_unix_s * 1e6), date));
    else
        table_add_unavailable(table, NULL, "there is no such run");
}

static void add_saving(struct table *table, const struct fly_job_range *saving, const char *doubt)
{
    table_add_known(table, 100.0 * saving->value, doubt);
    table_add_known(table, 100.0 * saving->low, doubt);
    table_add_known(table, 100.0 * saving->high, doubt);
}

static void add_balance(struct table *table, const struct job_savings *savings, const char *doubt)
{
    const struct saving_balance *balance = &savings->balance;

    table_add_known(table, balance->ahead_j, doubt);
    table_add_integer(table, (int64_t)balance->recent);
    table_add_known(table, balance->recent_ahead_j, doubt);
    if (balance->paid_off)
        table_add_integer(table, (int64_t)balance->paid_off_at);
    else
        table_add_unavailable(table, NULL,
                              !savings->known           ? doubt
                              : balance->ahead_j <= 0.0 ? "it has not paid off yet"
                              : savings->energy.low <= 0.0
                                  ? "whether it has paid off cannot be told from chance"
                                  : "the newest recurrences took more than the default");
}

static void add_earlier(struct table *table, const struct saving_earlier *earlier)
{
    table_add_integer(table, (int64_t)earlier->recurrences);
    table_add_known(table, earlier->ahead_j,
                    earlier->unknown > 0 ? "the saving of no earlier revision is known"
                                         : "nothing ran before the revision that holds");
    table_add_integer(table, (int64_t)earlier->unknown);
}

static void add_searching(struct table *table, const struct job_savings *savings, const char *doubt)
{
    table_add_integer(table, (int64_t)savings->searching);
    table_add_integer(table, (int64_t)savings->searching_failed);
    table_add_known(table, savings->exploration_j, doubt);
    add_balance(table, savings, doubt);
    table_add_integer(table, (int64_t)savings->outdated);
    table_add_integer(table, (int64_t)savings->unknown);
    table_add_integer(table, (int64_t)savings->failed);
}

static void add_savings(struct table *table, const struct job_savings *savings)
{
    const char *doubt =
        savings->known ? "the GPUs' highest power is not known" : saving_doubt_text(savings->doubt);

    add_group(table, &savings->baseline);
    add_group(table, &savings->tuned);
    add_saving(table, &savings->energy, doubt);
    add_saving(table, &savings->time, doubt);
    add_saving(table, &savings->cost, doubt);
    add_searching(table, savings, doubt);
    add_earlier(table, &savings->earlier);
}

static void add_guard(struct table *table, const struct job_guard *guard)
{
    static const char untold[] = "the service is older and does not tell", never[] = "it never did";
    char date[ISO_TIME_TEXT_MAX];

    if (guard != NULL && guard->text[0] != '\0')
        table_add_text(table, guard->text);
    else
        table_add_unavailable(table, NULL, guard != NULL ? "the policy chooses what runs" : untold);
    if (guard != NULL && guard->anew_trial > 0) {
        table_add_integer(table, (int64_t)guard->anew_trial);
        table_add_text(table, iso_time_format_us(guard->anew_us, date));
    } else {
        table_add_unavailable(table, NULL, guard != NULL ? never : untold);
        table_add_unavailable(table, NULL, guard != NULL ? never : untold);
    }
    if (guard != NULL)
        table_add_integer(table, (int64_t)guard->anew_times);
    else
        table_add_unavailable(table, NULL, untold);
}

/* ---- what stands beside the rows ---- */

struct told_failure {
    size_t hardware; /* from 1, as in the rows */
    uint64_t recurrence, trial;
    bool baseline;
    uint32_t batch_size;
    const char *outcome;
};

static const struct shape_field failure_rows[] = {
    {SHAPE_AT(told_failure, hardware), TOLD_SIZE},  {SHAPE_AT(told_failure, recurrence), TOLD_U64},
    {SHAPE_AT(told_failure, trial), TOLD_U64},      {SHAPE_AT(told_failure, baseline), TOLD_BOOL},
    {SHAPE_AT(told_failure, batch_size), TOLD_U32}, {SHAPE_AT(told_failure, outcome), TOLD_ANY_TEXT},
};
static const struct shape failure_shape = {SHAPE_OF(told_failure, failure_rows)};

static json_t *definition_of(const void *from)
{
    return definition_to_json(&((const struct job_shown *)from)->definition);
}

static json_t *objective_of(const void *from)
{
    return objective_to_json(&((const struct job_shown *)from)->objective);
}

static const struct shape_field shown_rows[] = {
    {SHAPE_AT_AS("job", job_shown, definition.name), TOLD_ANY_TEXT},
    {SHAPE_AT(job_shown, recurrences), TOLD_U64},
    {SHAPE_AT(job_shown, trials), TOLD_U64},
    {SHAPE_AT(job_shown, running), TOLD_U64},
    {SHAPE_AT(job_shown, events), TOLD_U64},
    {.name = "definition", TOLD_MADE(definition_of)},
    {.name = "objective", TOLD_MADE(objective_of)},
    {SHAPE_AT(job_shown, control_every), TOLD_U32},
    {SHAPE_AT(job_shown, policy), TOLD_ANY_TEXT},
    {SHAPE_AT(job_shown, recurrences_left), SHAPE_IS_U64(0, INT64_MAX), .null = SHAPE_ZERO},
    {SHAPE_AT(job_shown, revision), TOLD_ANY_TEXT},
    {SHAPE_AT(job_shown, past), TOLD_ANY_TEXT},
    {SHAPE_AT(job_shown, owners), TOLD_TEXT, TOLD_ELSE("the service is older and does not tell")},
};
static const struct shape shown_shape = {SHAPE_OF(job_shown, shown_rows)};

static const struct shape_field pin_rows[] = {
    {SHAPE_AT_AS("batch_size", job_shown, pin_batch_size), TOLD_U32},
    {SHAPE_AT_AS("power_limit_w", job_shown, pin_limit_w), TOLD_NUMBER},
};
static const struct shape pin_shape = {SHAPE_OF(job_shown, pin_rows)};

struct told_show {
    const struct told_failure *newest_failures;
    size_t failure_count;
    const struct job_shown *shown, *pin; /* the pin is NULL where there is none */
    double reference_per_kwh, amount;
    bool in_money, in_grams; /* what the amount is */
    uint64_t trials_with_reference, trials_without_reference;
    const char *wanted_since;   /* NULL: always */
    const char *revision_since; /* NULL: there is none */
};

static const struct shape_field show_rows[] = {
    {SHAPE_AT(told_show, newest_failures),
     SHAPE_IS_STRUCTS(&failure_shape, UINT32_MAX, told_show, failure_count)},
    {SHAPE_AT(told_show, shown), TOLD_MERGED(&shown_shape)},
    {SHAPE_AT(told_show, reference_per_kwh), TOLD_NUMBER},
    {SHAPE_AT_AS("money", told_show, amount), TOLD_NUMBER, SHAPE_IF(told_show, in_money)},
    {SHAPE_AT_AS("carbon_g", told_show, amount), TOLD_NUMBER, SHAPE_IF(told_show, in_grams)},
    {SHAPE_AT(told_show, trials_with_reference), TOLD_U64},
    {SHAPE_AT(told_show, trials_without_reference), TOLD_U64},
    {SHAPE_AT(told_show, wanted_since), TOLD_TEXT},
    {SHAPE_AT(told_show, revision_since), TOLD_TEXT, TOLD_ELSE("no revision was told")},
    {SHAPE_AT(told_show, pin), TOLD_POINTED(&pin_shape)},
};
static const struct shape show_shape = {SHAPE_OF(told_show, show_rows)};

struct showing {
    struct job_view view;
    struct job_shown shown;
    struct job_savings *savings;   /* in the order of the machines */
    struct told_failure *failures; /* for all hardware: the newest of each */
    size_t failure_count;
};

static void add_members(struct table *table, const struct showing *showing)
{
    const struct job_history *history = &showing->view.history;
    const struct job_shown *shown = &showing->shown;
    struct job_grid_sum sum = job_history_grid_sum(history);
    bool money = job_counts_money(&history->definition);
    const struct job_brought_past *revision = job_history_revision(history, history->revision);
    char date[ISO_TIME_TEXT_MAX], began[ISO_TIME_TEXT_MAX];
    const struct told_show told = {
        .newest_failures = showing->failures,
        .failure_count = showing->failure_count,
        .shown = shown,
        .pin = shown->pin_batch_size > 0 ? shown : NULL,
        .reference_per_kwh = history->reference_per_kwh,
        .amount = sum.amount,
        .in_money = money,
        .in_grams = !money,
        .trials_with_reference = sum.known,
        .trials_without_reference = sum.unknown,
        .wanted_since = history->wanted_us != 0 ? iso_time_format_us(history->wanted_us, date) : NULL,
        .revision_since = revision != NULL ? iso_time_format_us(revision->time_us, began) : NULL,
    };

    table_members(table, &show_shape, &told);
}

static int emit_text(const struct cli_call *call, const struct showing *showing, struct fly_error *out_error)
{
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    job_show_first(&showing->shown, &showing->view.history, showing->savings, &text);
    if (cli_flag(call, "verbose")) {
        buffer_puts(&text, "\n");
        job_show_text(&showing->shown, &showing->view.history, showing->savings, &text);
    }
    code = text.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

static int emit_rows(const struct cli_call *call, const struct showing *showing, struct fly_error *out_error)
{
    struct table *table = table_new("flyball.job.show/3", columns, quantities.count);
    int code;

    for (size_t i = 0; i < showing->view.history.machine_count; i++) {
        const struct job_savings *savings = &showing->savings[i];

        add_hardware(table, &showing->view.history, i);
        add_savings(table, savings);
        add_guard(table, i < showing->shown.guard_count ? &showing->shown.guards[i] : NULL);
    }
    add_members(table, showing);
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}

static int gather_failures(struct showing *showing, struct fly_error *out_error)
{
    size_t machines = showing->view.history.machine_count;

    showing->failure_count = 0;
    showing->failures =
        arena_alloc(&showing->view.arena, machines * SAVING_FAILURES_MAX + 1, sizeof showing->failures[0]);
    if (showing->failures == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < machines; i++) {
        for (size_t k = 0; k < showing->savings[i].failure_count; k++) {
            const struct saving_failure *failure = &showing->savings[i].failures[k];

            showing->failures[showing->failure_count++] =
                (struct told_failure){i + 1,
                                      failure->recurrence,
                                      failure->trial,
                                      failure->of_baseline,
                                      failure->batch_size,
                                      job_outcome_name(failure->outcome)};
        }
    }
    return 0;
}

/* Reads the current settings, and what each machine's trials show. */
static int look(struct showing *showing, struct fly_error *out_error)
{
    struct job_view *view = &showing->view;
    int code =
        view->jobs.backend->show(view->jobs.self, view->name, &view->arena, &showing->shown, out_error);

    showing->savings = arena_alloc(&view->arena, view->history.machine_count + 1, sizeof showing->savings[0]);
    if (code == 0 && showing->savings == NULL)
        code = error_no_memory(out_error);
    for (size_t i = 0; i < view->history.machine_count && code == 0; i++)
        code = job_savings_of(&view->history, i, &showing->savings[i], out_error);
    return code == 0 ? gather_failures(showing, out_error) : code;
}

static int job_show_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct showing showing;
    int code = job_view_read(call, 0, &showing.view, out_error);

    if (code != 0)
        return code;
    code = look(&showing, out_error);
    if (code == 0)
        code = cli_format(call) == TABLE_FORMAT_TABLE ? emit_text(call, &showing, out_error)
                                                      : emit_rows(call, &showing, out_error);
    job_view_close(&showing.view);
    return code;
}

const struct cli_command cmd_job_show = {
    .words = "job show",
    .summary = "show a recurring job and what it saves",
    .paragraphs =
        {"Says what the job saves, what it runs now and what its default took. With -v it shows what the job "
         "is, what is wanted of it, and for each kind of hardware what it saves "
         "against the default batch size at the highest power limit, with a 95 % interval: measured, never "
         "assumed. The saving is that of each model delivered: what recurrences took that delivered none "
         "counts, and they are named.",
         "Each run of the default is compared with the recurrences around it, so that slow changes of data "
         "or "
         "machines are not taken for savings. Below four runs of the default among the others, or where it "
         "ran at some times alone, the saving is unknown; 'flyball job set JOB --control-every N' "
         "makes "
         "the job measure the default now and then. What searching took is stated apart, and since which "
         "recurrence it has paid off.",
         "JSON and CSV count recurrences from 0, the text from 1."},
    .shared = {&store_options},
    .operands = "JOB",
    .operand_maximum = 1,
    .examples = {{"flyball job show digits", "say what a job saves"},
                 {"flyball job show digits -v", "show all that is known of it"},
                 {"flyball job show digits --format json", "tell a program about it"}},
    .outputs = {&quantities},
    .run = job_show_run,
};
