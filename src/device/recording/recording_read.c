/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads recordings, line by line, into one series of changes for each quantity
 * of each device: what a reading asks for is then a binary search away.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/patient_file.h"
#include "device/recording/recording_private.h"

enum { FOUND_MAX = 40, FIRST_CAPACITY = 64, SECOND_NS = 1000000000, SECOND_US = 1000000 };

/* Where the reader stands in the file. */
struct reader {
    const char *name;
    const char *head; /* borrowed: what was read of the stream already */
    size_t head_left;
    FILE *stream;
    size_t line; /* number of the line in `text`, from 1 */
    char text[RECORDING_LINE_MAX + 1];
    size_t length;
    bool whole; /* the line has its end */
    size_t devices_read;
    struct recording *recording;
    recording_visit *visit; /* NULL: all is kept in the recording */
    void *context;
    struct reading (*said)[QUANTITY_COUNT]; /* owned; of each device, where it is visited */
};

/* "run.jsonl:17: field 'd': expected ..., found 9; ..." */
static int refuse(const struct reader *reader, const char *field, const json_t *found, const char *expected,
                  struct fly_error *out_error)
{
    char *text = found != NULL ? json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

    if (reader->line < 3)
        error_set(out_error, FLY_EDATA,
                  "%s:%zu: field '%s': expected %s, found %.*s; name a file that 'flyball record' wrote",
                  reader->name, reader->line, field, expected, FOUND_MAX, text != NULL ? text : "nothing");
    else
        error_set(out_error, FLY_EDATA,
                  "%s:%zu: field '%s': expected %s, found %.*s; keep the lines before it with 'head -n %zu', "
                  "or record again",
                  reader->name, reader->line, field, expected, FOUND_MAX, text != NULL ? text : "nothing",
                  reader->line - 1);
    free(text);
    return FLY_EDATA;
}

static int next_byte(struct reader *reader)
{
    if (reader->head_left == 0)
        return getc_unlocked(reader->stream);
    reader->head_left--;
    return (unsigned char)*reader->head++;
}

/* 1 with a line, 0 at the end of the file, or an error. */
static int next_line(struct reader *reader, struct fly_error *out_error)
{
    int c;

    reader->length = 0;
    reader->whole = false;
    while (!reader->whole && (c = next_byte(reader)) != EOF) {
        if (c == '\n') {
            reader->whole = true;
        } else if (reader->length == RECORDING_LINE_MAX) {
            return error_set(
                out_error, FLY_EDATA,
                "%s:%zu: the line is longer than %d bytes; name a file that 'flyball record' wrote",
                reader->name, reader->line + 1, RECORDING_LINE_MAX);
        } else {
            reader->text[reader->length++] = (char)c;
        }
    }
    reader->text[reader->length] = '\0';
    if (ferror(reader->stream))
        return error_set(out_error, FLY_EREAD, "%s: reading failed: %s; copy the file to a sound disk",
                         reader->name, patient_file_cause(errno));
    if (!reader->whole && reader->length == 0)
        return 0;
    reader->line++;
    return 1;
}

/* The object of the line that was read, or NULL with the error. */
static json_t *line_object(const struct reader *reader, struct fly_error *out_error)
{
    json_error_t fault;
    json_t *object = json_loadb(reader->text, reader->length, JSON_REJECT_DUPLICATES, &fault);

    if (object != NULL && json_is_object(object))
        return object;
    if (object != NULL) {
        json_decref(object);
        snprintf(fault.text, sizeof fault.text, "found no object");
        fault.column = 1;
    }
    error_set(out_error, FLY_EDATA, "%s:%zu:%d: expected one JSON object in the line: %.80s; %s",
              reader->name, reader->line, fault.column, fault.text,
              reader->line < 3 ? "name a file that 'flyball record' wrote"
                               : "keep the lines before it with 'head', or record again");
    return NULL;
}

static bool parse_date(const char *text, struct wall_time *out_date)
{
    struct tm utc = {0};
    const char *end = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc) : NULL;

    time_t seconds = end != NULL && *end == '\0' ? timegm(&utc) : -1;

    if (seconds < 0 || seconds > INT64_MAX / SECOND_NS)
        return false;
    out_date->ns = (int64_t)seconds * SECOND_NS;
    return true;
}

