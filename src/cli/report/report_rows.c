/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which columns and rows a report has, in every format. */
#include "cli/report/report_rows.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/accounts.h"
#include "base/array.h"
#include "base/error.h"
#include "cli/options/carbon_options.h"
#include "device/recording/recording.h"
#include "job/core/job_owner.h"
#include "job/past/name_index.h"

enum { US_PER_S = 1000000, DAY_LENGTH = 10, DIGITS_MAX = 6, DATE_SIZE = 64 };

static int64_t unit_s(char letter)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].letter == letter)
            return units[i].seconds;
    }
    return 0;
}

bool report_moment_parse(const char *text, int64_t now_us, int64_t *out_us)
{
    size_t digits = strspn(text, "0123456789");
    char date[DATE_SIZE];
    int64_t seconds;

    if (digits > 0 && digits <= DIGITS_MAX && text[digits] != '\0' && text[digits + 1] == '\0') {
        seconds = unit_s(text[digits]);
        if (seconds > 0)
            *out_us = now_us - strtoll(text, NULL, 10) * seconds * US_PER_S;
        return seconds > 0;
    }
    if (strchr(text, '-') == NULL) /* a time of day without its day */
        return false;
    snprintf(date, sizeof date, "%.40s%s", text, strlen(text) == DAY_LENGTH ? "T00:00" : "");
    if (!finish_time_parse(date, now_us / US_PER_S, &seconds))
        return false;
    *out_us = seconds * US_PER_S;
    return true;
}

enum { USER_VIEW_MAX = 2 * JOB_USER_MAX };

static const char *show_uid(const char *number, char text[USER_VIEW_MAX])
{
    char name[JOB_USER_MAX];

    if (accounts_user_name((uint32_t)strtoul(number, NULL, 10), name, sizeof name))
        snprintf(text, USER_VIEW_MAX, "%.12s (%s)", number, name);
    else
        snprintf(text, USER_VIEW_MAX, "%.12s", number);
    return text;
}

/*
 * How the user of an attempt on record is shown: for people as "1000 (ada)", with the name that this machine
 * has for the number now, "token:night-runs" or "anonymous"; for programs as recorded. What is not recorded
 * by whoever knew (job_owner.h) is "ada (said)", for programs "said:ada". "" stays. Returns `text`.
 */
static const char *user_view(const char *user, bool for_people, char text[USER_VIEW_MAX])
{
    char told[JOB_USER_MAX];

    job_user_told(user, told);
    if (for_people && strncmp(told, JOB_USER_SAID, strlen(JOB_USER_SAID)) == 0)
        snprintf(text, USER_VIEW_MAX, "%s (said)", told + strlen(JOB_USER_SAID));
    else if (for_people && strncmp(told, "uid:", strlen("uid:")) == 0)
        return show_uid(told + strlen("uid:"), text);
    else
        snprintf(text, USER_VIEW_MAX, "%s", told);
    return text;
}

static const int64_t us_per_ms = 1000;

/* Returns the name of the process's row; "": it has none. */
static const char *name_of(enum usage_key key, const struct used_process *process)
{
    const char *const names[USAGE_KEYS] = {[USAGE_USER] = process->user,
                                           [USAGE_ACCOUNT] = "",
                                           [USAGE_JOB] = process->training_job,
                                           [USAGE_HOST] = process->node,
                                           [USAGE_GPU] = process->uuid};

    return names[key];
}

static int add_process(enum usage_key key, const struct usage *usage, const struct used_process *process,
                       struct name_index *index, struct report_attributed *attributed,
                       struct fly_error *out_error)
{
    const char *name = name_of(key, process);
    struct usage_row *row;
    size_t number;
    int code;

    if (name[0] == '\0')
        return 0;
    if (usage_has_held(usage, process->uuid, process->node, process->from_unix_ms * us_per_ms,
                       process->to_unix_ms * us_per_ms)) {
        attributed->told++;
        return 0;
    }
    if (isnan(process->energy_j)) {
        attributed->unknown++;
        return 0;
    }
    code = name_index_take(index, name, "", &number, out_error);
    if (code < 0)
        return code;
    row = &attributed->rows[number];
    if (number == attributed->count) {
        *row = (struct usage_row){.name = name, .model = key == USAGE_GPU ? usage_model_of(usage, name) : ""};
        attributed->count++;
    }
    row->sums.energy_j += process->energy_j;
    row->sums.gpu_time_s += process->time_s;
    attributed->energy_j += process->energy_j;
    attributed->half_width_j += process->half_width_j;
    return 0;
}

