/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_ARGUMENTS_H
#define FLYBALL_NODE_NODE_ARGUMENTS_H

#include <stddef.h>

#include <flyball/error.h>

#include "node/node_config.h"

/* The daemon's command line, as a table: a mode is a word or an option, and settings have options. */
enum node_mode {
    MODE_RUN,
    MODE_RESTORE,
    MODE_RELEASE,
    MODE_RESUME,
    MODE_CHECK,
    MODE_VERSION,
    MODE_HELP,
    MODE_MANUAL,
    MODE_QUANTITIES,
    MODE_COUNT
};

struct node_mode_row {
    const char *word; /* "release", "--check-config"; NULL: no word at all */
    const char *help; /* one sentence */
};
extern const struct node_mode_row node_modes[MODE_COUNT];

/* The option that names the configuration, and where it is without. */
#define NODE_CONFIG_OPTION "--config"
#ifndef FLYBALL_SYSCONFDIR
#define FLYBALL_SYSCONFDIR "/etc/flyball"
#endif
#define NODE_CONFIG_PATH FLYBALL_SYSCONFDIR "/flyballd.ini"

struct node_arguments {
    enum node_mode mode;
    const char *config; /* NULL: not given */
    struct config_override overrides[KEY_COUNT];
    size_t override_count;
};

/*
 * Reads the words behind the program's name; texts are borrowed. FLY_EUSAGE says what is wrong and
 * what was meant. Pure.
 */
int node_arguments_read(const char *const *words, size_t count, struct node_arguments *out_arguments,
                        struct fly_error *out_error);

/* Gives where to read the configuration from; it borrows the arguments. */
struct config_source node_arguments_source(const struct node_arguments *arguments);

#endif
