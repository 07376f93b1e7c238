/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_COMMAND_FILE_H
#define FLYBALL_KNOB_WAY_COMMAND_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "knob/way/operation.h"

/*
 * A site's file of commands that turn knobs for its users, in TOML (see base/text/toml.h). The
 * public daemon's file of overrides is valid here too.
 *
 *     [set_power_limit]
 *     commands = ["sudo -n nvidia-smi -i {gpu_id} -pl {power_limit_w}"]
 *     error_pattern = "not supported"
 *     timeout_s = 10
 *
 * It has a table for each operation that the site offers, by its name (operation.h). `commands`
 * run one after the other until one fails. They are split into words as a shell does (quotes and
 * backslashes count, nothing is expanded), and no shell runs them. Words may contain
 *
 *     {gpu_id}                             always: the index that the driver gives the GPU
 *     {gpu_uuid}, {gpu_pci}                always; in Flyball alone
 *     {power_limit_mw}, {power_limit_w}    of set_power_limit; watts are cut to whole ones
 *     {enabled}                            of set_persistence_mode: 1 or 0
 *     {min_clock_mhz}, {max_clock_mhz}     of set_gpu_locked_clocks and set_mem_locked_clocks
 *
 * A command fails by its status, by output that `error_pattern` (a regular expression) matches,
 * or by taking longer than `timeout_s`.
 */
enum {
    COMMAND_FILE_BYTES_MAX = 1 << 16,
    COMMAND_WORDS_MAX = 64,       /* per command */
    COMMAND_POOL_MAX = 512,       /* words of all commands */
    COMMAND_COUNT_MAX = 16,       /* per operation */
    COMMAND_TIMEOUT_S = 10,       /* if the file states none, */
    COMMAND_FIRST_TIMEOUT_S = 60, /* and in place of the driver (site.h) */
    COMMAND_TIMEOUT_MAX_S = 600,
    COMMAND_PATTERN_MAX = 256
};

struct command_words {
    size_t first, count; /* in the pool */
};

struct operation_commands {
    size_t count; /* 0: the operation is not offered */
    struct command_words commands[COMMAND_COUNT_MAX];
    const char *error_pattern; /* NULL: none */
    int timeout_s;             /* of each command */
    bool timeout_stated;       /* in the file */
};

struct command_file {
    char *text; /* owned; contains all words */
    size_t word_count;
    char *words[COMMAND_POOL_MAX];
    struct operation_commands operations[OPERATION_COUNT];
};

/*
 * Reads a file. FLY_ECONFIG with its line if the file is not as above, FLY_ENOTFOUND, FLY_EPERM
 * also if users other than root and this one own it or may write to it, FLY_EREAD, FLY_ENOMEM.
 */
int command_file_load(const char *path, struct command_file **out_file, struct fly_error *out_error);

/* Does the same for a text; `name` is for errors. */
int command_file_parse(const char *name, const char *text, size_t length, struct command_file **out_file,
                       struct fly_error *out_error);

/* Returns how long the commands of one operation may take at most, in place of the driver. */
int command_file_longest_s(const struct command_file *file);

/* Returns whether the file's group may write it, which an operator should know. */
bool command_file_is_shared(const char *path);

/* Accepts NULL. */
void command_file_free(struct command_file *file);

#endif
