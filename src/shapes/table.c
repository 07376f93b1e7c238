/* SPDX-License-Identifier: Apache-2.0 */
/* Stores what a table holds. */
#include "shapes/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "shapes/table_cells.h"

enum { DECIMALS_MAX = 6 };

int table_decimals(int decimals, double least)
{
    int digits = -decimals, found = 0;

    if (decimals >= 0)
        return decimals;
    if (!isfinite(least) || least == 0.0)
        return 0;
    found = digits - 1 - (int)floor(log10(fabs(least)));
    return found < 0 ? 0 : found > DECIMALS_MAX ? DECIMALS_MAX : found;
}

struct table *table_new(const char *schema, const struct meaning *columns, size_t count)
{
    struct table *table = calloc(1, sizeof *table);

    if (table == NULL)
        return NULL;
    table->schema = schema;
    table->columns = columns;
    table->column_count = count;
    table->members = json_object();
    if (table->members == NULL)
        error_no_memory(&table->error);
    return table;
}

static bool cell_owns_text(const struct table_cell *cell)
{
    return cell->state == CELL_TEXT || cell->state == CELL_LIST || cell->state == CELL_UNAVAILABLE;
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->cell_count; i++) {
        if (cell_owns_text(&table->cells[i]))
            free(table->cells[i].text);
    }
    for (size_t i = 0; i < table->reason_count; i++)
        free(table->reasons[i]);
    free(table->cells);
    free(table->reasons);
    json_decref(table->members);
    free(table);
}

/* Returns room for one more cell, or NULL, also if an earlier append failed. */
static struct table_cell *next_cell(struct table *table)
{
    struct table_cell *cells;

    if (table == NULL || table->error.code < 0)
        return NULL;
    cells = array_grow(table->cells, table->cell_count, &table->cell_capacity, sizeof cells[0]);
    if (cells == NULL) {
        error_no_memory(&table->error);
        return NULL;
    }
    table->cells = cells;
    return &table->cells[table->cell_count];
}

/* Checks that the next cell's column takes cells of this kind; otherwise marks the table as failed. */
static bool column_takes(struct table *table, enum meaning_type type)
{
    const struct meaning *column;

    if (table == NULL || table->error.code < 0)
        return false;
    column = &table->columns[table->cell_count % table->column_count];
    if (column->type == type || (column->type == MEANING_DATE && type == MEANING_TEXT))
        return true;
    error_set(&table->error, FLY_EINTERNAL,
              "column '%s' of table '%s' got a cell of another kind; please report it", column->key,
              table->schema);
    return false;
}

static void add_text(struct table *table, enum meaning_type type, enum cell_state state, const char *text)
{
    struct table_cell *cell = column_takes(table, type) ? next_cell(table) : NULL;

    if (cell == NULL)
        return;
    *cell = (struct table_cell){.state = state, .text = strdup(text)};
    if (cell->text == NULL)
        error_no_memory(&table->error);
    else
        table->cell_count++;
}

void table_add_text(struct table *table, const char *text)
{
    add_text(table, MEANING_TEXT, CELL_TEXT, text);
}

void table_add_list(struct table *table, const char *texts)
{
    add_text(table, MEANING_LIST, CELL_LIST, texts);
}

void table_add_integer(struct table *table, int64_t value)
{
    struct table_cell *cell = column_takes(table, MEANING_WHOLE) ? next_cell(table) : NULL;

    if (cell == NULL)
        return;
    *cell = (struct table_cell){.state = CELL_INTEGER, .integer = value};
    table->cell_count++;
}

void table_add_real(struct table *table, double value)
{
    struct table_cell *cell;

    if (!column_takes(table, MEANING_REAL))
        return;
    if (!isfinite(value)) {
        table_add_unavailable(table, NULL, isnan(value) ? "is not a number" : "is infinite");
        return;
    }
    cell = next_cell(table);
    if (cell == NULL)
        return;
    *cell = (struct table_cell){.state = CELL_REAL, .real = value};
    table->cell_count++;
}

/* Returns the number of the footnote with this reason, which is made if it is new; 0 without memory. */
static size_t footnote(struct table *table, const char *reason)
{
    char **reasons;

    for (size_t i = 0; i < table->reason_count; i++) {
        if (strcmp(table->reasons[i], reason) == 0)
            return i + 1;
    }
    reasons = reallocarray(table->reasons, table->reason_count + 1, sizeof *reasons);
    if (reasons == NULL)
        return 0;
    table->reasons = reasons;
    reasons[table->reason_count] = strdup(reason);
    if (reasons[table->reason_count] == NULL)
        return 0;
    return ++table->reason_count;
}

void table_add_unavailable(struct table *table, const char *word, const char *reason)
{
    struct table_cell *cell = next_cell(table);

    if (cell == NULL)
        return;
    *cell = (struct table_cell){.state = CELL_UNAVAILABLE, .footnote = footnote(table, reason)};
    cell->text = strdup(word != NULL ? word : "unavailable");
    if (cell->text != NULL && cell->footnote > 0) {
        table->cell_count++;
        return;
    }
    free(cell->text);
    error_no_memory(&table->error);
}

void table_add_real_or(struct table *table, double value, const char *word, const char *reason)
{
    if (isfinite(value))
        table_add_real(table, value);
    else
        table_add_unavailable(table, word, reason);
}

void table_add_known(struct table *table, double value, const char *reason)
{
    table_add_real_or(table, value, "-", reason);
}

void table_member(struct table *table, const char *key, json_t *value)
{
    if (table == NULL) {
        json_decref(value);
        return;
    }
    if (json_object_set_new(table->members, key, value) < 0)
        error_no_memory(&table->error);
}

void table_members(struct table *table, const struct shape *shape, const void *from)
{
    json_t *members = table != NULL ? shape_tell(shape, from) : NULL;

    if (table != NULL && json_object_update(table->members, members) < 0)
        error_no_memory(&table->error);
    json_decref(members);
}

size_t table_row_count(const struct table *table)
{
    return table->cell_count / table->column_count;
}

const struct table_cell *table_cell_at(const struct table *table, size_t row, size_t column)
{
    return &table->cells[row * table->column_count + column];
}

int table_check(const struct table *table, struct fly_error *out_error)
{
    if (table == NULL)
        return error_no_memory(out_error);
    if (table->error.code < 0)
        return error_set(out_error, table->error.code, "%s", table->error.text);
    if (table->cell_count % table->column_count != 0)
        return error_set(out_error, FLY_EINTERNAL, "table '%s' ends within a row; please report it",
                         table->schema);
    return 0;
}