static int read_header(struct reader *reader, const json_t *line, struct fly_error *out_error)
{
    struct recording *recording = reader->recording;
    const json_t *schema = json_object_get(line, "schema"), *devices = json_object_get(line, "devices");
    const json_t *interval = json_object_get(line, "interval_s"), *date = json_object_get(line, "date");
    const json_t *unix_us = json_object_get(line, "unix_us");
    double interval_s = json_number_value(interval);

    if (!json_is_string(schema) || strcmp(json_string_value(schema), RECORDING_SCHEMA) != 0)
        return refuse(reader, "schema", schema, "\"" RECORDING_SCHEMA "\"", out_error);
    if (!json_is_integer(devices) || json_integer_value(devices) < 0 ||
        json_integer_value(devices) > DEVICES_MAX)
        return refuse(reader, "devices", devices, "a number of devices up to 128", out_error);
    if (!json_is_number(interval) || !(interval_s >= 0.0 && interval_s <= 86400.0))
        return refuse(reader, "interval_s", interval, "seconds, up to a day", out_error);
    if (!parse_date(json_string_value(date), &recording->date))
        return refuse(reader, "date", date, "a date such as \"2026-11-21T16:20:00Z\"", out_error);
    if (json_is_integer(unix_us) && json_integer_value(unix_us) / SECOND_US == recording->date.ns / SECOND_NS)
        recording->date.ns = json_integer_value(unix_us) * (SECOND_NS / SECOND_US);
    recording->interval_s = interval_s;
    recording->device_count = (size_t)json_integer_value(devices);
    recording->tracks = calloc(recording->device_count + 1, sizeof *recording->tracks);
    return recording->tracks != NULL ? 0 : error_no_memory(out_error);
}

static int read_fact(const struct reader *reader, const struct recording_fact *fact, const json_t *value,
                     void *facts, struct fly_error *out_error)
{
    char *at = (char *)facts + fact->offset;
    double number = json_number_value(value);

    if (value == NULL || (json_is_null(value) && fact->kind != FACT_FLAG))
        return 0;
    if (fact->kind == FACT_FLAG) {
        if (!json_is_boolean(value))
            return refuse(reader, fact->key, value, "true or false", out_error);
        *(bool *)(void *)at = json_is_true(value);
    } else if (fact->kind == FACT_TEXT) {
        if (!json_is_string(value) || json_string_length(value) >= fact->size)
            return refuse(reader, fact->key, value, "a short text or null", out_error);
        memcpy(at, json_string_value(value), json_string_length(value));
    } else {
        if (!json_is_number(value) || !(number > 0.0 && number <= fact->maximum))
            return refuse(reader, fact->key, value, "a number above 0 within its range, or null", out_error);
        memcpy(at, &number, sizeof number);
    }
    return 0;
}

static int read_facts(const struct reader *reader, const struct recording_fact *table, const json_t *object,
                      void *facts, struct fly_error *out_error)
{
    int code = 0;

    for (const struct recording_fact *fact = table; code == 0 && fact->key != NULL; fact++)
        code = read_fact(reader, fact, json_object_get(object, fact->key), facts, out_error);
    return code;
}

static int find_kind(const char *name)
{
    for (int kind = 0; name != NULL && kind < DEVICE_KIND_COUNT; kind++) {
        if (strcmp(name, device_kind_name((enum device_kind)kind)) == 0)
            return kind;
    }
    return -1;
}

static int read_sensor(const struct reader *reader, const json_t *line, struct track *track,
                       struct fly_error *out_error)
{
    static const struct recording_fact source = {"source", FACT_TEXT, 0, RECORDING_SOURCE_MAX, 0};
    const json_t *sensor = json_object_get(line, "sensor");
    int code = 0;

    if (!json_is_object(sensor))
        return refuse(reader, "sensor", sensor, "an object of sensor facts", out_error);
    code = read_facts(reader, recording_sensor_facts, sensor, &track->info.sensor, out_error);
    if (code == 0)
        code = read_fact(reader, &source, json_object_get(sensor, "source"), track->source, out_error);
    track->info.sensor.source = track->source[0] != '\0' ? track->source : NULL;
    return code;
}

