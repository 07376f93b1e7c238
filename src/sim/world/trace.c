/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/trace.h"

#include <dirent.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "base/text/csv.h"
#include "base/words.h"

enum { MEMORY_MAX = 1 << 30, GPUS_MAX = 64, FIRST_ROWS = 512 };

enum train_column { T_DATASET, T_NETWORK, T_BATCH, T_OPTIMIZER, T_RATE, T_RUN, T_TARGET, T_EPOCH, T_COUNT };
static const char *const train_columns[] = {"dataset",       "network", "batch_size",    "optimizer",
                                            "learning_rate", "run",     "target_metric", "target_epoch"};
_Static_assert(sizeof train_columns / sizeof train_columns[0] == T_COUNT, "one name for every column");

enum power_column { P_DATASET, P_NETWORK, P_BATCH, P_OPTIMIZER, P_LIMIT, P_TIME, P_POWER, P_COUNT };
static const char *const power_columns[] = {"dataset",     "network",        "batch_size",   "optimizer",
                                            "power_limit", "time_per_epoch", "average_power"};
_Static_assert(sizeof power_columns / sizeof power_columns[0] == P_COUNT, "one name for every column");

static const char mend[] = "correct the value or leave the line out";

const char *trace_word(const struct trace *trace, const char *text)
{
    int at = word_index(text, trace->words, trace->word_count);

    return at < 0 ? NULL : trace->words[at];
}

/* Interns a text of the current row; refuses an empty one. */
static int read_word(struct trace *trace, const struct csv *csv, size_t column, const char **out_word,
                     struct fly_error *out_error)
{
    const char *text = csv_field(csv, column);
    const char *word = trace_word(trace, text);

    if (word == NULL) {
        if (*text == '\0')
            return csv_refuse(csv, column, "a name", mend, out_error);
        if (trace->word_count == TRACE_WORDS_MAX)
            return error_set(out_error, FLY_ELIMIT, "%s:%zu: more than %d different names; split the trace",
                             csv->path, csv->line, TRACE_WORDS_MAX);
        word = trace->words[trace->word_count] = arena_strdup(&trace->arena, text);
        if (word == NULL)
            return error_no_memory(out_error);
        trace->word_count++;
    }
    *out_word = word;
    return 0;
}

static int read_batch_size(const struct csv *csv, size_t column, uint32_t *out_size,
                           struct fly_error *out_error)
{
    uint64_t size;

    if (!number_parse_u64(csv_field(csv, column), UINT32_MAX, &size) || size == 0)
        return csv_refuse(csv, column, "a whole number from 1", mend, out_error);
    *out_size = (uint32_t)size;
    return 0;
}

static int read_finite(const struct csv *csv, size_t column, double *out_value, struct fly_error *out_error)
{
    return csv_number(csv, column, -INFINITY, DBL_MAX, "a number", out_value, out_error);
}

static int read_positive(const struct csv *csv, size_t column, double *out_value, struct fly_error *out_error)
{
    return csv_number(csv, column, 0.0, TRACE_VALUE_MAX, "a number above 0, at most 1e12", out_value,
                      out_error);
}

static int read_target_epoch(const struct csv *csv, double *out_epoch, struct fly_error *out_error)
{
    const char *text = csv_field(csv, T_EPOCH);
    double epoch;

    if (*text == '\0' || strcasecmp(text, "nan") == 0)
        epoch = NAN;
    else if (!number_parse_double(text, &epoch) || epoch < 1.0 || epoch > TRACE_VALUE_MAX)
        return csv_refuse(csv, T_EPOCH, "an epoch from 1, or nan for never reached", mend, out_error);
    *out_epoch = epoch;
    return 0;
}

static int read_train_row(struct trace *trace, const struct csv *csv, struct fly_error *out_error)
{
    struct train_row row;
    double unused;
    int code = read_word(trace, csv, T_DATASET, &row.dataset, out_error);

    if (code == 0)
        code = read_word(trace, csv, T_NETWORK, &row.network, out_error);
    if (code == 0)
        code = read_word(trace, csv, T_OPTIMIZER, &row.optimizer, out_error);
    if (code == 0)
        code = read_batch_size(csv, T_BATCH, &row.batch_size, out_error);
    if (code == 0)
        code = read_finite(csv, T_RATE, &unused, out_error);
    if (code == 0)
        code = read_finite(csv, T_RUN, &unused, out_error);
    if (code == 0)
        code = read_finite(csv, T_TARGET, &row.target_metric, out_error);
    if (code == 0)
        code = read_target_epoch(csv, &row.target_epoch, out_error);
    if (code == 0)
        trace->train[trace->train_count++] = row;
    return code;
}

