/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_BOUND_WATCH_H
#define FLYBALL_SIM_BOUND_WATCH_H

#include "base/arena.h"
#include "policy/decider.h"

/*
 * What live jobs do for policies that choose batch sizes alone (docs/explanation/decisions.md): where two
 * runs have shown that the proposed batch size is slower than the job's bound on the slowdown allows, the
 * best known one that keeps the bound runs, and is not stopped for its cost.
 */
struct watched {
    uint64_t reached; /* runs that reached their target */
    double reached_s; /* sum of their times */
    double cost_j;    /* sum over all that show a cost */
};

struct bound_watch {
    const struct job_spec *spec; /* borrowed */
    struct watched *batches;
    uint64_t baseline_runs; /* of the default at its highest limit that reached their target */
    double baseline_s;
    uint64_t profiling; /* the newest trial that measured a profile, from 1 */
};

/* Makes it in the arena. Returns whether there was room. */
bool bound_watch_init(struct bound_watch *watch, const struct job_spec *spec, struct arena *arena);

/* Replaces the proposal if its batch size is known to be too slow; those from `excluded` on do not fit. */
void bound_watch_check(const struct bound_watch *watch, const struct decider *decider, size_t excluded,
                       struct proposal *proposal);

/* Takes in the end of a trial. */
void bound_watch_take(struct bound_watch *watch, const struct fly_trial *ended);

#endif
