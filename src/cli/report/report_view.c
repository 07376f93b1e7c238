/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report/report_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/kit/amount.h"
#include "shapes/json_number.h"

const char *const report_keys[USAGE_KEYS + 1] = {"user", "account", "job", "host", "gpu", NULL};

static const char no_meters[] = "no meters' record given; --meters names recordings of 'flyball record'";

enum { COLUMNS_MAX = 24, NAME_SIZE = 192 };

/* A negative remainder of less than this part of what was counted is one of rounding. */
static const double rounding = 1e-9;

/* ---- columns ---- */

enum audience { EVERYBODY, PROGRAMS, PEOPLE };

/* A number of trials. */
struct counted {
    struct meaning column;
    enum audience audience;
    size_t offset; /* of a uint64_t in struct usage_sums */
};

#define OUTCOME(outcome) (offsetof(struct usage_sums, outcomes) + (outcome) * sizeof(uint64_t))
static const struct counted counts[] = {
    {{"recurrences", "recurrences", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Recurrences whose first try is among the trials."},
     EVERYBODY,
     offsetof(struct usage_sums, recurrences)},
    {{"trials", "trials", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Trials that ran within the period."},
     EVERYBODY,
     offsetof(struct usage_sums, trials)},
    {{"running", "running", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Those of them that have not ended."},
     EVERYBODY,
     offsetof(struct usage_sums, running)},
    {{"reached", "reached", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Trials that reached their target."},
     EVERYBODY,
     OUTCOME(TRIAL_REACHED)},
    {{"not_reached", "not reached", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Trials that ended without reaching it."},
     EVERYBODY,
     OUTCOME(TRIAL_NOT_REACHED)},
    {{"stopped", "stopped", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Trials that were stopped early, as too expensive."},
     EVERYBODY,
     OUTCOME(TRIAL_STOPPED)},
    {{"out_of_memory", "out of memory", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Trials for whose batch size the GPUs' memory was too small."},
     PROGRAMS,
     OUTCOME(TRIAL_OUT_OF_MEMORY)},
    {{"crashed", "crashed", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Trials that crashed."},
     EVERYBODY,
     OUTCOME(TRIAL_CRASHED)},
    {{"expired", "expired", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Trials that nothing was heard of for too long."},
     EVERYBODY,
     OUTCOME(TRIAL_EXPIRED)},
    {{"refused", "refused", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Trials that refused what they were to run."},
     PROGRAMS,
     OUTCOME(TRIAL_REFUSED)},
    {{"without_energy", "no energy", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Trials whose energy is not known."},
     EVERYBODY,
     offsetof(struct usage_sums, without_energy)},
    {{"cut_off", "cut off", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
      "Trials of which a part of what they took is not on record."},
     EVERYBODY,
     offsetof(struct usage_sums, cut_off)},
};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static uint64_t count_in(const struct usage_sums *sums, size_t i)
{
    uint64_t value;

    memcpy(&value, (const char *)sums + counts[i].offset, sizeof value);
    return value;
}

static bool is_shown(size_t i, bool for_people)
{
    return counts[i].audience == EVERYBODY || (counts[i].audience == PEOPLE) == for_people;
}

static const struct meaning names[USAGE_KEYS] = {
    {"user", "user", MEANING_TEXT, 0, NULL, MEANING_FACT, "User who ran the trials."},
    {"account", "account", MEANING_TEXT, 0, NULL, MEANING_FACT, "Account that they were charged to."},
    {"job", "job", MEANING_TEXT, 0, NULL, MEANING_FACT, "Job that they are of."},
    {"host", "host", MEANING_TEXT, 0, NULL, MEANING_FACT, "Machine that they ran on."},
    {"gpu", "GPU", MEANING_TEXT, 0, NULL, MEANING_FACT, "UUID of the GPU that they ran on."},
};
/* Around the counts. */
static const struct meaning amounts[] = {
    {"row", "row", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "'used' for what trials reported, 'unattributed' for what only the meters counted."},
    {"gpu_model", "model", MEANING_TEXT, 0, NULL, MEANING_FACT, "Model of the GPU."},
    {"energy_j", "energy (J)", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_COUNTER,
     "Energy of the trials' GPUs within the period."},
    {"gpu_time_s", "GPU time (s)", MEANING_REAL, MEANING_DIGITS(3), "s", MEANING_COUNTER,
     "Time of the trials within the period, times their GPUs."},
    {"metered_j", "metered (J)", MEANING_REAL, 0, "J", MEANING_COUNTER, "Energy that the meters counted."},
};
enum { AMOUNT_ROW, AMOUNT_MODEL, AMOUNT_ENERGY, AMOUNT_TIME, AMOUNT_METERED };
const struct quantities report_name_quantities = {"what --by names", QUANTITIES(names)};
const struct quantities report_amount_quantities = {"what --by names", QUANTITIES(amounts)};
const struct quantities report_count_quantities = {"what --by names", QUANTITIES_IN(counts, column)};

static size_t name_columns(enum usage_key key, bool for_people, struct meaning *columns)
{
    size_t count = 0;

    if (!for_people)
        columns[count++] = amounts[AMOUNT_ROW];
    columns[count++] = names[key];
    if (key == USAGE_GPU)
        columns[count++] = amounts[AMOUNT_MODEL];
    columns[count++] = amounts[AMOUNT_ENERGY];
    columns[count++] = amounts[AMOUNT_TIME];
    for (size_t i = 0; i < COUNTS; i++) {
        if (is_shown(i, for_people))
            columns[count++] = counts[i].column;
    }
    if (!for_people)
        columns[count++] = amounts[AMOUNT_METERED];
    return count;
}

/* ---- rows ---- */

static void add_text(struct table *table, const char *text, const char *reason)
{
    if (text[0] != '\0')
        table_add_text(table, text);
    else
        table_add_unavailable(table, "unknown", reason);
}

static void add_counts(struct table *table, const struct usage_sums *sums, bool for_people)
{
    for (size_t i = 0; i < COUNTS; i++) {
        if (is_shown(i, for_people))
            table_add_integer(table, (int64_t)count_in(sums, i));
    }
}

static void add_row(struct table *table, const struct report *report, const struct usage_row *row,
                    bool for_people)
{
    if (!for_people)
        table_add_text(table, "used");
    add_text(table, row->name, "the log does not say");
    if (report->key == USAGE_GPU)
        add_text(table, row->model, "the log does not say");
    if (row->sums.without_energy < row->sums.trials) {
        table_add_real(table, row->sums.energy_j);
        table_add_real(table, row->sums.gpu_time_s);
    } else {
        table_add_unavailable(table, "unknown", "none of its trials has told a figure");
        table_add_unavailable(table, "unknown", "none of its trials has told a figure");
    }
    add_counts(table, &row->sums, for_people);
    if (!for_people)
        table_add_unavailable(table, NULL, "what was metered stands in the rows 'unattributed'");
}

static bool is_placed(const struct report *report)
{
    return report->key == USAGE_HOST || report->key == USAGE_GPU;
}

/* `remainder` NULL: there are no meters. */
static void add_unattributed(struct table *table, const struct report *report,
                             const struct usage_remainder *remainder, bool for_people)
{
    static const struct usage_sums nobody;
    const char *place = remainder != NULL ? remainder->name : "";
    char name[NAME_SIZE] = "unattributed";

    if (for_people) {
        if (remainder != NULL && is_placed(report))
            snprintf(name, sizeof name, "unattributed on %s", place[0] != '\0' ? place : "unknown");
        table_add_text(table, name);
    } else {
        table_add_text(table, "unattributed");
        if (remainder == NULL || !is_placed(report))
            table_add_unavailable(table, NULL, "what nobody is known to have used");
        else
            add_text(table, place, "no record says where it is");
    }
    if (report->key == USAGE_GPU)
        add_text(table, remainder != NULL ? remainder->model : "", "no trial tells it");
    if (remainder != NULL) {
        table_add_real(table, remainder->energy_j);
        table_add_real(table, remainder->gpu_time_s);
    } else {
        table_add_unavailable(table, "unknown", no_meters);
        table_add_unavailable(table, "unknown", no_meters);
    }
    add_counts(table, &nobody, for_people);
    if (for_people)
        return;
    if (remainder != NULL)
        table_add_real(table, remainder->metered_j);
    else
        table_add_unavailable(table, NULL, no_meters);
}

/* ---- members ---- */

static const char not_known[] = "it is not known";

static json_t *total_value(const struct usage_sums *sums)
{
    json_t *value = json_object();

    json_number_set(value, "energy_j", sums->energy_j, not_known);
    json_number_set(value, "gpu_time_s", sums->gpu_time_s, not_known);
    for (size_t i = 0; i < COUNTS; i++)
        json_object_set_new(value, counts[i].column.key, json_integer((json_int_t)count_in(sums, i)));
    return value;
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *meters_value(const struct report *report)
{
    const struct report_meters *meters = report->meters;
    json_t *devices = json_array(), *value;

    for (size_t i = 0; i < meters->count; i++) {
        json_t *device =
            json_pack("{s:s, s:o}", "uuid", meters->gpus[i].uuid, "host", text_or_null(meters->gpus[i].host));

        json_number_set(device, "energy_j", meters->gpus[i].energy_j, not_known);
        json_number_set(device, "time_s", meters->gpus[i].time_s, not_known);
        json_array_append_new(devices, device);
    }
    value = json_pack("{s:I, s:I, s:o}", "gpus_without_figure", (json_int_t)meters->without_figure,
                      "other_devices", (json_int_t)meters->others, "gpus", devices);
    json_number_set(value, "energy_j", report->balance.metered_j, not_known);
    json_number_set(value, "time_s", report->balance.metered_s, not_known);
    json_number_set(value, "other_devices_j", meters->others_j, not_known);
    return value;
}

static void add_members(struct table *table, const struct report *report)
{
    char date[AMOUNT_DATE_MAX];
    json_t *left_out = json_array();

    for (size_t i = 0; i < report->trouble_count; i++)
        json_array_append_new(left_out, json_pack("{s:s, s:s}", "job", report->troubles[i].job, "reason",
                                                  report->troubles[i].text));
    table_member(table, "by", json_string(report_keys[report->key]));
    table_member(table, "since", json_string(amount_date(report->since_us, date)));
    table_member(table, "until", json_string(amount_date(report->until_us, date)));
    table_member(table, "total", total_value(usage_total(report->usage)));
    if (report->meters != NULL) {
        table_member(table, "meters", meters_value(report));
    } else {
        table_member(table, "meters", json_null());
        table_member(table, "meters_unavailable", json_string(no_meters));
    }
    table_member(table, "jobs_left_out", left_out);
}

/* ---- all of it ---- */

static int emit_summary(const struct cli_call *call, const struct report *report, struct fly_error *out_error)
{
    const struct usage_sums *total = usage_total(report->usage);
    char used[AMOUNT_MAX], metered[AMOUNT_MAX], since[AMOUNT_DATE_MAX], until[AMOUNT_DATE_MAX];
    char text[1024];
    size_t length;

    length = (size_t)snprintf(text, sizeof text, "\n%s to %s: %s in %llu trial%s of %llu recurrence%s",
                              amount_date(report->since_us, since), amount_date(report->until_us, until),
                              amount_energy(total->energy_j, NAN, "", used),
                              (unsigned long long)total->trials, total->trials == 1 ? "" : "s",
                              (unsigned long long)total->recurrences, total->recurrences == 1 ? "" : "s");
    if (report->meters != NULL)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "; the meters of %zu GPU%s counted %s",
                             report->meters->count, report->meters->count == 1 ? "" : "s",
                             amount_energy(report->balance.metered_j, NAN, "", metered));
    snprintf(text + length, sizeof text - length, "\n");
    return cli_emit_text(call, text, out_error);
}

int report_emit(const struct cli_call *call, const struct report *report, struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct meaning columns[COLUMNS_MAX];
    size_t count = name_columns(report->key, for_people, columns);
    struct table *table = table_new("flyball.report/1", columns, count);
    int code;

    for (size_t i = 0; i < report->row_count; i++)
        add_row(table, report, &report->rows[i], for_people);
    for (size_t i = 0; report->meters != NULL && i < report->balance.count; i++)
        add_unattributed(table, report, &report->balance.remainders[i], for_people);
    if (report->meters == NULL)
        add_unattributed(table, report, NULL, for_people);
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
    if (remainder->meters == 0 && is_placed(report))
        cli_note(call, "%s used on %s were not metered: none of the records has a GPU of it", text, place);
    else
        cli_note(call,
                 "%s more than the meters counted%s%s are attributed: a record that does not cover the "
                 "whole period, a host without one, or clocks that differ",
                 text, is_placed(report) ? " on " : "", is_placed(report) ? place : "");
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
    if (meters->recorded.emulated + meters->reports.emulated > 0)
        cli_note(call, "some of the meters are of emulated devices; nothing in them was measured");
}
