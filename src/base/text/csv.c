/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a window of the file in memory, grown to hold at least one whole row, and cuts it into
 * fields in place.
 */
#include "base/text/csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/patient_file.h"
#include "base/number.h"
#include "base/words.h"

enum { FIRST_WINDOW = 1 << 16 };

/* Returns the place after the quoted field at `at`, or the window's end. */
static const char *quoted_end(const struct csv *csv, const char *at)
{
    for (at++; at < csv->end; at++) {
        at = memchr(at, '"', (size_t)(csv->end - at));
        if (at == NULL)
            return csv->end;
        if (at[1] != '"')
            return at + 1;
        at++;
    }
    return csv->end;
}

/*
 * Returns where the row at csv->next ends: after its line end, or at a NUL in it. NULL if the
 * window does not hold the whole row.
 */
static const char *row_end(const struct csv *csv)
{
    const char *at = csv->next;

    for (;;) {
        if (*at == '"')
            at = quoted_end(csv, at);
        at += strcspn(at, ",\n");
        if (at >= csv->end)
            return NULL;
        if (*at != ',')
            return *at == '\n' ? at + 1 : at;
        at++;
    }
}

/* Moves the rest of the window to its front, makes room after it, and reads more. */
static int read_on(struct csv *csv, struct fly_error *out_error)
{
    size_t kept = (size_t)(csv->end - csv->next), got;

    if (kept + 1 >= csv->capacity) {
        size_t capacity = csv->capacity > 0 ? csv->capacity * 2 : FIRST_WINDOW;
        char *window;

        if (capacity > (size_t)2 * CSV_ROW_MAX)
            return error_set(out_error, FLY_ELIMIT, "%s:%zu: the row is longer than %d bytes; shorten it",
                             csv->path, csv->next_line, CSV_ROW_MAX);
        window = malloc(capacity);
        if (window == NULL)
            return error_no_memory(out_error);
        if (kept > 0)
            memcpy(window, csv->next, kept);
        free(csv->window);
        csv->window = window;
        csv->capacity = capacity;
    } else if (kept > 0 && csv->window != NULL) {
        memmove(csv->window, csv->next, kept);
    }
    got = fread(csv->window + kept, 1, csv->capacity - kept - 1, csv->stream);
    csv->next = csv->window;
    csv->end = csv->window + kept + got;
    *csv->end = '\0';
    csv->at_end = got == 0;
    if (ferror(csv->stream))
        return error_set(out_error, FLY_EREAD, "%s: reading failed: %s; expected a CSV file", csv->path,
                         patient_file_cause(errno));
    return 0;
}

/* Makes the window hold the whole next row, or the rest of the file. */
static int hold_row(struct csv *csv, struct fly_error *out_error)
{
    int code = 0;

    while (code == 0 && !csv->at_end && (csv->window == NULL || row_end(csv) == NULL))
        code = read_on(csv, out_error);
    return code;
}

/* Cuts one quoted field at `from`; returns what follows it, or NULL when the quote never ends. */
static char *cut_quoted(struct csv *csv, char *from)
{
    char *to = from;

    for (from++; from < csv->end; from++) {
        if (*from == '\n')
            csv->next_line++;
        if (*from == '"') {
            if (from[1] != '"') {
                *to = '\0';
                return from + 1;
            }
            from++;
        }
        *to++ = *from;
    }
    return NULL;
}

static int refuse_row(const struct csv *csv, const char *what, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA, "%s:%zu: %s; correct the line or leave it out", csv->path,
                     csv->line, what);
}

/*
 * Cuts the field at csv->next and moves past its separator. Returns 1 when another field of the
 * row follows, 0 when the row ends, or an error.
 */
