/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_COMMANDS_H
#define FLYBALL_CLI_COMMANDS_H

#include "cli/frame/command.h"

/* Each in its own file cmd_*.c; named in the array of commands.c. */
extern const struct cli_command cmd_carbon_forecast;
extern const struct cli_command cmd_carbon_history;
extern const struct cli_command cmd_carbon_now;
extern const struct cli_command cmd_carbon_plan;
extern const struct cli_command cmd_carbon_report;
extern const struct cli_command cmd_config_show;
extern const struct cli_command cmd_devices;
extern const struct cli_command cmd_doctor;
extern const struct cli_command cmd_help;
extern const struct cli_command cmd_demo;
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
extern const struct cli_command cmd_monitor;
extern const struct cli_command cmd_power_get;
extern const struct cli_command cmd_power_reset;
extern const struct cli_command cmd_power_restore;
extern const struct cli_command cmd_power_set;
extern const struct cli_command cmd_profile;
extern const struct cli_command cmd_record;
extern const struct cli_command cmd_report;
extern const struct cli_command cmd_run;
extern const struct cli_command cmd_selftest;
extern const struct cli_command cmd_serve;
extern const struct cli_command cmd_sim_carbon;
extern const struct cli_command cmd_sim_group;
extern const struct cli_command cmd_sim_job;
extern const struct cli_command cmd_sim_make_groups;
extern const struct cli_command cmd_sim_make_trace;
extern const struct cli_command cmd_sim_pareto;
extern const struct cli_command cmd_sim_replay;
extern const struct cli_command cmd_tally;
extern const struct cli_command cmd_token;
extern const struct cli_command cmd_version;

#endif
