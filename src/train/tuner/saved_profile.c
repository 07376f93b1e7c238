/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/saved_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/adler32.h"
#include "base/error.h"
#include "base/file/atomic_file.h"
#include "shapes/shape_rows.h"
#include "train/tuner/workload_setting.h"

enum { ARENA_MAX = 32 << 20, PROFILE_TEXT_BYTES_MAX = 16 << 20 };

static const char format_name[] = "flyball power profile 1";

/* ---- the file's format ---- */

struct document {
    const char *format;
    const char *knob;
    bool has_limit;
    double under_limit_w;
    const char *gpu_model, *driver, *job_name;
    uint64_t batch_size, gpu_count; /* UINT64_MAX: not in the file */
    const struct fly_tuner_point *points;
    size_t point_count;
};
static const struct document document_usual = {.batch_size = UINT64_MAX, .gpu_count = UINT64_MAX};
static const struct fly_tuner_point point_usual = {.energy_error = NAN};
static const char *const bound_names[] = {"unknown", "no", "yes"};

#define POINT_ROWS                                                                                       \
    {SHAPE_AT(fly_tuner_point, power_w), SHAPE_IS_NUMBER(SHAPE_ABOVE_0)},                                \
        {SHAPE_AT(fly_tuner_point, time_s), SHAPE_IS_NUMBER(SHAPE_ABOVE_0)},                             \
        {SHAPE_AT(fly_tuner_point, time_error), SHAPE_IS_NUMBER(SHAPE_FROM_0)},                          \
        {SHAPE_AT(fly_tuner_point, bound),                                                               \
         SHAPE_IS_WORD(bound_names, sizeof bound_names / sizeof bound_names[0]), .need = SHAPE_OPTIONAL, \
         .loose = true},                                                                                 \
    {                                                                                                    \
        SHAPE_AT(fly_tuner_point, energy_error), SHAPE_IS_NUMBER(SHAPE_FROM_0), .need = SHAPE_SPARING    \
    }

#define NUMBER_ROW(setting)                                                            \
    {                                                                                  \
        SHAPE_AT_AS(setting, fly_tuner_point, limit_w), SHAPE_IS_NUMBER(SHAPE_ABOVE_0) \
    }

static const struct shape_field limit_rows[] = {NUMBER_ROW("limit_w"), POINT_ROWS};
static const struct shape_field clock_rows[] = {NUMBER_ROW("ceiling_mhz"), POINT_ROWS};
static const struct shape_field workload_rows[] = {{SHAPE_AT_AS("profile", fly_tuner_point, limit_w),
                                                    .kind = SHAPE_CODED, .coding = &workload_setting_coding},
                                                   POINT_ROWS};
static const struct shape limit_shape = {SHAPE_OF(fly_tuner_point, limit_rows), .defaults = &point_usual};
static const struct shape clock_shape = {SHAPE_OF(fly_tuner_point, clock_rows), .defaults = &point_usual};
static const struct shape workload_shape = {SHAPE_OF(fly_tuner_point, workload_rows),
                                            .defaults = &point_usual};

/* The key is checked first: errors in the points of another key's profile are not reported. */
#define IS_KEY .need = SHAPE_OPTIONAL, .loose = true
#define KEY_ROWS                                                                                           \
    {SHAPE_AT(document, format), SHAPE_IS_TEXT(UINT32_MAX), IS_KEY},                                       \
        {SHAPE_AT(document, knob), SHAPE_IS_TEXT(UINT32_MAX), IS_KEY},                                     \
        {SHAPE_AT(document, under_limit_w), SHAPE_IS_NUMBER(SHAPE_ABOVE_0), SHAPE_IF(document, has_limit), \
         .loose = true},                                                                                   \
        {SHAPE_AT(document, gpu_model), SHAPE_IS_TEXT(UINT32_MAX), IS_KEY},                                \
        {SHAPE_AT(document, driver), SHAPE_IS_TEXT(UINT32_MAX), IS_KEY},                                   \
        {SHAPE_AT(document, job_name), SHAPE_IS_TEXT(UINT32_MAX), IS_KEY},                                 \
        {SHAPE_AT(document, batch_size), SHAPE_IS_U64(0, INT64_MAX), IS_KEY},                              \
    {                                                                                                      \
        SHAPE_AT(document, gpu_count), SHAPE_IS_U64(0, INT64_MAX), IS_KEY                                  \
    }
