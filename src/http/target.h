/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_HTTP_TARGET_H
#define FLYBALL_HTTP_TARGET_H

#include <flyball/error.h>

#include "http/exchange.h"

/*
 * Parses a request's target, "/v1/jobs/digits?since=3&name=a%20b", in place: the path and the
 * query of `out_request` point into `target`. The path stays encoded; the query is decoded ('+'
 * is a blank). Pure; thread-safe.
 *
 * FLY_EUSAGE if it is no path, is no UTF-8, has control characters (also encoded ones), or names
 * a parameter twice; FLY_ELIMIT for too many parameters. Error texts repeat nothing of the
 * target.
 */
int serve_target_parse(char *target, struct serve_request *out_request, struct fly_error *out_error);

#endif
