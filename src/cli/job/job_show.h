/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_JOB_JOB_SHOW_H
#define FLYBALL_CLI_JOB_JOB_SHOW_H

#include "base/buffer.h"
#include "job/past/savings.h"

/*
 * Writes a job, and what it saves on each kind of hardware (`savings`, in the order of the
 * machines), for people.
 */
void job_show_text(const struct job_shown *shown, const struct job_history *history,
                   const struct job_savings *savings, struct buffer *text);

#endif
