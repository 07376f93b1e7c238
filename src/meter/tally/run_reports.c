/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/tally/run_reports.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/patient_file.h"
#include "shapes/json_place.h"
#include "shapes/json_words.h"

enum { PATH_SIZE = 96, PARENT_SIZE = 40, READ_BYTES = 1 << 16, SHOWN_MAX = 40, DEPTH_MAX = 64 };

/* Beyond any energy, time and date; so that sums and differences stay finite. */
static const double number_max = 1e15;

static const char schema[] = "flyball.run/1";

/* A report that is being read. */
struct reading_of {
    const char *name;
    const char *text;
    struct fly_error *out_error;
    int code; /* the first failure */
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
    free(reports->windows);
    run_reports_init(reports);
}

static void refuse(struct reading_of *reading, const char *path, const json_t *found, const char *expected)
{
    char *shown = found != NULL ? json_words(found, READ_BYTES) : NULL;
    char field[PATH_SIZE];

    if (reading->code < 0) {
        free(shown);
        return;
    }
    snprintf(field, sizeof field, "%s", path + 1);
    for (char *at = strchr(field, '/'); at != NULL; at = strchr(at, '/'))
        *at = '.';
    reading->code = error_set(
        reading->out_error, FLY_EDATA,
        "%s:%zu: field '%s': expected %s, found %.*s; give a report of 'flyball run --output'", reading->name,
        json_place_line(reading->text, path), field, expected, SHOWN_MAX, shown != NULL ? shown : "nothing");
    free(shown);
}

/* The member of an object, with its path; NULL, and refused, where `object` is none. */
static const json_t *member(const json_t *object, const char *parent, const char *key, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/%s", parent, key);
    return json_object_get(object, key);
}

static const char *text_of(struct reading_of *reading, const json_t *object, const char *parent,
                           const char *key)
{
    char path[PATH_SIZE];
    const json_t *found = member(object, parent, key, path);
    const char *text = json_string_value(found);

    if (text == NULL || text[0] == '\0')
        refuse(reading, path, found, "a text");
    return text != NULL ? text : "";
}

/* A number of at least `minimum`; NAN for null where that is allowed. */
static double number_of(struct reading_of *reading, const json_t *object, const char *parent, const char *key,
                        double minimum, bool may_be_null)
{
    char path[PATH_SIZE];
    char expected[PATH_SIZE];
    const json_t *found = member(object, parent, key, path);
    double number = json_number_value(found);

    if (json_is_null(found) && may_be_null)
        return NAN;
    if (!json_is_number(found) || number < minimum || number > number_max) {
        snprintf(expected, sizeof expected, "a number from %g to %g%s", minimum, number_max,
                 may_be_null ? ", or null" : "");
        refuse(reading, path, found, expected);
    }
    return number;
}

static bool flag_of(struct reading_of *reading, const json_t *object, const char *parent, const char *key)
{
    char path[PATH_SIZE];
    const json_t *found = member(object, parent, key, path);

    if (!json_is_boolean(found))
        refuse(reading, path, found, "true or false");
    return json_is_true(found);
}

static enum device_kind kind_of(struct reading_of *reading, const json_t *object, const char *parent)
{
    const char *text = text_of(reading, object, parent, "kind");
    char path[PATH_SIZE];
    const json_t *found = member(object, parent, "kind", path);

    for (enum device_kind kind = 0; kind < DEVICE_KIND_COUNT; kind++) {
        if (strcmp(text, device_kind_name(kind)) == 0)
            return kind;
    }
    refuse(reading, path, found, "GPU, CPU or DRAM");
    return DEVICE_GPU;
}

static void read_device(struct reading_of *reading, const json_t *device, size_t index, const char *node,
                        double start_unix_s, struct run_reports *reports)
{
    char path[PARENT_SIZE];

    snprintf(path, sizeof path, "/devices/%zu", index);
    reports->windows[reports->window_count++] =
        (struct tally_window){.node = node,
                              .kind = kind_of(reading, device, path),
                              .uuid = text_of(reading, device, path, "uuid"),
                              .start_unix_s = start_unix_s,
                              .time_s = number_of(reading, device, path, "time_s", 0, false),
                              .energy_j = number_of(reading, device, path, "energy_j", 0, true),
                              .uncertainty_j = number_of(reading, device, path, "uncertainty_j", 0, true),
                              .counted = flag_of(reading, device, path, "counted")};
    reports->emulated += flag_of(reading, device, path, "emulated");
}

/* Makes room for one more report with that many windows. */
static bool grow(struct run_reports *reports, size_t windows)
{
    size_t count = reports->window_count + windows;
    struct tally_window *more = realloc(reports->windows, (count + 1) * sizeof *more);
    json_t **documents;

    if (more == NULL)
        return false;
    reports->windows = more;
    documents = realloc(reports->documents, (reports->count + 1) * sizeof(json_t *));
    if (documents == NULL)
        return false;
    reports->documents = documents;
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

/* Takes the report in; `document` becomes the reports' when it is theirs. */
static int take_document(struct reading_of *reading, struct run_reports *reports, json_t *document,
                         const char *wanted)
{
    const json_t *devices = json_object_get(document, "devices");
    const json_t *about = json_object_get(document, "job");
    const char *found_schema = json_string_value(json_object_get(document, "schema"));
    size_t before = reports->window_count;
    size_t emulated = reports->emulated;
    const char *job, *node;
    double start_unix_s;

    if (found_schema == NULL || strcmp(found_schema, schema) != 0)
        refuse(reading, "/schema", json_object_get(document, "schema"), "\"flyball.run/1\"");
    start_unix_s = number_of(reading, document, "", "start_unix_s", 0, false);
    job = text_of(reading, about, "/job", "id");
    node = text_of(reading, about, "/job", "node");
    if (!json_is_array(devices))
        refuse(reading, "/devices", devices, "a list of devices");
    if (reading->code < 0)
        return reading->code;
    if (wanted != NULL && strcmp(job, wanted) != 0) {
        reports->passed_over++;
        json_decref(document);
        return 0;
    }
    if (!grow(reports, json_array_size(devices)))
        return error_no_memory(reading->out_error);
    for (size_t i = 0; i < json_array_size(devices); i++)
        read_device(reading, json_array_get(devices, i), i, node, start_unix_s, reports);
    if (reading->code < 0) {
        reports->window_count = before;
        reports->emulated = emulated;
        return reading->code;
    }
    note_job(reports, job);
    reports->documents[reports->count++] = document;
    return 0;
}

int run_reports_read_text(struct run_reports *reports, const char *name, const char *text, size_t length,
                          const char *job, struct fly_error *out_error)
{
    struct reading_of reading = {.name = name, .text = text, .out_error = out_error};
    json_error_t fault;
    json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
    int code;

    if (document == NULL && json_error_code(&fault) == json_error_out_of_memory)
        return error_no_memory(out_error);
    if (document == NULL)
        return error_set(out_error, FLY_EDATA,
                         "%s:%d: not a JSON document: %.120s; give a report of 'flyball run --output'", name,
                         fault.line > 0 ? fault.line : 1, fault.text);
    code = take_document(&reading, reports, document, job);
    if (code < 0)
        json_decref(document);
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
