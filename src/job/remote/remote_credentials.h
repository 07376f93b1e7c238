/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_REMOTE_REMOTE_CREDENTIALS_H
#define FLYBALL_JOB_REMOTE_REMOTE_CREDENTIALS_H

#include "job/remote/job_remote.h"

/* Takes the token and the authority's certificates from the options or the environment. */
int remote_credentials(struct job_remote *remote, const struct job_options *options,
                       struct fly_error *out_error);

/* Reads the token's file again; returns whether the token has changed. */
bool remote_renew_token(struct job_remote *remote);

#endif
