/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/objective_option.h"

#include <math.h>

#include "cli/options/slowdown_option.h"

int objective_option_read(const struct cli_call *call, struct fly_objective *out_objective,
                          struct fly_error *out_error)
{
    const char *text = cli_text(call, "objective");
    struct fly_objective objective = {FLY_OBJECTIVE_COST, cli_real(call, "eta"), INFINITY};
    int code;

    if (text != NULL && cli_given(call, "eta"))
        return cli_usage(call, out_error, "--objective and --eta both say what to make small; give one");
    /* The lowest limit says nothing about a batch size. */
    if (text != NULL &&
        (fly_objective_parse(text, &objective, NULL) < 0 || objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT))
        return cli_value_error(call, "objective", text, "energy, time, cost:ETA, carbon or money", out_error);
    code = slowdown_option_read(call, &objective.max_slowdown, out_error);
    if (code == 0)
        *out_objective = objective;
    return code;
}
