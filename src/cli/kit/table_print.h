/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_TABLE_PRINT_H
#define FLYBALL_CLI_KIT_TABLE_PRINT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "shapes/table.h"

/*
 * Turns a table or a JSON document into the bytes to print, and writes those to a stream. A
 * command's own output goes through cli_emit_table and cli_emit_json (call.h), which use these.
 */

enum { TABLE_OUTPUT_MAX = 1 << 30 }; /* bytes of a table or a document */

/*
 * Appends the table in a format; headings are bold with `color`. FLY_ENOMEM also for a NULL table
 * (from a failed table_new); the error of the first failed append; FLY_EINTERNAL for a table that
 * ends within a row.
 */
int table_print(const struct table *table, enum table_format format, bool color, struct buffer *out,
                struct fly_error *out_error);

/*
 * Appends only the rows, a line each, for output that goes on: CSV, with its heading if wanted,
 * or JSON objects that each have the schema.
 */
int table_print_lines(const struct table *table, enum table_format format, bool heading, struct buffer *out,
                      struct fly_error *out_error);

/*
 * Appends the document with a final newline: indented, reals with 17 digits, order kept.
 * FLY_EINTERNAL, FLY_ENOMEM.
 */
int table_print_json(const json_t *document, struct buffer *out, struct fly_error *out_error);

/* Writes and flushes bytes; FLY_EWRITE names `what` ("standard output"). */
int table_put(const char *bytes, size_t length, FILE *stream, const char *what, struct fly_error *out_error);

/* Appends and writes in one call. */
int table_write_json(const json_t *document, FILE *stream, struct fly_error *out_error);

/*
 * Writes a document to a file of its own, which appears as a whole or not at all. Takes the
 * document; NULL is FLY_ENOMEM.
 */
int table_save_json(json_t *document, const char *path, struct fly_error *out_error);

#endif
