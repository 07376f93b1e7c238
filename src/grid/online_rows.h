/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_ROWS_H
#define FLYBALL_GRID_ONLINE_ROWS_H

#include <jansson.h>
#include <stdbool.h>

#include "grid/online.h"
#include "model/grid_units.h"

/*
 * Rows of services' answers. `name` is that of a member of `row`; what is not there or of
 * another form is FLY_EDATA with the member's name.
 */

/* A time; false leaves the out-parameter untouched. */
bool online_time(const json_t *row, const char *name, int64_t *out_s);

/* A number in the unit, as g/kWh; NaN for null and for no such member. False for anything else. */
bool online_value(const json_t *row, const char *name, enum grid_unit unit, double *out_value);

/* The text of a member, or "". */
const char *online_text(const json_t *row, const char *name);

int online_refuse(const char *member, const char *expected, struct fly_error *out_error);

/* Whether a member says the word, in whichever case; a refusal where it says another. */
int online_same(const json_t *row, const char *name, const char *word, struct fly_error *out_error);

/* "2026-11-22T07:30Z" and with seconds; `text` holds ISO_TIME_TEXT_MAX bytes. */
char *online_minute(int64_t s, char *text);

/* Signal and scope are `signal` and `scope`, or what the request wants is not there. */
int online_choose(const char *who, const struct grid_request *request, enum grid_signal signal,
                  enum grid_scope scope, struct grid_kind *kind, struct fly_error *out_error);

#endif
