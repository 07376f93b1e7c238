/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_COMPARISON_H
#define FLYBALL_SIM_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/burst.h"
#include "sim/curve.h"
#include "sim/recurring.h"
#include "sim/transfer.h"
#include "sim/world/oracle.h"
#include "sim/world/workload.h"

/*
 * Runs one policy on one job with one seed and compares it, recurrence by recurrence, with the
 * default (default batch size, highest power limit) in the same world. Memory does not grow with
 * the number of recurrences.
 */
enum {
    COMPARISON_TAIL = 5,     /* the last recurrences, as in the paper's figures */
    COMPARISON_CHOICES = 20, /* the last ones whose choices are held against the job's bound */
};

/* What is measured. Each figure is a number per run; averages are over seeds. */
enum comparison_figure {
    FIGURE_TAIL_ENERGY, /* change against the default in percent, over the last recurrences */
    FIGURE_TAIL_TIME,
    FIGURE_TAIL_COST,
    FIGURE_WHOLE_ENERGY, /* the same over the whole run, exploration included */
    FIGURE_WHOLE_TIME,
    FIGURE_WHOLE_COST,
    FIGURE_REGRET,   /* sum over recurrences of (cost - optimum) / optimum */
    FIGURE_PAID_OFF, /* recurrences after which the total cost stayed below the default's; NaN: never */
    FIGURE_TRIES,    /* trainings, failed ones included */
    FIGURE_COUNT
};

struct comparison_plan {
    const struct workload *workload;
    const struct optimum *optimum; /* NULL if the job has none; its figures are then unknown */
    const struct batch_policy *policy;
    struct policy_parameters parameters;
    uint64_t recurrences;         /* >= 1 */
    bool in_order;                /* uses the recorded runs in order; otherwise they are drawn */
    unsigned burst;               /* recurrences that start together (burst.h), at most BURST_MAX; 0 and 1:
                                     each alone; the default's are always alone */
    bool rest_at_default;         /* after the policy's job has ended early, the default runs instead: each
                                     recurrence costs what the baseline's does, and those of the end their
                                     failed tries besides */
    double crash_share;           /* as in environment.h; the optimum's cost allows for it */
    const struct drift *drift;    /* NULL: none; otherwise the optimum follows it */
    recurring_observer *observer; /* of the policy's tries, or NULL */
    void *observer_context;
    const struct transfer *transfer; /* what the policy's job brings, or NULL */
    struct curve *curve;             /* takes samples of the run, or NULL */
    /* Asked before every 1024th recurrence; true stops the run. NULL: never. */
    bool (*cancelled)(void *context);
    void *cancelled_context;
};

struct comparison {
    uint64_t completed;           /* recurrences that reached their target under the policy */
    double figures[FIGURE_COUNT]; /* NaN: unknown; all are unknown unless every recurrence completed */
    struct recurrence last;       /* the policy's last one: its knobs at the end */
    int ended;                    /* 0, or the code with which the job ended before its last recurrence */
    struct fly_error end;         /* why */
};

/*
 * Runs the comparison. If the policy's job ends early, that is a result (`ended`). Returns an
 * error if it cannot run at all, or FLY_ESTATE if it was cancelled.
 */
int comparison_run(const struct comparison_plan *plan, struct comparison *out_comparison,
                   struct fly_error *out_error);

#endif
