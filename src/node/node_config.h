/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_CONFIG_H
#define FLYBALL_NODE_NODE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "cli/frame/value.h"
#include "node/lease/rights.h"
#include "node/node_settings.h"

/*
 * The daemon's configuration: the values of all settings (node/node_settings.h), and the rules of who
 * may do what.
 *
 *     [server]
 *     listen = unix:/run/flyballd/flyballd.sock
 *     [lease]
 *     rule = lower
 *     [rule operators]
 *     for = group:gpu-admins
 *     allow = control
 *     ceiling = 80%
 *
 *     code = config_load(&source, &config, out_error);
 *     poll_s = config_real(config, KEY_POLL);
 *     config_free(config);
 *
 * The command line wins over the file, and that over the default. Only a file that root or the
 * daemon's user owns, and that nobody else may write, is read: it says who may control GPUs. For
 * one thread at a time; reading values is thread-safe.
 */
struct config;

/* A value of the command line. */
struct config_override {
    enum node_key key;
    const char *text;
};

struct config_source {
    const char *path; /* borrowed */
    bool must_exist;  /* else a file that is not there is like an empty one */
    const struct config_override *overrides;
    size_t override_count;
};

/*
 * Reads the file. FLY_ECONFIG names file, line, key and what was expected; FLY_EPERM: others may
 * write the file; FLY_EUSAGE: a value of the command line; FLY_ENOMEM.
 */
int config_load(const struct config_source *source, struct config **out_config, struct fly_error *out_error);
void config_free(struct config *config);

/* The values; to ask for one by the wrong type is a defect. Texts live as long as the configuration. */
const char *config_text(const struct config *config, enum node_key key); /* NULL: unset */
const struct cli_list *config_list(const struct config *config, enum node_key key);
double config_real(const struct config *config, enum node_key key);
int64_t config_integer(const struct config *config, enum node_key key);
bool config_flag(const struct config *config, enum node_key key);
int config_choice(const struct config *config, enum node_key key);

/* Returns where a value came from: "/etc/flyball/flyballd.ini:7", "--poll", "default", "unset". */
const char *config_origin(const struct config *config, enum node_key key);

/* The rules, in the order of the file; a rule for several GPUs is several. */
const struct rights_rule *config_rules(const struct config *config, size_t *out_count);

/*
 * Compares with a configuration that was read later: calls `differs` for each setting whose value
 * is another and which takes a restart.
 */
void config_compare(const struct config *before, const struct config *after,
                    void (*differs)(void *state, const char *key), void *state);

#endif
