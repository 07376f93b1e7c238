/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_HARMLESS_H
#define FLYBALL_BASE_HARMLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * Makes text from others safe to show: replaces by '?' everything that a terminal, an editor or a
 * browser takes for a command instead of a letter. That is
 *
 *     control characters    C0 (ESC among them), DEL, C1 (U+009B begins a command as ESC [ does)
 *     format characters     marks and overrides of direction (U+061C, U+200E, U+202A to U+202E, U+2066 to
 *                           U+2069), what has no width (U+00AD, U+200B, U+2060, U+FEFF), tags (U+E0000)
 *     ends of lines         U+2028, U+2029
 *     what is no UTF-8
 *
 * All other characters stay. So do joiners (U+200C, U+200D), since some scripts need them. Each
 * writer of an output format calls this once, where it writes. Pure; thread-safe.
 */

/*
 * Gives the character at `text`, of which `length` (> 0) bytes are there, and returns how many
 * bytes it takes, 1 or more. A byte that is not UTF-8 takes 1 and gives UINT32_MAX.
 */
size_t harmless_read(const char *text, size_t length, uint32_t *out_character);

/* Returns whether a character may be shown. */
bool harmless_is(uint32_t character);

/* Returns whether all of a text may be shown; with `lines`, also '\n' and '\t' may. */
bool harmless_all(const char *text, size_t length, bool lines);

/* Replaces in place, which makes no text longer; returns the length. Ends the text by a 0 byte again. */
size_t harmless_make(char *text, size_t length, bool lines);

/* Replaces C0 and DEL in place by '?'; all other bytes stay, also those that are no UTF-8. */
void harmless_hide_controls(char *text);

/* Replaces all but printable ASCII in place by '?'. */
void harmless_make_ascii(char *text);

/* Appends the text; with `lines` its '\n' and '\t' stay. */
void harmless_put(struct buffer *out, const char *text, bool lines);

/*
 * Appends JSON text, or a part of it cut between two characters. It writes such characters as
 * \u202e, which reads back as the same. Bytes that are not UTF-8, and so not JSON, are replaced.
 */
void harmless_put_json(struct buffer *out, const char *json, size_t length);

#endif