static int compare_rows(const void *left, const void *right)
{
    const struct usage_row *a = left, *b = right;
    int order = (a->sums.energy_j < b->sums.energy_j) - (a->sums.energy_j > b->sums.energy_j);

    return order != 0 ? order : strcmp(a->name, b->name);
}

int report_attributed_make(enum usage_key key, const struct usage *usage, const struct used *used,
                           struct report_attributed *out_attributed, struct fly_error *out_error)
{
    struct report_attributed attributed = {.rows =
                                               calloc(used->process_count + 1, sizeof attributed.rows[0])};
    struct name_index index;
    int code = 0;

    if (attributed.rows == NULL)
        return error_no_memory(out_error);
    name_index_init(&index, USAGE_ROWS_MAX);
    for (size_t i = 0; i < used->process_count && code == 0; i++)
        code = add_process(key, usage, &used->processes[i], &index, &attributed, out_error);
    name_index_deinit(&index);
    if (code < 0) {
        report_attributed_deinit(&attributed);
        return code;
    }
    qsort(attributed.rows, attributed.count, sizeof attributed.rows[0], compare_rows);
    *out_attributed = attributed;
    return 0;
}

void report_attributed_deinit(struct report_attributed *attributed)
{
    free(attributed->rows);
    *attributed = (struct report_attributed){.count = 0};
}

enum { HEAD_BYTES = 256, HOST_MAX = 256 };

void report_meters_init(struct report_meters *meters, double since_unix_s, double until_unix_s)
{
    *meters = (struct report_meters){.since_unix_s = since_unix_s, .until_unix_s = until_unix_s};
    run_reports_init(&meters->reports);
    recorded_init(&meters->recorded);
    used_init(&meters->used);
    name_index_init(&meters->places, USAGE_ROWS_MAX);
}

void report_meters_deinit(struct report_meters *meters)
{
    run_reports_deinit(&meters->reports);
    recorded_deinit(&meters->recorded);
    used_deinit(&meters->used);
    name_index_deinit(&meters->places);
    free(meters->nodes);
    free(meters->gpus);
}

/* ---- files ---- */

/* Decides by the first line. A file that is not regular cannot be read twice, so it counts as a report. */
static bool is_recording(const char *path)
{
    char head[HEAD_BYTES + 1];
    struct stat status;
    bool plain = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = plain ? fopen(path, "re") : NULL;
    size_t length = file != NULL ? fread(head, 1, HEAD_BYTES, file) : 0;

    if (file != NULL)
        fclose(file);
    head[length] = '\0';
    return strstr(head, "\"" RECORDING_SCHEMA "\"") != NULL;
}

static int read_file(struct report_meters *meters, const char *path, const char *host,
                     struct fly_error *out_error)
{
    if (used_is_record(path))
        return used_read(&meters->used, path, host, out_error);
    if (!is_recording(path))
        return run_reports_read(&meters->reports, path, NULL, out_error);
    meters->files++;
    return recorded_read(&meters->recorded, path, host, meters->since_unix_s, meters->until_unix_s,
                         out_error);
}

/* The files of flyballd's record: usage.jsonl, usage.jsonl.3, usage.now.jsonl. */
static int is_usage(const struct dirent *entry)
{
    static const char begin[] = "usage.";

    return strncmp(entry->d_name, begin, sizeof begin - 1) == 0 && strstr(entry->d_name, ".jsonl") != NULL;
}

static int is_record(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');

    return entry->d_name[0] != '.' && end != NULL &&
           (strcmp(end, ".jsonl") == 0 || strcmp(end, ".json") == 0);
}

static bool has_usage(const char *directory)
{
    char *file = NULL;
    bool has = asprintf(&file, "%s/usage.now.jsonl", directory) >= 0 && access(file, F_OK) == 0;

    free(file);
    return has;
}

