/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_NUMBER_H
#define FLYBALL_SHAPES_JSON_NUMBER_H

#include <jansson.h>

/*
 * Sets a member to a number; or to null, which "KEY_unavailable" then has the reason for: `reason`
 * where the number is not known (NAN), and that it is out of range where it is infinite.
 */
void json_number_set(json_t *object, const char *key, double value, const char *reason);

#endif
