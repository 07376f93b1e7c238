/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tuner/saved_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/adler32.h"
#include "base/atomic_file.h"
#include "base/error.h"

static const char format_name[] = "flyball power profile 1";

/* The part of a file's name that a person reads. */
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
    char name[160] = "", whole[4 * PROFILE_TEXT_MAX];
    int length;

    /* That of a limit is as it was before there was another knob. */
    snprintf(whole, sizeof whole, "%s\n%s\n%s\n%" PRIu64 "\n%" PRIu64 "%s", key->gpu_model, key->driver,
             key->job_name, key->batch_size, key->gpu_count, key->knob == FLY_TUNER_CLOCK ? "\nclock" : "");
    /* Two keys may read alike; the sum tells them apart, and the content is checked besides. */
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

static bool text_is(const json_t *object, const char *member, const char *expected)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text != NULL && strcmp(text, expected) == 0;
}

static bool count_is(const json_t *object, const char *member, uint64_t expected)
{
    const json_t *value = json_object_get(object, member);

    return json_is_integer(value) && json_integer_value(value) == (json_int_t)expected;
}

/* A number above 0, or, where `zero` is allowed, from 0 on. */
static bool read_number(const json_t *object, const char *member, bool zero, double *out_value)
{
    const json_t *value = json_object_get(object, member);
    double number = json_number_value(value);

    if (!json_is_number(value) || !isfinite(number) || number < 0.0 || (number == 0.0 && !zero))
        return false;
    *out_value = number;
    return true;
}

static struct fly_tuner_point *find(struct fly_tuner_point *points, size_t count, double limit_w)
{
    for (size_t i = 0; i < count; i++) {
        if (points[i].limit_w == limit_w)
            return &points[i];
    }
    return NULL;
}

static const char *const setting_names[] = {
    [FLY_TUNER_POWER_LIMIT] = "limit_w", [FLY_TUNER_CLOCK] = "ceiling_mhz"};
static const char *const bound_names[] = {"unknown", "no", "yes"};

/* Why the entry cannot be taken, or NULL. */
static const char *read_point(const json_t *entry, enum fly_tuner_knob knob, struct fly_tuner_point *points,
                              size_t count)
{
    struct fly_tuner_point read = {.mark = FLY_TUNER_VALID, .energy_error = NAN, .capped_share = NAN}, *point;

    if (!read_number(entry, setting_names[knob], false, &read.limit_w) ||
        !read_number(entry, "power_w", false, &read.power_w) ||
        !read_number(entry, "time_s", false, &read.time_s) ||
        !read_number(entry, "time_error", true, &read.time_error))
        return "a point lacks a number above 0";
    if (json_object_get(entry, "energy_error") != NULL &&
        !read_number(entry, "energy_error", true, &read.energy_error))
        return "a point's energy_error is no number";
    point = find(points, count, read.limit_w);
    if (point == NULL)
        return "a limit is not one to try here";
    if (point->mark != FLY_TUNER_NOT_MEASURED)
        return "a limit stands there twice";
    for (size_t i = 0; i < sizeof bound_names / sizeof bound_names[0]; i++) {
        if (text_is(entry, "bound", bound_names[i]))
            read.bound = (enum fly_tuner_bound)i;
    }
    *point = read;
    return NULL;
}

static const char *read_document(const json_t *document, const struct profile_key *key,
                                 struct fly_tuner_point *points, size_t count, size_t *out_read)
{
    const json_t *entries = json_object_get(document, "points"), *entry;
    size_t index;

    if (!text_is(document, "format", format_name))
        return "is no profile of this version";
    /* Profiles of limits need not say so: there was no other knob. */
    if (json_object_get(document, "knob") != NULL ? !text_is(document, "knob", fly_tuner_knob_name(key->knob))
                                                  : key->knob != FLY_TUNER_POWER_LIMIT)
        return "was measured with another knob";
    if (!text_is(document, "gpu_model", key->gpu_model) || !text_is(document, "driver", key->driver) ||
        !count_is(document, "gpu_count", key->gpu_count))
        return "was measured on other GPUs or with another driver";
    if (!text_is(document, "job_name", key->job_name) || !count_is(document, "batch_size", key->batch_size))
        return "is another job's";
    if (!json_is_array(entries) || json_array_size(entries) == 0)
        return "has no points";
    json_array_foreach(entries, index, entry)
    {
        const char *why = read_point(entry, key->knob, points, count);

        if (why != NULL)
            return why;
    }
    *out_read = json_array_size(entries);
    return NULL;
}

int profile_read_text(const char *name, const char *text, size_t length, const struct profile_key *key,
                      struct fly_tuner_point *points, size_t count, size_t *out_read,
                      struct fly_error *out_error)
{
    struct fly_tuner_point *taken = malloc((count + 1) * sizeof *taken);
    json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    const char *why = "is not JSON";
    int code = 0;

    if (taken == NULL) {
        json_decref(document);
        return error_no_memory(out_error);
    }
    memcpy(taken, points, count * sizeof *taken);
    if (document != NULL)
        why = read_document(document, key, taken, count, out_read);
    if (why == NULL)
        memcpy(points, taken, count * sizeof *taken);
    else
        code = refuse(name, why, out_error);
    json_decref(document);
    free(taken);
    return code;
}

/* A regular file's bytes into `text`; its length, or a negative code. */
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

static json_t *document_of(const struct profile_key *key, const struct fly_tuner_point *points, size_t count)
{
    json_t *entries = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *entry;

        if (points[i].mark != FLY_TUNER_VALID)
            continue;
        entry = json_pack("{s:f, s:f, s:f, s:f, s:s}", setting_names[key->knob], points[i].limit_w, "power_w",
                          points[i].power_w, "time_s", points[i].time_s, "time_error", points[i].time_error,
                          "bound", bound_names[points[i].bound]);
        if (isfinite(points[i].energy_error))
            json_object_set_new(entry, "energy_error", json_real(points[i].energy_error));
        json_array_append_new(entries, entry);
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o}", "format", format_name, "knob",
                     fly_tuner_knob_name(key->knob), "gpu_model", key->gpu_model, "driver", key->driver,
                     "job_name", key->job_name, "batch_size", (json_int_t)key->batch_size, "gpu_count",
                     (json_int_t)key->gpu_count, "points", entries);
}

int profile_write(const char *path, const struct profile_key *key, const struct fly_tuner_point *points,
                  size_t count, struct fly_error *out_error)
{
    json_t *document = document_of(key, points, count);
    struct atomic_file file;
    int code;

    if (document == NULL)
        return error_set(out_error, FLY_EWRITE,
                         "saved profile '%s': a name is not UTF-8; give the job another", path);
    code = atomic_file_open(path, &file, out_error);
    if (code == 0) {
        (void)json_dumpf(document, file.stream, JSON_INDENT(2));
        fputc('\n', file.stream);
        code = atomic_file_commit(&file, out_error);
    }
    json_decref(document);
    return code;
}
