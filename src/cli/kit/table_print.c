/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a table's writer, and writes the bytes out. */
#include "cli/kit/table_print.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file/atomic_file.h"
#include "base/harmless.h"
#include "base/number.h"
#include "cli/kit/text_layout.h"
#include "shapes/table_cells.h"
#include "shapes/text_value.h"

/* The writers of a table's forms, each in a file of its own. */

static void table_render_csv(const struct table *table, bool heading, struct buffer *out);
static json_t *table_render_json(const struct table *table);
static bool table_render_json_lines(const struct table *table, struct buffer *out);
static void table_render_text(const struct table *table, bool color, struct buffer *out);

static int print_json(const struct table *table, struct buffer *out, struct fly_error *out_error)
{
    json_t *document = table_render_json(table);
    int result = document == NULL ? error_no_memory(out_error) : table_print_json(document, out, out_error);

    json_decref(document);
    return result;
}

int table_print(const struct table *table, enum table_format format, bool color, struct buffer *out,
                struct fly_error *out_error)
{
    int result = table_check(table, out_error);

    if (result < 0)
        return result;
    if (format == TABLE_FORMAT_JSON)
        return print_json(table, out, out_error);
    if (format == TABLE_FORMAT_CSV)
        table_render_csv(table, true, out);
    else
        table_render_text(table, color, out);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

int table_print_lines(const struct table *table, enum table_format format, bool heading, struct buffer *out,
                      struct fly_error *out_error)
{
    int result = table_check(table, out_error);

