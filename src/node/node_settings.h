/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_SETTINGS_H
#define FLYBALL_NODE_NODE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/frame/command.h"

/*
 * The settings of the daemon as one table. Its configuration file (node/node_config.h), its command
 * line, its manual page and the table in docs/howto/flyballd.md all come from it: a new setting is a
 * name in the enum and a row in node_settings.c.
 */
enum node_key {
    KEY_LISTEN,
    KEY_SOCKET_OWNER,
    KEY_SOCKET_GROUP,
    KEY_SOCKET_MODE,
    KEY_TOKENS,
    KEY_SIGNING_KEY,
    KEY_TLS_CERTIFICATE,
    KEY_TLS_KEY,
    KEY_INSECURE_PLAIN_HTTP,
    KEY_CONNECTIONS,
    KEY_CONNECTIONS_PER_HOST,
    KEY_CONNECTIONS_PER_USER,
    KEY_BODY_MAX,
    KEY_REQUEST_TIMEOUT,
    KEY_WORKERS,
    KEY_GRACE,
    KEY_PUBLIC_GROUPS,
    KEY_POLL,
    KEY_STATE,
    KEY_ATTRIBUTION_ENABLED,
    KEY_ATTRIBUTION_POLL,
    KEY_ATTRIBUTION_KEEP,
    KEY_ATTRIBUTION_SERIES,
    KEY_NVML,
    KEY_AMDSMI,
    KEY_SYSFS_ROOT,
    KEY_LEASE_RULE,
    KEY_LEASE_PATIENCE,
    KEY_LEASE_MAXIMUM,
    KEY_LEASE_PER_USER,
    KEY_LEASE_AUDIT,
    KEY_LEASE_AUDIT_REQUIRED,
    KEY_RUNTIME_DIRECTORY,
    KEY_GUARD,
    KEY_READONLY,
    KEY_RIGHTS_PROOF,
    KEY_RIGHTS_CLOSED,
    KEY_RIGHTS_OPEN,
    KEY_RIGHTS_CONTAINED,
    KEY_LOG_FORMAT,
    KEY_LOG_REQUESTS,
    KEY_COUNT
};

struct node_setting {
    struct cli_option option; /* `key` is "server.listen"; `name` is its option, NULL without one */
    bool reloads;             /* SIGHUP puts a new value in force; the others take a restart */
};

/* The table, by enum node_key. */
extern const struct node_setting node_settings[KEY_COUNT];

/* The word of KEY_LEASE_AUDIT that means no log, and of KEY_PUBLIC_GROUPS that means no group. */
#define SETTING_NONE "none"

/*
 * The keys of a rule, a section [rule NAME]; node/rights_rules.h reads them. The order is that of enum
 * rule_key.
 */
enum rule_key { RULE_FOR, RULE_GPUS, RULE_ALLOW, RULE_FLOOR, RULE_CEILING, RULE_KEYS };
extern const struct cli_option node_rule_keys[RULE_KEYS];

/* Returns the index of a key, "server.listen"; -1 for none. */
int node_setting_find(const char *key);

/* Returns the known key nearest to `key`, or NULL. */
const char *node_setting_nearest(const char *key);

#endif