static int read_power_row(struct trace *trace, const struct csv *csv, struct fly_error *out_error)
{
    struct power_row row = {.line = csv->line};
    int code = read_word(trace, csv, P_DATASET, &row.dataset, out_error);

    if (code == 0)
        code = read_word(trace, csv, P_NETWORK, &row.network, out_error);
    if (code == 0)
        code = read_word(trace, csv, P_OPTIMIZER, &row.optimizer, out_error);
    if (code == 0)
        code = read_batch_size(csv, P_BATCH, &row.batch_size, out_error);
    if (code == 0)
        code = read_positive(csv, P_LIMIT, &row.limit_w, out_error);
    if (code == 0)
        code = read_positive(csv, P_TIME, &row.epoch_time_s, out_error);
    if (code == 0)
        code = read_positive(csv, P_POWER, &row.power_w, out_error);
    if (code == 0)
        trace->power[trace->power_count++] = row;
    return code;
}

/* Makes room for twice the rows; the arena keeps the old ones until the trace is closed. */
static bool grow_train(struct trace *trace, size_t capacity)
{
    struct train_row *rows = arena_alloc(&trace->arena, capacity, sizeof rows[0]);

    if (rows != NULL && trace->train_count > 0)
        memcpy(rows, trace->train, trace->train_count * sizeof rows[0]);
    trace->train = rows;
    return rows != NULL;
}

static bool grow_power(struct trace *trace, size_t capacity)
{
    struct power_row *rows = arena_alloc(&trace->arena, capacity, sizeof rows[0]);

    if (rows != NULL && trace->power_count > 0)
        memcpy(rows, trace->power, trace->power_count * sizeof rows[0]);
    trace->power = rows;
    return rows != NULL;
}

struct trace_file {
    const char *const *columns;
    size_t column_count;
    bool (*grow)(struct trace *trace, size_t capacity);
    int (*read_row)(struct trace *trace, const struct csv *csv, struct fly_error *out_error);
};

static const struct trace_file train_file = {train_columns, T_COUNT, grow_train, read_train_row};
static const struct trace_file power_file = {power_columns, P_COUNT, grow_power, read_power_row};

static int read_rows(struct trace *trace, const struct trace_file *file, struct csv *csv,
                     struct fly_error *out_error)
{
    size_t rows = 0, capacity = 0;
    int more;

    while ((more = csv_next(csv, out_error)) > 0) {
        int code;

        if (rows == TRACE_ROWS_MAX)
            return error_set(out_error, FLY_ELIMIT, "%s:%zu: more than %d rows; split the trace", csv->path,
                             csv->line, TRACE_ROWS_MAX);
        if (rows == capacity) {
            capacity = capacity > 0 ? 2 * capacity : FIRST_ROWS;
            if (!file->grow(trace, capacity))
                return error_no_memory(out_error);
        }
        code = file->read_row(trace, csv, out_error);
        if (code < 0)
            return code;
        rows++;
    }
    if (more == 0 && rows == 0)
        return error_set(out_error, FLY_EDATA, "%s:1: the file has a header and no rows; record some",
                         csv->path);
    return more;
}

static int read_file(struct trace *trace, const struct trace_file *file, const char *path,
                     struct fly_error *out_error)
{
    struct csv csv;
    int code = csv_open(&csv, path, file->columns, file->column_count, out_error);

    if (code < 0)
        return code;
    code = read_rows(trace, file, &csv, out_error);
    csv_close(&csv);
    return code;
}

static int compare_power_rows(const void *left, const void *right)
{
    const struct power_row *a = *(const struct power_row *const *)left;
    const struct power_row *b = *(const struct power_row *const *)right;

    if (a->dataset != b->dataset)
        return a->dataset < b->dataset ? -1 : 1;
    if (a->network != b->network)
        return a->network < b->network ? -1 : 1;
    if (a->optimizer != b->optimizer)
        return a->optimizer < b->optimizer ? -1 : 1;
    if (a->batch_size != b->batch_size)
        return a->batch_size < b->batch_size ? -1 : 1;
    return (a->limit_w > b->limit_w) - (a->limit_w < b->limit_w);
}

