/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_RIGHTS_RULES_H
#define FLYBALL_NODE_RIGHTS_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "cli/frame/config_file.h"
#include "node/lease/rights.h"
#include "node/node_settings.h"

/*
 * Rules of who may do what, from sections of the configuration:
 *
 *     [rule operators]
 *     for = group:gpu-admins
 *     gpus = 0,GPU-8f3a2b10
 *     allow = control
 *     floor = 40%
 *     ceiling = 350
 *
 * Zero it, take each entry of such sections in the file's order, and end it.
 */
enum { CONFIG_KEY_MAX = 128, RULE_WHERE_MAX = 4096 };

struct rules {
    size_t count;
    struct rights_rule rows[RIGHTS_RULES_MAX];
    /* Of the section that is being read: */
    bool open;
    bool set[RULE_KEYS];
    struct rights_rule made; /* without its GPU */
    size_t gpu_count;
    char gpus[RIGHTS_RULES_MAX][DEVICE_TEXT_MAX];
    char where[RULE_WHERE_MAX]; /* the section's file and line */
};

/* Returns whether a section is a rule: "rule operators". */
bool rules_is_section(const char *section);

/*
 * Takes an entry of a rule's section, or the section's beginning. FLY_ECONFIG names file, line and
 * key and says what was expected; it also refuses users and groups that this machine does not
 * know. FLY_ELIMIT for too many rules.
 */
int rules_take(struct rules *rules, const char *path, const struct config_entry *entry,
               struct fly_error *out_error);

/* Ends the last section. FLY_ECONFIG for a rule that says nothing, or allows what it may not. */
int rules_end(struct rules *rules, struct fly_error *out_error);

#endif
