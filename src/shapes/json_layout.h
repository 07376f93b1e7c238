/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_LAYOUT_H
#define FLYBALL_SHAPES_JSON_LAYOUT_H

#include <jansson.h>

#include "base/buffer.h"

/*
 * A JSON document for people. Both loop over whatever it holds, so that what is shown is
 * all that a file has.
 */

/* JSON with short objects, and the values of a list, on one line. */
void json_layout_file(json_t *document, struct buffer *out);

/* No JSON: a line for each member of an object, "container: no"; null is "not known". */
void json_layout_text(json_t *document, struct buffer *out);

#endif