/* Refuses two figures for one (batch size, limit): nobody could say which of them is right. */
static int check_doubled(const struct trace *trace, struct fly_error *out_error)
{
    const struct power_row **sorted = calloc(trace->power_count + 1, sizeof *sorted);
    int code = 0;

    if (sorted == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < trace->power_count; i++)
        sorted[i] = &trace->power[i];
    qsort(sorted, trace->power_count, sizeof *sorted, compare_power_rows);
    for (size_t i = 1; i < trace->power_count && code == 0; i++) {
        const struct power_row *a = sorted[i - 1], *b = sorted[i];

        if (compare_power_rows(&a, &b) == 0)
            code = error_set(
                out_error, FLY_EDATA,
                "%s:%zu: column 'power_limit': batch size %u at %g W of %s stands already in line %zu; "
                "expected it once, so leave one of them out",
                trace->power_path, a->line > b->line ? a->line : b->line, a->batch_size, a->limit_w,
                a->dataset, a->line < b->line ? a->line : b->line);
    }
    free(sorted);
    return code;
}

static bool gpu_of_file(const char *file, char *out_gpu, size_t size)
{
    size_t length = strlen(file);

    if (strncmp(file, "summary_power_", 14) != 0 || length < 19 || strcmp(file + length - 4, ".csv") != 0 ||
        length - 18 >= size)
        return false;
    memcpy(out_gpu, file + 14, length - 18);
    out_gpu[length - 18] = '\0';
    return true;
}

static int compare_gpus(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* Refuses an unknown GPU and says which ones the directory has. */
static int refuse_gpu(const char *directory, const char *gpu, struct fly_error *out_error)
{
    char gpus[GPUS_MAX][64];
    char list[256] = "";
    size_t count = 0;
    const struct dirent *entry;
    DIR *dir = opendir(directory);

    if (dir == NULL)
        return error_set(
            out_error, FLY_ENOTFOUND,
            "%s: opening failed; expected a directory with summary_train.csv and summary_power_%s.csv",
            directory, gpu);
    while (count < GPUS_MAX && (entry = readdir(dir)) != NULL)
        count += gpu_of_file(entry->d_name, gpus[count], sizeof gpus[0]);
    closedir(dir);
    qsort(gpus, count, sizeof gpus[0], compare_gpus);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(list);

        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", gpus[i]);
    }
    return error_set(
        out_error, FLY_ENOTFOUND,
        "%s/summary_power_%s.csv: no such file; expected the power trace of GPU '%s', and the directory "
        "has %s; choose another GPU or directory",
        directory, gpu, gpu, count > 0 ? list : "none");
}

static char *join_path(struct arena *arena, const char *directory, const char *prefix, const char *name)
{
    size_t size = strlen(directory) + strlen(prefix) + strlen(name) + sizeof "/.csv";
    char *path = arena_alloc(arena, size, 1);

    if (path != NULL)
        snprintf(path, size, "%s/%s%s.csv", directory, prefix, name);
    return path;
}

static int read_files(struct trace *trace, const char *directory, struct fly_error *out_error)
{
    int code = read_file(trace, &power_file, trace->power_path, out_error);

    if (code == FLY_ENOTFOUND)
        return refuse_gpu(directory, trace->gpu, out_error);
    if (code == 0)
        code = read_file(trace, &train_file, trace->train_path, out_error);
    return code == 0 ? check_doubled(trace, out_error) : code;
}

int trace_open(struct trace *trace, const char *directory, const char *gpu, struct fly_error *out_error)
{
    int code;

    *trace = (struct trace){0};
    arena_init(&trace->arena, MEMORY_MAX);
    trace->gpu = arena_strdup(&trace->arena, gpu);
    trace->words = arena_alloc(&trace->arena, TRACE_WORDS_MAX, sizeof trace->words[0]);
    trace->train_path = join_path(&trace->arena, directory, "summary_train", "");
    trace->power_path = join_path(&trace->arena, directory, "summary_power_", gpu);
    if (trace->gpu == NULL || trace->words == NULL || trace->train_path == NULL || trace->power_path == NULL)
        code = error_no_memory(out_error);
    else
        code = read_files(trace, directory, out_error);
    if (code < 0)
        trace_close(trace);
    return code;
}

bool trace_trained(const struct trace *trace, const struct power_row *power)
{
    for (size_t i = 0; i < trace->train_count; i++) {
        const struct train_row *row = &trace->train[i];

        if (row->batch_size == power->batch_size && row->dataset == power->dataset &&
            row->network == power->network && row->optimizer == power->optimizer)
            return true;
    }
    return false;
}

void trace_close(struct trace *trace)
{
    arena_deinit(&trace->arena);
}
