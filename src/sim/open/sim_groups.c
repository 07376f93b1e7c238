/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of overlapping submissions, simulated for a caller of the library. */
#include <flyball/sim.h>

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "sim/group_campaign.h"
#include "sim/open/group_rows.h"
#include "sim/open/group_set.h"
#include "sim/open/sim_call.h"
#include "sim/open/sim_columns.h"

static int run_plan(struct sim_call *call, const struct group_plan *plan, struct fly_sim_table **out_rows,
                    struct fly_error *out_error)
{
    struct group_result *results = NULL;
    struct table *table = NULL;
    int code = group_campaign_run(plan, &results, out_error);

    if (code < 0)
        return code;
    table = group_rows_of(plan, call->set.count, results);
    code = sim_columns_of(table, out_rows, out_error);
    table_free(table);
    free(results);
    return code;
}

static int run_file(struct sim_call *call, const struct group_file *file, struct fly_sim_table **out_rows,
                    struct fly_error *out_error)
{
    struct group_plan plan = {
        .file = file, .tries = NULL, .progress = sim_call_progress, .progress_context = call};
    size_t *group_workloads = NULL;
    int code = sim_call_traces(call, call->options.gpu_model, &call->set, out_error);

    if (code == 0)
        code = group_set_open(&call->set, file, &call->arena, &group_workloads, out_error);
    if (code == 0)
        code = sim_call_policies(call, &plan.parameters, out_error);
    if (code == 0)
        code = sim_call_seeds(call, 1, &plan.seeds, &plan.seed_count, out_error);
    if (code < 0)
        return code;
    plan.workloads = call->set.items;
    plan.group_workloads = group_workloads;
    plan.policies = call->policies.items;
    plan.policy_count = call->policies.count;
    plan.seed_from_name = plan.parameters.generator == GENERATOR_NUMPY;
    plan.parameters.overlapping = false;
    plan.threads = call->threads;
    call->units = (uint64_t)file->count * plan.policy_count * plan.seed_count;
    if (plan.seed_from_name && call->options.seed_count > 0)
        return error_set(out_error, FLY_EUSAGE,
                         "sim: with the generator numpy each group's seed is the Adler-32 of its name; leave "
                         "out the seeds");
    return run_plan(call, &plan, out_rows, out_error);
}

static int check(const struct sim_call *call, const char *groups, struct fly_error *out_error)
{
    if (groups == NULL)
        return error_set(out_error, FLY_EUSAGE, "sim: no file of groups given");
    if (call->objective.kind != FLY_OBJECTIVE_COST || isfinite(call->objective.max_slowdown))
        return error_set(out_error, FLY_EUSAGE,
                         "sim: groups are simulated for a cost without a bound on the slowdown");
    return 0;
}

int fly_sim_run_groups(const struct fly_sim_options *options, const char *groups,
                       struct fly_sim_table **out_rows, struct fly_error *out_error)
{
    struct sim_call *call = NULL;
    struct group_file file;
    int code = sim_call_open(options, &call, out_error);

    if (code == 0)
        code = check(call, groups, out_error);
    if (code == 0)
        code = group_file_open(&file, groups, groups, out_error);
    if (code == 0) {
        code = run_file(call, &file, out_rows, out_error);
        group_file_close(&file);
    }
    sim_call_close(call);
    return code;
}