#define POINTS_ROW(shape)                                                                      \
    {                                                                                          \
        SHAPE_AT(document, points), SHAPE_IS_STRUCTS(shape, UINT32_MAX, document, point_count) \
    }

static const struct shape_field key_rows[] = {KEY_ROWS};
static const struct shape_field limit_document_rows[] = {KEY_ROWS, POINTS_ROW(&limit_shape)};
static const struct shape_field clock_document_rows[] = {KEY_ROWS, POINTS_ROW(&clock_shape)};
static const struct shape_field workload_document_rows[] = {KEY_ROWS, POINTS_ROW(&workload_shape)};
static const struct shape key_shape = {SHAPE_OF(document, key_rows), .defaults = &document_usual};
static const struct shape document_shapes[] = {
    [FLY_TUNER_POWER_LIMIT] = {SHAPE_OF(document, limit_document_rows), .defaults = &document_usual},
    [FLY_TUNER_CLOCK] = {SHAPE_OF(document, clock_document_rows), .defaults = &document_usual},
    [FLY_TUNER_PROFILE] = {SHAPE_OF(document, workload_document_rows), .defaults = &document_usual},
};

/* ---- the file's name ---- */

/* Appends the readable part of the name. */
static void append_readable(char *name, size_t capacity, const char *text)
{
    size_t at = strlen(name);

    for (; *text != '\0' && at + 2 < capacity; text++) {
        bool plain = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *text) != NULL;

        name[at++] = *text;
        if (!plain)
            name[at - 1] = '_';
    }
    name[at++] = '-';
    name[at] = '\0';
}

int profile_path(const char *directory, const struct profile_key *key, char path[PROFILE_PATH_MAX],
                 struct fly_error *out_error)
{
    char name[160] = "", whole[4 * PROFILE_TEXT_MAX], limit[32] = "";
    int length;

    /* Names of profiles of limits have no word for their knob. */
    if (key->under_limit_w > 0.0)
        snprintf(limit, sizeof limit, "\n%g W", key->under_limit_w);
    snprintf(whole, sizeof whole, "%s\n%s\n%s\n%" PRIu64 "\n%" PRIu64 "%s%s", key->gpu_model, key->driver,
             key->job_name, key->batch_size, key->gpu_count,
             key->knob == FLY_TUNER_CLOCK     ? "\nclock"
             : key->knob == FLY_TUNER_PROFILE ? "\nprofile"
                                              : "",
             limit);
    /* Two keys may read alike. The checksum tells them apart, and the content is checked as well. */
    append_readable(name, 50, key->job_name);
    append_readable(name, 100, key->gpu_model);
    length = snprintf(path, PROFILE_PATH_MAX, "%s/flyball-%s%" PRIu64 "-%08" PRIx32 ".json", directory, name,
                      key->batch_size, adler32(whole));
    if (length >= PROFILE_PATH_MAX)
        return error_set(out_error, FLY_ELIMIT, "saved profile: directory '%.200s' has too long a name",
                         directory);
    return 0;
}

static int refuse(const char *name, const char *why, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA, "saved profile '%s': %s; measuring anew", name, why);
}

static struct fly_tuner_point *find(struct fly_tuner_point *points, size_t count, double limit_w)
{
    for (size_t i = 0; i < count; i++) {
        if (points[i].limit_w == limit_w)
            return &points[i];
    }
    return NULL;
}

/* Returns why the point cannot be taken, or NULL. */
static const char *take_point(const struct fly_tuner_point *read, struct fly_tuner_point *points,
                              size_t count)
{
    struct fly_tuner_point *point = find(points, count, read->limit_w);

    if (point == NULL)
        return "a limit is not one to try here";
    if (point->mark != FLY_TUNER_NOT_MEASURED)
        return "a limit stands there twice";
    *point = *read;
    point->mark = FLY_TUNER_VALID;
    point->capped_share = NAN;
    return NULL;
}

