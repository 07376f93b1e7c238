/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_TEXT_CSV_QUOTE_H
#define FLYBALL_BASE_TEXT_CSV_QUOTE_H

#include "base/buffer.h"

/*
 * Appends one CSV field: as it is, or in double quotes where commas, quotes or
 * line ends in it demand them (RFC 4180). What may not be shown is replaced (harmless.h).
 */
void csv_quote(struct buffer *buffer, const char *text);

#endif
