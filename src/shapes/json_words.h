/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_WORDS_H
#define FLYBALL_SHAPES_JSON_WORDS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buffer.h"

/*
 * Appends a JSON value on one line without blanks, like jansson, but with the fewest digits that read back:
 * 0.1, not 0.10000000000000001. For people. Numbers keep their kind: 250.0 does not become 250. NULL is
 * "null".
 */
void json_words_put(struct buffer *out, json_t *value);

/* Like json_words_put with fewer bytes: 250.0 becomes 250. With `ascii`, all other characters are escaped. */
void json_words_spare(struct buffer *out, json_t *value, bool ascii);

/*
 * Like json_words_put, as a text of at most `maximum` bytes that the caller owns. NULL: no memory, or longer.
 */
char *json_words(const json_t *value, size_t maximum);

#endif
