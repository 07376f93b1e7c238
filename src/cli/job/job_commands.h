/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_JOB_COMMANDS_H
#define FLYBALL_CLI_JOB_JOB_COMMANDS_H

#include "cli/frame/command.h"

/* The commands job, each in its own file; cli/commands.c lists them all. */
extern const struct cli_command cmd_job_backup;
extern const struct cli_command cmd_job_delete;
extern const struct cli_command cmd_job_export;
extern const struct cli_command cmd_job_history;
extern const struct cli_command cmd_job_import;
extern const struct cli_command cmd_job_list;
extern const struct cli_command cmd_job_pareto;
extern const struct cli_command cmd_job_restore;
extern const struct cli_command cmd_job_set;
extern const struct cli_command cmd_job_show;
extern const struct cli_command cmd_job_why;

#endif
