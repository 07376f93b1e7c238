/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_TABLE_PRIVATE_H
#define FLYBALL_CLI_KIT_TABLE_PRIVATE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "cli/kit/table.h"

/* The data of table.c, which the writers read; each format has a writer in its own file. */

enum cell_state { CELL_TEXT, CELL_INTEGER, CELL_REAL, CELL_LIST, CELL_UNAVAILABLE };

struct table_cell {
    enum cell_state state;
    size_t footnote; /* number of an unavailable cell's footnote, from 1 */
    union {
        char *text; /* owned; for an unavailable cell its word, for a list all of it */
        int64_t integer;
        double real;
    };
};

struct table {
    const char *schema;
    const struct meaning *columns;
    size_t column_count;
    struct table_cell *cells; /* row by row */
    size_t cell_count;
    size_t cell_capacity;
    char **reasons; /* footnotes, each once */
    size_t reason_count;
    json_t *members;        /* beside "rows" */
    struct fly_error error; /* of the first failed append; code 0 for none */
};

/* Each appends the table to `out`; JSON is returned as a document, NULL without memory. */
void table_render_text(const struct table *table, bool color, struct buffer *out);
void table_render_csv(const struct table *table, bool heading, struct buffer *out);
json_t *table_render_json(const struct table *table);

/* Returns the cell of a row and column. */
const struct table_cell *table_cell_at(const struct table *table, size_t row, size_t column);

/* Appends each row as a JSON object on a line of its own. Returns false without memory. */
bool table_render_json_lines(const struct table *table, struct buffer *out);

#endif
