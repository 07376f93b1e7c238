/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tries file of `flyball demo`: the columns of `flyball sim job`, then those that only a real
 * training has.
 */
#include "cli/demo/demo_report.h"

static void write_try(struct buffer *out, const struct demo_report *report, const struct demo_job *job,
                      const char *policy, const char *role, const struct demo_try *at)
{
    buffer_printf(out, "%s,%s,%s,%u,%llu,%llu,%u,%.17g,%d,%.17g,%.17g,%.17g,%u,%.17g,%s\n", demo_gpu,
                  job->name, policy, report->demo->plan.seed, (unsigned long long)at->recurrence,
                  (unsigned long long)at->number, at->batch_size, at->power_limit_w, at->reached,
                  at->energy_j, at->time_s, at->cost_j, at->epochs, (double)at->correct / DIGITS_HELD_OUT,
                  role);
}

static void write_run(struct buffer *out, const struct demo_report *report, const struct demo_job *job,
                      const char *policy, const char *role, const struct demo_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        write_try(out, report, job, policy, role, &run->tries[i]);
}

void demo_tries_write(struct buffer *out, const struct demo_report *report)
{
    buffer_puts(out,
                "gpu,dataset,policy,seed,recurrence,try,batch_size,power_limit_w,reached,energy_j,time_s,"
                "cost_j,epochs,accuracy,role\n");
    for (size_t i = 0; i < DEMO_JOBS; i++) {
        const struct demo_job *job = &report->demo->jobs[i];

        write_run(out, report, job, report->policy, "chosen", &job->chosen);
        write_run(out, report, job, "default", "baseline", &job->baseline);
        for (size_t c = 0; c < DEMO_BATCHES * demo_limit_count(job) * DEMO_CHECK_SEEDS; c++)
            write_try(out, report, job, "fixed", "check", &job->checks[c]);
    }
}
