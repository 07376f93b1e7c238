/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_STORE_STORE_TEXT_H
#define FLYBALL_STORE_STORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "store/store.h"

/*
 * Checks texts before they go into a store, and reports a job that does not exist. Both are the
 * same for every back end, because one back end would refuse what another takes. Pure;
 * thread-safe.
 */

/*
 * Checks a name, kind, key or version of at most `maximum` bytes: UTF-8 without control
 * characters; `what` names it in the error text ("name of a job"). FLY_EUSAGE, or FLY_ELIMIT if
 * it is too long.
 */
int store_text_check(const char *text, const char *what, size_t maximum, bool may_be_empty,
                     struct fly_error *out_error);

/* Checks everything about an event that is to be appended. */
int store_event_check(const struct store_event *event, struct fly_error *out_error);

/*
 * Returns FLY_ENOTFOUND. The text leaves out where the store is, since a service passes it on to
 * its clients.
 */
int store_no_job(const char *job, struct fly_error *out_error);

#endif
