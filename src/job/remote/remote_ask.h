/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_JOB_REMOTE_REMOTE_ASK_H
#define FLYBALL_JOB_REMOTE_REMOTE_ASK_H

#include "job/remote/job_remote.h"

/*
 * Sends a request until it is answered, time is up, or nothing answers at the address. `out_repeated` may be
 * NULL.
 */
int remote_ask(struct job_remote *remote, const struct remote_call *call, bool *out_repeated,
               struct fly_error *out_error);

#endif
