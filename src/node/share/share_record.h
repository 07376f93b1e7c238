/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_SHARE_SHARE_RECORD_H
#define FLYBALL_NODE_SHARE_SHARE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "meter/gpu_usage.h"

/*
 * The files of the record: ends of rows are appended to one, which is turned over when it is long; the rest
 * is in another that is replaced as a whole. docs/reference/formats.md describes them.
 *
 *     share_record_open(directory, &record, out_error);
 *     share_record_read_now(record, visit, state, &bad);      each line of what was last
 *     share_record_read_ended(record, visit, state, &bad);    of the two newest files of ends, oldest first
 *     share_record_append(record, text, out_error);           whole lines
 *     share_record_replace(record, text, out_error);
 *
 * A line that is none, such as one that was torn when the machine stopped, is left out and counted. For
 * one thread at a time.
 */
struct share_record;

enum {
    RECORD_LINE_MAX = 64 << 10,
    RECORD_FILE_MAX = 8 << 20, /* bytes of a file of ends before it is turned over */
    RECORD_NOW_MAX = 32 << 20,
    RECORD_FILES = 10, /* of ends, the one that is written included */
};

/* Takes a line; it, and `text` without its end, are valid during the call. Returns 0, or a code to stop. */
typedef int share_record_visit(void *state, const struct usage_line *line, const char *text, size_t length);

/* FLY_ENOMEM, FLY_ELIMIT for a name that is too long. Touches no file. */
int share_record_open(const char *directory, struct share_record **out_record, struct fly_error *out_error);
void share_record_close(struct share_record *record); /* accepts NULL */

/* A file that is not there holds no lines. FLY_EREAD, FLY_EPERM, FLY_ENOMEM, and what `visit` returned. */
int share_record_read_now(struct share_record *record, share_record_visit *visit, void *state,
                          size_t *out_bad, struct fly_error *out_error);
int share_record_read_ended(struct share_record *record, share_record_visit *visit, void *state,
                            size_t *out_bad, struct fly_error *out_error);

/* FLY_EWRITE, FLY_EPERM, FLY_ENOTFOUND; then the file is as it was, or has a torn line at its end. */
int share_record_append(struct share_record *record, const char *text, size_t length,
                        struct fly_error *out_error);
int share_record_replace(struct share_record *record, const char *text, size_t length,
                         struct fly_error *out_error);

/* Visits the lines of a text; what is no line of a record is counted. Pure but for `visit`. */
int share_record_each(const char *text, size_t length, share_record_visit *visit, void *state,
                      size_t *out_bad);

/* Appends a line and its end. FLY_EDATA, FLY_ELIMIT, FLY_ENOMEM. */
int share_record_put(const struct usage_line *line, struct buffer *text, struct fly_error *out_error);

#endif
