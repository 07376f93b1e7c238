/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a table as CSV. The schema is a column, because readers of CSV know no comment lines,
 * and because rows of several runs can then be told apart when somebody joins their files.
 */
#include <inttypes.h>
#include <string.h>

#include "base/harmless.h"
#include "base/number.h"
#include "cli/kit/table_print.h"
#include "cli/kit/table_render_private.h"

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

void table_render_csv(const struct table *table, bool heading, struct buffer *out)
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
