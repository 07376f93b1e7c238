/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_GRID_ONLINE_ROWS_H
#define FLYBALL_GRID_ONLINE_ROWS_H

#include <stdbool.h>

#include "grid/online.h"
#include "model/grid_units.h"
#include "shapes/shape_rows.h"

/*
 * Reads answers of services by shapes that borrow their texts. What is missing or of another form
 * gives FLY_EDATA with the member's name.
 */
enum { ONLINE_ARENA_MAX = 256 << 20 };
int online_read_body(const struct shape *shape, json_t *body, struct arena *arena, void *out_answer,
                     struct fly_error *out_error);

/* An optional text, "" if it is missing; and a figure, NAN for null and if it is missing. */
#define ONLINE_TEXT SHAPE_IS_TEXT(UINT32_MAX), .need = SHAPE_OPTIONAL, .loose = true
#define ONLINE_VALUE \
    SHAPE_IS_NUMBER(SHAPE_ANY), .need = SHAPE_OPTIONAL, .null = SHAPE_UNKNOWN, .expected = "a number or null"

/* Parses a time; on false the out-parameter is untouched. */
bool online_time(const char *text, int64_t *out_s);

/* Converts a figure in the unit to g/kWh. */
double online_value(double value, enum grid_unit unit);

int online_refuse(const char *member, const char *expected, struct fly_error *out_error);

/* Returns 0 if a member's text is the word, in any case; else an error. */
int online_same(const char *name, const char *text, const char *word, struct fly_error *out_error);

/* Write "2026-11-22T07:30Z", and the same with seconds; `text` holds ISO_TIME_TEXT_MAX bytes. */
char *online_minute(int64_t s, char *text);

/* Sets signal and scope to `signal` and `scope`; an error if the request wants others. */
int online_choose(const char *who, const struct grid_request *request, enum grid_signal signal,
                  enum grid_scope scope, struct grid_kind *kind, struct fly_error *out_error);

#endif
