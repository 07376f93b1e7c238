/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_LIB_SIM_TRIES_H
#define FLYBALL_TESTS_LIB_SIM_TRIES_H

#include "sim/recurring.h"

/* The tries of a simulated job, for tests that compare them with others. */
enum { SIM_TRIES_MAX = 4096 };

/* Large: allocate it on the heap. */
struct sim_tries {
    struct try_record records[SIM_TRIES_MAX];
    size_t count;
};

/* Keeps one more try: the observer of a recurring job, with a struct sim_tries as its context. */
void sim_tries_keep(void *context, const struct try_record *record);

/* Opens one of known_jobs on that GPU, with an eta of 0.5; skips the test without the traces. */
void sim_tries_workload(const char *gpu, size_t job, struct workload *out_workload);

/* Runs a job up to its first recurrence that fails; returns 0 or how that one ended. */
int sim_tries_run(const struct workload *workload, const struct batch_policy *policy,
                  const struct policy_parameters *parameters, uint64_t recurrences,
                  struct sim_tries *out_tries, struct fly_error *out_error);

/* Checks that each decision and each energy of the real run is the simulator's. */
void sim_tries_compare(const char *name, const struct sim_tries *simulated, const struct sim_tries *lived);

#endif
