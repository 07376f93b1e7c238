/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/compare_options.h"

#include "base/error.h"
#include "cli/sim/sim_workloads.h"

static int choose_gpus(const struct cli_call *call, struct arena *arena, struct compare_gpus *gpus,
                       struct fly_error *out_error)
{
    const struct cli_list *asked = cli_list(call, "gpu");

    if (asked->count == 0)
        return compare_gpus_list(cli_text(call, "traces"), arena, gpus, out_error);
    if (asked->count > COMPARE_GPUS_MAX)
        return cli_usage(call, out_error, "%zu GPUs; expected at most %d", asked->count, COMPARE_GPUS_MAX);
    for (size_t i = 0; i < asked->count; i++)
        gpus->names[gpus->count++] = asked->words[i];
    return 0;
}

/* Opens the traces' jobs on every GPU. */
static int open_traces(struct compare_jobs *jobs, const struct cli_call *call, struct fly_error *out_error)
{
    struct compare_gpus gpus = {.count = 0};
    int code;

    if (!cli_set(call, "traces") && cli_list(call, "gpu")->count == 0)
        return 0;
    if (!cli_set(call, "traces"))
        return cli_usage(call, out_error, "--gpu without traces; name their directory with --traces DIR");
    code = choose_gpus(call, &jobs->arena, &gpus, out_error);
    for (size_t i = 0; i < gpus.count && code == 0; i++) {
        code = sim_workloads_open_of(&jobs->sets[i], call, gpus.names[i], out_error);
        jobs->set_count += code == 0;
    }
    return code;
}

static struct compare_synthetic read_synthetic(const struct cli_call *call, uint32_t number)
{
    const struct cli_list *kinds = cli_list(call, "synthetic");
    struct compare_synthetic synthetic = {
        .kind_count = kinds->count, .number = number, .eta = cli_real(call, "eta")};

    for (size_t i = 0; i < kinds->count; i++)
        synthetic.kinds[i] = (enum synthetic_kind)kinds->choices[i];
    return synthetic;
}

int compare_options_open(struct compare_jobs *jobs, const struct cli_call *call, uint32_t synthetic,
                         bool each, struct fly_error *out_error)
{
    const struct compare_synthetic made = read_synthetic(call, synthetic);
    int code;

    compare_jobs_init(jobs);
    code = open_traces(jobs, call, out_error);
    if (code == 0 && jobs->set_count == 0 && synthetic * made.kind_count == 0)
        code =
            cli_usage(call, out_error, "no jobs; name traces with --traces DIR, or kinds with --synthetic");
    if (code == 0)
        code = compare_jobs_collect(jobs, &made, each, out_error);
    for (size_t i = 0; i < jobs->left_out_count && code == 0; i++)
        cli_warn(call, "%s is left out: its default batch size never reaches the target", jobs->left_out[i]);
    if (code < 0)
        compare_jobs_close(jobs);
    return code;
}
