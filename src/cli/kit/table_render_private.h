/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_TABLE_RENDER_PRIVATE_H
#define FLYBALL_CLI_KIT_TABLE_RENDER_PRIVATE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "shapes/table_cells.h"

/* The writers of a table's forms, each in a file of its own. */

/* Each appends the table to `out`; JSON is returned as a document, NULL without memory. */
void table_render_text(const struct table *table, bool color, struct buffer *out);
void table_render_csv(const struct table *table, bool heading, struct buffer *out);
json_t *table_render_json(const struct table *table);

/* Appends each row as a JSON object on a line of its own. Returns false without memory. */
bool table_render_json_lines(const struct table *table, struct buffer *out);

#endif
