/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/plugin_power_policy.h"

static int plugin_choose(const struct power_policy *opaque, const struct fly_power_point *points,
                         size_t count, double eta, double max_power_w, size_t *out_index,
                         struct fly_error *out_error)
{
    const struct plugin_power_policy *self = (const struct plugin_power_policy *)opaque;
    size_t index = SIZE_MAX;
    int answer;

    plugin_enter(&self->plugin, "choose");
    answer = self->table->choose(points, count, eta, max_power_w, &index);
    plugin_leave();
    if (answer != 0)
        return error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s': 'choose' failed with %d; mend the plug-in or leave it out",
                         self->plugin.path, answer);
    if (index >= count)
        return error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s': 'choose' gave index %zu of a profile with %zu points; set it to "
                         "one from 0 to %zu",
                         self->plugin.path, index, count, count - 1);
    *out_index = index;
    return 0;
}

int plugin_power_policy_open(const char *path, struct plugin_power_policy *out_policy,
                             struct fly_error *out_error)
{
    struct plugin_power_policy policy = {.policy = {.choose = plugin_choose}};
    const struct plugin_head *head;
    int code = plugin_open(path, "fly_power_policy_plugin", sizeof *policy.table, sizeof *policy.table,
                           &policy.plugin, &head, out_error);

    if (code < 0)
        return code;
    policy.table = (const struct fly_power_policy *)head;
    policy.policy.name = policy.plugin.name;
    if (policy.table->choose == NULL) {
        code = plugin_lacks(&policy.plugin, "choose", out_error);
        plugin_close(&policy.plugin);
        return code;
    }
    *out_policy = policy;
    return 0;
}

void plugin_power_policy_close(struct plugin_power_policy *policy)
{
    plugin_close(&policy->plugin);
}
