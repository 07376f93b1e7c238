/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_TABLE_H
#define FLYBALL_SHAPES_TABLE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "shapes/meaning.h"
#include "shapes/shape.h"

/*
 * A table for people and for programs; the meanings of its columns describe it once for all
 * forms. As text: headings and aligned columns, numbers to the right and rounded to the column's
 * decimals. As CSV: a column `schema`, then the keys; quoted by RFC 4180 with "\n" line ends;
 * reals in full precision. As JSON:
 *
 *     {"schema": "flyball.config.show/1", <members by table_member>,
 *      "rows": [{"key": "eta", "value": null, "value_unavailable": "is not set"}]}
 *
 * An unknown cell never shows 0 and is never blank to a reader: in text it has a word and the
 * number of a footnote with the reason; in JSON null and "<key>_unavailable"; in CSV an empty
 * field (an empty text is "" there). A real that is not finite counts as unavailable.
 *
 * Append cells in column order; a full row ends by itself. The table remembers a failed append,
 * and printing it (cli/kit/table_print.h) reports the failure:
 *
 *     static const struct meaning columns[] = {
 *         {"workload", "workload", MEANING_TEXT, 0, NULL, MEANING_FACT, "Workload that is simulated."},
 *         {"energy_j", "energy (J)", MEANING_REAL, 1, "J", MEANING_COUNTER, "Energy of all tries."},
 *     };
 *     struct table *table = table_new("flyball.sim.job/2", columns, 2);
 *
 *     table_add_text(table, "shufflenet");
 *     table_add_unavailable(table, NULL, "no power reading in the traces");
 *     result = cli_emit_table(call, table, out_error);
 *     table_free(table);
 *
 * Not thread-safe.
 */

/* A column that only people see, and whose title says all of it. */
#define TABLE_SHOWN(title, type, decimals)                \
    {                                                     \
        "", title, type, decimals, NULL, MEANING_FACT, "" \
    }

/* Returns how many decimals to show: MEANING_DIGITS(3) gives 3 for 0.25, and none for 0 or infinity. */
int table_decimals(int decimals, double least);

enum table_format { TABLE_FORMAT_TABLE, TABLE_FORMAT_JSON, TABLE_FORMAT_CSV };

struct table;

/* Borrows `schema` and `columns` ("flyball.<command>/<version>"). NULL without memory. */
struct table *table_new(const char *schema, const struct meaning *columns, size_t count);
void table_free(struct table *table);

/* Appends a cell. All accept a NULL table. The text is copied. A text in a column of numbers is a defect. */
void table_add_text(struct table *table, const char *text);
void table_add_integer(struct table *table, int64_t value);
void table_add_real(struct table *table, double value);

/*
 * Appends a list of texts, given with commas between them; an empty text is an empty list. JSON has an
 * array, CSV the text, and people see "none" for an empty one.
 */
void table_add_list(struct table *table, const char *texts);

/*
 * Appends an unknown cell. `word` appears in the text form, NULL for "unavailable"; `reason` is a
 * clause without a full stop.
 */
void table_add_unavailable(struct table *table, const char *word, const char *reason);

/* Appends a finite number, else the word and the reason; table_add_known uses the word "-". */
void table_add_real_or(struct table *table, double value, const char *word, const char *reason);
void table_add_known(struct table *table, double value, const char *reason);

/* A member of the JSON document beside "rows"; takes `value`. */
void table_member(struct table *table, const char *key, json_t *value);

/* Those that a shape tells of a struct (shapes/shape_told.h). */
void table_members(struct table *table, const struct shape *shape, const void *from);

size_t table_row_count(const struct table *table);

/*
 * Checks that the table is complete, and that every append succeeded: FLY_ENOMEM also for a NULL table (from
 * a failed table_new), the error of the first failed append, FLY_EINTERNAL for a table that ends within a
 * row.
 */
int table_check(const struct table *table, struct fly_error *out_error);

#endif
