/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_PAST_JOB_UNKNOWN_H
#define FLYBALL_JOB_PAST_JOB_UNKNOWN_H

#include "job/core/job_backend.h"

/*
 * Explains an unknown job with the one that may have been meant; passes on any other code. `code` is what a
 * function of the table returned for the job of that name. `jobs` without a back end have no job.
 */
int job_unknown_explain(const struct jobs *jobs, const char *name, int code, struct fly_error *out_error);

#endif
