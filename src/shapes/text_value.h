/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_TEXT_VALUE_H
#define FLYBALL_SHAPES_TEXT_VALUE_H

#include <jansson.h>

/* A JSON text; what is not UTF-8 (a file name may not be) has its bytes above ASCII replaced. NULL without
 * memory.
 */
json_t *text_value(const char *text);

/* The same, and null for none and for an empty one. */
json_t *text_or_null(const char *text);

#endif
