/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_STORE_OPTION_H
#define FLYBALL_CLI_OPTIONS_STORE_OPTION_H

#include "cli/frame/call.h"
#include "job/jobs.h"

/* The option --store, which says where jobs are kept, and opening that store. */

extern const struct cli_options store_options;

/* Opens the store of --store for reading. If it does not exist, it is not created (FLY_ENOTFOUND). */
int store_option_open(const struct cli_call *call, struct jobs *out_jobs, struct fly_error *out_error);

/*
 * Does the same for commands that look at all jobs: if no store was named and the user's own does
 * not exist yet, it counts as having no jobs; `out_jobs` is then zero, and a note says so.
 * store_option_list accepts that.
 */
int store_option_open_any(const struct cli_call *call, struct jobs *out_jobs, struct fly_error *out_error);
int store_option_list(const struct jobs *jobs, struct arena *arena, struct job_list *out_list,
                      struct fly_error *out_error);

#endif
