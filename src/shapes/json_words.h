/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_WORDS_H
#define FLYBALL_SHAPES_JSON_WORDS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buffer.h"

/*
 * Appends a JSON value on one line without blanks, as jansson does, but with the fewest digits
 * that read back: 0.1, and not 0.10000000000000001. For what people read. Numbers stay what they were:
 * 250.0 does not become 250. NULL is "null".
 */
void json_words_put(struct buffer *out, json_t *value);

/* The same with fewer bytes: 250.0 does become 250; with `ascii`, escapes stand for all other characters. */
void json_words_spare(struct buffer *out, json_t *value, bool ascii);

/* json_words_put of at most `maximum` bytes; owned by the caller. NULL: no memory, or longer than that. */
char *json_words(const json_t *value, size_t maximum);

#endif
