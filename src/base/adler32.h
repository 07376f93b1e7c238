/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_ADLER32_H
#define FLYBALL_BASE_ADLER32_H

#include <stdint.h>

/* The Adler-32 checksum of a text (RFC 1950, section 8.2), which published runs use as a group's seed. */
uint32_t adler32(const char *text);

#endif
