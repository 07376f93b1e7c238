/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_LAYOUT_H
#define FLYBALL_SHAPES_JSON_LAYOUT_H

#include <jansson.h>

#include "base/buffer.h"

/*
 * Lays out a JSON document for people. Both functions loop over whatever it contains, so they show all that a
 * file has.
 */

/* Writes JSON, with short objects and the values of a list on one line. */
void json_layout_file(json_t *document, struct buffer *out);

/* Writes text that is no JSON: a line per member of an object, "container: no"; null is "not known". */
void json_layout_text(json_t *document, struct buffer *out);

#endif
