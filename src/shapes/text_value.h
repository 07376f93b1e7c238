/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_TEXT_VALUE_H
#define FLYBALL_SHAPES_TEXT_VALUE_H

#include <jansson.h>

/*
 * A text as JSON. If it is not UTF-8 (a file name may not be), its bytes above ASCII are replaced. NULL
 * without memory.
 */
json_t *text_value(const char *text);

/* Like text_value, but null for NULL and for an empty text. */
json_t *text_or_null(const char *text);

#endif
