/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads recordings, line by line, into one series of changes for each quantity of each device.
 * Then a binary search finds what a reading asks for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/file/patient_file.h"
#include "base/number.h"
#include "device/recording/recording_private.h"

enum { SECOND_NS = 1000000000, SECOND_US = 1000000 };

/* The reader's position in the file. */
struct reader {
    const char *name;
    const char *head; /* borrowed: the part of the stream that was already read */
    size_t head_left;
    FILE *stream;
    size_t line; /* number of the line in `text`, from 1 */
    char text[RECORDING_LINE_MAX + 1];
    size_t length;
    bool whole; /* the line has its newline */
    size_t devices_read;
    struct recording *recording;
    recording_visit *visit; /* NULL: everything is kept in the recording */
    void *context;
    struct reading (*said)[QUANTITY_COUNT]; /* owned; each device's newest, with a visitor */
};

/* Fails with "run.jsonl:17: field 'd': expected ..., found 9; ..." */
static int refuse(const struct reader *reader, const char *field, const char *expected, const char *found,
                  struct fly_error *out_error)
{
    if (reader->line < 3)
        return error_set(out_error, FLY_EDATA,
                         "%s:%zu: field '%s': expected %s, found %s; name a file that 'flyball record' wrote",
                         reader->name, reader->line, field, expected, found);
    return error_set(
        out_error, FLY_EDATA,
        "%s:%zu: field '%s': expected %s, found %s; keep the lines before it with 'head -n %zu', "
        "or record again",
        reader->name, reader->line, field, expected, found, reader->line - 1);
}

/* Does the same for a whole number that was found. */
static int refuse_number(const struct reader *reader, const char *field, const char *expected, int64_t found,
                         struct fly_error *out_error)
{
    char text[NUMBER_TEXT_MAX];

    snprintf(text, sizeof text, "%" PRId64, found);
    return refuse(reader, field, expected, text, out_error);
}

/* Texts belong to the line. */
static int read_as(const struct reader *reader, const struct shape *shape, json_t *line, void *out_struct,
                   struct fly_error *out_error)
{
    struct shape_fault fault;
    int code = shape_read_as(shape, line, SHAPE_BORROWING, NULL, out_struct, &fault, NULL);

    return code == 0            ? 0
           : code == FLY_ENOMEM ? error_no_memory(out_error)
                                : refuse(reader, fault.path, fault.expected, fault.found, out_error);
}

static int next_byte(struct reader *reader)
{
    if (reader->head_left == 0)
        return getc_unlocked(reader->stream);
    reader->head_left--;
    return (unsigned char)*reader->head++;
}

/* Returns 1 with a line, 0 at the end of the file, or an error. */
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

/* Returns the object of the line that was read, or NULL with the error. */
static json_t *line_object(const struct reader *reader, struct fly_error *out_error)
{
    struct shape_fault fault;
    json_t *object = NULL;
    int code = shape_parse_as(reader->text, reader->length, SHAPE_LENIENT, &object, &fault, NULL);

    if (code == 0 && json_is_object(object))
        return object;
    if (code == 0)
        fault = (struct shape_fault){.column = 1, .expected = "found no object"};
    json_decref(object);
    error_set(out_error, FLY_EDATA, "%s:%zu:%zu: expected one JSON object in the line: %.80s; %s",
              reader->name, reader->line, fault.column, fault.expected,
              reader->line < 3 ? "name a file that 'flyball record' wrote"
                               : "keep the lines before it with 'head', or record again");
    return NULL;
}

static int read_header(struct reader *reader, json_t *line, struct fly_error *out_error)
{
    struct recording *recording = reader->recording;
    struct recording_header header;
    int code = read_as(reader, &recording_header_shape, line, &header, out_error);

    if (code < 0)
        return code;
    recording->date = header.date;
    if (header.unix_us / SECOND_US == header.date.ns / SECOND_NS)
        recording->date.ns = header.unix_us * (SECOND_NS / SECOND_US);
    recording->interval_s = header.interval_s;
    recording->device_count = header.devices;
    recording->tracks = calloc(recording->device_count + 1, sizeof *recording->tracks);
    return recording->tracks != NULL ? 0 : error_no_memory(out_error);
}

