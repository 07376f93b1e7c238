/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_TABLE_CELLS_H
#define FLYBALL_SHAPES_TABLE_CELLS_H

#include <stdbool.h>

#include "shapes/table.h"

/* The data of table.c, which the writers of its forms read. */

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

/* Returns the cell of a row and column. */
const struct table_cell *table_cell_at(const struct table *table, size_t row, size_t column);

#endif
