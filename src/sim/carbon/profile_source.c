/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/carbon/profile_source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/patient_file.h"
#include "base/math/order.h"
#include "base/number.h"
#include "base/text/csv.h"
#include "model/objective_check.h"
#include "shapes/shape_rows.h"
#include "sim/world/job_description.h"
#include "sim/world/trace.h"

enum { PATH_BYTES = 4096, JSON_BYTES_MAX = 1 << 20, GPUS_MOST = (1 << 20) - 1, ARENA_MAX = 64 << 20 };

static int add_point(struct profile_source *profile, const char *name, struct fly_power_point point,
                     struct fly_error *out_error)
{
    if (profile->count == PROFILE_SOURCE_POINTS_MAX)
        return error_set(out_error, FLY_ELIMIT, "%s: expected at most %d power limits", name,
                         PROFILE_SOURCE_POINTS_MAX);
    if (!objective_positive(point.limit_w) || !objective_positive(point.power_w) ||
        !objective_positive(point.time_s))
        return error_set(out_error, FLY_EDATA,
                         "%s: limit %g W, power %g W, time %g s: expected numbers above 0; leave out what "
                         "is unknown",
                         name, point.limit_w, point.power_w, point.time_s);
    for (size_t i = 0; i < profile->count; i++) {
        if (profile->points[i].limit_w == point.limit_w)
            return error_set(out_error, FLY_EDATA, "%s: the limit of %g W stands there twice", name,
                             point.limit_w);
    }
    profile->points[profile->count++] = point;
    return 0;
}

static int compare_points(const void *left, const void *right)
{
    const struct fly_power_point *a = left, *b = right;

    return order_doubles(&a->limit_w, &b->limit_w);
}

static int finish(struct profile_source *profile, const char *name, struct fly_error *out_error)
{
    if (profile->count == 0)
        return error_set(out_error, FLY_EDATA, "%s: not one power limit stands there", name);
    qsort(profile->points, profile->count, sizeof profile->points[0], compare_points);
    return 0;
}

/* Splits "DIR,gpu,workload,batch"; the directory may contain commas. */
static int split_trace(char *text, char *parts[4], uint64_t *out_batch)
{
    for (int i = 3; i > 0; i--) {
        char *comma = strrchr(text, ',');

        if (comma == NULL)
            return -1;
        *comma = '\0';
        parts[i] = comma + 1;
    }
    parts[0] = text;
    return number_parse_u64(parts[3], UINT32_MAX, out_batch) ? 0 : -1;
}

static const struct job_description *find_job(const char *name)
{
    for (size_t i = 0; i < known_job_count; i++) {
        if (strcmp(known_jobs[i].name, name) == 0)
            return &known_jobs[i];
    }
    return NULL;
}

static int take_trace(const struct trace *trace, const struct job_description *job, uint64_t batch,
                      struct profile_source *profile, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < trace->power_count && code == 0; i++) {
        const struct power_row *row = &trace->power[i];

        if (strcmp(row->dataset, job->dataset) == 0 && strcmp(row->network, job->network) == 0 &&
            strcmp(row->optimizer, job->optimizer) == 0 && row->batch_size == batch)
            code =
                add_point(profile, trace->power_path,
                          (struct fly_power_point){row->limit_w, row->power_w, row->epoch_time_s}, out_error);
    }
    if (code == 0 && profile->count == 0)
        return error_set(out_error, FLY_ENOTFOUND,
                         "%s: workload '%s' has no rows of batch size %llu; give another batch size",
                         trace->power_path, job->name, (unsigned long long)batch);
    return code;
}

static int read_trace(const char *source, struct profile_source *profile, struct fly_error *out_error)
{
    const struct job_description *job;
    char text[PATH_BYTES], *parts[4];
    struct trace trace;
    uint64_t batch;
    int code;

    snprintf(text, sizeof text, "%s", source);
    if (strlen(source) >= sizeof text || split_trace(text, parts, &batch) < 0)
        return error_set(out_error, FLY_EUSAGE,
                         "profile 'traces:%.200s': expected traces:DIR,gpu,workload,batch, as in "
                         "traces:zeus_nsdi23,v100,imagenet,256",
                         source);
    job = find_job(parts[2]);
    if (job == NULL)
        return error_set(out_error, FLY_ENOTFOUND,
                         "profile 'traces:%.200s': '%s' is none of the known workloads, as imagenet or "
                         "squad",
                         source, parts[2]);
    code = trace_open(&trace, parts[0], parts[1], out_error);
    if (code < 0)
        return code;
    code = take_trace(&trace, job, batch, profile, out_error);
    trace_close(&trace);
    profile->gpus = 1;
    return code;
}

