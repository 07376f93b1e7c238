/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_CAMPAIGN_H
#define FLYBALL_SIM_CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/comparison.h"
#include "sim/crew.h"
#include "sim/ordered_output.h"
#include "sim/world/workload.h"

/*
 * Runs many comparisons on several threads: every workload with every policy and every seed. The
 * results do not depend on the number of threads.
 */
struct campaign_policy {
    const char *name;
    const struct batch_policy *policy; /* NULL: the oracle, which is told the optimum */
    bool writes_tries;                 /* its tries go to the tries file */
};

struct campaign_plan {
    const struct workload *workloads; /* borrowed, as everything here */
    size_t workload_count;
    const struct campaign_policy *policies;
    size_t policy_count;
    const uint32_t *seeds;
    size_t seed_count;
    uint64_t recurrences; /* of each job; 0: the number published for its workload */
    bool in_order;        /* uses the recorded runs in order; otherwise they are drawn */
    unsigned burst;       /* as in comparison.h */
    bool rest_at_default; /* as in comparison.h */
    double crash_share;   /* of the trainings, as in environment.h */
    enum drift_kind drift;
    const struct transfer *transfers; /* [workload]: what jobs bring, with policies that heed it; or NULL. A
                                         source of NULL: nothing */
    struct policy_parameters parameters; /* the campaign fills in the seed */
    unsigned threads;                    /* as in crew.h */
    void (*thread_begun)(void);          /* as in crew.h */
    ordered_sink *tries;                 /* takes the tries as CSV text, or NULL */
    void *tries_context;
    bool tries_kept;          /* these come as struct try_kept, not as text */
    bool curves;              /* every run leaves a curve */
    const uint64_t *horizons; /* after how many recurrences, ascending, curves have samples, with totals; */
    size_t horizon_count;     /* 0: as many as CURVE_SAMPLES_MAX, with the knobs of the first seed */
    crew_progress *progress;  /* as in crew.h */
    void *progress_context;
    bool tells_replicates; /* progress is told of a bootstrap's simulations too (bootstrap.h) */
};

enum {
    CAMPAIGN_UNITS_MAX = 1 << 18,
    CAMPAIGN_SAMPLES_MAX = 1 << 23, /* of all curves together; with many runs each curve has fewer */
};

struct campaign {
    struct comparison *comparisons; /* owned: [workload][policy][seed] */
    struct optimum *optima;         /* owned: [workload]; cost_j is infinite if there is none */
    uint64_t *recurrences;          /* owned: [workload] */
    struct drift *drifts;           /* owned: [workload] */
    struct curve *curves;           /* like the comparisons, or NULL; only the first seed's have knobs */
    struct arena arena;             /* owns curves and drifts' tables */
};

/*
 * Runs the plan. FLY_ENOMEM, FLY_ELIMIT beyond CAMPAIGN_UNITS_MAX comparisons, or the first error
 * of a comparison or the tries sink. Call campaign_free only after success.
 */
int campaign_run(const struct campaign_plan *plan, struct campaign *out_campaign,
                 struct fly_error *out_error);

void campaign_free(struct campaign *campaign);

/* Returns the comparisons of one workload and policy: one for every seed. */
const struct comparison *campaign_cell(const struct campaign_plan *plan, const struct campaign *campaign,
                                       size_t workload, size_t policy);

/* Returns their curves, in the same order; NULL if the plan asked for none. */
const struct curve *campaign_curves(const struct campaign_plan *plan, const struct campaign *campaign,
                                    size_t workload, size_t policy);

#endif
