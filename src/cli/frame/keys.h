/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_KEYS_H
#define FLYBALL_CLI_FRAME_KEYS_H

#include <stddef.h>

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

#endif
