/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_PARETO_ROWS_H
#define FLYBALL_SIM_OPEN_PARETO_ROWS_H

#include <stdbool.h>

#include "shapes/meaning.h"
#include "shapes/table.h"
#include "sim/open/pareto_result.h"

enum { PARETO_COLUMNS_MAX = 20 };

extern const struct quantities pareto_quantities;

/* The columns of one table. */
struct pareto_columns {
    struct meaning columns[PARETO_COLUMNS_MAX];
    const struct pareto_column *from[PARETO_COLUMNS_MAX]; /* what fills each */
    size_t count;
};

/*
 * People get marks in words and rounded figures; programs get a column for each mark and each
 * bound. Only a live job has columns that say how certain a figure is.
 */
struct pareto_columns pareto_columns_for(const struct pareto_result *result, bool for_people);

/*
 * Returns the points on the frontier, or all of them, as rows, to be freed by table_free; borrows
 * the columns until then.
 */
struct table *pareto_rows_new(const struct pareto_result *result, const struct pareto_columns *chosen,
                              bool all);

#endif
