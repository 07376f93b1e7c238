/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_plugins.h"

#include <string.h>

#include "base/error.h"
#include "policy/batch_policies.h"

/* Returns whether the name is taken, so that a report could not tell the two policies apart. */
static bool name_taken(const struct sim_plugins *plugins, const char *const *known, const char *name)
{
    for (; *known != NULL; known++) {
        if (strcmp(*known, name) == 0)
            return true;
    }
    for (size_t i = 0; i < plugins->batch_count; i++) {
        if (strcmp(plugins->batch[i].policy.name, name) == 0)
            return true;
    }
    return batch_policy_find(name) != NULL;
}

static int open_batch(struct sim_plugins *plugins, const char *const *known, const char *path,
                      struct fly_error *out_error)
{
    struct plugin_batch_policy *plugin = &plugins->batch[plugins->batch_count];
    int code;

    code = plugin_batch_policy_open(path, plugin, out_error);
    if (code < 0)
        return code;
    if (name_taken(plugins, known, plugin->policy.name)) {
        code = error_set(out_error, FLY_EDATA,
                         "plug-in '%.200s' has the name '%.60s', and so has another policy; change it", path,
                         plugin->policy.name);
        plugin_batch_policy_close(plugin);
        return code;
    }
    plugins->batch_count++;
    return 0;
}

int sim_plugins_open(struct sim_plugins *plugins, const struct cli_call *call, const char *const *known,
                     struct fly_error *out_error)
{
    const struct cli_list *asked = cli_list(call, "policy");
    const char *power = cli_text(call, "power-policy");
    int code = 0;

    plugins->batch_count = 0;
    plugins->has_power = false;
    for (size_t i = 0; i < asked->count && code == 0; i++) {
        if (asked->choices[i] >= 0)
            continue;
        if (cli_source(call, "policy") == CLI_FILE)
            code = cli_value_error(call, "policy", asked->words[i],
                                   "no path, since a file must not bring code along: name plug-ins on the "
                                   "command line",
                                   out_error);
        else
            code = open_batch(plugins, known, asked->words[i], out_error);
    }
    if (code == 0 && power != NULL) {
        code = plugin_power_policy_open(power, &plugins->power, out_error);
        plugins->has_power = code == 0;
    }
    if (code < 0)
        sim_plugins_close(plugins);
    return code;
}

void sim_plugins_close(struct sim_plugins *plugins)
{
    while (plugins->batch_count > 0)
        plugin_batch_policy_close(&plugins->batch[--plugins->batch_count]);
    if (plugins->has_power)
        plugin_power_policy_close(&plugins->power);
    plugins->has_power = false;
}

const struct power_policy *sim_plugins_power(const struct sim_plugins *plugins)
{
    return plugins->has_power ? &plugins->power.policy : NULL;
}