static int cut_field(struct csv *csv, char **out_field, struct fly_error *out_error)
{
    char *field = csv->next;
    char *stop = field;
    char separator;

    if (*field == '"') {
        stop = cut_quoted(csv, field);
        if (stop == NULL)
            return refuse_row(csv, "a quoted field never ends", out_error);
    }
    if (stop == field)
        stop += strcspn(stop, ",\r\n");
    separator = *stop;
    *stop = '\0';
    if (separator == '\r')
        separator = *++stop;
    if (separator != ',' && separator != '\n' && stop < csv->end)
        return refuse_row(csv, "a field goes on after its closing quote or carriage return", out_error);
    csv->next = stop < csv->end ? stop + 1 : csv->end;
    csv->next_line += separator == '\n';
    *out_field = field;
    return separator == ',';
}

static bool skip_blank_line(struct csv *csv)
{
    size_t length = csv->next[0] == '\r' ? 1 : 0;

    if (csv->next[length] != '\n')
        return false;
    csv->next += length + 1;
    csv->next_offset += length + 1;
    csv->next_line++;
    return true;
}

/* Cuts the next row into csv->fields; returns 1, 0 at the end, or an error. */
static int cut_row(struct csv *csv, size_t *out_count, struct fly_error *out_error)
{
    size_t count = 0;
    const char *start;
    int more = 1, code;

    do
        code = hold_row(csv, out_error);
    while (code == 0 && skip_blank_line(csv));
    csv->line = csv->next_line;
    if (code < 0 || csv->next >= csv->end)
        return code;
    start = row_end(csv);
    if (memchr(csv->next, '\0', (size_t)((start != NULL ? start : csv->end) - csv->next)) != NULL ||
        (start != NULL && *start == '\0' && start < csv->end))
        return error_set(out_error, FLY_EDATA,
                         "%s:%zu: the file holds NUL bytes; expected CSV text (decompress it first)",
                         csv->path, csv->line);
    start = csv->next;
    while (more > 0) {
        if (count == CSV_COLUMNS_MAX)
            return error_set(out_error, FLY_ELIMIT, "%s:%zu: more than %d columns; leave some out", csv->path,
                             csv->line, CSV_COLUMNS_MAX);
        more = cut_field(csv, &csv->fields[count++], out_error);
    }
    csv->next_offset += (uint64_t)(csv->next - start);
    *out_count = count;
    return more < 0 ? more : 1;
}

static int check_doubled(const struct csv *csv, struct fly_error *out_error)
{
    for (size_t i = 1; i < csv->field_count; i++) {
        if (word_index(csv->fields[i], (const char *const *)csv->fields, i) >= 0)
            return error_set(out_error, FLY_EDATA,
                             "%s:%zu: column '%s' stands there twice; expected each column once, so rename "
                             "or remove one",
                             csv->path, csv->line, csv->fields[i]);
    }
    return 0;
}

static int missing_column(const struct csv *csv, const char *column, struct fly_error *out_error)
{
    const char *const *fields = (const char *const *)csv->fields;
    int nearest = word_nearest(column, fields, csv->field_count);

    return error_set(out_error, FLY_EDATA,
                     "%s:%zu: column '%s' is missing%s%s%s; add it to the header and to every row", csv->path,
                     csv->line, column, nearest >= 0 ? " (is it '" : "", nearest >= 0 ? fields[nearest] : "",
                     nearest >= 0 ? "'?)" : "");
}

static int read_header(struct csv *csv, struct fly_error *out_error)
{
    int code = cut_row(csv, &csv->field_count, out_error);

    if (code == 0)
        return error_set(out_error, FLY_EDATA, "%s:1: the file is empty; expected a header with column '%s'",
                         csv->path, csv->columns[0]);
    if (code < 0)
        return code;
    code = check_doubled(csv, out_error);
    for (size_t i = 0; code == 0 && i < csv->column_count; i++) {
        int at = word_index(csv->columns[i], (const char *const *)csv->fields, csv->field_count);

        if (at < 0)
            return missing_column(csv, csv->columns[i], out_error);
        csv->at[i] = (size_t)at;
    }
    return code;
}

