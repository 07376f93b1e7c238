/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_PARETO_RESULT_H
#define FLYBALL_CLI_VIEWS_PARETO_RESULT_H

#include <flyball/objective.h>

#include "base/atomic_file.h"
#include "cli/frame/call.h"
#include "job/past/saving_estimate.h"
#include "sim/world/operating_points.h"
#include "sim/world/workload.h"

struct job_savings; /* job/past/savings.h */

/* Where the figures of a frontier come from: a recorded job's traces, or a live job's log. */
struct pareto_source {
    const char *schema;          /* "flyball.sim.pareto/1" */
    const char *subject_key;     /* of the job's name in documents: "workload" */
    const char *place_key;       /* of where the figures stand: "traces" */
    const char *place;           /* the directory, or the store's address */
    const char *from;            /* "the traces in" */
    const char *basis;           /* what the figures are: a clause */
    const char *picture_from;    /* "the recorded runs" */
    const char *const *left_out; /* a clause for each reason; NULL: left_out_text */
};

/* How sure one knows what a batch size takes, under each of its limits. */
struct pareto_spread {
    uint64_t trials;
    struct saving_bounds energy, time;
};

/*
 * What `flyball sim pareto` or `flyball job pareto` found, and its two forms: the
 * report and the picture. All is borrowed.
 */
struct pareto_result {
    const struct workload *workload;
    const struct operating_points *points; /* at least one */
    struct fly_objective objective;
    const struct pareto_source *source;
    size_t chosen; /* among the points */
    /* Of a live job alone, else NULL. */
    const struct pareto_spread *spreads; /* as the workload's batch sizes */
    const struct job_savings *savings;   /* what was really saved: no change is claimed against it */
};

/* Whether the default is one of the points, so that changes against it are known. */
bool pareto_default_known(const struct pareto_result *result);

/* The default as a point; only where it is known. */
const struct fly_operating_point *pareto_default(const struct pareto_result *result);

/* Whether a change against the default may be told: of a live job only where what it saves is known. */
bool pareto_change_known(const struct pareto_result *result);

/* Why the default is no point, a clause: the reason for which its batch size is left out. */
const char *pareto_default_unknown(const struct pareto_result *result);

/* Why a batch size is left out, a clause, in the words of where the figures come from. */
const char *pareto_left_out_why(const struct pareto_result *result, enum left_out_reason reason);

/* In joules, for the objective's eta. */
double pareto_cost(const struct pareto_result *result, const struct fly_operating_point *point);

/* "energy", "lowest-limit". */
const char *pareto_objective_name(const struct pareto_result *result);

/* "least cost (eta 0.5)"; `text` holds PARETO_TEXT_MAX bytes. */
enum { PARETO_TEXT_MAX = 128 };
void pareto_objective_text(const struct pareto_result *result, char *text);

extern const struct quantities pareto_quantities;

/* The frontier, or with --all every point, as table, JSON or CSV. */
int pareto_report_emit(const struct cli_call *call, const struct pareto_result *result,
                       struct fly_error *out_error);

/* Draws all points, the frontier, the default and the choice; commits or discards the file. */
int pareto_plot_commit(const struct pareto_result *result, struct atomic_file *file,
                       struct fly_error *out_error);

#endif