/* Finds which of gpu0_energy, gpu1_energy ... the file has; returns how many. */
static size_t find_gpus(const char *path, char names[PROFILE_SOURCE_GPUS_MAX][24])
{
    size_t count = 0;

    for (int i = 0; i < PROFILE_SOURCE_GPUS_MAX; i++) {
        const char *column = names[count];
        struct csv csv;

        snprintf(names[count], 24, "gpu%d_energy", i);
        if (csv_open(&csv, path, &column, 1, NULL) < 0)
            continue;
        csv_close(&csv);
        count++;
    }
    return count;
}

static int read_window(const struct csv *csv, size_t gpus, struct profile_source *profile,
                       struct fly_error *out_error)
{
    const char *name = csv_field(csv, 0), *underscore = strrchr(name, '_');
    struct fly_power_point point = {.power_w = 0.0};
    double energy_j;
    int code;

    if (underscore == NULL || !number_parse_double(underscore + 1, &point.limit_w))
        return csv_refuse(csv, 0, "a window whose name ends in _ and its power limit in W",
                          "leave out other windows", out_error);
    code = csv_number(csv, 1, 0.0, 1e12, "a number of seconds above 0", &point.time_s, out_error);
    for (size_t i = 0; i < gpus && code == 0; i++) {
        code = csv_number(csv, 2 + i, 0.0, 1e12, "an energy in J above 0", &energy_j, out_error);
        if (code == 0)
            point.power_w += energy_j / point.time_s;
    }
    return code == 0 ? add_point(profile, csv->path, point, out_error) : code;
}

static int read_row(const struct csv *csv, struct profile_source *profile, struct fly_error *out_error)
{
    struct fly_power_point point = {.power_w = 0.0};
    int code = csv_number(csv, 0, 0.0, 1e12, "a power limit in W above 0", &point.limit_w, out_error);

    /* A limit that was not measured has empty fields. */
    if (code == 0 && (csv_field(csv, 1)[0] == '\0' || csv_field(csv, 2)[0] == '\0'))
        return 0;
    if (code == 0)
        code = csv_number(csv, 1, 0.0, 1e12, "a power in W above 0", &point.power_w, out_error);
    if (code == 0)
        code = csv_number(csv, 2, 0.0, 1e12, "a time in s above 0", &point.time_s, out_error);
    return code == 0 ? add_point(profile, csv->path, point, out_error) : code;
}

static int read_csv(const char *path, struct profile_source *profile, struct fly_error *out_error)
{
    static const char *const row_columns[] = {"limit_w", "power_w", "step_time_s"};
    const char *columns[2 + PROFILE_SOURCE_GPUS_MAX] = {"window_name", "elapsed_time"};
    char names[PROFILE_SOURCE_GPUS_MAX][24];
    size_t gpus = find_gpus(path, names);
    struct csv csv;
    int code, more = 0;

    for (size_t i = 0; i < gpus; i++)
        columns[2 + i] = names[i];
    code = gpus > 0 ? csv_open(&csv, path, columns, 2 + gpus, out_error)
                    : csv_open(&csv, path, row_columns, 3, out_error);
    if (code < 0)
        return code;
    while (code == 0 && (more = csv_next(&csv, out_error)) > 0)
        code = gpus > 0 ? read_window(&csv, gpus, profile, out_error) : read_row(&csv, profile, out_error);
    csv_close(&csv);
    profile->gpus = gpus > 0 ? gpus : 1;
    return code == 0 ? more : code;
}

/* ---- JSON ---- */

/* The saved form has "points" with "time_s"; the printed one has "rows" with "step_time_s" and a mark. */
struct entry {
    double limit_w, power_w, time_s, step_time_s; /* NAN: null; 0: absent */
    bool has_time;
    const char *mark; /* NULL: absent */
};
static const struct entry entry_usual = {.limit_w = 0.0};
#define IS_FIGURE SHAPE_IS_NUMBER(SHAPE_ANY), .null = SHAPE_UNKNOWN, .loose = true
static const struct shape_field entry_rows[] = {
    {SHAPE_AT(entry, limit_w), IS_FIGURE, .need = SHAPE_OPTIONAL},
    {SHAPE_AT(entry, power_w), IS_FIGURE, .need = SHAPE_OPTIONAL},
    {SHAPE_AT(entry, time_s), IS_FIGURE, SHAPE_IF(entry, has_time)},
    {SHAPE_AT(entry, step_time_s), IS_FIGURE, .need = SHAPE_OPTIONAL},
    {SHAPE_AT(entry, mark), SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .null = SHAPE_OR_NULL,
     .loose = true},
};
static const struct shape entry_shape = {SHAPE_OF(entry, entry_rows), .defaults = &entry_usual};

struct entries {
    const struct entry *all;
    size_t count;
};
static const struct shape_field entries_rows[] = {
    {SHAPE_AT(entries, all), SHAPE_IS_STRUCTS(&entry_shape, UINT32_MAX, entries, count), .loose = true}};