static int read_device(struct reader *reader, const json_t *line, struct fly_error *out_error)
{
    size_t index = reader->devices_read;
    struct track *track = &reader->recording->tracks[index];
    const json_t *number = json_object_get(line, "device"), *minor = json_object_get(line, "minor");
    const json_t *modulus = json_object_get(line, "energy_modulus_uj"), *kind = json_object_get(line, "kind");
    int found = find_kind(json_string_value(kind));
    int code;

    if (!json_is_integer(number) || json_integer_value(number) != (json_int_t)index)
        return refuse(reader, "device", number, "the next device, counted from 0", out_error);
    if (found < 0)
        return refuse(reader, "kind", kind, "\"GPU\", \"CPU\" or \"DRAM\"", out_error);
    if (minor != NULL && !json_is_null(minor) &&
        (!json_is_integer(minor) || json_integer_value(minor) < 0 || json_integer_value(minor) > INT_MAX))
        return refuse(reader, "minor", minor, "the number of a device file or null", out_error);
    if (modulus != NULL && !json_is_null(modulus) &&
        (!json_is_integer(modulus) || json_integer_value(modulus) <= 0))
        return refuse(reader, "energy_modulus_uj", modulus, "microjoules above 0, or null", out_error);
    track->info.kind = (enum device_kind)found;
    track->info.minor = json_is_integer(minor) ? (int)json_integer_value(minor) : -1;
    track->info.energy_modulus_uj = (uint64_t)json_integer_value(modulus);
    code = read_facts(reader, recording_device_facts, line, &track->info, out_error);
    if (code == 0 && track->info.uuid[0] == '\0')
        code = refuse(reader, "uuid", json_object_get(line, "uuid"), "what identifies the device", out_error);
    if (code == 0)
        code = read_sensor(reader, line, track, out_error);
    reader->devices_read++;
    return code;
}

static int append(const struct reader *reader, struct series *series, const struct change *change,
                  struct fly_error *out_error)
{
    if (reader->recording->change_count == RECORDING_CHANGES_MAX)
        return error_set(
            out_error, FLY_ELIMIT,
            "%s:%zu: more than %d values; keep the lines before it with 'head -n %zu', or record "
            "with a longer interval",
            reader->name, reader->line, RECORDING_CHANGES_MAX, reader->line - 1);
    if (series->count == series->capacity) {
        size_t capacity = series->capacity > 0 ? series->capacity * 2 : FIRST_CAPACITY;
        struct change *changes = realloc(series->changes, capacity * sizeof *changes);

        if (changes == NULL)
            return error_no_memory(out_error);
        series->changes = changes;
        series->capacity = capacity;
    }
    series->changes[series->count++] = *change;
    reader->recording->change_count++;
    return 0;
}

/* A whole number, or a state and the driver's code; whether it is one of these. */
static bool read_value(const json_t *value, struct change *change)
{
    const json_t *word = json_array_get(value, 0), *code = json_array_get(value, 1);
    int state = json_is_string(word) ? reading_state_find(json_string_value(word)) : -1;

    if (json_is_integer(value)) {
        change->value = json_integer_value(value);
        change->state = READING_OK;
        return true;
    }
    if (json_array_size(value) != 2 || state < 0 || state == READING_OK || state == READING_NOT_READ ||
        !json_is_integer(code) || json_integer_value(code) < INT_MIN || json_integer_value(code) > INT_MAX)
        return false;
    change->state = (uint8_t)state;
    change->code = (int32_t)json_integer_value(code);
    return true;
}

/* What a device says from then on: kept as a change, or as its newest word. */
static int take_change(const struct reader *reader, struct track *track, int quantity,
                       const struct change *change, struct fly_error *out_error)
{
    if (reader->visit == NULL)
        return append(reader, &track->series[quantity], change, out_error);
    reader->said[track - reader->recording->tracks][quantity] = (struct reading){
        .state = (enum reading_state)change->state, .code = change->code, .value = change->value};
    return 0;
}

static int read_values(const struct reader *reader, json_t *line, struct track *track, int64_t t_ns,
                       struct fly_error *out_error)
{
    const char *key;
    json_t *value;

    json_object_foreach(line, key, value)
    {
        struct change change = {.t_ns = t_ns};
        int quantity = quantity_find(key);
        int code;

        if (strcmp(key, "t") == 0 || strcmp(key, "d") == 0)
            continue;
        if (quantity < 0)
            return refuse(reader, key, value, "a quantity that this version knows", out_error);
        if (!read_value(value, &change))
            return refuse(reader, key, value, "a whole number, or a state and a code", out_error);
        code = take_change(reader, track, quantity, &change, out_error);
        if (code < 0)
            return code;
    }
    return 0;
}