static int read_directory(struct report_meters *meters, const char *path, const char *host,
                          struct fly_error *out_error)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, has_usage(path) ? is_usage : is_record, alphasort), code = 0;

    if (count <= 0)
        code = error_set(out_error, count < 0 ? FLY_EREAD : FLY_ENOTFOUND,
                         "there is no record of meters in '%s'; name files of 'flyball record', reports of "
                         "'flyball run --output', or flyballd's directory",
                         path);
    for (int i = 0; i < count; i++) {
        char *file = NULL;

        if (code == 0 && asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
            code = error_no_memory(out_error);
        else if (code == 0)
            code = read_file(meters, file, host, out_error);
        free(file);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int report_meters_read(struct report_meters *meters, const char *named, struct fly_error *out_error)
{
    const char *equals = strchr(named, '=');
    char host[HOST_MAX] = "";
    const char *path = named;
    struct stat status;

    if (equals != NULL && equals != named && (size_t)(equals - named) < sizeof host &&
        memchr(named, '/', (size_t)(equals - named)) == NULL && access(named, F_OK) < 0) {
        memcpy(host, named, (size_t)(equals - named));
        path = equals + 1;
    }
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return read_directory(meters, path, host, out_error);
    return read_file(meters, path, host, out_error);
}

/* ---- sums ---- */

/* Cuts the window to the period, at its mean power. Returns whether any of it remains. */
static bool cut(const struct report_meters *meters, struct tally_window *window)
{
    double begin_s = fmax(window->start_unix_s, meters->since_unix_s);
    double end_s = fmin(window->start_unix_s + window->time_s, meters->until_unix_s);

    if (!(end_s > begin_s) || window->time_s <= 0.0)
        return false;
    window->energy_j *= (end_s - begin_s) / window->time_s;
    window->start_unix_s = begin_s;
    window->time_s = end_s - begin_s;
    return true;
}

static int note_place(struct report_meters *meters, const struct tally_window *window,
                      struct fly_error *out_error)
{
    const char **nodes;
    size_t number;
    int code = name_index_take(&meters->places, window->uuid, "", &number, out_error);

    if (code < 0)
        return code;
    nodes = array_grow(meters->nodes, number, &meters->node_capacity, sizeof nodes[0]);
    if (nodes == NULL)
        return error_no_memory(out_error);
    meters->nodes = nodes;
    meters->nodes[number] = window->node;
    return 0;
}

/* A GPU is the same one whoever recorded it; other devices get their name from their node. */
static int take_windows(struct report_meters *meters, const struct tally_window *from, size_t count,
                        struct tally_window *windows, size_t *io_count, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        struct tally_window window = from[i];

        if (!cut(meters, &window))
            continue;
        if (window.kind == DEVICE_GPU && window.node[0] != '\0')
            code = note_place(meters, &window, out_error);
        if (window.kind == DEVICE_GPU)
            window.node = "";
        windows[(*io_count)++] = window;
    }
    return code;
}

static void take_device(struct report_meters *meters, const struct usage *usage,
                        const struct tally_device *device)
{
    const char *host = usage_host_of(usage, device->uuid);
    size_t number;

    if (device->kind != DEVICE_GPU) {
        meters->others++;
        meters->others_j += isnan(device->energy_j) ? 0.0 : device->energy_j;
        return;
    }
    if (isnan(device->energy_j)) {
        meters->without_figure++;
        return;
    }
    if (name_index_find(&meters->places, device->uuid, "", &number))
        host = meters->nodes[number];
    meters->gpus[meters->count++] = (struct usage_meter){.uuid = device->uuid,
                                                         .host = host,
                                                         .model = usage_model_of(usage, device->uuid),
                                                         .energy_j = device->energy_j,
                                                         .time_s = device->time_s - device->unknown_s};
}

int report_meters_sum(struct report_meters *meters, const struct usage *usage, struct fly_error *out_error)
{
    int code = used_end(&meters->used, meters->since_unix_s, meters->until_unix_s, out_error);
    size_t most = meters->recorded.count + meters->reports.window_count + meters->used.window_count,
           count = 0;
    struct tally_window *windows = calloc(most + 1, sizeof windows[0]);
    struct tally tally = {.count = 0};

    if (windows == NULL)
        return error_no_memory(out_error);
    if (code == 0)
        code =
            take_windows(meters, meters->used.windows, meters->used.window_count, windows, &count, out_error);
    if (code == 0)
        code = take_windows(meters, meters->recorded.windows, meters->recorded.count, windows, &count,
                            out_error);
    if (code == 0)
        code = take_windows(meters, meters->reports.windows, meters->reports.window_count, windows, &count,
                            out_error);
    if (code == 0)
        code = tally_make(windows, count, &tally, out_error);
    if (code == 0) {
        meters->gpus = calloc(tally.count + 1, sizeof meters->gpus[0]);
        if (meters->gpus == NULL)
            code = error_no_memory(out_error);
    }
    for (size_t i = 0; i < tally.count && code == 0; i++)
        take_device(meters, usage, &tally.devices[i]);
    tally_deinit(&tally);
    free(windows);
    return code;
}

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
