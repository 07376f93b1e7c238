/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_NUMBER_H
#define FLYBALL_SHAPES_JSON_NUMBER_H

#include <jansson.h>

/* A number as JSON; null when it is not finite. */
json_t *json_number_or_null(double value);

/*
 * Sets a member to a number. When it is not finite, sets it to null, and "KEY_unavailable" to the reason. For
 * computed figures; a shape writes those of a struct (shape_told.h).
 */
void json_known_set(json_t *object, const char *key, double value, const char *reason);

/* Like json_known_set, but for an infinite number the reason is that it is out of range. */
void json_number_set(json_t *object, const char *key, double value, const char *reason);

#endif
