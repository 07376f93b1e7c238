/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/tally/run_reports.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/patient_file.h"
#include "device/device_coding.h"
#include "shapes/shape_rows.h"

enum { READ_BYTES = 1 << 16, ARENA_MAX = 256 << 20 };

/* ---- what a report says ---- */

/* No energy, time or date is larger, so that sums and differences stay finite. */
#define IS_AMOUNT SHAPE_IS_NUMBER(SHAPE_FROM_0), .highest = 1e15
#define IS_NAME SHAPE_IS_TEXT(UINT32_MAX), .least = 1

struct device_row {
    struct tally_window window;
    bool emulated;
};
static const struct shape_field device_rows[] = {
    {SHAPE_AT_AS("kind", device_row, window.kind), .kind = SHAPE_CODED, .coding = &device_kind_coding},
    {SHAPE_AT_AS("uuid", device_row, window.uuid), IS_NAME},
    {SHAPE_AT_AS("time_s", device_row, window.time_s), IS_AMOUNT},
    {SHAPE_AT_AS("energy_j", device_row, window.energy_j), IS_AMOUNT, .null = SHAPE_UNKNOWN},
    {SHAPE_AT_AS("uncertainty_j", device_row, window.uncertainty_j), IS_AMOUNT, .null = SHAPE_UNKNOWN},
    {SHAPE_AT_AS("counted", device_row, window.counted), SHAPE_IS_BOOL},
    {SHAPE_AT(device_row, emulated), SHAPE_IS_BOOL},
};
static const struct shape device_shape = {SHAPE_OF(device_row, device_rows)};

struct about {
    const char *id, *node, *step, *ranked;
    int32_t rank, world_size;
};
static const struct about about_defaults = {.step = "", .ranked = "", .rank = -1, .world_size = -1};
#define IS_SAID .need = SHAPE_OPTIONAL, .null = SHAPE_AS_DEFAULT
static const struct shape_field about_rows[] = {
    {SHAPE_AT(about, id), IS_NAME},
    {SHAPE_AT(about, node), IS_NAME},
    {SHAPE_AT(about, step), SHAPE_IS_TEXT(UINT32_MAX), IS_SAID},
    {SHAPE_AT_AS("ranked_by", about, ranked), SHAPE_IS_TEXT(UINT32_MAX), IS_SAID},
    {SHAPE_AT(about, rank), .kind = SHAPE_I32, .most = INT32_MAX / 2, IS_SAID},
    {SHAPE_AT(about, world_size), .kind = SHAPE_I32, .most = INT32_MAX / 2, IS_SAID},
};
static const struct shape about_shape = {SHAPE_OF(about, about_rows), .defaults = &about_defaults};

struct report {
    uint32_t schema;
    double start_unix_s;
    struct about job;
    json_t *any_devices; /* borrowed */
    const struct device_row *devices;
    size_t device_count;
};
static const char *const schemas[] = {"flyball.run/2"};
#define SCHEMA_EXPECTED "\"flyball.run/2\""
#define HEAD_ROWS                                                                       \
    {SHAPE_AT(report, schema), SHAPE_IS_WORD(schemas, 1), .expected = SCHEMA_EXPECTED}, \
        {SHAPE_AT(report, start_unix_s), IS_AMOUNT},                                    \
    {                                                                                   \
        SHAPE_AT(report, job), SHAPE_IS_STRUCT(&about_shape)                            \
    }
/* The devices in a report of another job are not read. */
static const struct shape_field head_rows[] = {
    HEAD_ROWS,
    {SHAPE_AT_AS("devices", report, any_devices), .kind = SHAPE_JSON, .expected = "a list of devices"},
};
static const struct shape_field report_rows[] = {
    HEAD_ROWS,
    {SHAPE_AT(report, devices), SHAPE_IS_STRUCTS(&device_shape, UINT32_MAX, report, device_count),
     .expected = "a list of devices"},
};
static const struct shape head_shape = {SHAPE_OF(report, head_rows)};
static const struct shape report_shape = {SHAPE_OF(report, report_rows)};

/* A report while it is read. */
struct reading_of {
    const char *name;
    const char *text;
    size_t length;
    json_t *document;
    struct arena *arena;
    struct fly_error *out_error;
};

void run_reports_init(struct run_reports *reports)
{
    *reports = (struct run_reports){.windows = NULL};
}

void run_reports_deinit(struct run_reports *reports)
{
    for (size_t i = 0; i < reports->count; i++)
        json_decref(reports->documents[i]);
    free(reports->documents);
    free(reports->ranks);
    free(reports->windows);
    run_reports_init(reports);
}

/* Fails with "run.json:17: field 'devices.1.energy_j': expected ..., found -3; ..." */
static int refuse(const struct reading_of *reading, struct shape_fault *fault)
{
    size_t length = 0;

    if (fault->path[0] == '\0') /* a text that is not an object has no path */
        *fault = (struct shape_fault){.path = "schema", .expected = SCHEMA_EXPECTED, .found = "nothing"};
    shape_fault_locate(fault, reading->text, reading->length);
    for (const char *at = fault->path; *at != '\0'; at++) {
        if (*at != ']')
            fault->path[length++] = *at;
        if (*at == '[')
            fault->path[length - 1] = '.';
    }
    fault->path[length] = '\0';
    return error_set(reading->out_error, FLY_EDATA,
                     "%s:%zu: field '%s': expected %s, found %s; give a report of 'flyball run --output'",
                     reading->name, fault->line, fault->path, fault->expected, fault->found);
}

