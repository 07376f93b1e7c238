/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_CONFIG_FILE_H
#define FLYBALL_CLI_FRAME_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

#include <flyball/error.h>

/*
 * The syntax of a configuration file; cli/frame/settings.h knows what keys mean.
 *
 *     # a comment; "key : value" works too
 *     eta = 0.5
 *     [sim]
 *     traces = /srv/traces     ; a comment behind a blank
 *
 * Keys before the first section and in [flyball] have no prefix, those in [sim] are "sim.traces".
 * Blanks around keys and values are ignored. Not thread-safe.
 */
enum { CONFIG_FILE_MAX = 1 << 20 };

struct config_entry {
    const char *section; /* "", "sim", "lock"; never "flyball" */
    const char *name;    /* NULL: the section begins here; it may have no entries */
    const char *value;   /* NULL with name */
    size_t line;         /* from 1 */
};

/* Receives an entry, borrowed for the call. A negative result ends the parsing and becomes its result. */
typedef int config_entry_fn(void *data, const struct config_entry *entry, struct fly_error *out_error);

/*
 * Passes every entry of a text to `take`, in order. `name` is for messages. FLY_ECONFIG with
 * "name:line: ..." for a syntax error, a NUL byte or a line that is too long for the parser.
 */
int config_text_parse(const char *name, const char *text, size_t length, config_entry_fn *take, void *data,
                      struct fly_error *out_error);

/*
 * Appends the content of a file to `text`. If the file does not exist, `out_exists` is false.
 * FLY_ECONFIG if it is no file, is too big or cannot be read. With `out_refusal`, a file that
 * somebody else may have written (cli/frame/config_trust.h) is not read: then `out_exists` is
 * false, and `*out_refusal` says why, constant; otherwise `*out_refusal` is NULL.
 */
int config_file_read(const char *path, struct buffer *text, bool *out_exists, const char **out_refusal,
                     struct fly_error *out_error);

#endif
