/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which columns and rows a report has, in every format. */
#include "cli/report/report_rows.h"

#include <stdio.h>
#include <string.h>

#include "cli/views/user_view.h"

const char *const report_keys[USAGE_KEYS + 1] = {"user", "account", "job", "host", "gpu", NULL};

const char report_no_meters[] = "no meters' record given; --meters names recordings of 'flyball record'";

enum { NAME_SIZE = 192 };

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

uint64_t report_count_in(const struct usage_sums *sums, size_t i)
{
    uint64_t value;

    memcpy(&value, (const char *)sums + counts[i].offset, sizeof value);
    return value;
}

const char *report_count_key(size_t i)
{
    return i < COUNTS ? counts[i].column.key : NULL;
}

static bool is_shown(size_t i, bool for_people)
{
    return counts[i].audience == EVERYBODY || (counts[i].audience == PEOPLE) == for_people;
}

static const struct meaning names[USAGE_KEYS] = {
    {"user", "user", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Who ran the trials: uid:NUMBER or token:NAME; said:NAME where only a program or an import said so."},
    {"account", "account", MEANING_TEXT, 0, NULL, MEANING_FACT, "Account that they were charged to."},
    {"job", "job", MEANING_TEXT, 0, NULL, MEANING_FACT, "Job that they are of."},
    {"host", "host", MEANING_TEXT, 0, NULL, MEANING_FACT, "Machine that they ran on."},
    {"gpu", "GPU", MEANING_TEXT, 0, NULL, MEANING_FACT, "UUID of the GPU that they ran on."},
};
/* Before and after the counts. */
static const struct meaning amounts[] = {
    {"row", "row", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "'used' for what trials reported, 'attributed' for what flyballd attributed to processes that no log "
     "tells of, 'unattributed' for what only the meters counted."},
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
            table_add_integer(table, (int64_t)report_count_in(sums, i));
    }
}

static void add_row(struct table *table, const struct report *report, const struct usage_row *row,
                    bool for_people)
{
    char user[USER_VIEW_MAX];

    if (!for_people)
        table_add_text(table, "used");
    if (report->key == USAGE_USER)
        add_text(table, user_view(row->name, for_people, user), "the log does not say");
    else
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

static void add_attributed(struct table *table, const struct report *report, const struct usage_row *row,
                           bool for_people)
{
    static const struct usage_sums no_trial;
    char name[NAME_SIZE], user[USER_VIEW_MAX];

    snprintf(name, sizeof name, for_people ? "%.150s, by flyballd" : "%.150s",
             report->key == USAGE_USER ? user_view(row->name, for_people, user) : row->name);
    if (!for_people)
        table_add_text(table, "attributed");
    table_add_text(table, name);
    if (report->key == USAGE_GPU)
        add_text(table, row->model, "no trial tells it");
    table_add_real(table, row->sums.energy_j);
    table_add_real(table, row->sums.gpu_time_s);
    add_counts(table, &no_trial, for_people);
    if (!for_people)
        table_add_unavailable(table, NULL, "what was metered stands in the rows 'unattributed'");
}

bool report_is_placed(const struct report *report)
{
    return report->key == USAGE_HOST || report->key == USAGE_GPU;
}

/* `remainder` NULL means that there are no meters. */
static void add_unattributed(struct table *table, const struct report *report,
                             const struct usage_remainder *remainder, bool for_people)
{
    static const struct usage_sums nobody;
    const char *place = remainder != NULL ? remainder->name : "";
    char name[NAME_SIZE] = "unattributed";

    if (for_people) {
        if (remainder != NULL && report_is_placed(report))
            snprintf(name, sizeof name, "unattributed on %s", place[0] != '\0' ? place : "unknown");
        table_add_text(table, name);
    } else {
        table_add_text(table, "unattributed");
        if (remainder == NULL || !report_is_placed(report))
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
        table_add_unavailable(table, "unknown", report_no_meters);
        table_add_unavailable(table, "unknown", report_no_meters);
    }
    add_counts(table, &nobody, for_people);
    if (for_people)
        return;
    if (remainder != NULL)
        table_add_real(table, remainder->metered_j);
    else
        table_add_unavailable(table, NULL, report_no_meters);
}

struct table *report_rows(const struct report *report, bool for_people,
                          struct meaning columns[REPORT_COLUMNS_MAX])
{
    size_t count = name_columns(report->key, for_people, columns);
    struct table *table = table_new("flyball.report/1", columns, count);

    for (size_t i = 0; i < report->row_count; i++)
        add_row(table, report, &report->rows[i], for_people);
    for (size_t i = 0; i < report->attributed.count; i++)
        add_attributed(table, report, &report->attributed.rows[i], for_people);
    for (size_t i = 0; report->meters != NULL && i < report->balance.count; i++)
        add_unattributed(table, report, &report->balance.remainders[i], for_people);
    if (report->meters == NULL)
        add_unattributed(table, report, NULL, for_people);
    return table;
}