/* The texts belong to the document. */
static int read_shape(const struct reading_of *reading, const struct shape *shape, struct report *report)
{
    struct shape_fault fault;
    int code = shape_read_as(shape, reading->document, SHAPE_BORROWING, reading->arena, report, &fault, NULL);

    if (code == FLY_ENOMEM)
        return error_no_memory(reading->out_error);
    if (code == 0 && shape == &head_shape && !json_is_array(report->any_devices))
        return read_shape(reading, &report_shape, report);
    return code < 0 ? refuse(reading, &fault) : 0;
}

/* Makes room for one more report with that many windows. */
static bool grow(struct run_reports *reports, size_t windows)
{
    size_t count = reports->window_count + windows;
    struct tally_window *more = realloc(reports->windows, (count + 1) * sizeof *more);
    struct run_rank *ranks;
    json_t **documents;

    if (more == NULL)
        return false;
    reports->windows = more;
    documents = realloc(reports->documents, (reports->count + 1) * sizeof(json_t *));
    if (documents == NULL)
        return false;
    reports->documents = documents;
    ranks = realloc(reports->ranks, (reports->count + 1) * sizeof *ranks);
    if (ranks == NULL)
        return false;
    reports->ranks = ranks;
    return true;
}

static void note_job(struct run_reports *reports, const char *job)
{
    for (size_t i = 0; i < reports->job_count; i++) {
        if (strcmp(reports->jobs[i], job) == 0)
            return;
    }
    if (reports->job_count < RUN_JOBS_MAX)
        reports->jobs[reports->job_count++] = job;
}

/* Adds the report's windows and keeps the document. */
static int take_report(const struct reading_of *reading, struct run_reports *reports,
                       const struct report *report)
{
    if (!grow(reports, report->device_count))
        return error_no_memory(reading->out_error);
    for (size_t i = 0; i < report->device_count; i++) {
        struct tally_window *window = &reports->windows[reports->window_count++];

        *window = report->devices[i].window;
        window->node = report->job.node;
        window->start_unix_s = report->start_unix_s;
        reports->emulated += report->devices[i].emulated;
    }
    note_job(reports, report->job.id);
    if (report->job.rank >= 0)
        reports->ranks[reports->rank_count++] = (struct run_rank){
            report->job.id, report->job.step, report->job.ranked, report->job.rank, report->job.world_size};
    reports->documents[reports->count++] = json_incref(reading->document);
    return 0;
}

static int read_report(const struct reading_of *reading, struct run_reports *reports, const char *wanted)
{
    struct report report;
    int code = read_shape(reading, &head_shape, &report);

    if (code < 0)
        return code;
    if (wanted != NULL && strcmp(report.job.id, wanted) != 0) {
        reports->passed_over++;
        return 0;
    }
    code = read_shape(reading, &report_shape, &report);
    return code == 0 ? take_report(reading, reports, &report) : code;
}

int run_reports_read_text(struct run_reports *reports, const char *name, const char *text, size_t length,
                          const char *job, struct fly_error *out_error)
{
    struct shape_fault fault;
    struct arena arena;
    struct reading_of reading = {
        .name = name, .text = text, .length = length, .arena = &arena, .out_error = out_error};
    int code = shape_parse_as(text, length, SHAPE_LENIENT, &reading.document, &fault, NULL);

    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    if (code < 0)
        return error_set(out_error, FLY_EDATA,
                         "%s:%zu: not a JSON document: %.120s; give a report of 'flyball run --output'", name,
                         fault.line, fault.expected);
    arena_init(&arena, ARENA_MAX);
    code = read_report(&reading, reports, job);
    arena_deinit(&arena);
    json_decref(reading.document);
    return code;
}

static int cannot_read(const char *path, int error, struct fly_error *out_error)
{
    int code = error == ENOENT ? FLY_ENOTFOUND : error == EACCES ? FLY_EPERM : FLY_EREAD;

    return error_set(out_error, code, "cannot read '%s': %s; name the reports of 'flyball run --output'",
                     path, patient_file_cause(error));
}

static int read_file(struct run_reports *reports, const char *path, const char *job,
                     struct fly_error *out_error)
{
    FILE *file = patient_file_read(path);
    char bytes[READ_BYTES];
    struct buffer text;
    size_t count;
    int code = 0;

    if (file == NULL)
        return cannot_read(path, errno, out_error);
    buffer_init(&text, RUN_REPORT_BYTES_MAX);
    errno = 0;
    while (text.error == 0 && (count = fread(bytes, 1, sizeof bytes, file)) > 0)
        buffer_append(&text, bytes, count);
    if (ferror(file))
        code = cannot_read(path, errno, out_error);
    else if (text.error == FLY_ELIMIT)
        code = error_set(out_error, FLY_ELIMIT, "'%s': larger than %d MiB, so no report; leave it out", path,
                         RUN_REPORT_BYTES_MAX >> 20);
    else if (text.error < 0)
        code = error_no_memory(out_error);
    else
        code = run_reports_read_text(reports, path, text.data, text.length, job, out_error);
    buffer_deinit(&text);
    fclose(file);
    return code;
}

static int is_json(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return entry->d_name[0] != '.' && length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

static int compare_names(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static int read_directory(struct run_reports *reports, const char *path, const char *job,
                          struct fly_error *out_error)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_json, compare_names);
    int code = 0;

    if (count < 0)
        return cannot_read(path, errno, out_error);
    for (int i = 0; i < count; i++) {
        char *file = NULL;

        if (code == 0 && asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
            code = error_no_memory(out_error);
        else if (code == 0)
            code = read_file(reports, file, job, out_error);
        free(file);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int run_reports_read(struct run_reports *reports, const char *path, const char *job,
                     struct fly_error *out_error)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return read_directory(reports, path, job, out_error);
    return read_file(reports, path, job, out_error);
}
