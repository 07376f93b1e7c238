/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a table as a JSON document. All documents are printed here. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/harmless.h"
#include "cli/kit/table_print.h"
#include "cli/kit/table_render_private.h"
#include "shapes/text_value.h"

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

static int put_cell(const struct table *table, const struct table_cell *cell, const char *key, json_t *row)
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
        if (put_cell(table, table_cell_at(table, index, column), table->columns[column].key, row) < 0) {
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

json_t *table_render_json(const struct table *table)
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

bool table_render_json_lines(const struct table *table, struct buffer *out)
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
