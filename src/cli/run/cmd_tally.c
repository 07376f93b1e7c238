/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/frame/call.h"
#include "cli/frame/parse.h"
#include "cli/kit/amount.h"
#include "cli/run/run_commands.h"
#include "device/device_meanings.h"
#include "meter/tally/run_reports.h"
#include "shapes/shape_told.h"

static const struct cli_option options[] = {
    {.name = "job",
     .type = CLI_TEXT,
     .placeholder = "ID",
     .help = "Add up only the reports of this job, as their field job.id names it."},
};

static const struct meaning columns[] = {
    {"node", "node", MEANING_TEXT, 0, NULL, MEANING_FACT, "Machine of the device, by the reports."},
    DEVICE_KIND,
    DEVICE_UUID,
    {"windows", "windows", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Measured windows that were added up."},
    {"time_s", "time (s)", MEANING_REAL, 1, "s", MEANING_COUNTER,
     "Time that the windows cover, each moment once."},
    {"energy_j", "energy (J)", MEANING_REAL, 1, "J", MEANING_COUNTER, "Energy of the device in that time."},
    {"uncertainty_j", "+/- (J)", MEANING_REAL, 1, "J", MEANING_GAUGE,
     "Half width of the 95 % interval of that energy."},
    {"unknown_s", "without a figure (s)", MEANING_REAL, 1, "s", MEANING_COUNTER,
     "Part of that time for which no window has a figure."},
};
static const struct quantities quantities = {"a device of a machine", QUANTITIES(columns)};

struct total {
    double energy_j, uncertainty_j;
    size_t devices, without_bound, unavailable;
    int64_t ranks, missing_ranks; /* of the groups that know how many there are; -1: none does */
};

static const char no_figure[] = "no report has a figure",
                  no_size[] = "no report states how many ranks there are";

static void add_row(struct table *table, const struct tally_device *device)
{
    bool known = !isnan(device->energy_j);

    table_add_text(table, device->node);
    table_add_text(table, device_kind_name(device->kind));
    table_add_text(table, device->uuid);
    table_add_integer(table, (int64_t)device->windows);
    table_add_real(table, device->time_s);
    if (known)
        table_add_real(table, device->energy_j);
    else
        table_add_unavailable(table, NULL, "no report has a figure for it");
    if (known && !device->without_bound)
        table_add_real(table, device->uncertainty_j);
    else
        table_add_unavailable(table, known ? "unknown" : NULL,
                              known ? "a part is an estimate, for which no bound is stated"
                                    : "no report has a figure for it");
    table_add_real(table, device->unknown_s);
}

static void add_to_total(const struct tally_device *device, struct total *total)
{
    if (isnan(device->energy_j)) {
        total->unavailable++;
        return;
    }
    total->devices++;
    total->energy_j += device->energy_j;
    total->uncertainty_j += device->uncertainty_j;
    total->without_bound += device->without_bound;
}

static void add_group(const struct rank_group *group, struct total *total)
{
    if (group->missing < 0)
        return;
    total->ranks = (total->ranks < 0 ? 0 : total->ranks) + group->world_size;
    total->missing_ranks = (total->missing_ranks < 0 ? 0 : total->missing_ranks) + group->missing;
}

static const struct shape_field total_rows[] = {
    {SHAPE_AT(total, energy_j), TOLD_NUMBER, TOLD_ELSE(no_figure)},
    {SHAPE_AT(total, uncertainty_j), TOLD_NUMBER, TOLD_ELSE(no_figure)},
    {SHAPE_AT(total, devices), TOLD_SIZE},
    {SHAPE_AT_AS("devices_without_bound", total, without_bound), TOLD_SIZE},
    {SHAPE_AT_AS("devices_unavailable", total, unavailable), TOLD_SIZE},
    {SHAPE_AT(total, ranks), TOLD_I64, TOLD_ELSE(no_size)},
    {SHAPE_AT(total, missing_ranks), TOLD_I64, TOLD_ELSE(no_size)},
};
static const struct shape total_shape = {SHAPE_OF(total, total_rows)};

static json_t *total_value(const struct total *total)
{
    struct total told = *total;

    if (total->devices == 0)
        told.energy_j = told.uncertainty_j = NAN;
    return shape_tell(&total_shape, &told);
}

/* ---- ranks ---- */

static const struct shape_field group_rows[] = {
    {SHAPE_AT(rank_group, job), TOLD_TEXT},
    {SHAPE_AT(rank_group, step), TOLD_TEXT},
    {SHAPE_AT_AS("ranked_by", rank_group, ranked), TOLD_TEXT},
    {SHAPE_AT(rank_group, world_size), TOLD_I32, TOLD_ELSE(no_size)},
    {SHAPE_AT(rank_group, reported), TOLD_I32},
    {SHAPE_AT(rank_group, missing), TOLD_I32, TOLD_ELSE(no_size)},
    {SHAPE_AT_AS("missing_ranks", rank_group, which), TOLD_CHARS(rank_group, which)},
};
static const struct shape group_shape = {SHAPE_OF(rank_group, group_rows)};

static void note_missing(const struct cli_call *call, const struct rank_group *group)
{
    if (group->missing > 0)
        cli_warn(call,
                 "%d of %d ranks of job '%s' have no report here (%s); what only they measured is missing "
                 "from the sum; with 'flyball run --output run-%%t.json' each writes a file of its own",
                 group->missing, group->world_size, group->job, group->which);
}

static int emit_total(const struct cli_call *call, const struct run_reports *reports,
                      const struct total *total, struct fly_error *out_error)
{
    char energy[AMOUNT_MAX], missing[2 * AMOUNT_MAX] = "";
    char text[8 * AMOUNT_MAX];

    if (cli_format(call) != TABLE_FORMAT_TABLE)
        return 0;
    if (total->missing_ranks > 0)
        snprintf(missing, sizeof missing, "; %lld of %lld ranks are missing", (long long)total->missing_ranks,
                 (long long)total->ranks);
    if (total->devices == 0)
        snprintf(text, sizeof text, "\nno energy is known, of %zu reports%s\n", reports->count, missing);
    else
        snprintf(text, sizeof text, "\n%s of %zu devices%s, in %zu reports%s\n",
                 amount_energy(total->energy_j, total->uncertainty_j, amount_plus_minus(), energy),
                 total->devices, total->without_bound > 0 ? ", some without a bound" : "", reports->count,
                 missing);
    return cli_emit_text(call, text, out_error);
}

/* Prints notes on the sum that are no errors. */
static void put_notes(const struct cli_call *call, const struct run_reports *reports,
                      const struct tally *tally)
{
    if (reports->job_count > 1)
        cli_note(call, "the reports are of %s%zu jobs, '%s', '%s' among them; --job adds up one of them",
                 reports->job_count == RUN_JOBS_MAX ? "at least " : "", reports->job_count, reports->jobs[0],
                 reports->jobs[1]);
    if (reports->emulated > 0)
        cli_note(call, "%zu of %zu windows are of emulated devices; nothing in them was measured",
                 reports->emulated, reports->window_count);
    for (size_t i = 0; i < tally->count; i++) {
        const struct tally_device *device = &tally->devices[i];

        if (device->counted_twice > 0)
            cli_note(call,
                     "%s on %s: %zu windows overlap others that count it too (two jobs on one device, or "
                     "processes that could not see each other's locks); the time is counted once here",
                     device->uuid, device->node, device->counted_twice);
    }
}

static int emit(const struct cli_call *call, const struct run_reports *reports, const struct tally *tally,
                const struct rank_group *groups, size_t group_count, struct fly_error *out_error)
{
    struct table *table = table_new("flyball.tally/1", columns, quantities.count);
    struct total total = {.ranks = -1, .missing_ranks = -1};
    int result;

    for (size_t i = 0; i < tally->count; i++) {
        add_row(table, &tally->devices[i]);
        add_to_total(&tally->devices[i], &total);
    }
    table_member(table, "reports", json_integer((json_int_t)reports->count));
    table_member(table, "jobs", shape_tell_texts((const char *const *)reports->jobs, reports->job_count));
    for (size_t i = 0; i < group_count; i++)
        add_group(&groups[i], &total);
    table_member(table, "total", total_value(&total));
    table_member(table, "ranks", shape_tell_list(&group_shape, groups, group_count));
    result = cli_emit_table(call, table, out_error);
    if (result == 0)
        result = emit_total(call, reports, &total, out_error);
    table_free(table);
    return result;
}

static int read_all(const struct cli_call *call, struct run_reports *reports, struct fly_error *out_error)
{
    const char *job = cli_text(call, "job");

    for (size_t i = 0; i < cli_operand_count(call); i++) {
        int result = run_reports_read(reports, cli_operand(call, i), job, out_error);

        if (result < 0)
            return result;
    }
    if (reports->count > 0)
        return 0;
    if (job != NULL && reports->passed_over > 0)
        return error_set(out_error, FLY_ENOTFOUND,
                         "none of %zu reports is of job '%s'; their field job.id names it",
                         reports->passed_over, job);
    return error_set(out_error, FLY_ENOTFOUND,
                     "there is no report in what was named; give files of 'flyball run --output', or "
                     "directories with files *.json");
}

static int tally_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct run_reports reports;
    struct rank_group *groups = NULL;
    struct tally tally;
    size_t count;
    int result;

    if (cli_operand_count(call) == 0)
        return cli_usage(call, out_error, "no report named");
    run_reports_init(&reports);
    result = read_all(call, &reports, out_error);
    if (result == 0 && ranks_group(reports.ranks, reports.rank_count, &groups, &count) < 0)
        result = error_no_memory(out_error);
    if (result == 0)
        result = tally_make(reports.windows, reports.window_count, &tally, out_error);
    if (result == 0) {
        result = emit(call, &reports, &tally, groups, count, out_error);
        put_notes(call, &reports, &tally);
        for (size_t i = 0; i < count; i++)
            note_missing(call, &groups[i]);
        tally_deinit(&tally);
    }
    free(groups);
    run_reports_deinit(&reports);
    return result;
}

const struct cli_command cmd_tally = {
    .words = "tally",
    .summary = "add up the reports of a job's ranks and nodes",
    .paragraphs =
        {"Adds up reports that 'flyball run --output' wrote: each device of each node at each moment once, "
         "however many ranks and nested commands measured it. Operands are reports, or directories of which "
         "all files *.json are reports.",
         "Windows of one device that overlap: those that were counted by whoever measured them go first, and "
         "of these the longer ones; a window adds only the time outside of those before it, at its mean "
         "power, and by as much as that adds the uncertainty grows. Moments are dates of a node's clock.",
         "Uncertainties add up, since the errors of sensors may have one cause. The error of the boards' "
         "sensors themselves is not included; a report names it.",
         "Reports name the rank of their process and how many there are, as its scheduler or launcher says. "
         "Ranks without a report are counted and named, since devices that only they measured are in no "
         "sum."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "FILE...",
    .operand_maximum = LINE_OPERANDS_MAX,
    .examples = {{"flyball tally run-0.json run-1.json", "add up two ranks"},
                 {"flyball tally --job slurm-4711 reports", "add up the reports of one job in a directory"}},
    .outputs = {&quantities},
    .run = tally_run,
};
