/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_policies.h"

#include <string.h>

#include "base/number.h"

enum {
    POLICY_BANDIT,
    POLICY_BAYES,
    POLICY_DEFAULT,
    POLICY_GRID,
    POLICY_HILL_CLIMB,
    POLICY_ZEUS,
    POLICY_ZEUS_ONE_ROUND,
    POLICY_ORACLE,
    POLICY_COUNT
};
const char *const sim_policy_names[] = {"bandit", "bayes",          "default", "grid", "hill-climb",
                                        "zeus",   "zeus-one-round", "oracle",  NULL};

static const struct batch_policy *const known[POLICY_COUNT] = {
    [POLICY_BANDIT] = &batch_policy_bandit,
    [POLICY_BAYES] = &batch_policy_bayes,
    [POLICY_DEFAULT] = &batch_policy_default,
    [POLICY_GRID] = &batch_policy_grid,
    [POLICY_HILL_CLIMB] = &batch_policy_hill_climb,
    [POLICY_ZEUS] = &batch_policy_zeus,
    [POLICY_ZEUS_ONE_ROUND] = &batch_policy_zeus_one_round,
    [POLICY_ORACLE] = NULL, /* the simulator tells it the optimum */
};

const char *const sim_generator_names[] = {[GENERATOR_PHILOX] = "philox", [GENERATOR_NUMPY] = "numpy", NULL};

const char *const sim_guard_names[] = {
    [GUARD_OF_POLICY] = "policy", [GUARD_ON] = "on", [GUARD_OFF] = "off", NULL};

static void choose(struct sim_policies *policies, const struct cli_call *call)
{
    static const int always[] = {POLICY_DEFAULT, POLICY_ORACLE};
    const struct cli_list *asked = cli_list(call, "policy");
    bool chosen[POLICY_COUNT] = {false};
    size_t plugin = 0;

    policies->count = 0;
    for (size_t i = 0; i < asked->count; i++) {
        int policy = asked->choices[i];
        const struct batch_policy *own = policy < 0 ? &policies->plugins.batch[plugin++].policy : NULL;

        if (policy >= 0)
            chosen[policy] = true;
        policies->items[policies->count++] =
            own != NULL
                ? (struct campaign_policy){own->name, own, .writes_tries = true}
                : (struct campaign_policy){sim_policy_names[policy], known[policy], .writes_tries = true};
    }
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        if (!chosen[always[i]])
            policies->items[policies->count++] = (struct campaign_policy){
                sim_policy_names[always[i]], known[always[i]], .writes_tries = false};
    }
}

/* Reads --profile-window as a share, 0.1 for 10%; 0 if it is not set. */
static int read_window(const struct cli_call *call, double *out_share, struct fly_error *out_error)
{
    const char *text = cli_text(call, "profile-window");
    size_t length = text != NULL ? strlen(text) : 0;
    char number[NUMBER_TEXT_MAX] = "";
    double percent;

    *out_share = 0.0;
    if (text == NULL)
        return 0;
    if (length > 0 && length <= sizeof number && text[length - 1] == '%')
        memcpy(number, text, length - 1);
    if (!number_parse_double(number, &percent) || !(percent > 0.0 && percent <= 100.0))
        return cli_value_error(call, "profile-window", text,
                               "a percentage above 0% and up to 100%, as in 10%", out_error);
    *out_share = percent / 100.0;
    return 0;
}

int sim_policies_open(struct sim_policies *policies, const struct cli_call *call, struct fly_error *out_error)
{
    int code = read_window(call, &policies->profile_window, out_error);

    if (code == 0)
        code = sim_plugins_open(&policies->plugins, call, sim_policy_names, out_error);
    if (code == 0)
        choose(policies, call);
    return code;
}

void sim_policies_close(struct sim_policies *policies)
{
    sim_plugins_close(&policies->plugins);
}

struct policy_parameters sim_policy_parameters(const struct sim_policies *policies,
                                               const struct cli_call *call)
{
    return (struct policy_parameters){.beta = cli_real(call, "beta"),
                                      .window = (uint32_t)cli_integer(call, "window"),
                                      .generator = (enum generator)cli_choice(call, "generator"),
                                      .guard = (enum guard_choice)cli_choice(call, "guard"),
                                      .profile_window = policies->profile_window,
                                      .power = sim_plugins_power(&policies->plugins)};
}
