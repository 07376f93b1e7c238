/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_MDOC_H
#define FLYBALL_CLI_KIT_MDOC_H

#include "base/buffer.h"

/*
 * Pieces of a manual page in the mdoc language. Texts are literal: characters with a meaning in
 * roff are escaped.
 */

/* Writes a page's head up to and including its NAME. `title` is for example "flyball-sim-job". */
void mdoc_begin(const char *title, int section, const char *summary, struct buffer *out);

/* Writes ".Sh HEADING". */
void mdoc_section(const char *heading, struct buffer *out);

/* Write a line of text; mdoc_paragraph puts a paragraph break before it. */
void mdoc_text(const char *text, struct buffer *out);
void mdoc_paragraph(const char *text, struct buffer *out);

/* Writes a text as the argument of a macro: in quotes. */
void mdoc_argument(const char *text, struct buffer *out);

/* Writes lines as they are, in a display of their own. */
void mdoc_literal(const char *text, struct buffer *out);

#endif
