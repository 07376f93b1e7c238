/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_STORE_OPTION_H
#define FLYBALL_CLI_OPTIONS_STORE_OPTION_H

#include "cli/frame/call.h"
#include "job/jobs.h"

/* Where jobs are kept: --store, and what it opens. */

/* clang-format off */
#define OPTION_STORE \
    {.name = "store", .type = CLI_TEXT, .placeholder = "ADDRESS", .key = "store", .sensitive = true, \
     .help = "Where jobs are kept: a file, postgresql://..., or a service's address. If not given, a file of " \
             "the user's own."}
/* clang-format on */

/* Opens the store of --store, to be read: where there is none, none is made (FLY_ENOTFOUND). */
int store_option_open(const struct cli_call *call, struct jobs *out_jobs, struct fly_error *out_error);

/*
 * The same for what looks at all jobs: where no store was named, and the user's own is not there
 * yet, it has no jobs; `out_jobs` is zero then, and a note says so. store_option_list knows.
 */
int store_option_open_any(const struct cli_call *call, struct jobs *out_jobs, struct fly_error *out_error);
int store_option_list(const struct jobs *jobs, struct arena *arena, struct job_list *out_list,
                      struct fly_error *out_error);

#endif
