/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_ADLER32_H
#define FLYBALL_BASE_ADLER32_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the Adler-32 checksum (RFC 1950, section 8.2) of a text; published runs use it as a
 * group's seed.
 */
uint32_t adler32(const char *text);

/* Returns the checksum of bytes. */
uint32_t adler32_of(const void *bytes, size_t count);

#endif
