/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_TEXT_LAYOUT_H
#define FLYBALL_CLI_KIT_TEXT_LAYOUT_H

#include <stddef.h>

#include "base/buffer.h"

/* Layout of text for a terminal. Pure. */

/* Returns how many columns a text takes. UTF-8 continuation bytes take none. Wide characters count as one. */
size_t text_width(const char *text);

/*
 * Appends `text` and a line end. It starts at column `column` and breaks at blanks so that lines
 * have at most `line_width` columns; continuation lines are indented by `indent`.
 */
void text_wrap(struct buffer *out, const char *text, size_t column, size_t indent, size_t line_width);

#endif
