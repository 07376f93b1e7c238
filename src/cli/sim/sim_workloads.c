/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_workloads.h"

#include <string.h>

#include "base/error.h"
#include "cli/sim/job_file.h"

/* Options that describe the one workload, and the matching field of a job file. */
static const struct {
    const char *option, *field;
} description_options[] = {
    {"dataset", "dataset"},         {"network", "network"},
    {"optimizer", "optimizer"},     {"target-metric", "target_metric"},
    {"max-epochs", "max_epochs"},   {"default-batch-size", "default_batch_size"},
    {"batch-sizes", "batch_sizes"},
};
enum { DESCRIPTION_COUNT = sizeof description_options / sizeof description_options[0] };

static bool describes_a_job(const struct cli_call *call)
{
    for (size_t i = 0; i < DESCRIPTION_COUNT; i++) {
        if (cli_given(call, description_options[i].option))
            return true;
    }
    return false;
}

static int set_from_option(struct sim_set *set, struct job_description *job, const struct cli_call *call,
                           const char *option, const char *field, struct fly_error *out_error)
{
    struct fly_error error;
    int code = job_file_set_field(&set->list, job, field, cli_text(call, option), &error);

    if (code == FLY_EUSAGE)
        return cli_value_error(call, option, cli_text(call, option), error.text, out_error);
    return code < 0 ? error_no_memory(out_error) : 0;
}

/* Applies --dataset and similar options to the one workload, which may be new. */
static int describe(struct sim_set *set, const struct cli_call *call, const char *name,
                    struct fly_error *out_error)
{
    struct job_description *job = job_list_find(&set->list, name);
    int code = job == NULL ? job_list_add(&set->list, name, &job, out_error) : 0;

    for (size_t i = 0; i < DESCRIPTION_COUNT && code == 0; i++) {
        const char *option = description_options[i].option;

        if (cli_given(call, option))
            code = set_from_option(set, job, call, option, description_options[i].field, out_error);
    }
    if (code == 0 && cli_given(call, "default-batch-size"))
        job->default_fits_gpu = false;
    return code == 0 ? job_list_check(job, cli_origin(call, "workload"), FLY_EUSAGE, out_error) : code;
}

static int add_named(struct sim_set *set, const struct cli_call *call, const char *name,
                     struct fly_error *out_error)
{
    const struct job_description *job = job_list_find(&set->list, name);
    const char *nearest = job_list_nearest(&set->list, name);

    if (job != NULL)
        return sim_set_add(set, job, out_error);
    if (strcmp(name, "all") == 0)
        return cli_usage(call, out_error, "workload 'all' stands for every job; leave out the other names");
    return cli_usage(call, out_error,
                     "unknown workload '%s'%s%s%s; describe it with --network, --optimizer, "
                     "--target-metric, --max-epochs and --default-batch-size or in a --jobs file",
                     name, nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "'?" : "");
}

static int add_workloads(struct sim_set *set, const struct cli_call *call, struct fly_error *out_error)
{
    const struct cli_list *names = cli_list(call, "workload");
    bool all = names->count == 1 && strcmp(names->words[0], "all") == 0;
    int code = 0;

    if (describes_a_job(call)) {
        if (all || names->count != 1)
            return cli_usage(call, out_error,
                             "options that describe a job need one --workload NAME to describe, not '%s'",
                             cli_text(call, "workload"));
        code = describe(set, call, names->words[0], out_error);
    }
    if (all)
        return sim_set_add_all(set, out_error);
    for (size_t i = 0; i < names->count && code == 0; i++)
        code = add_named(set, call, names->words[i], out_error);
    return code;
}

static void pass_note(const void *context, const char *text)
{
    cli_note(context, "%s", text);
}

static int open_traces(struct sim_set *set, const struct cli_call *call, const char *gpu,
                       struct fly_error *out_error)
{
    const char *traces = cli_text(call, "traces"), *jobs = cli_text(call, "jobs");
    int code = 0;

    if (traces == NULL)
        return cli_usage(call, out_error, "no traces given; name their directory with --traces DIR");
    if (gpu == NULL)
        return cli_usage(call, out_error, "no GPU given; name one of the traces with --gpu NAME, as in v100");
    if (jobs != NULL)
        code = job_file_load(&set->list, jobs, out_error);
    return code == 0 ? sim_set_traces(set, traces, gpu, out_error) : code;
}

static int open_of_gpu(struct sim_set *set, const struct cli_call *call, const char *gpu,
                       struct fly_error *out_error)
{
    int code;

    sim_set_init(set);
    set->eta = cli_real(call, "eta");
    set->note = pass_note;
    set->note_context = call;
    set->describe = "--workload, --network, --optimizer, --target-metric, --max-epochs and "
                    "--default-batch-size";
    code = open_traces(set, call, gpu, out_error);
    if (code < 0)
        sim_set_close(set);
    return code;
}

int sim_workloads_open_traces(struct sim_set *set, const struct cli_call *call, struct fly_error *out_error)
{
    return open_of_gpu(set, call, cli_text(call, "gpu"), out_error);
}

int sim_workloads_open_of(struct sim_set *set, const struct cli_call *call, const char *gpu,
                          struct fly_error *out_error)
{
    int code = open_of_gpu(set, call, gpu, out_error);

    if (code < 0)
        return code;
    code = add_workloads(set, call, out_error);
    if (code < 0)
        sim_set_close(set);
    return code;
}

int sim_workloads_open(struct sim_set *set, const struct cli_call *call, struct fly_error *out_error)
{
    return sim_workloads_open_of(set, call, cli_text(call, "gpu"), out_error);
}
