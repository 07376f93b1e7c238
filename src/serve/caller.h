/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SERVE_CALLER_H
#define FLYBALL_SERVE_CALLER_H

#include "http/exchange.h"
#include "job/core/job_owner.h"

/*
 * Who makes a request, as far as jobs have owners. A token counts alone: whoever connected may be a proxy.
 * Without one it is the user that the kernel names, and else nobody in particular.
 *
 * Operators are root, the user whose process this is, and the `operators`: a list as of a job's owners; or
 * NULL. Pure but for geteuid.
 */
void caller_find(const struct serve_request *request, const char *operators, struct job_caller *out_caller);

#endif
