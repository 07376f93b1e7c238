/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/transfer_option.h"

#include "cli/sim/sim_workloads.h"

static int open_sources(void *context, const char *gpu, struct sim_set *set, struct fly_error *out_error)
{
    const struct cli_call *const *call = context;

    return gpu != NULL ? sim_workloads_open_of(set, *call, gpu, out_error)
                       : sim_workloads_open_traces(set, *call, out_error);
}

int transfer_option_open(struct sim_transfer *set, const struct cli_call *call, const struct sim_set *targets,
                         struct fly_error *out_error)
{
    const char *from = cli_text(call, "transfer-from"), *expected = NULL;
    const struct sim_transfer_wish wish = {.from = from,
                                           .recurrences = (uint64_t)cli_integer(call, "transfer-recurrences"),
                                           .traces = cli_text(call, "traces"),
                                           .open = open_sources,
                                           .context = &call};
    int code = sim_transfer_open(set, &wish, targets, &expected, out_error);

    return expected != NULL ? cli_value_error(call, "transfer-from", from, expected, out_error) : code;
}
