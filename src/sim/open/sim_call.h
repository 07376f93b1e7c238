/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_SIM_CALL_H
#define FLYBALL_SIM_OPEN_SIM_CALL_H

#include <flyball/sim.h>

#include "base/arena.h"
#include "sim/crew.h"
#include "sim/open/sim_policies.h"
#include "sim/open/sim_set.h"
#include "sim/world/drift.h"

/*
 * A call of the public simulator: its options, checked, as the simulator takes them.
 *
 *     code = sim_call_open(options, &call, out_error);
 *     if (code == 0)
 *         code = sim_call_jobs(call, options->gpu_model, &call->set, out_error);
 *     if (code == 0)
 *         code = sim_call_policies(call, &parameters, out_error);
 *     sim_call_close(call);
 *
 * Errors are those of flyball/sim.h.
 */
struct sim_call {
    struct fly_sim_options options; /* as the caller gave them; what they point to is the caller's */
    struct arena arena;
    struct sim_set set;
    struct fly_objective objective;
    struct sim_policies policies;
    enum drift_kind drift;
    unsigned threads;    /* as in crew.h */
    uint64_t units_done; /* simulations before the part that runs, */
    uint64_t units;      /* and of all parts; progress is told in them */
};

/* Large, so it makes the call's memory; NULL is left where it fails. */
int sim_call_open(const struct fly_sim_options *options, struct sim_call **out_call,
                  struct fly_error *out_error);

/* Accepts NULL. */
void sim_call_close(struct sim_call *call);

/* Describes the known jobs and opens the traces of a GPU, but selects none. Call sim_set_close afterwards. */
int sim_call_traces(struct sim_call *call, const char *gpu, struct sim_set *set, struct fly_error *out_error);

/* Does so, selects the jobs, and gives them the objective. */
int sim_call_jobs(struct sim_call *call, const char *gpu, struct sim_set *set, struct fly_error *out_error);

/*
 * Opens the policies, zeus if there are none, and reads how they search; how many threads may work follows
 * from them.
 */
int sim_call_policies(struct sim_call *call, struct policy_parameters *out_parameters,
                      struct fly_error *out_error);

/* Gives the seeds, 1 to `otherwise` if there are none; a number that stands there twice is FLY_EUSAGE. */
int sim_call_seeds(struct sim_call *call, uint32_t otherwise, const uint32_t **out_seeds, size_t *out_count,
                   struct fly_error *out_error);

/* A crew_progress; `context` is the struct sim_call. */
int sim_call_progress(void *context, uint64_t done, uint64_t total);

/* Tells the caller a remark. */
void sim_call_note(const struct sim_call *call, const char *text);

#endif
