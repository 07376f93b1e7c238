/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_SIM_POLICIES_H
#define FLYBALL_SIM_OPEN_SIM_POLICIES_H

#include "policy/plugin_batch_policy.h"
#include "policy/plugin_power_policy.h"
#include "sim/campaign.h"

/*
 * Which policies a simulation compares: built-in ones, plug-ins (policy/plugin.h), and tables of the
 * caller's.
 *
 *     sim_policies_init(&policies);
 *     code = sim_policies_add(&policies, SIM_POLICY_ZEUS);
 *     if (code == 0)
 *         code = sim_policies_add_plugin(&policies, "./mine.so", out_error);
 *     if (code == 0)
 *         sim_policies_complete(&policies);
 *     sim_policies_close(&policies);
 */
enum sim_policy {
    SIM_POLICY_BANDIT,
    SIM_POLICY_BAYES,
    SIM_POLICY_DEFAULT,
    SIM_POLICY_GRID,
    SIM_POLICY_HILL_CLIMB,
    SIM_POLICY_ZEUS,
    SIM_POLICY_ZEUS_ONE_ROUND,
    SIM_POLICY_ORACLE,
    SIM_POLICY_COUNT
};

extern const char *const sim_policy_names[];    /* by enum sim_policy, ended by NULL */
extern const char *const sim_generator_names[]; /* by enum generator, ended by NULL */
extern const char *const sim_guard_names[];     /* by enum guard_choice, ended by NULL */

enum { SIM_POLICIES_ASKED_MAX = 64, SIM_POLICIES_MAX = SIM_POLICIES_ASKED_MAX + 2 };

struct sim_policies {
    struct campaign_policy items[SIM_POLICIES_MAX]; /* in the order in which they were added */
    size_t count;
    struct plugin_batch_policy own[SIM_POLICIES_ASKED_MAX]; /* plug-ins, and tables of the caller's */
    size_t own_count;
    size_t own_tables; /* how many of these are tables of the caller's */
    bool has_power;
    struct plugin_power_policy power;
};

/* Nothing can fail. Call sim_policies_close afterwards. */
void sim_policies_init(struct sim_policies *policies);
void sim_policies_close(struct sim_policies *policies);

/* Adds a built-in policy. FLY_ELIMIT beyond SIM_POLICIES_ASKED_MAX. */
int sim_policies_add(struct sim_policies *policies, enum sim_policy policy, struct fly_error *out_error);

/* Loads a plug-in. Errors as plugin_open; FLY_EDATA for a name that another policy has; FLY_ELIMIT. */
int sim_policies_add_plugin(struct sim_policies *policies, const char *path, struct fly_error *out_error);

/*
 * Adds a table of the caller's, which stays until the policies are closed; `data` becomes that of struct
 * fly_batch_job. Errors as plugin_batch_policy_of; FLY_EDATA for a name that another policy has; FLY_ELIMIT.
 */
int sim_policies_add_table(struct sim_policies *policies, const struct fly_batch_policy *table, void *data,
                           struct fly_error *out_error);

/* Loads the plug-in that chooses power limits from profiles. Errors as plugin_open. */
int sim_policies_load_power(struct sim_policies *policies, const char *path, struct fly_error *out_error);

/* Returns the power-limit policy that was loaded, or NULL for the built-in one. */
const struct power_policy *sim_policies_power(const struct sim_policies *policies);

/* Returns whether one of them learns from what jobs bring from elsewhere. */
bool sim_policies_heed_past(const struct sim_policies *policies);

/* Adds default and oracle where they were not; their tries are not written. */
void sim_policies_complete(struct sim_policies *policies);

#endif
