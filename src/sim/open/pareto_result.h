/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_OPEN_PARETO_RESULT_H
#define FLYBALL_SIM_OPEN_PARETO_RESULT_H

#include <flyball/objective.h>

#include "job/past/saving_estimate.h"
#include "sim/world/operating_points.h"
#include "sim/world/workload.h"

struct job_savings; /* job/past/savings.h */

/* Where the figures of a frontier come from: a recorded job's traces, or a live job's log. */
struct pareto_source {
    const char *schema;          /* "flyball.sim.pareto/1" */
    const char *subject_key;     /* key of the job's name in documents: "workload" */
    const char *place_key;       /* key of where the figures come from: "traces" */
    const char *place;           /* the directory, or the store's address */
    const char *from;            /* "the traces in" */
    const char *basis;           /* what the figures are: a clause */
    const char *picture_from;    /* "the recorded runs" */
    const char *const *left_out; /* a clause for each reason; NULL: those of left_out_text */
};

/* How certain it is what a batch size takes, under each of its limits. */
struct pareto_spread {
    uint64_t trials;
    struct saving_bounds energy, time;
    const char
        *barred; /* why it does not run any more, a clause, so that it is no choice; NULL: it may run */
};

enum { PARETO_RUNS_MAX = 64 };

/*
 * The frontier of a recorded or of a live job. All is borrowed.
 */
struct pareto_result {
    const struct workload *workload;
    const struct operating_points *points; /* at least one */
    struct fly_objective objective;
    const struct pareto_source *source;
    size_t chosen; /* among the points */
    /* Only for a live job, else NULL. */
    const struct pareto_spread *spreads; /* in the order of the workload's batch sizes */
    const struct job_savings *savings;   /* what was really saved; if that is unknown, no change is claimed */
    char runs[PARETO_RUNS_MAX];          /* what the job runs, if that is not the choice; or "" */
    const char *runs_since;              /* and why, with `runs` */
};

/* Returns whether the default is one of the points, so that changes against it are known. */
bool pareto_default_known(const struct pareto_result *result);

/* Returns the default as a point. Call it only if it is known. */
const struct fly_operating_point *pareto_default(const struct pareto_result *result);

/*
 * Returns whether a change against the default may be stated: for a live job only if its savings
 * are known.
 */
bool pareto_change_known(const struct pareto_result *result);

/* Returns why the default is no point, a clause: the reason why its batch size is left out. */
const char *pareto_default_unknown(const struct pareto_result *result);

/* Returns why a batch size is left out, a clause, in the words of the figures' source. */
const char *pareto_left_out_why(const struct pareto_result *result, const struct left_out *out);

/* Returns whether it is of a job that has no default to compare with. */
bool pareto_lacks_default(const struct pareto_result *result);

/* Returns the cost in joules, for the objective's eta. */
double pareto_cost(const struct pareto_result *result, const struct fly_operating_point *point);

/* "energy", "lowest-limit". */
const char *pareto_objective_name(const struct pareto_result *result);

/* "lowest score", of what is best by such an objective. */
const char *pareto_best_name(enum fly_objective_kind kind);

/* "lowest score (eta 0.5)"; `text` holds PARETO_TEXT_MAX bytes. */
enum { PARETO_TEXT_MAX = 128 };
void pareto_objective_text(const struct pareto_result *result, char *text);

#endif
