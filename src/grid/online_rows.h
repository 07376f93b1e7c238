/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_ROWS_H
#define FLYBALL_GRID_ONLINE_ROWS_H

#include <stdbool.h>

#include "grid/online.h"
#include "model/grid_units.h"
#include "shapes/shape_rows.h"

/*
 * What services answer, read by shapes that borrow its texts. What is not there or of another form
 * is FLY_EDATA with the member's name.
 */
enum { ONLINE_ARENA_MAX = 256 << 20 };
int online_read_body(const struct shape *shape, json_t *body, struct arena *arena, void *out_answer,
                     struct fly_error *out_error);

/* A text of theirs that need not be there, "" then; and a figure, NAN for null and where there is none. */
#define ONLINE_TEXT SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .loose = true
#define ONLINE_VALUE \
    SHAPE_IS_NUMBER(SHAPE_ANY), .need = SHAPE_OPTIONAL, .null = SHAPE_UNKNOWN, .expected = "a number or null"

/* A time; false leaves the out-parameter untouched. */
bool online_time(const char *text, int64_t *out_s);

/* A figure in the unit, as g/kWh. */
double online_value(double value, enum grid_unit unit);

int online_refuse(const char *member, const char *expected, struct fly_error *out_error);

/* Whether a member's text is the word, in whichever case; a refusal where it is another. */
int online_same(const char *name, const char *text, const char *word, struct fly_error *out_error);

/* "2026-11-22T07:30Z" and with seconds; `text` holds ISO_TIME_TEXT_MAX bytes. */
char *online_minute(int64_t s, char *text);

/* Signal and scope are `signal` and `scope`, or what the request wants is not there. */
int online_choose(const char *who, const struct grid_request *request, enum grid_signal signal,
                  enum grid_scope scope, struct grid_kind *kind, struct fly_error *out_error);

#endif