static const char *knob_name(const struct profile_key *key)
{
    return fly_tuner_knob_name(key->under_limit_w > 0.0 ? FLY_TUNER_BOTH : key->knob);
}

/* Returns how the document differs from the key, or NULL. */
static const char *check_key(const struct document *document, const struct profile_key *key)
{
    if (strcmp(document->format, format_name) != 0)
        return "is no profile of this version";
    if (strcmp(document->knob, knob_name(key)) != 0)
        return "was measured with another knob";
    if (key->under_limit_w > 0.0 && (!document->has_limit || document->under_limit_w != key->under_limit_w))
        return "was measured under another limit";
    if (strcmp(document->gpu_model, key->gpu_model) != 0 || strcmp(document->driver, key->driver) != 0 ||
        document->gpu_count != key->gpu_count)
        return "was measured on other GPUs or with another driver";
    if (strcmp(document->job_name, key->job_name) != 0 || document->batch_size != key->batch_size)
        return "is another job's";
    return NULL;
}

static int read_points(const char *name, json_t *json, const struct profile_key *key, struct arena *arena,
                       struct document *document, struct fly_error *out_error)
{
    struct shape_fault fault;
    char why[SHAPE_EXPECTED_MAX + SHAPE_PATH_SHOWN];
    int code = shape_read_as(&document_shapes[key->knob], json, SHAPE_LENIENT, arena, document, &fault, NULL);

    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    if ((code == 0 && document->point_count == 0) || (code < 0 && strcmp(fault.path, "points") == 0))
        return refuse(name, "has no points", out_error);
    if (code == 0)
        return 0;
    snprintf(why, sizeof why, "member '%.120s': expected %.120s, found %s", fault.path, fault.expected,
             fault.found);
    return refuse(name, why, out_error);
}

static int read_document(const char *name, json_t *json, const struct profile_key *key, struct arena *arena,
                         struct document *document, struct fly_error *out_error)
{
    const char *why;
    int code = shape_read_as(&key_shape, json, SHAPE_LENIENT, arena, document, NULL, NULL);

    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    why = code == 0 ? check_key(document, key) : "is no profile of this version";
    return why == NULL ? read_points(name, json, key, arena, document, out_error)
                       : refuse(name, why, out_error);
}

static int take_document(const char *name, const struct document *document, struct fly_tuner_point *points,
                         size_t count, size_t *out_read, struct fly_error *out_error)
{
    struct fly_tuner_point *taken = malloc((count + 1) * sizeof *taken);
    const char *why = NULL;

    if (taken == NULL)
        return error_no_memory(out_error);
    memcpy(taken, points, count * sizeof *taken);
    for (size_t i = 0; i < document->point_count && why == NULL; i++)
        why = take_point(&document->points[i], taken, count);
    if (why == NULL) {
        memcpy(points, taken, count * sizeof *taken);
        *out_read = document->point_count;
    }
    free(taken);
    return why == NULL ? 0 : refuse(name, why, out_error);
}

int profile_read_text(const char *name, const char *text, size_t length, const struct profile_key *key,
                      struct fly_tuner_point *points, size_t count, size_t *out_read,
                      struct fly_error *out_error)
{
    struct document document;
    struct arena arena;
    json_t *json = NULL;
    int code = shape_parse_as(text, length, SHAPE_LENIENT, &json, NULL, NULL);

    if (code < 0)
        return code == FLY_ENOMEM ? error_no_memory(out_error) : refuse(name, "is not JSON", out_error);
    arena_init(&arena, ARENA_MAX);
    code = read_document(name, json, key, &arena, &document, out_error);
    if (code == 0)
        code = take_document(name, &document, points, count, out_read, out_error);
    arena_deinit(&arena);
    json_decref(json);
    return code;
}

