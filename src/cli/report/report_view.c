/* SPDX-License-Identifier: Apache-2.0 */
/* What a report has besides its rows: members for programs, a summary and notes for people. */
#include "cli/report/report_view.h"

#include <math.h>
#include <stdio.h>

#include "base/text/iso_time.h"
#include "cli/kit/amount.h"
#include "shapes/json_number.h"
#include "shapes/shape_told.h"

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

int report_emit(const struct cli_call *call, const struct report *report, struct fly_error *out_error)
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

void report_put_notes(const struct cli_call *call, const struct report *report)
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
