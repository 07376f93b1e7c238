/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/group_campaign.h"

#include <math.h>
#include <stdlib.h>

#include "base/adler32.h"
#include "sim/crew.h"
#include "sim/overlapping.h"
#include "sim/try_writer.h"
#include "sim/world/oracle.h"

enum { CANCEL_EVERY = 1024 };

/* What the units share. */
struct work {
    const struct group_plan *plan;
    struct group_result *results;
};

/* What one unit adds up and writes. */
struct tally {
    struct group_result *result;
    struct try_writer *writer; /* NULL: writes no tries */
    recurring_observer *write;
};

static void add_try(void *context, const struct try_record *record)
{
    struct tally *tally = context;

    tally->result->energy_j += record->energy_j;
    tally->result->time_s += record->time_s;
    tally->result->cost_j += record->cost_j;
    tally->result->tries++;
    if (tally->writer != NULL)
        tally->write(tally->writer, record);
}

uint32_t group_seed(const struct group_plan *plan, size_t group, size_t seed)
{
    return plan->seed_from_name ? adler32(plan->file->groups[group].name) : plan->seeds[seed];
}

/* Submits everything and lets it end. FLY_EEXHAUSTED if the job ends earlier. */
static int run_submissions(struct overlapping *job, struct group_reader *reader, struct crew_unit *unit,
                           struct fly_error *out_error)
{
    struct submission submission;
    int more;

    while ((more = group_reader_next(reader, &submission, out_error)) > 0) {
        int code = overlapping_submit(job, &submission, out_error);

        if (code < 0)
            return code;
        if (job->submissions % CANCEL_EVERY == 0 && crew_given_up(unit))
            return error_set(out_error, FLY_ESTATE, "the simulation was given up");
    }
    return more < 0 ? more : overlapping_finish(job, out_error);
}

static int run_group(const struct work *work, struct crew_unit *unit, size_t group,
                     const struct batch_policy *policy, const struct policy_parameters *parameters,
                     struct tally *tally, struct fly_error *out_error)
{
    const struct group_plan *plan = work->plan;
    struct group_reader reader;
    struct overlapping job;
    int code = overlapping_init(&job, &plan->workloads[plan->group_workloads[group]],
                                plan->file->groups[group].name, policy, parameters, out_error);

    if (code < 0)
        return code;
    job.observer = add_try;
    job.observer_context = tally;
    code = group_reader_open(&reader, plan->file, &plan->file->groups[group], out_error);
    if (code == 0) {
        code = run_submissions(&job, &reader, unit, out_error);
        group_reader_close(&reader);
    }
    tally->result->submissions = job.submissions;
    tally->result->launches = job.launches;
    tally->result->beside = job.beside;
    tally->result->ended = code == FLY_EEXHAUSTED ? code : 0;
    overlapping_deinit(&job);
    return code == FLY_EEXHAUSTED ? 0 : code;
}

static int run_unit(void *context, struct crew_unit *unit, struct fly_error *out_error)
{
    const struct work *work = context;
    const struct group_plan *plan = work->plan;
    size_t group = unit->number / plan->seed_count / plan->policy_count;
    const struct campaign_policy *policy =
        &plan->policies[unit->number / plan->seed_count % plan->policy_count];
    const struct workload *workload = &plan->workloads[plan->group_workloads[group]];
    struct policy_parameters parameters = plan->parameters;
    struct try_writer writer;
    struct tally tally = {.result = &work->results[unit->number],
                          .write = plan->tries_kept ? try_writer_keep : try_writer_observe};
    struct optimum optimum = {0};
    int code;

    parameters.seed = group_seed(plan, group, unit->number % plan->seed_count);
    if (policy->policy == NULL && oracle_find(workload, &optimum, NULL) < 0) {
        tally.result->ended = FLY_EEXHAUSTED;
        return 0;
    }
    parameters.fixed_batch = optimum.batch;
    parameters.fixed_limit_w = workload->batches[optimum.batch].points[optimum.point].limit_w;
    try_writer_init(&writer, unit, workload->gpu, plan->file->groups[group].name, workload->job.dataset,
                    policy->name, parameters.seed);
    if (plan->tries != NULL && policy->writes_tries)
        tally.writer = &writer;
    code = run_group(work, unit, group, policy->policy != NULL ? policy->policy : &batch_policy_fixed,
                     &parameters, &tally, out_error);
    try_writer_deinit(&writer);
    return code;
}

int group_campaign_run(const struct group_plan *plan, struct group_result **out_results,
                       struct fly_error *out_error)
{
    uint64_t units = (uint64_t)plan->file->count * plan->policy_count * plan->seed_count;
    struct work work = {.plan = plan};
    const struct crew_plan crew = {.units = units,
                                   .threads = plan->threads,
                                   .run = run_unit,
                                   .context = &work,
                                   .thread_begun = plan->thread_begun,
                                   .sink = plan->tries,
                                   .sink_context = plan->tries_context,
                                   .progress = plan->progress,
                                   .progress_context = plan->progress_context};
    int code;

    if (units > GROUP_UNITS_MAX)
        return error_set(out_error, FLY_ELIMIT,
                         "%llu simulations; expected at most %d, so ask for fewer seeds, policies or groups",
                         (unsigned long long)units, GROUP_UNITS_MAX);
    work.results = calloc(units, sizeof work.results[0]);
    if (work.results == NULL)
        return error_no_memory(out_error);
    code = crew_run(&crew, out_error);
    if (code < 0)
        free(work.results);
    else
        *out_results = work.results;
    return code;
}