static const struct shape entries_shape = {SHAPE_OF(entries, entries_rows), .bare = true};

struct document {
    json_t *points, *rows; /* borrowed; NULL: absent */
    uint32_t gpu_count;
};
static const struct document document_usual = {.gpu_count = 1};
static const struct shape_field document_rows[] = {
    {SHAPE_AT(document, points), .kind = SHAPE_JSON, .need = SHAPE_OPTIONAL},
    {SHAPE_AT(document, rows), .kind = SHAPE_JSON, .need = SHAPE_OPTIONAL},
    {SHAPE_AT(document, gpu_count), SHAPE_IS_U32(1, GPUS_MOST), .need = SHAPE_OPTIONAL, .loose = true},
};
static const struct shape document_shape = {SHAPE_OF(document, document_rows), .defaults = &document_usual};

static double zero_for_null(double figure)
{
    return isnan(figure) ? 0.0 : figure;
}

static int take_entry(const char *name, const struct entry *entry, struct profile_source *profile,
                      struct fly_error *out_error)
{
    double time_s = entry->has_time ? entry->time_s : entry->step_time_s;
    struct fly_power_point point = {zero_for_null(entry->limit_w), zero_for_null(entry->power_w),
                                    zero_for_null(time_s)};

    /* A limit without a valid point has null there, and a mark that says why. */
    if (entry->mark != NULL && (isnan(time_s) || isnan(entry->power_w)))
        return 0;
    return add_point(profile, name, point, out_error);
}

static int take_document(const char *name, json_t *json, struct arena *arena, struct profile_source *profile,
                         struct fly_error *out_error)
{
    struct document document = document_usual;
    struct entries entries = {.count = 0};
    int code = shape_read_as(&document_shape, json, SHAPE_BORROWING, arena, &document, NULL, NULL);

    if (code == 0)
        code = shape_read_as(&entries_shape, document.points != NULL ? document.points : document.rows,
                             SHAPE_BORROWING, arena, &entries, NULL, NULL);
    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    if (code < 0)
        return error_set(out_error, FLY_EDATA,
                         "%s: expected JSON with 'points' or 'rows', as 'flyball profile' writes it", name);
    profile->gpus = document.gpu_count;
    for (size_t i = 0; i < entries.count && code == 0; i++)
        code = take_entry(name, &entries.all[i], profile, out_error);
    return code;
}

int profile_source_parse(const char *name, const char *text, size_t length,
                         struct profile_source *out_profile, struct fly_error *out_error)
{
    struct profile_source profile = {.gpus = 1};
    struct arena arena;
    json_t *json = NULL;
    int code;

    (void)shape_parse_as(text, length, SHAPE_LENIENT, &json, NULL, NULL);
    arena_init(&arena, ARENA_MAX);
    code = take_document(name, json, &arena, &profile, out_error);
    arena_deinit(&arena);
    json_decref(json);
    if (code == 0)
        code = finish(&profile, name, out_error);
    if (code == 0)
        *out_profile = profile;
    return code;
}

static int read_json(const char *path, struct profile_source *profile, struct fly_error *out_error)
{
    FILE *file = patient_file_read(path);
    char *text = malloc(JSON_BYTES_MAX);
    size_t length = 0;
    int code = 0;

    if (file == NULL)
        code = error_set(out_error, errno == ENOENT ? FLY_ENOTFOUND : FLY_EREAD, "profile '%s': %s", path,
                         patient_file_cause(errno));
    else if (text == NULL)
        code = error_no_memory(out_error);
    else
        length = fread(text, 1, JSON_BYTES_MAX, file);
    if (code == 0 && ferror(file))
        code = error_set(out_error, FLY_EREAD, "profile '%s': %s", path, patient_file_cause(errno));
    if (code == 0 && length == JSON_BYTES_MAX)
        code = error_set(out_error, FLY_ELIMIT, "profile '%s': more than %d bytes; is it a profile?", path,
                         JSON_BYTES_MAX);
    if (code == 0)
        code = profile_source_parse(path, text, length, profile, out_error);
    if (file != NULL)
        fclose(file);
    free(text);
    return code;
}

int profile_source_read(const char *source, struct profile_source *out_profile, struct fly_error *out_error)
{
    static const char traces[] = "traces:";
    struct profile_source profile = {.gpus = 1};
    size_t length = strlen(source);
    int code;

    if (strncmp(source, traces, sizeof traces - 1) == 0)
        code = read_trace(source + sizeof traces - 1, &profile, out_error);
    else if (length > 5 && strcmp(source + length - 5, ".json") == 0)
        code = read_json(source, &profile, out_error);
    else
        code = read_csv(source, &profile, out_error);
    if (code == 0)
        code = finish(&profile, source, out_error);
    if (code == 0)
        *out_profile = profile;
    return code;
}
