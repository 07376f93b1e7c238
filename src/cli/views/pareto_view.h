/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_PARETO_VIEW_H
#define FLYBALL_CLI_VIEWS_PARETO_VIEW_H

#include "base/file/atomic_file.h"
#include "cli/frame/call.h"
#include "sim/open/pareto_result.h"
#include "sim/open/pareto_rows.h"

/*
 * The two forms of `flyball sim pareto` and `flyball job pareto`: the frontier, or with --all every
 * point, as table, JSON or CSV; and the picture.
 */
int pareto_report_emit(const struct cli_call *call, const struct pareto_result *result,
                       struct fly_error *out_error);

/* Draws all points, the frontier, the default and the choice. Commits or discards the file. */
int pareto_plot_commit(const struct pareto_result *result, struct atomic_file *file,
                       struct fly_error *out_error);

#endif