static int read_reading(struct reader *reader, json_t *line, struct fly_error *out_error)
{
    struct recording *recording = reader->recording;
    const json_t *t = json_object_get(line, "t"), *d = json_object_get(line, "d");
    const json_t *end = json_object_get(line, "end");
    int64_t t_ns = json_integer_value(t);
    struct track *track;
    int code;

    if (recording->ended)
        return refuse(reader, "t", t, "nothing behind the end of the recording", out_error);
    if (!json_is_integer(t) || t_ns < 0)
        return refuse(reader, "t", t, "nanoseconds since the start", out_error);
    if (end != NULL) {
        if (!json_is_true(end) || t_ns < recording->end_ns)
            return refuse(reader, "t", t, "an end that is not before the readings", out_error);
        recording->ended = true;
        recording->end_ns = t_ns;
        return 0;
    }
    if (!json_is_integer(d) || json_integer_value(d) < 0 ||
        json_integer_value(d) >= (json_int_t)recording->device_count)
        return refuse(reader, "d", d, "one of the devices above", out_error);
    track = &recording->tracks[json_integer_value(d)];
    if (track->readings > 0 && t_ns < track->last_ns)
        return refuse(reader, "t", t, "a time that is not before the device's last reading", out_error);
    track->first_ns = track->readings > 0 ? track->first_ns : t_ns;
    track->last_ns = t_ns;
    track->readings++;
    recording->end_ns = t_ns > recording->end_ns ? t_ns : recording->end_ns;
    code = read_values(reader, line, track, t_ns, out_error);
    if (code < 0 || reader->visit == NULL)
        return code;
    return reader->visit(reader->context, recording, (size_t)(track - recording->tracks), t_ns,
                         reader->said[track - recording->tracks], out_error);
}

static int read_line(struct reader *reader, struct fly_error *out_error)
{
    json_t *line = line_object(reader, out_error);
    int code;

    if (line == NULL)
        return FLY_EDATA;
    if (reader->recording->tracks == NULL)
        code = read_header(reader, line, out_error);
    else if (reader->devices_read < reader->recording->device_count)
        code = read_device(reader, line, out_error);
    else
        code = read_reading(reader, line, out_error);
    json_decref(line);
    return code;
}

/* Whether the line is one that a power cut tore off: without its end, behind all that must be there. */
static bool torn_off(const struct reader *reader)
{
    json_t *line;

    if (reader->whole || reader->recording->tracks == NULL ||
        reader->devices_read < reader->recording->device_count)
        return false;
    line = json_loadb(reader->text, reader->length, 0, NULL);
    json_decref(line);
    return line == NULL;
}

static int read_all(struct reader *reader, struct fly_error *out_error)
{
    int code = 0, more;

    while (code == 0 && (more = next_line(reader, out_error)) != 0) {
        if (more < 0)
            return more;
        if (torn_off(reader))
            break;
        code = read_line(reader, out_error);
    }
    if (code == 0 &&
        (reader->recording->tracks == NULL || reader->devices_read < reader->recording->device_count))
        return error_set(out_error, FLY_EDATA,
                         "%s:%zu: the recording ends before the lines of its devices; record again",
                         reader->name, reader->line + 1);
    return code;
}

int recording_load_rest(const char *name, const char *head, size_t head_length, FILE *stream,
                        struct recording **out_recording, struct fly_error *out_error)
{
    struct reader reader = {.name = name, .head = head, .head_left = head_length, .stream = stream};
    int code;

    reader.recording = calloc(1, sizeof *reader.recording);
    if (reader.recording == NULL)
        return error_no_memory(out_error);
    code = read_all(&reader, out_error);
    if (code < 0) {
        recording_free(reader.recording);
        return code;
    }
    *out_recording = reader.recording;
    return 0;
}

int recording_load_stream(const char *name, FILE *stream, struct recording **out_recording,
                          struct fly_error *out_error)
{
    return recording_load_rest(name, "", 0, stream, out_recording, out_error);
}

FILE *recording_open(const char *path, int *out_code, struct fly_error *out_error)
{
    FILE *stream = patient_file_read(path);
    int code;

    if (stream == NULL) {
        code = errno == EACCES ? FLY_EPERM : errno == ENOENT ? FLY_ENOTFOUND : FLY_EREAD;
        *out_code =
            error_set(out_error, code, "'%s' cannot be read: %s; name a file that 'flyball record' wrote",
                      path, patient_file_cause(errno));
    }
    return stream;
}

int recording_load(const char *path, struct recording **out_recording, struct fly_error *out_error)
{
    int code = 0;
    FILE *stream = recording_open(path, &code, out_error);

    if (stream == NULL)
        return code;
    code = recording_load_stream(path, stream, out_recording, out_error);
    fclose(stream);
    return code;
}

int recording_scan(const char *path, recording_visit *visit, void *context, struct fly_error *out_error)
{
    struct reader reader = {.name = path, .visit = visit, .context = context};
    int code = 0;

    reader.stream = recording_open(path, &code, out_error);
    if (reader.stream == NULL)
        return code;
    reader.recording = calloc(1, sizeof *reader.recording);
    reader.said = calloc(DEVICES_MAX, sizeof reader.said[0]);
    code = reader.recording != NULL && reader.said != NULL ? read_all(&reader, out_error)
                                                           : error_no_memory(out_error);
    recording_free(reader.recording);
    free(reader.said);
    fclose(reader.stream);
    return code;
}
