/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/sim_policies.h"

#include <string.h>

#include "base/error.h"
#include "policy/batch_policies.h"

const char *const sim_policy_names[] = {
    [SIM_POLICY_BANDIT] = "bandit",
    [SIM_POLICY_BAYES] = "bayes",
    [SIM_POLICY_DEFAULT] = "default",
    [SIM_POLICY_GRID] = "grid",
    [SIM_POLICY_HILL_CLIMB] = "hill-climb",
    [SIM_POLICY_ZEUS] = "zeus",
    [SIM_POLICY_ZEUS_ONE_ROUND] = "zeus-one-round",
    [SIM_POLICY_ORACLE] = "oracle",
    NULL,
};

static const struct batch_policy *const known[SIM_POLICY_COUNT] = {
    [SIM_POLICY_BANDIT] = &batch_policy_bandit,
    [SIM_POLICY_BAYES] = &batch_policy_bayes,
    [SIM_POLICY_DEFAULT] = &batch_policy_default,
    [SIM_POLICY_GRID] = &batch_policy_grid,
    [SIM_POLICY_HILL_CLIMB] = &batch_policy_hill_climb,
    [SIM_POLICY_ZEUS] = &batch_policy_zeus,
    [SIM_POLICY_ZEUS_ONE_ROUND] = &batch_policy_zeus_one_round,
    [SIM_POLICY_ORACLE] = NULL, /* the simulator tells it the optimum */
};

const char *const sim_generator_names[] = {[GENERATOR_PHILOX] = "philox", [GENERATOR_NUMPY] = "numpy", NULL};

const char *const sim_guard_names[] = {
    [GUARD_OF_POLICY] = "policy", [GUARD_ON] = "on", [GUARD_OFF] = "off", NULL};

void sim_policies_init(struct sim_policies *policies)
{
    policies->count = policies->own_count = policies->own_tables = 0;
    policies->has_power = false;
}

void sim_policies_close(struct sim_policies *policies)
{
    while (policies->own_count > 0)
        plugin_batch_policy_close(&policies->own[--policies->own_count]);
    if (policies->has_power)
        plugin_power_policy_close(&policies->power);
    policies->has_power = false;
}

static int check_room(const struct sim_policies *policies, struct fly_error *out_error)
{
    return policies->count < SIM_POLICIES_ASKED_MAX
               ? 0
               : error_set(out_error, FLY_ELIMIT, "more than %d policies; name fewer",
                           SIM_POLICIES_ASKED_MAX);
}

int sim_policies_add(struct sim_policies *policies, enum sim_policy policy, struct fly_error *out_error)
{
    int code = check_room(policies, out_error);

    if (code == 0)
        policies->items[policies->count++] =
            (struct campaign_policy){sim_policy_names[policy], known[policy], .writes_tries = true};
    return code;
}

/* Returns whether the name is taken, so that a report could not tell the two policies apart. */
static bool name_taken(const struct sim_policies *policies, const char *name)
{
    for (size_t i = 0; i < SIM_POLICY_COUNT; i++) {
        if (strcmp(sim_policy_names[i], name) == 0)
            return true;
    }
    for (size_t i = 0; i < policies->own_count; i++) {
        if (strcmp(policies->own[i].policy.name, name) == 0)
            return true;
    }
    return batch_policy_find(name) != NULL;
}

/* Keeps the one that was opened last, or closes it. */
static int keep_own(struct sim_policies *policies, struct fly_error *out_error)
{
    struct plugin_batch_policy *own = &policies->own[policies->own_count];
    int code;

    if (name_taken(policies, own->policy.name)) {
        code = error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s' has the name '%.60s', and so has another policy; change it",
                         own->plugin.path, own->policy.name);
        plugin_batch_policy_close(own);
        return code;
    }
    policies->own_count++;
    policies->items[policies->count++] =
        (struct campaign_policy){own->policy.name, &own->policy, .writes_tries = true};
    return 0;
}

int sim_policies_add_plugin(struct sim_policies *policies, const char *path, struct fly_error *out_error)
{
    int code = check_room(policies, out_error);

    if (code == 0)
        code = plugin_batch_policy_open(path, &policies->own[policies->own_count], out_error);
    return code == 0 ? keep_own(policies, out_error) : code;
}

int sim_policies_add_table(struct sim_policies *policies, const struct fly_batch_policy *table, void *data,
                           struct fly_error *out_error)
{
    int code = check_room(policies, out_error);

    if (code == 0)
        code = plugin_batch_policy_of(table, data, &policies->own[policies->own_count], out_error);
    if (code == 0)
        code = keep_own(policies, out_error);
    policies->own_tables += code == 0;
    return code;
}

int sim_policies_load_power(struct sim_policies *policies, const char *path, struct fly_error *out_error)
{
    int code = plugin_power_policy_open(path, &policies->power, out_error);

    policies->has_power = code == 0;
    return code;
}

const struct power_policy *sim_policies_power(const struct sim_policies *policies)
{
    return policies->has_power ? &policies->power.policy : NULL;
}

void sim_policies_complete(struct sim_policies *policies)
{
    static const enum sim_policy always[] = {SIM_POLICY_DEFAULT, SIM_POLICY_ORACLE};

    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        bool asked = false;

        for (size_t p = 0; p < policies->count; p++)
            asked |= strcmp(policies->items[p].name, sim_policy_names[always[i]]) == 0;
        if (!asked)
            policies->items[policies->count++] = (struct campaign_policy){
                sim_policy_names[always[i]], known[always[i]], .writes_tries = false};
    }
}

bool sim_policies_heed_past(const struct sim_policies *policies)
{
    bool heeded = false;

    for (size_t i = 0; i < policies->count; i++)
        heeded |= policies->items[i].policy != NULL && policies->items[i].policy->heeds_past;
    return heeded;
}
