/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PARETO_RESULT_H
#define FLYBALL_CLI_PARETO_RESULT_H

#include <flyball/objective.h>

#include "base/atomic_file.h"
#include "cli/call.h"
#include "sim/operating_points.h"
#include "sim/workload.h"

/*
 * What `flyball sim pareto` found, and its two forms: the report and the
 * picture. All is borrowed.
 */
struct pareto_result {
    const struct workload *workload;
    const struct operating_points *points; /* at least one */
    struct fly_objective objective;
    size_t chosen; /* among the points */
};

/* Whether the default is one of the points, so that changes against it are known. */
bool pareto_default_known(const struct pareto_result *result);

/* "least cost (eta 0.5)"; `text` holds PARETO_TEXT_MAX bytes. */
enum { PARETO_TEXT_MAX = 128 };
void pareto_objective_text(const struct pareto_result *result, char *text);

/* The frontier, or with --all every point, as table, JSON ("flyball.sim.pareto/1") or CSV. */
int pareto_report_emit(const struct cli_call *call, const struct pareto_result *result,
                       struct fly_error *out_error);

/* Draws all points, the frontier, the default and the choice; commits or discards the file. */
int pareto_plot_commit(const struct pareto_result *result, struct atomic_file *file,
                       struct fly_error *out_error);

#endif
