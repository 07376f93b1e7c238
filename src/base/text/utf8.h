/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_TEXT_UTF8_H
#define FLYBALL_BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns whether the text is well-formed UTF-8: no overlong form, no surrogate, nothing above
 * U+10FFFF. Pure; thread-safe.
 */
bool text_is_utf8(const char *text, size_t length);

#endif
