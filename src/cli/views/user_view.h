/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_USER_VIEW_H
#define FLYBALL_CLI_VIEWS_USER_VIEW_H

#include <stdbool.h>

#include "job/core/job_owner.h"

enum { USER_VIEW_MAX = 2 * JOB_USER_MAX };

/*
 * How the user of an attempt on record is shown: for people as "1000 (ada)", with the name that this machine
 * has for the number now, "token:night-runs" or "anonymous"; for programs as recorded. What is not recorded
 * by whoever knew (job_owner.h) is "ada (said)", for programs "said:ada". "" stays. Returns `text`.
 */
const char *user_view(const char *user, bool for_people, char text[USER_VIEW_MAX]);

#endif
