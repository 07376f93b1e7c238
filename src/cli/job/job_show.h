/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_JOB_SHOW_H
#define FLYBALL_CLI_JOB_JOB_SHOW_H

#include "base/buffer.h"
#include "job/past/savings.h"

/*
 * Both write for people. `savings`: in the order of the machines. The first says what the job saves and what
 * it runs, on the hardware of its newest trial; the other all that is known of it, on each kind of hardware.
 */
void job_show_first(const struct job_shown *shown, const struct job_history *history,
                    const struct job_savings *savings, struct buffer *text);
void job_show_text(const struct job_shown *shown, const struct job_history *history,
                   const struct job_savings *savings, struct buffer *text);

#endif
