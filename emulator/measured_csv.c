/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded profiles in CSV files: which kind one is shows in its header. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/patient_file.h"
#include "base/number.h"
#include "base/text/csv.h"
#include "emulator/measured.h"

enum { FILE_MAX = 16 << 20, NAME_MAX_BYTES = 64, KEY_MAX = 256, COLUMNS_MAX = 32 };

static const double largest = 1e12;
static const char positive[] = "a number above 0";
static const char remedy[] = "correct the line or leave it out";

/* The names of a header. */
struct header {
    char names[CSV_COLUMNS_MAX][NAME_MAX_BYTES];
    size_t count;
};

/* A file that is read, and the columns that are wanted of it. */
struct reading_csv {
    struct csv csv;
    const char *path, *workload;
    const char *columns[COLUMNS_MAX];
    size_t column_count;
    size_t first_key;    /* the columns from here on name a workload, */
    size_t first_energy; /* or are the energies of GPUs */
    size_t first_filter; /* or say whether a row counts */
    char key[KEY_MAX];   /* of the workload that was taken; "": none so far */
    char other[KEY_MAX]; /* of another that fits too; "": there is none */
    char first[KEY_MAX]; /* of the first row */
    struct measured *measured;
};

static void read_header(const char *text, struct header *header)
{
    text += strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    text += strspn(text, "\r\n");
    for (;;) {
        size_t length = strcspn(text, ",\r\n");

        if (header->count < CSV_COLUMNS_MAX)
            snprintf(header->names[header->count++], NAME_MAX_BYTES, "%.*s", (int)length, text);
        if (text[length] != ',')
            return;
        text += length + 1;
    }
}

static bool has(const struct header *header, const char *name)
{
    for (size_t i = 0; i < header->count; i++) {
        if (strcmp(header->names[i], name) == 0)
            return true;
    }
    return false;
}

static void want(struct reading_csv *reading, const char *name)
{
    if (reading->column_count < COLUMNS_MAX)
        reading->columns[reading->column_count++] = name;
}

static int number_in(const struct reading_csv *reading, size_t column, double *out,
                     struct fly_error *out_error)
{
    return csv_number(&reading->csv, column, 0.0, largest, positive, out, out_error);
}

/* ---- windows: window_name, elapsed_time, gpu0_energy, ... ---- */

static void want_windows(struct reading_csv *reading, const struct header *header)
{
    want(reading, "window_name");
    want(reading, "elapsed_time");
    reading->first_energy = reading->column_count;
    for (size_t i = 0; i < header->count; i++) {
        const char *name = header->names[i];
        size_t digits = strncmp(name, "gpu", 3) == 0 ? strspn(name + 3, "0123456789") : 0;

        if (digits > 0 && strcmp(name + 3 + digits, "_energy") == 0)
            want(reading, name);
    }
    if (reading->column_count == reading->first_energy)
        want(reading, "gpu0_energy"); /* which is then missing, and said to be */
}

static int take_window(struct reading_csv *reading, struct fly_error *out_error)
{
    const char *ending = strrchr(csv_field(&reading->csv, 0), '_');
    size_t gpus = reading->column_count - reading->first_energy;
    struct fly_power_point point = {.limit_w = 0.0};
    double energy_j = 0.0;
    int code;

    if (ending == NULL || !number_parse_double(ending + 1, &point.limit_w) || !(point.limit_w > 0.0))
        return csv_refuse(&reading->csv, 0, "a name that ends in _ and a power limit in W, such as step_250",
                          remedy, out_error);
    code = number_in(reading, 1, &point.time_s, out_error);
    for (size_t i = reading->first_energy; code == 0 && i < reading->column_count; i++) {
        double gpu_j = 0.0;

        code = number_in(reading, i, &gpu_j, out_error);
        energy_j += gpu_j;
    }
    if (code < 0)
        return code;
    point.power_w = energy_j / point.time_s / (double)gpus;
    return measured_add(reading->measured, &point, reading->path, out_error);
}

/* ---- epochs: power_limit, time_per_epoch, average_power ---- */

static void want_epochs(struct reading_csv *reading, const struct header *header)
{
    static const char *const keys[] = {"dataset", "network", "batch_size", "optimizer"};

    want(reading, "power_limit");
    want(reading, "time_per_epoch");
    want(reading, "average_power");
    reading->first_key = reading->column_count;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (has(header, keys[i]))
            want(reading, keys[i]);
    }
}

static void write_key(const struct reading_csv *reading, char out_key[KEY_MAX])
{
    size_t length = 0;

    out_key[0] = '\0';
    for (size_t i = reading->first_key; i < reading->column_count && length < KEY_MAX; i++)
        length += (size_t)snprintf(out_key + length, KEY_MAX - length, "%s%s",
                                   i > reading->first_key ? "/" : "", csv_field(&reading->csv, i));
}

/* Whether the workload is the key or the begin of it, up to a slash. */
static bool is_chosen(const char *key, const char *workload)
{
    size_t length = strlen(workload);

    return strncmp(key, workload, length) == 0 && (length == 0 || key[length] == '\0' || key[length] == '/');
}

