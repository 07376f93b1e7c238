/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_SETTINGS_H
#define FLYBALL_CLI_FRAME_SETTINGS_H

#include <stddef.h>

#include "base/buffer.h"
#include "cli/frame/call.h"
#include "cli/frame/command.h"

/*
 * The configuration keys: all options of all commands that have one. A key that several commands
 * use means the same in each; the first one describes it.
 */
enum { KEYS_MAX = 128, KEY_VARIABLE_MAX = 64 };

struct key_table {
    size_t count;
    const struct cli_option *options[KEYS_MAX];
};

/* Collects the keys: common options first, then in the order of the commands. */
void keys_collect(const struct cli_program *program, struct key_table *out_keys);

/* Return the index of a key ("sim.traces"), or of the key that has this variable; -1 for none. */
int keys_find(const struct key_table *keys, const char *key);
int keys_find_variable(const struct key_table *keys, const char *variable);

/* Returns the known key nearest to `key`, or NULL. */
const char *keys_nearest(const struct key_table *keys, const char *key);

/*
 * Writes the key's variable, FLYBALL_SIM_TRACES for "sim.traces". Returns `variable`, of
 * KEY_VARIABLE_MAX bytes.
 */
char *key_variable(const char *key, char *variable);

/*
 * The configuration keys with the values that apply before the command line: a variable wins over
 * the working directory's file, that over the user's, that over the system's, that over the
 * default.
 *
 * The system's file may lock keys:
 *
 *     [lock]
 *     eta = yes
 *
 * A locked key has the value of the system's file, or the default. If another file or a variable
 * sets it, that is ignored with a warning; the command line may not set it.
 */
struct setting {
    const struct cli_option *option;
    enum cli_source source;
    char *text;   /* owned; NULL when unset */
    char *origin; /* owned: "FLYBALL_ETA", "./flyball.ini:7"; NULL for a default or unset */
    char *lock;   /* owned: "/etc/flyball/flyball.ini:9"; NULL when not locked */
};

struct settings {
    size_t count;
    struct setting rows[KEYS_MAX]; /* in the order of the key table */
};

/*
 * Where to look; each may be NULL. Borrowed. A file that somebody else may have written
 * (config_file.h) is ignored with a warning. So is a sensitive key in the local file,
 * because that file comes with whatever directory the user works in, such as a clone of a
 * stranger's repository. If the local file is the user's or the system's file, it counts only as
 * that.
 */
struct settings_paths {
    const char *system; /* the only one that may lock */
    const char *user;
    const char *local;
};

/*
 * Reads everything. `environment` is a list "NAME=value" that ends with NULL, or NULL; a variable
 * that is set but empty counts as not set. Appends warnings to `warnings`, one per line.
 * FLY_ECONFIG names the file and line or the variable. Deinitialise `out_settings` also on
 * failure.
 */
int settings_load(const struct cli_program *program, const struct settings_paths *paths,
                  const char *const *environment, struct settings *out_settings, struct buffer *warnings,
                  struct fly_error *out_error);

/* Fills in the keys with their defaults only. */
void settings_init(const struct cli_program *program, struct settings *out_settings);
void settings_deinit(struct settings *settings);

/* Returns the setting of a key, or NULL. */
const struct setting *settings_find(const struct settings *settings, const char *key);

#endif
