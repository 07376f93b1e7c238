/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_SETTINGS_H
#define FLYBALL_CLI_FRAME_SETTINGS_H

#include "base/buffer.h"
#include "cli/frame/call.h"
#include "cli/frame/keys.h"

/*
 * The configuration keys with the values that hold before the command line:
 * variables win over the working directory's file, that over the user's, that
 * over the system's, that over the default.
 *
 * The system's file may lock keys:
 *
 *     [lock]
 *     eta = yes
 *
 * A locked key keeps what the system's file or the default says; others that
 * set it are passed over with a warning, and the command line may not.
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
 * Where to look; each may be NULL. Borrowed. A file that somebody else may have
 * written (cli/frame/config_trust.h) is passed over with a warning. So is a sensitive
 * key in the local file, which comes along with whatever directory one works
 * in, a clone of a stranger's repository for one. A local file that is the
 * user's or the system's own is read as that alone.
 */
struct settings_paths {
    const char *system; /* the only one that may lock */
    const char *user;
    const char *local;
};

/*
 * Reads everything. `environment` is a list "NAME=value" that ends with NULL,
 * or NULL; a variable that is set but empty counts as not set. Appends warnings
 * to `warnings`, one per line. FLY_ECONFIG names the file and line or the
 * variable. `out_settings` is to be deinitialised also on failure.
 */
int settings_load(const struct cli_program *program, const struct settings_paths *paths,
                  const char *const *environment, struct settings *out_settings, struct buffer *warnings,
                  struct fly_error *out_error);

/* The keys with their defaults only. */
void settings_init(const struct cli_program *program, struct settings *out_settings);
void settings_deinit(struct settings *settings);

/* The setting of a key, or NULL. */
const struct setting *settings_find(const struct settings *settings, const char *key);

#endif