static int read_device(struct reader *reader, json_t *json, struct fly_error *out_error)
{
    size_t index = reader->devices_read;
    struct track *track = &reader->recording->tracks[index];
    struct recording_device_line line;
    int code = read_as(reader, &recording_device_shape, json, &line, out_error);

    if (code < 0)
        return code;
    if (line.device != index)
        return refuse_number(reader, "device", "the next device, counted from 0", (int64_t)line.device,
                             out_error);
    if (line.info.uuid[0] == '\0')
        return refuse(reader, "uuid", "what identifies the device", "nothing", out_error);
    track->info = line.info;
    track->info.sensor = line.sensor.facts;
    memcpy(track->source, line.sensor.source, sizeof track->source);
    track->info.sensor.source = track->source[0] != '\0' ? track->source : NULL;
    reader->devices_read++;
    return 0;
}

static int append(const struct reader *reader, struct series *series, const struct change *change,
                  struct fly_error *out_error)
{
    struct change *changes;

    if (reader->recording->change_count == RECORDING_CHANGES_MAX)
        return error_set(
            out_error, FLY_ELIMIT,
            "%s:%zu: more than %d values; keep the lines before it with 'head -n %zu', or record "
            "with a longer interval",
            reader->name, reader->line, RECORDING_CHANGES_MAX, reader->line - 1);
    changes = array_grow(series->changes, series->count, &series->capacity, sizeof changes[0]);
    if (changes == NULL)
        return error_no_memory(out_error);
    series->changes = changes;
    series->changes[series->count++] = *change;
    reader->recording->change_count++;
    return 0;
}

/* Takes a value that is valid from then on: kept as a change, or as the device's newest. */
static int take_value(const struct reader *reader, struct track *track, int64_t t_ns,
                      const struct recording_said *said, struct fly_error *out_error)
{
    const struct reading *reading = &said->reading;
    const struct change change = {
        .t_ns = t_ns, .value = reading->value, .code = reading->code, .state = (uint8_t)reading->state};

    if (reader->visit == NULL)
        return append(reader, &track->series[said->quantity], &change, out_error);
    reader->said[track - reader->recording->tracks][said->quantity] = *reading;
    return 0;
}

static int take_reading(const struct reader *reader, struct track *track, const struct recording_line *line,
                        struct fly_error *out_error)
{
    struct recording *recording = reader->recording;
    size_t device = (size_t)(track - recording->tracks);
    int code = 0;

    if (track->readings > 0 && line->t_ns < track->last_ns)
        return refuse_number(reader, "t", "a time that is not before the device's last reading", line->t_ns,
                             out_error);
    track->first_ns = track->readings > 0 ? track->first_ns : line->t_ns;
    track->last_ns = line->t_ns;
    track->readings++;
    recording->end_ns = line->t_ns > recording->end_ns ? line->t_ns : recording->end_ns;
    for (size_t i = 0; i < line->count && code == 0; i++)
        code = take_value(reader, track, line->t_ns, &line->said[i], out_error);
    if (code < 0 || reader->visit == NULL)
        return code;
    return reader->visit(reader->context, recording, device, line->t_ns, reader->said[device], out_error);
}

static int read_reading(struct reader *reader, json_t *json, struct fly_error *out_error)
{
    struct recording *recording = reader->recording;
    struct recording_line line;
    int code = read_as(reader, &recording_line_shape, json, &line, out_error);

    /* Nothing else in an end line matters. */
    if (code < 0 &&
        (shape_read(&recording_end_shape, json, SHAPE_BORROWING, NULL, &line, NULL) < 0 || !line.end))
        return code;
    if (recording->ended)
        return refuse_number(reader, "t", "nothing behind the end of the recording", line.t_ns, out_error);
    if (line.has_end) {
        if (!line.end || line.t_ns < recording->end_ns)
            return refuse_number(reader, "t", "an end that is not before the readings", line.t_ns, out_error);
        recording->ended = true;
        recording->end_ns = line.t_ns;
        return 0;
    }
    if (line.device < 0)
        return refuse(reader, "d", "one of the devices above", "nothing", out_error);
    if ((size_t)line.device >= recording->device_count)
        return refuse_number(reader, "d", "one of the devices above", line.device, out_error);
    return take_reading(reader, &recording->tracks[line.device], &line, out_error);
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

/* Returns whether a power cut tore off the line: it has no newline, and comes after everything required. */
static bool torn_off(const struct reader *reader)
{
    json_t *line = NULL;

    if (reader->whole || reader->recording->tracks == NULL ||
        reader->devices_read < reader->recording->device_count)
        return false;
    (void)shape_parse_as(reader->text, reader->length, SHAPE_FOREIGN, &line, NULL, NULL);
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
