/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_JOB_VIEW_H
#define FLYBALL_CLI_JOB_JOB_VIEW_H

#include "cli/frame/call.h"
#include "job/past/history.h"

/*
 * What the commands about recurring jobs share: the store, the job that was named, its history,
 * and the hardware to look at.
 */

extern const struct cli_options job_hardware_option;

/* Returns the job's name: the first operand, which must be given. */
int job_view_name(const struct cli_call *call, const char **out_name, struct fly_error *out_error);

/*
 * Delivers reports that trainings on this machine could not deliver, so that they are included.
 * Says how many wait, and goes on after at most two seconds.
 */
void job_view_deliver(const struct cli_call *call, const struct jobs *jobs);

/* Does something to the job that was named, in its store. An unknown job is explained. */
typedef int job_view_act(const struct cli_call *call, const struct jobs *jobs, const char *name,
                         struct fly_error *out_error);
int job_view_run(const struct cli_call *call, job_view_act *act, struct fly_error *out_error);

/* Opens the store and reads the whole history of the job that was named. */
struct job_view {
    struct jobs jobs;
    const char *name;
    struct arena arena;
    struct job_history history;
};

int job_view_read(const struct cli_call *call, uint64_t trials, struct job_view *out_view,
                  struct fly_error *out_error);
void job_view_close(struct job_view *view);

/*
 * The newest trial on a machine that ran what the job runs now, and neither searched nor measured; NULL: none
 * has.
 */
const struct job_row *job_view_now(const struct job_history *history, size_t machine);

/* Finds the hardware of --hardware, or of the newest trial. FLY_EEXHAUSTED if nothing ran yet. */
int job_view_machine(const struct cli_call *call, const struct job_history *history, size_t *out_machine,
                     struct fly_error *out_error);

/* "2 x NVIDIA A100 (40 GiB)"; `text` has JOB_HARDWARE_TEXT_MAX bytes. */
enum { JOB_HARDWARE_TEXT_MAX = 256 };
char *job_view_hardware(const struct fly_job_hardware *machine, char text[JOB_HARDWARE_TEXT_MAX]);

/* "least energy in at most 1.03 times the default's time"; `text` has JOB_HARDWARE_TEXT_MAX bytes. */
char *job_view_objective(const struct fly_objective *objective, char text[JOB_HARDWARE_TEXT_MAX]);

#endif
