/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_TEXT_CSV_H
#define FLYBALL_BASE_TEXT_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Reads a CSV file with a header (RFC 4180: commas, optional double quotes, LF or CRLF; a
 * byte-order mark and blank lines are skipped). The wanted columns are found by name; they may be
 * in any order, among others.
 *
 *     static const char *const columns[] = {"batch_size", "time_per_epoch"};
 *     struct csv csv;
 *     int more = csv_open(&csv, path, columns, 2, out_error);
 *     while (more == 0 && (more = csv_next(&csv, out_error)) > 0)
 *         ... csv_field(&csv, 0) ...
 *     csv_close(&csv);
 *
 * Every message names file, line and column, what was expected, and the next step. Not
 * thread-safe.
 */
enum { CSV_COLUMNS_MAX = 64, CSV_ROW_MAX = 1 << 20 };

struct csv {
    const char *path;              /* borrowed, for messages */
    const char *const *columns;    /* borrowed: the wanted columns' names */
    size_t column_count;           /* wanted */
    size_t field_count;            /* in the file */
    size_t at[CSV_COLUMNS_MAX];    /* wanted column -> position in the file */
    char *fields[CSV_COLUMNS_MAX]; /* of the current row, in file order */
    size_t line;                   /* of the current row, from 1 */
    FILE *stream;                  /* owned */
    bool at_end;                   /* of the stream */
    char *window;                  /* owned: the part of the file being cut into rows */
    size_t capacity;
    char *next; /* in the window: where the next row begins */
    char *end;  /* where the window's content ends, with a NUL */
    size_t next_line;
    uint64_t next_offset; /* of the next row, in bytes from the file's start */
};

/*
 * Opens `path` and reads the header. Fails with FLY_ENOTFOUND, FLY_EPERM or FLY_EREAD if the file
 * cannot be read, FLY_ELIMIT beyond CSV_COLUMNS_MAX columns, and FLY_EDATA if a wanted column is
 * missing or any column occurs twice. `csv` needs csv_close only after success.
 *
 * Memory does not grow with the file, only with its longest row.
 */
int csv_open(struct csv *csv, const char *path, const char *const *columns, size_t column_count,
             struct fly_error *out_error);

/* Returns the error for a file that could not be opened; `cause` is an errno of patient_file_read(). */
int csv_open_failed(const char *name, int cause, struct fly_error *out_error);

/* Does the same over a stream at its start, and takes the stream. `name` replaces the path in messages. */
int csv_open_stream(struct csv *csv, const char *name, FILE *stream, const char *const *columns,
                    size_t column_count, struct fly_error *out_error);

/* Does the same over text in memory, and copies it. */
int csv_open_text(struct csv *csv, const char *name, const char *text, size_t length,
                  const char *const *columns, size_t column_count, struct fly_error *out_error);

/*
 * Goes on with the row that begins at byte `offset`, in line `line`; both as csv->next_offset and
 * next_line gave them.
 */
int csv_seek(struct csv *csv, uint64_t offset, size_t line, struct fly_error *out_error);

void csv_close(struct csv *csv);

/*
 * Reads the next row. Returns 1, 0 at the end, or an error: FLY_EDATA for a row of another length
 * or form, FLY_ELIMIT for one beyond CSV_ROW_MAX bytes, FLY_EREAD.
 */
int csv_next(struct csv *csv, struct fly_error *out_error);

/* Returns the wanted column `column` of the current row. Valid until the next row is read. */
const char *csv_field(const struct csv *csv, size_t column);

/*
 * Refuses the current row's `column`: "traces/power.csv:17: column
 * 'time_per_epoch': expected a number above 0, found 'abc'; REMEDY". Returns
 * FLY_EDATA.
 */
int csv_refuse(const struct csv *csv, size_t column, const char *expected, const char *remedy,
               struct fly_error *out_error);

/*
 * Reads a finite number in `column`, which must lie in (above, maximum]; `expected` describes
 * that for messages.
 */
int csv_number(const struct csv *csv, size_t column, double above, double maximum, const char *expected,
               double *out_value, struct fly_error *out_error);

#endif