static int take_epoch(struct reading_csv *reading, struct fly_error *out_error)
{
    struct fly_power_point point = {.limit_w = 0.0};
    char key[KEY_MAX];
    int code = number_in(reading, 0, &point.limit_w, out_error);

    if (code == 0)
        code = number_in(reading, 1, &point.time_s, out_error);
    if (code == 0)
        code = number_in(reading, 2, &point.power_w, out_error);
    if (code < 0)
        return code;
    write_key(reading, key);
    if (reading->first[0] == '\0')
        memcpy(reading->first, key, sizeof key);
    if (!is_chosen(key, reading->workload))
        return 0;
    if (reading->measured->count == 0)
        memcpy(reading->key, key, sizeof key);
    if (strcmp(reading->key, key) != 0) {
        memcpy(reading->other, key, sizeof key);
        return 0;
    }
    return measured_add(reading->measured, &point, reading->path, out_error);
}

/* ---- profiles: limit_w, power_w, step_time_s or time_s ---- */

static void want_profile(struct reading_csv *reading, const struct header *header)
{
    want(reading, "limit_w");
    want(reading, "power_w");
    want(reading, has(header, "step_time_s") ? "step_time_s" : "time_s");
    reading->first_filter = reading->column_count;
    if (has(header, "mark"))
        want(reading, "mark");
    if (has(header, "ceiling_mhz"))
        want(reading, "ceiling_mhz");
}

/* A row that was measured, under a limit alone: no mark but "valid", and no ceiling on the clock. */
static bool is_of_limit(const struct reading_csv *reading)
{
    for (size_t i = reading->first_filter; i < reading->column_count; i++) {
        const char *wanted = strcmp(reading->columns[i], "mark") == 0 ? "valid" : "";

        if (strcmp(csv_field(&reading->csv, i), wanted) != 0)
            return false;
    }
    return true;
}

static int take_point(struct reading_csv *reading, struct fly_error *out_error)
{
    struct fly_power_point point = {.limit_w = 0.0};
    int code;

    if (!is_of_limit(reading))
        return 0;
    code = number_in(reading, 0, &point.limit_w, out_error);
    if (code == 0)
        code = number_in(reading, 1, &point.power_w, out_error);
    if (code == 0)
        code = number_in(reading, 2, &point.time_s, out_error);
    return code < 0 ? code : measured_add(reading->measured, &point, reading->path, out_error);
}

/* ---- the file ---- */

static const struct csv_kind {
    const char *mark; /* the column by which it is told */
    bool of_steps;
    void (*want)(struct reading_csv *reading, const struct header *header);
    int (*take)(struct reading_csv *reading, struct fly_error *out_error);
} kinds[] = {
    {"window_name", false, want_windows, take_window},
    {"power_limit", false, want_epochs, take_epoch},
    {"limit_w", true, want_profile, take_point},
};

static const struct csv_kind *kind_of(const struct header *header)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (has(header, kinds[i].mark))
            return &kinds[i];
    }
    return NULL;
}

static int check_workload(const struct reading_csv *reading, struct fly_error *out_error)
{
    if (reading->other[0] != '\0')
        return error_set(out_error, FLY_EUSAGE,
                         "%s: holds several workloads, such as '%s' and '%s'; choose one with --workload",
                         reading->path, reading->key, reading->other);
    if (reading->workload[0] == '\0' || reading->key[0] != '\0')
        return 0;
    if (reading->first[0] == '\0')
        return error_set(out_error, FLY_EUSAGE, "%s: does not name its workload; leave '%.80s' out",
                         reading->path, reading->workload);
    return error_set(out_error, FLY_EUSAGE, "%s: has no workload '%.80s', but such as '%s'; choose one of it",
                     reading->path, reading->workload, reading->first);
}

static int read_rows(struct reading_csv *reading, const struct csv_kind *kind, const struct buffer *text,
                     struct fly_error *out_error)
{
    int more = csv_open_text(&reading->csv, reading->path, text->data, text->length, reading->columns,
                             reading->column_count, out_error);

    if (more < 0)
        return more;
    more = csv_next(&reading->csv, out_error);
    while (more > 0) {
        more = kind->take(reading, out_error);
        if (more == 0)
            more = csv_next(&reading->csv, out_error);
    }
    csv_close(&reading->csv);
    return more < 0 ? more : check_workload(reading, out_error);
}

/* A profile's power is that of all GPUs, whose number a CSV file does not tell: no limit may be exceeded. */
static void share_power(struct measured *measured)
{
    double gpus = 1.0;

    for (size_t i = 0; i < measured->count; i++) {
        while (measured->points[i].power_w > gpus * measured->points[i].limit_w * 1.3)
            gpus += 1.0;
    }
    for (size_t i = 0; i < measured->count; i++)
        measured->points[i].power_w /= gpus;
}

int measured_read_csv(const char *path, const char *workload, struct measured *measured,
                      struct fly_error *out_error)
{
    struct reading_csv reading = {.path = path, .workload = workload, .measured = measured};
    struct header *header = calloc(1, sizeof *header);
    const struct csv_kind *kind = NULL;
    struct buffer text;
    int code;

    buffer_init(&text, FILE_MAX);
    code = header != NULL ? patient_file_read_all(path, &text, out_error) : error_no_memory(out_error);
    if (code == 0 && header != NULL) {
        read_header(text.length > 0 ? text.data : "", header);
        kind = kind_of(header);
        code = kind != NULL ? 0
                            : error_set(out_error, FLY_EDATA,
                                        "%s:1: header: expected the columns of a recorded profile, such as "
                                        "window_name, power_limit or limit_w; see docs/howto/emulator.md",
                                        path);
    }
    if (code == 0) {
        kind->want(&reading, header);
        measured->of_steps = kind->of_steps;
        code = read_rows(&reading, kind, &text, out_error);
    }
    if (code == 0 && kind->of_steps)
        share_power(measured);
    buffer_deinit(&text);
    free(header);
    return code;
}
