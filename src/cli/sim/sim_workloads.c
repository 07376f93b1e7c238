/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_workloads.h"

#include <string.h>

#include "base/buffer.h"
#include "base/error.h"

enum { NOTE_MAX = 4096 };

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

static int set_from_option(struct sim_workloads *set, struct job_description *job,
                           const struct cli_call *call, const char *option, const char *field,
                           struct fly_error *out_error)
{
    struct fly_error error;
    int code = job_list_set_field(&set->list, job, field, cli_text(call, option), &error);

    if (code == FLY_EUSAGE)
        return cli_value_error(call, option, cli_text(call, option), error.text, out_error);
    return code < 0 ? error_no_memory(out_error) : 0;
}

/* Applies --dataset and similar options to the one workload, which may be new. */
static int describe(struct sim_workloads *set, const struct cli_call *call, const char *name,
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

static void note_left_out(const struct sim_workloads *set, const struct cli_call *call,
                          const struct workload *workload)
{
    struct buffer sizes;

    buffer_init(&sizes, NOTE_MAX);
    for (size_t i = 0; i < workload->left_out_count; i++)
        buffer_printf(&sizes, "%s%u", i > 0 ? ", " : "", workload->left_out[i]);
    if (workload->left_out_count > 0)
        cli_note(call, "%s: batch sizes of %s without power rows are left out: %s", set->trace.power_path,
                 workload->job.name, sizes.data);
    buffer_deinit(&sizes);
}

int sim_workloads_add(struct sim_workloads *set, const struct cli_call *call,
                      const struct job_description *job, struct fly_error *out_error)
{
    struct workload *workload = &set->items[set->count];
    int code = workload_open(workload, &set->trace, job, out_error);

    if (code < 0)
        return code;
    workload->spec.eta = cli_real(call, "eta");
    set->count++;
    note_left_out(set, call, workload);
    return 0;
}

static int add_named(struct sim_workloads *set, const struct cli_call *call, const char *name,
                     struct fly_error *out_error)
{
    const struct job_description *job = job_list_find(&set->list, name);
    const char *nearest = job_list_nearest(&set->list, name);

    if (job != NULL)
        return sim_workloads_add(set, call, job, out_error);
    if (strcmp(name, "all") == 0)
        return cli_usage(call, out_error, "workload 'all' stands for every job; leave out the other names");
    return cli_usage(call, out_error,
                     "unknown workload '%s'%s%s%s; describe it with --network, --optimizer, "
                     "--target-metric, --max-epochs and --default-batch-size or in a --jobs file",
                     name, nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "'?" : "");
}

/* Adds all jobs that the trace has; a note names the others. */
static int add_all(struct sim_workloads *set, const struct cli_call *call, struct fly_error *out_error)
{
    struct buffer absent;
    int code = 0;

    buffer_init(&absent, NOTE_MAX);
    for (size_t i = 0; i < set->list.count && code == 0; i++) {
        const struct job_description *job = &set->list.jobs[i];

        if (workload_in_trace(&set->trace, job))
            code = sim_workloads_add(set, call, job, out_error);
        else
            buffer_printf(&absent, "%s%s", absent.length > 0 ? ", " : "", job->name);
    }
    if (code == 0 && set->count == 0)
        code = error_set(
            out_error, FLY_ENOTFOUND,
            "%s: none of the known jobs is in the traces (%s); describe one with --workload, --network, "
            "--optimizer, --target-metric, --max-epochs and --default-batch-size",
            set->trace.power_path, absent.data);
    else if (code == 0 && absent.length > 0)
        cli_note(call, "%s: jobs that are not in the traces are left out: %s", set->trace.power_path,
                 absent.data);
    buffer_deinit(&absent);
    return code;
}

static int add_workloads(struct sim_workloads *set, const struct cli_call *call, struct fly_error *out_error)
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
        return add_all(set, call, out_error);
    for (size_t i = 0; i < names->count && code == 0; i++)
        code = add_named(set, call, names->words[i], out_error);
    return code;
}

static int open_traces(struct sim_workloads *set, const struct cli_call *call, const char *gpu,
                       struct fly_error *out_error)
{
    const char *traces = cli_text(call, "traces"), *jobs = cli_text(call, "jobs");
    int code = 0;

    if (traces == NULL)
        return cli_usage(call, out_error, "no traces given; name their directory with --traces DIR");
    if (gpu == NULL)
        return cli_usage(call, out_error, "no GPU given; name one of the traces with --gpu NAME, as in v100");
    if (jobs != NULL)
        code = job_list_load(&set->list, jobs, out_error);
    if (code == 0)
        code = trace_open(&set->trace, traces, gpu, out_error);
    set->trace_is_open = code == 0;
    return code;
}

static int open_of_gpu(struct sim_workloads *set, const struct cli_call *call, const char *gpu,
                       struct fly_error *out_error)
{
    int code;

    job_list_init(&set->list);
    set->trace_is_open = false;
    set->count = 0;
    code = open_traces(set, call, gpu, out_error);
    if (code < 0)
        sim_workloads_close(set);
    return code;
}

int sim_workloads_open_traces(struct sim_workloads *set, const struct cli_call *call,
                              struct fly_error *out_error)
{
    return open_of_gpu(set, call, cli_text(call, "gpu"), out_error);
}

int sim_workloads_open_of(struct sim_workloads *set, const struct cli_call *call, const char *gpu,
                          struct fly_error *out_error)
{
    int code = open_of_gpu(set, call, gpu, out_error);

    if (code < 0)
        return code;
    code = add_workloads(set, call, out_error);
    if (code < 0)
        sim_workloads_close(set);
    return code;
}

int sim_workloads_open(struct sim_workloads *set, const struct cli_call *call, struct fly_error *out_error)
{
    return sim_workloads_open_of(set, call, cli_text(call, "gpu"), out_error);
}

void sim_workloads_close(struct sim_workloads *set)
{
    for (size_t i = 0; i < set->count; i++)
        workload_close(&set->items[i]);
    if (set->trace_is_open)
        trace_close(&set->trace);
    job_list_deinit(&set->list);
}
