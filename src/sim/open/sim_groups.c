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

/* Where the tables go; out_tries is NULL where they are not kept. */
struct wanted {
    struct fly_sim_table **out_rows, **out_tries;
};

/* Turns the results into the tables that are wanted: both or none. */
static int make_tables(const struct sim_call *call, const struct group_plan *plan,
                       const struct group_result *results, const struct buffer *kept,
                       const struct wanted *wanted, struct fly_error *out_error)
{
    struct table *table = group_rows_of(plan, call->set.count, results);
    struct fly_sim_table *rows = NULL;
    int code = sim_columns_of(table, &rows, out_error);

    table_free(table);
    if (code == 0 && wanted->out_tries != NULL)
        code = sim_columns_of_group_tries(plan, kept, wanted->out_tries, out_error);
    if (code < 0)
        fly_sim_table_free(rows);
    else
        *wanted->out_rows = rows;
    return code;
}

static int run_plan(const struct sim_call *call, const struct group_plan *asked, const struct wanted *wanted,
                    struct fly_error *out_error)
{
    struct group_plan plan = *asked;
    struct group_result *results = NULL;
    struct buffer kept;
    int code;

    buffer_init(&kept, sim_columns_tries_bytes());
    if (wanted->out_tries != NULL) {
        plan.tries = sim_columns_keep;
        plan.tries_context = &kept;
        plan.tries_kept = true;
    }
    code = group_campaign_run(&plan, &results, out_error);
    if (code == 0)
        code = make_tables(call, &plan, results, &kept, wanted, out_error);
    free(results);
    buffer_deinit(&kept);
    return code;
}

static int run_file(struct sim_call *call, const struct group_file *file, const struct wanted *wanted,
                    struct fly_error *out_error)
{
    struct group_plan plan = {.file = file, .progress = sim_call_progress, .progress_context = call};
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
    plan.seed_from_name = plan.parameters.generator == GENERATOR_NUMPY && call->options.seed_count == 0;
    plan.parameters.overlapping = false;
    plan.threads = call->threads;
    call->units = (uint64_t)file->count * plan.policy_count * plan.seed_count;
    return run_plan(call, &plan, wanted, out_error);
}

static int check(const struct sim_call *call, const char *groups, struct fly_error *out_error)
{
    if (groups == NULL)
        return error_set(out_error, FLY_EUSAGE, "sim: no file of groups given");
    if (call->objective.kind != FLY_OBJECTIVE_COST || isfinite(call->objective.max_slowdown))
        return error_set(out_error, FLY_EUSAGE,
                         "sim: groups are simulated for a score without a bound on the slowdown");
    return 0;
}

int fly_sim_run_groups(const struct fly_sim_options *options, const char *groups,
                       struct fly_sim_table **out_rows, struct fly_sim_table **out_tries,
                       struct fly_error *out_error)
{
    const struct wanted wanted = {out_rows, out_tries};
    struct sim_call *call = NULL;
    struct group_file file;
    int code = sim_call_open(options, &call, out_error);

    if (code == 0)
        code = check(call, groups, out_error);
    if (code == 0)
        code = group_file_open(&file, groups, groups, out_error);
    if (code == 0) {
        code = run_file(call, &file, &wanted, out_error);
        group_file_close(&file);
    }
    sim_call_close(call);
    return code;
}
