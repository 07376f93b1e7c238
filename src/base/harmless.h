/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_HARMLESS_H
#define FLYBALL_BASE_HARMLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * Text that somebody else wrote, as it may be shown: what a terminal, an editor or a browser takes for
 * a command instead of a letter is replaced by '?'. That is
 *
 *     control characters    C0 (ESC among them), DEL, C1 (U+009B begins a command as ESC [ does)
 *     format characters     marks and overrides of direction (U+061C, U+200E, U+202A to U+202E, U+2066 to
 *                           U+2069), what has no width (U+00AD, U+200B, U+2060, U+FEFF), tags (U+E0000)
 *     ends of lines         U+2028, U+2029
 *     what is no UTF-8
 *
 * All other characters stay, joiners (U+200C, U+200D) too: scripts are written with them. Each writer of an
 * output format calls this once, where it writes. Pure; thread-safe.
 */

/*
 * The character at `text`, of which `length` (> 0) bytes are there, and the bytes that it takes, 1 or more.
 * One that is no UTF-8 takes 1 and is UINT32_MAX.
 */
size_t harmless_read(const char *text, size_t length, uint32_t *out_character);

/* Whether it may be shown. */
bool harmless_is(uint32_t character);

/* Whether all of it may; with `lines`, also '\n' and '\t' may. */
bool harmless_all(const char *text, size_t length, bool lines);

/* Replaces in place, which makes a text no longer; the length. The text is ended by a 0 byte again. */
size_t harmless_make(char *text, size_t length, bool lines);

/* Replaces C0 and DEL in place, for one line of a text whose reader replaces the rest. */
void harmless_hide_controls(char *text);

/* Replaces in place all that is not printable ASCII. */
void harmless_make_ascii(char *text);

/* Appends the text; with `lines` its '\n' and '\t' stay. */
void harmless_put(struct buffer *out, const char *text, bool lines);

/*
 * Appends JSON text, or a part of it cut between two characters: in it they are written as \u202e, which
 * reads back as the same. What is no UTF-8, and so no JSON, is replaced.
 */
void harmless_put_json(struct buffer *out, const char *json, size_t length);

#endif
