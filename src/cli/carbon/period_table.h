/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_CARBON_PERIOD_TABLE_H
#define FLYBALL_CLI_CARBON_PERIOD_TABLE_H

#include "shapes/table.h"
#include "train/account/carbon_statement.h"

/*
 * A statement's periods as rows of a table: the grid's figures and what they are based on, the
 * power limit, energy, grams and money. Tables for people leave out columns that have nothing to
 * say.
 */
enum { PERIOD_COLUMNS_MAX = 20 };

extern const struct quantities period_quantities;

/*
 * Returns NULL without memory. `schema` is static; `columns` is filled in and borrowed for the
 * table's life.
 */
struct table *period_table_new(const char *schema, const struct carbon_statement *statement, bool for_people,
                               struct meaning columns[PERIOD_COLUMNS_MAX]);

#endif
