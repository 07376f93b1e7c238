/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_TEXT_CSV_QUOTE_H
#define FLYBALL_BASE_TEXT_CSV_QUOTE_H

#include "base/buffer.h"

/*
 * Appends one CSV field: as it is, or in double quotes if commas, quotes or line ends in it
 * require them (RFC 4180). Replaces what may not be shown (harmless.h).
 */
void csv_quote(struct buffer *buffer, const char *text);

#endif
