/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_NUMBER_H
#define FLYBALL_SHAPES_JSON_NUMBER_H

#include <jansson.h>

/* A number, or null where it is not finite. */
json_t *json_number_or_null(double value);

/*
 * Sets a member to a number; or to null where it is not finite, which "KEY_unavailable" then has the
 * reason for. For figures that are computed; those of a struct are told by a shape (shape_told.h).
 */
void json_known_set(json_t *object, const char *key, double value, const char *reason);

/* The same; of an infinite number the reason is that it is out of range. */
void json_number_set(json_t *object, const char *key, double value, const char *reason);

#endif
