/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_JOB_VIEW_H
#define FLYBALL_CLI_JOB_JOB_VIEW_H

#include "cli/frame/call.h"
#include "job/past/history.h"

/*
 * What the commands over recurring jobs share: where jobs are kept, the job that was
 * named, its history, and the hardware that is looked at.
 */

/* clang-format off */
#define JOB_OPTION_HARDWARE \
    {.name = "hardware", .type = CLI_INTEGER, .placeholder = "N", .minimum = 1, .maximum = JOB_HARDWARE_MAX, \
     .help = "Kind of hardware, as 'flyball job show' numbers them; if not given, that of the newest trial."}
/* clang-format on */

/* The job's name: the first operand, which has to be there. */
int job_view_name(const struct cli_call *call, const char **out_name, struct fly_error *out_error);

/*
 * Delivers what trainings on this machine could not, so that it is looked at as well: says
 * how much waits, and goes on after two seconds at the latest.
 */
void job_view_deliver(const struct cli_call *call, const struct jobs *jobs);

/*
 * Says of an unknown job which one may have been meant; hands on any other code. For
 * what a function of the table returned on the job of that name.
 */
int job_view_explain(const struct jobs *jobs, const char *name, int code, struct fly_error *out_error);

/* Does something to the job that was named, in its store; an unknown one is explained. */
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

int job_view_read(const struct cli_call *call, struct job_view *out_view, struct fly_error *out_error);
void job_view_close(struct job_view *view);

/* The hardware of --hardware, or of the newest trial. FLY_EEXHAUSTED where nothing ran yet. */
int job_view_machine(const struct cli_call *call, const struct job_history *history, size_t *out_machine,
                     struct fly_error *out_error);

/* "2 x NVIDIA A100 (40 GiB)"; `text` has JOB_HARDWARE_TEXT_MAX bytes. */
enum { JOB_HARDWARE_TEXT_MAX = 256 };
char *job_view_hardware(const struct job_machine *machine, char text[JOB_HARDWARE_TEXT_MAX]);

/* "least energy in at most 1.03 times the default's time"; `text` has JOB_HARDWARE_TEXT_MAX bytes. */
char *job_view_objective(const struct fly_objective *objective, char text[JOB_HARDWARE_TEXT_MAX]);

/* "running", else how it ended. */
const char *job_view_outcome(const struct job_row *row);

#endif