/* Reads a regular file into `text`; returns 0 or a negative code. */
static int read_bytes(const char *path, char *text, size_t capacity, size_t *out_length,
                      struct fly_error *out_error)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int code = 0, cause = errno;
    struct stat status;
    size_t length = 0;
    ssize_t got = 1;

    if (file < 0)
        return error_set(out_error, cause == ENOENT ? FLY_ENOTFOUND : FLY_EREAD,
                         "saved profile '%s': %s; measuring anew", path, strerror(cause));
    if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size >= (off_t)capacity)
        code = refuse(path, "is no file of a profile's size", out_error);
    while (code == 0 && got > 0 && length < capacity) {
        got = read(file, text + length, capacity - length);
        length += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        code =
            error_set(out_error, FLY_EREAD, "saved profile '%s': %s; measuring anew", path, strerror(errno));
    close(file);
    *out_length = length;
    return code;
}

int profile_read(const char *path, const struct profile_key *key, struct fly_tuner_point *points,
                 size_t count, size_t *out_read, struct fly_error *out_error)
{
    char *text = malloc(PROFILE_BYTES_MAX);
    size_t length = 0;
    int code;

    if (text == NULL)
        return error_no_memory(out_error);
    code = read_bytes(path, text, PROFILE_BYTES_MAX, &length, out_error);
    if (code == 0)
        code = profile_read_text(path, text, length, key, points, count, out_read, out_error);
    free(text);
    return code;
}

/* ---- writing ---- */

static bool is_sound(const struct fly_tuner_point *point)
{
    return point->mark == FLY_TUNER_VALID && isfinite(point->limit_w) && point->limit_w > 0.0 &&
           isfinite(point->power_w) && point->power_w > 0.0 && isfinite(point->time_s) &&
           point->time_s > 0.0 && isfinite(point->time_error) && point->time_error >= 0.0;
}

/* Writes the file's text with the valid points; `valid` has room for all. */
static int put_document(const char *path, const struct profile_key *key, const struct fly_tuner_point *points,
                        size_t count, struct fly_tuner_point *valid, struct buffer *out,
                        struct fly_error *out_error)
{
    struct document document = {.format = format_name,
                                .knob = knob_name(key),
                                .has_limit = key->under_limit_w > 0.0,
                                .under_limit_w = key->under_limit_w,
                                .gpu_model = key->gpu_model,
                                .driver = key->driver,
                                .job_name = key->job_name,
                                .batch_size = key->batch_size,
                                .gpu_count = key->gpu_count,
                                .points = valid};
    int code;

    for (size_t i = 0; i < count; i++) {
        if (!is_sound(&points[i]))
            continue;
        valid[document.point_count] = points[i];
        if (!(points[i].energy_error >= 0.0 && isfinite(points[i].energy_error)))
            valid[document.point_count].energy_error = NAN;
        document.point_count++;
    }
    code = shape_put(&document_shapes[key->knob], &document, SHAPE_INDENTED, out, NULL);
    buffer_puts(out, "\n");
    if (code == FLY_ENOMEM || (code == 0 && out->error < 0))
        return error_no_memory(out_error);
    return code == 0 ? 0
                     : error_set(out_error, FLY_EWRITE,
                                 "saved profile '%s': a name is not UTF-8; give the job another", path);
}

static int write_text(const char *path, const struct buffer *text, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = atomic_file_open(path, &file, out_error);

    if (code < 0)
        return code;
    fwrite(text->data, 1, text->length, file.stream);
    return atomic_file_commit(&file, out_error);
}

int profile_write(const char *path, const struct profile_key *key, const struct fly_tuner_point *points,
                  size_t count, struct fly_error *out_error)
{
    struct fly_tuner_point *valid = calloc(count + 1, sizeof *valid);
    struct buffer text;
    int code;

    if (valid == NULL)
        return error_no_memory(out_error);
    buffer_init(&text, PROFILE_TEXT_BYTES_MAX);
    code = put_document(path, key, points, count, valid, &text, out_error);
    if (code == 0)
        code = write_text(path, &text, out_error);
    buffer_deinit(&text);
    free(valid);
    return code;
}
