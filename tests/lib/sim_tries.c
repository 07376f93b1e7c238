/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_tries.h"

#include "test.h"
#include "test_data.h"

void sim_tries_keep(void *context, const struct try_record *record)
{
    struct sim_tries *tries = context;

    assert_true(tries->count < SIM_TRIES_MAX);
    tries->records[tries->count++] = *record;
}

void sim_tries_workload(const char *gpu, size_t job, struct workload *out_workload)
{
    char directory[TEST_PATH_MAX];
    struct trace trace;
    struct fly_error error;

    test_data_need("zeus_nsdi23", directory);
    if (trace_open(&trace, directory, gpu, &error) < 0 ||
        workload_open(out_workload, &trace, &known_jobs[job], &error) < 0)
        fail_msg("%s", error.text);
    trace_close(&trace);
    out_workload->spec.eta = 0.5;
}

int sim_tries_run(const struct workload *workload, const struct batch_policy *policy,
                  const struct policy_parameters *parameters, uint64_t recurrences,
                  struct sim_tries *out_tries, struct fly_error *out_error)
{
    struct recurring job;
    struct recurrence sums;
    int code = recurring_init(&job, workload, policy, parameters, out_error);

    if (code < 0)
        fail_msg("%s cannot be simulated: %d", workload->spec.name, code);
    job.observer = sim_tries_keep;
    job.observer_context = out_tries;
    for (uint64_t i = 0; i < recurrences && code == 0; i++)
        code = recurring_run(&job, &sums, out_error);
    recurring_deinit(&job);
    return code;
}

void sim_tries_compare(const char *name, const struct sim_tries *simulated, const struct sim_tries *lived)
{
    assert_int_equal(simulated->count, lived->count);
    for (size_t i = 0; i < simulated->count; i++) {
        const struct try_record *a = &simulated->records[i], *b = &lived->records[i];

        if (a->recurrence != b->recurrence || a->batch_size != b->batch_size ||
            a->power_limit_w != b->power_limit_w || a->path != b->path || a->reached != b->reached)
            fail_msg("%s, try %zu: recurrence %llu, batch size %u, %g W, path %u, reached %d; the simulator: "
                     "%llu, %u, %g W, %u, %d",
                     name, i, (unsigned long long)b->recurrence, b->batch_size, b->power_limit_w, b->path,
                     b->reached, (unsigned long long)a->recurrence, a->batch_size, a->power_limit_w, a->path,
                     a->reached);
        check_double(b->energy_j, a->energy_j);
    }
}
