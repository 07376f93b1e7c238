/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a table for people: columns aligned by what a terminal shows, numbers to the right, a
 * footnote for every reason why something is not known. No text from a file reaches the terminal
 * as a command.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/harmless.h"
#include "cli/kit/table_render_private.h"
#include "cli/kit/text_layout.h"

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

void table_render_text(const struct table *table, bool color, struct buffer *out)
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
