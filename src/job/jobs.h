/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_JOBS_H
#define FLYBALL_JOB_JOBS_H

#include "job/core/job_backend.h"

/* Opens recurring jobs by their address. The calls on them are those of struct job_backend. */

/* Every back end, ended by NULL. */
extern const struct job_backend *const job_backends[];

/*
 * Opens jobs at `address`: NULL, a path or postgresql://... for a store (store.h); http://, https:// or unix:
 * for a service. Call jobs_close only after success.
 */
int jobs_open(const char *address, const struct job_options *options, struct jobs *out_jobs,
              struct fly_error *out_error);

/* Whether a service keeps the jobs of that address. */
bool jobs_are_remote(const char *address);

/* Harmless on a zeroed struct. */
void jobs_close(struct jobs *jobs);

#endif
