/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_TEXT_LAYOUT_H
#define FLYBALL_CLI_KIT_TEXT_LAYOUT_H

#include <stddef.h>

#include "base/buffer.h"

/* Text for a terminal. Pure. */

/* Columns that it takes: UTF-8 continuation bytes take none. Wide characters count as one. */
size_t text_width(const char *text);

/*
 * Appends `text` and a line's end, from column `column` on, broken at blanks so that lines have at most
 * `line_width` columns, the next lines indented by `indent`.
 */
void text_wrap(struct buffer *out, const char *text, size_t column, size_t indent, size_t line_width);

#endif
