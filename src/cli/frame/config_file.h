/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_CONFIG_FILE_H
#define FLYBALL_CLI_FRAME_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

#include "base/buffer.h"

/*
 * Whether to trust a configuration file. Flyball reads a file only if root or the user who runs
 * the program owns it and nobody else may write it: settings choose what a program does, and with
 * sudo the program does it as root.
 */
struct config_trust {
    uid_t user;        /* who runs the program: its effective uid */
    uid_t owner;       /* of the file */
    mode_t mode;       /* of the file */
    bool own_group;    /* only the file's owner is in the file's group */
    bool unmapped;     /* the owner is the overflow uid: somebody outside this user namespace */
    bool on_read_only; /* the file is on a mount that nobody here can write */
    bool strange_link; /* the path is a link that neither root nor the user made */
};

/*
 * Returns why the file must not be read, as part of a sentence: "anybody may write it"; NULL if
 * it may be read. Pure.
 */
const char *config_trust_refusal(const struct config_trust *trust);

/* Reads these facts of an open file, which was opened at `path`. Returns 0, or -1 with errno. */
int config_trust_read(const char *path, int fd, struct config_trust *out_trust);

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
 * somebody else may have written (config_file.h) is not read: then `out_exists` is
 * false, and `*out_refusal` says why, constant; otherwise `*out_refusal` is NULL.
 */
int config_file_read(const char *path, struct buffer *text, bool *out_exists, const char **out_refusal,
                     struct fly_error *out_error);

#endif