    if (result < 0)
        return result;
    if (format != TABLE_FORMAT_JSON)
        table_render_csv(table, heading, out);
    else if (!table_render_json_lines(table, out))
        return error_no_memory(out_error);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

int table_put(const char *bytes, size_t length, FILE *stream, const char *what, struct fly_error *out_error)
{
    errno = 0;
    if (fwrite(bytes, 1, length, stream) == length && fflush(stream) == 0)
        return 0;
    return error_set(out_error, FLY_EWRITE, "writing %s failed: %s; the output is not complete", what,
                     errno != 0 ? strerror(errno) : "unknown cause");
}

int table_write_json(const json_t *document, FILE *stream, struct fly_error *out_error)
{
    struct buffer bytes;
    int result;

    buffer_init(&bytes, TABLE_OUTPUT_MAX);
    result = table_print_json(document, &bytes, out_error);
    if (result == 0)
        result = table_put(bytes.data, bytes.length, stream, "the document", out_error);
    buffer_deinit(&bytes);
    return result;
}

int table_save_json(json_t *document, const char *path, struct fly_error *out_error)
{
    struct atomic_file file;
    int code = document == NULL ? error_no_memory(out_error) : atomic_file_open(path, &file, out_error);

    if (code == 0) {
        code = table_write_json(document, file.stream, out_error);
        if (code == 0)
            code = atomic_file_commit(&file, out_error);
        else
            atomic_file_discard(&file);
    }
    json_decref(document);
    return code;
}

/*
 * Writes a table as CSV. The schema is a column, because readers of CSV know no comment lines,
 * and because rows of several runs can then be told apart when somebody joins their files.
 */

/*
 * Puts quotes where RFC 4180 demands them, and around an empty text: an empty field without
 * quotes is "unavailable".
 */
static void put_text(const char *text, struct buffer *out)
{
    if (text[0] != '\0' && strpbrk(text, ",\"\r\n") == NULL) {
        buffer_puts(out, text);
        return;
    }
    buffer_puts(out, "\"");
    for (const char *quote; (quote = strchr(text, '"')) != NULL; text = quote + 1) {
        buffer_append(out, text, (size_t)(quote - text));
        buffer_puts(out, "\"\"");
    }
    buffer_puts(out, text);
    buffer_puts(out, "\"");
}

/* Writes the text without what could harm a terminal. */
static void put_harmless(const char *text, struct buffer *out)
{
    struct buffer shown;

    if (harmless_all(text, strlen(text), true)) {
        put_text(text, out);
        return;
    }
    buffer_init(&shown, TABLE_OUTPUT_MAX);
    harmless_put(&shown, text, true);
    put_text(shown.data, out);
    buffer_deinit(&shown);
}

static void put_cell(const struct table_cell *cell, struct buffer *out)
{
    char number[NUMBER_TEXT_MAX];

    switch (cell->state) {
    case CELL_TEXT:
    case CELL_LIST:
        put_harmless(cell->text, out);
        break;
    case CELL_INTEGER:
        buffer_printf(out, "%" PRId64, cell->integer);
        break;
    case CELL_REAL:
        buffer_puts(out, number_format(cell->real, number));
        break;
    case CELL_UNAVAILABLE:
        break;
    }
}

static void put_heading(const struct table *table, struct buffer *out)
{
    buffer_puts(out, "schema");
    for (size_t column = 0; column < table->column_count; column++) {
        buffer_puts(out, ",");
        put_text(table->columns[column].key, out);
    }
    buffer_puts(out, "\n");
}

static void table_render_csv(const struct table *table, bool heading, struct buffer *out)
{
    if (heading)
        put_heading(table, out);
    for (size_t row = 0; row < table_row_count(table); row++) {
        put_text(table->schema, out);
        for (size_t column = 0; column < table->column_count; column++) {
            buffer_puts(out, ",");
            put_cell(table_cell_at(table, row, column), out);
        }
        buffer_puts(out, "\n");
    }
}

/* Writes a table as a JSON document. All documents are printed here. */

enum { KEY_MAX = 96, REAL_DIGITS = 17 };

static int put_unavailable(json_t *row, const char *key, const char *reason)
{
    char reason_key[KEY_MAX];

    snprintf(reason_key, sizeof reason_key, "%s_unavailable", key);
    if (json_object_set_new(row, key, json_null()) < 0)
        return -1;
    return json_object_set_new(row, reason_key, text_value(reason));
}

static json_t *list_value(const char *texts)
{
    json_t *list = json_array();

    while (list != NULL && *texts != '\0') {
        size_t length = strcspn(texts, ",");

        if (json_array_append_new(list, json_stringn(texts, length)) < 0) {
            json_decref(list);
            return NULL;
        }
        texts += length + (texts[length] == ',');
    }
    return list;
}

static int put_cell_json(const struct table *table, const struct table_cell *cell, const char *key,
                         json_t *row)
{
    switch (cell->state) {
    case CELL_TEXT:
        return json_object_set_new(row, key, text_value(cell->text));
    case CELL_LIST:
        return json_object_set_new(row, key, list_value(cell->text));
    case CELL_INTEGER:
        return json_object_set_new(row, key, json_integer(cell->integer));
    case CELL_REAL:
        return json_object_set_new(row, key, json_real(cell->real));
    case CELL_UNAVAILABLE:
        return put_unavailable(row, key, table->reasons[cell->footnote - 1]);
    }
    return -1;
}

static json_t *row_value(const struct table *table, size_t index)
{
    json_t *row = json_object();

    for (size_t column = 0; row != NULL && column < table->column_count; column++) {
        if (put_cell_json(table, table_cell_at(table, index, column), table->columns[column].key, row) < 0) {
            json_decref(row);
            row = NULL;
        }
    }
    return row;
}

static json_t *rows_value(const struct table *table)
{
    json_t *rows = json_array();

    for (size_t i = 0; rows != NULL && i < table_row_count(table); i++) {
        if (json_array_append_new(rows, row_value(table, i)) < 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    return rows;
}

static json_t *table_render_json(const struct table *table)
{
    json_t *document = json_object();

    if (json_object_set_new(document, "schema", text_value(table->schema)) == 0 &&
        json_object_update(document, table->members) == 0 &&
        json_object_set_new(document, "rows", rows_value(table)) == 0)
        return document;
    json_decref(document);
    return NULL;
}

static int put_bytes(const char *bytes, size_t count, void *data)
{
    struct buffer *out = data;

    harmless_put_json(out, bytes, count);
    return out->error < 0 ? -1 : 0;
}

/* Appends each row as a JSON object on a line of its own. Returns false without memory. */
static bool table_render_json_lines(const struct table *table, struct buffer *out)
{
    for (size_t i = 0; i < table_row_count(table); i++) {
        json_t *line = json_object();
        json_t *row = row_value(table, i);
        bool good =
            json_object_set_new(line, "schema", text_value(table->schema)) == 0 &&
            json_object_update(line, row) == 0 &&
            json_dump_callback(line, put_bytes, out, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) == 0;

        buffer_puts(out, "\n");
        json_decref(row);
        json_decref(line);
        if (!good)
            return false;
    }
    return true;
}

int table_print_json(const json_t *document, struct buffer *out, struct fly_error *out_error)
{
    if (document == NULL)
        return error_no_memory(out_error);
    if (!json_is_string(json_object_get(document, "schema")))
        return error_set(out_error, FLY_EINTERNAL, "a JSON document without \"schema\"; please report it");
    if (json_dump_callback(document, put_bytes, out, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS)) < 0)
        return error_no_memory(out_error);
    buffer_puts(out, "\n");
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

/*
 * Writes a table for people: columns aligned by what a terminal shows, numbers to the right, a
 * footnote for every reason why something is not known. No text from a file reaches the terminal
 * as a command.
 */

enum { COLUMN_GAP = 2, CELL_TEXT_MAX = 1 << 20 };

static int column_decimals(const struct table *table, size_t column)
{
    double least = INFINITY;

    for (size_t row = 0; row < table_row_count(table) && table->columns[column].decimals < 0; row++) {
        const struct table_cell *cell = table_cell_at(table, row, column);

        if (cell->state == CELL_REAL && cell->real != 0.0)
            least = fmin(least, fabs(cell->real));
    }
    return table_decimals(table->columns[column].decimals, least);
}

static void cell_text(int decimals, const struct table_cell *cell, struct buffer *out)
{
    buffer_clear(out);
    switch (cell->state) {
    case CELL_TEXT:
        buffer_puts(out, cell->text);
        break;
    case CELL_LIST:
        buffer_puts(out, cell->text[0] != '\0' ? cell->text : "none");
        break;
    case CELL_INTEGER:
        buffer_printf(out, "%" PRId64, cell->integer);
        break;
    case CELL_REAL:
        buffer_printf(out, "%.*f", decimals, cell->real);
        break;
    case CELL_UNAVAILABLE:
        buffer_printf(out, "%s [%zu]", cell->text, cell->footnote);
        break;
    }
    if (out->length > 0)
        out->length = harmless_make(out->data, out->length, false);
}

static size_t column_width(const struct table *table, size_t column, int decimals, struct buffer *scratch)
{
    size_t width = text_width(table->columns[column].title);

    for (size_t row = 0; row < table_row_count(table); row++) {
        size_t cell_width;

        cell_text(decimals, table_cell_at(table, row, column), scratch);
        cell_width = text_width(scratch->data);
        if (cell_width > width)
            width = cell_width;
    }
    return width;
}

static void pad(struct buffer *out, size_t count)
{
    while (count-- > 0)
        buffer_puts(out, " ");
}

/* Writes one field of a line; the line's last field gets no padding behind it. */
static void put_field(const struct table *table, size_t column, const char *text, size_t width,
                      struct buffer *out)
{
    size_t missing = width - text_width(text);
    bool right = table->columns[column].type == MEANING_WHOLE || table->columns[column].type == MEANING_REAL;
    bool last = column + 1 == table->column_count;

    pad(out, column > 0 ? COLUMN_GAP : 0);
    pad(out, right ? missing : 0);
    buffer_puts(out, text);
    pad(out, right || last ? 0 : missing);
}

/* How a column is set. */
struct setting {
    size_t width;
    int decimals;
};

static void put_lines(const struct table *table, const struct setting *settings, bool color,
                      struct buffer *scratch, struct buffer *out)
{
    buffer_puts(out, color ? "\033[1m" : "");
    for (size_t column = 0; column < table->column_count; column++)
        put_field(table, column, table->columns[column].title, settings[column].width, out);
    buffer_puts(out, color ? "\033[0m\n" : "\n");
    for (size_t row = 0; row < table_row_count(table); row++) {
        for (size_t column = 0; column < table->column_count; column++) {
            cell_text(settings[column].decimals, table_cell_at(table, row, column), scratch);
            put_field(table, column, scratch->data, settings[column].width, out);
        }
        buffer_puts(out, "\n");
    }
}

/* Each appends the table to `out`; JSON is returned as a document, NULL without memory. */
static void table_render_text(const struct table *table, bool color, struct buffer *out)
{
    struct setting *settings = calloc(table->column_count, sizeof *settings);
    struct buffer scratch;

    if (settings == NULL) {
        out->error = out->error < 0 ? out->error : FLY_ENOMEM;
        return;
    }
    buffer_init(&scratch, CELL_TEXT_MAX);
    for (size_t column = 0; column < table->column_count; column++) {
        settings[column].decimals = column_decimals(table, column);
        settings[column].width = column_width(table, column, settings[column].decimals, &scratch);
    }
    put_lines(table, settings, color, &scratch, out);
    for (size_t i = 0; i < table->reason_count; i++) {
        buffer_printf(out, "%s[%zu] ", i == 0 ? "\n" : "", i + 1);
        harmless_put(out, table->reasons[i], false);
        buffer_puts(out, "\n");
    }
    buffer_deinit(&scratch);
    free(settings);
}