static void skip_byte_order_mark(struct csv *csv)
{
    if (csv->end - csv->next >= 3 && memcmp(csv->next, "\xef\xbb\xbf", 3) == 0) {
        csv->next += 3;
        csv->next_offset += 3;
    }
}

int csv_open_stream(struct csv *csv, const char *name, FILE *stream, const char *const *columns,
                    size_t column_count, struct fly_error *out_error)
{
    int code;

    *csv = (struct csv){.path = name,
                        .columns = columns,
                        .column_count = column_count,
                        .stream = stream,
                        .line = 1,
                        .next_line = 1};
    code = hold_row(csv, out_error);
    if (code == 0) {
        skip_byte_order_mark(csv);
        code = read_header(csv, out_error);
    }
    if (code < 0)
        csv_close(csv);
    return code;
}

int csv_open_failed(const char *name, int cause, struct fly_error *out_error)
{
    int code = cause == ENOENT || cause == ENOTDIR ? FLY_ENOTFOUND : cause == EACCES ? FLY_EPERM : FLY_EREAD;

    return error_set(out_error, code, "%s: opening failed: %s; check the path and its permissions", name,
                     patient_file_cause(cause));
}

int csv_open(struct csv *csv, const char *path, const char *const *columns, size_t column_count,
             struct fly_error *out_error)
{
    FILE *stream = patient_file_read(path);

    if (stream == NULL)
        return csv_open_failed(path, errno, out_error);
    return csv_open_stream(csv, path, stream, columns, column_count, out_error);
}

int csv_open_text(struct csv *csv, const char *name, const char *text, size_t length,
                  const char *const *columns, size_t column_count, struct fly_error *out_error)
{
    FILE *stream = fmemopen(NULL, length + 1, "w+");

    if (stream == NULL)
        return error_no_memory(out_error);
    if (fwrite(text, 1, length, stream) != length || fflush(stream) != 0) {
        fclose(stream);
        return error_no_memory(out_error);
    }
    rewind(stream);
    return csv_open_stream(csv, name, stream, columns, column_count, out_error);
}

int csv_seek(struct csv *csv, uint64_t offset, size_t line, struct fly_error *out_error)
{
    if (fseeko(csv->stream, (off_t)offset, SEEK_SET) < 0)
        return error_set(out_error, FLY_EREAD,
                         "%s: moving within the file failed: %s; expected a regular file", csv->path,
                         patient_file_cause(errno));
    csv->next = csv->end = csv->window;
    *csv->end = '\0';
    csv->at_end = false;
    csv->next_offset = offset;
    csv->next_line = line;
    return 0;
}

void csv_close(struct csv *csv)
{
    if (csv->stream != NULL)
        fclose(csv->stream);
    free(csv->window);
    csv->stream = NULL;
    csv->window = NULL;
}

int csv_next(struct csv *csv, struct fly_error *out_error)
{
    size_t count = 0;
    int code = cut_row(csv, &count, out_error);

    if (code <= 0)
        return code;
    if (count != csv->field_count)
        return error_set(
            out_error, FLY_EDATA,
            "%s:%zu: expected %zu fields as in the header, found %zu; correct the line or leave it out",
            csv->path, csv->line, csv->field_count, count);
    return 1;
}

const char *csv_field(const struct csv *csv, size_t column)
{
    return csv->fields[csv->at[column]];
}

int csv_refuse(const struct csv *csv, size_t column, const char *expected, const char *remedy,
               struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA, "%s:%zu: column '%s': expected %s, found '%.60s'; %s", csv->path,
                     csv->line, csv->columns[column], expected, csv_field(csv, column), remedy);
}

int csv_number(const struct csv *csv, size_t column, double above, double maximum, const char *expected,
               double *out_value, struct fly_error *out_error)
{
    double value;

    if (!number_parse_double(csv_field(csv, column), &value) || !(value > above) || value > maximum)
        return csv_refuse(csv, column, expected, "correct the value or leave the line out", out_error);
    *out_value = value;
    return 0;
}
