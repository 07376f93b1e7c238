/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole file is read at once and cut into fields in place: traces are small,
 * and a row's texts then live as long as the reader.
 */
#include "base/csv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "base/words.h"

static int read_whole(const char *path, struct buffer *out_text, struct fly_error *out_error)
{
    FILE *file = fopen(path, "re");
    int code = 0;
    char chunk[1 << 16];

    if (file == NULL) {
        code = errno == ENOENT || errno == ENOTDIR ? FLY_ENOTFOUND : errno == EACCES ? FLY_EPERM : FLY_EREAD;
        return error_set(out_error, code, "%s: opening failed: %s; check the path and its permissions", path,
                         strerror(errno));
    }
    while (out_text->error == 0 && !feof(file) && !ferror(file))
        buffer_append(out_text, chunk, fread(chunk, 1, sizeof chunk, file));
    if (ferror(file))
        code = error_set(out_error, FLY_EREAD, "%s: reading failed: %s; expected a CSV file", path,
                         strerror(errno));
    else if (out_text->error == FLY_ELIMIT)
        code = error_set(out_error, FLY_ELIMIT, "%s: the file is larger than %d MiB; split it", path,
                         CSV_FILE_MAX >> 20);
    else if (out_text->error < 0)
        code = error_no_memory(out_error);
    fclose(file);
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
 * Cuts the field at csv->next and moves behind its separator. Returns 1 when
 * another field of the row follows, 0 when the row ends, or an error.
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

static void skip_blank_lines(struct csv *csv)
{
    while (csv->next < csv->end && (*csv->next == '\n' || (csv->next[0] == '\r' && csv->next[1] == '\n'))) {
        csv->next += *csv->next == '\r' ? 2 : 1;
        csv->next_line++;
    }
}

/* Cuts the next row into csv->fields; returns 1, 0 at the end, or an error. */
static int cut_row(struct csv *csv, size_t *out_count, struct fly_error *out_error)
{
    size_t count = 0;
    int more = 1;

    skip_blank_lines(csv);
    csv->line = csv->next_line;
    if (csv->next >= csv->end)
        return 0;
    while (more > 0) {
        if (count == CSV_COLUMNS_MAX)
            return error_set(out_error, FLY_ELIMIT, "%s:%zu: more than %d columns; leave some out", csv->path,
                             csv->line, CSV_COLUMNS_MAX);
        more = cut_field(csv, &csv->fields[count++], out_error);
    }
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

/* Takes the text of `buffer` and reads the header. */
static int csv_begin(struct csv *csv, struct buffer *buffer, struct fly_error *out_error)
{
    int code;

    buffer_append(buffer, "", 0); /* owned memory even when empty */
    if (buffer->error < 0) {
        buffer_deinit(buffer);
        return error_no_memory(out_error);
    }
    csv->text = buffer->data;
    csv->next = csv->text;
    csv->end = csv->text + buffer->length;
    csv->line = csv->next_line = 1;
    if (memchr(csv->text, '\0', buffer->length) != NULL)
        code =
            error_set(out_error, FLY_EDATA,
                      "%s:1: the file holds NUL bytes; expected CSV text (decompress it first)", csv->path);
    else {
        if (strncmp(csv->text, "\xef\xbb\xbf", 3) == 0)
            csv->next += 3;
        code = read_header(csv, out_error);
    }
    if (code < 0)
        csv_close(csv);
    return code;
}

int csv_open(struct csv *csv, const char *path, const char *const *columns, size_t column_count,
             struct fly_error *out_error)
{
    struct buffer buffer;
    int code;

    *csv = (struct csv){.path = path, .columns = columns, .column_count = column_count};
    buffer_init(&buffer, CSV_FILE_MAX);
    code = read_whole(path, &buffer, out_error);
    if (code < 0) {
        buffer_deinit(&buffer);
        return code;
    }
    return csv_begin(csv, &buffer, out_error);
}

int csv_open_text(struct csv *csv, const char *name, const char *text, size_t length,
                  const char *const *columns, size_t column_count, struct fly_error *out_error)
{
    struct buffer buffer;

    *csv = (struct csv){.path = name, .columns = columns, .column_count = column_count};
    buffer_init(&buffer, CSV_FILE_MAX);
    buffer_append(&buffer, text, length);
    return csv_begin(csv, &buffer, out_error);
}

void csv_close(struct csv *csv)
{
    free(csv->text);
    csv->text = NULL;
}

int csv_next(struct csv *csv, struct fly_error *out_error)
{
    size_t count;
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
