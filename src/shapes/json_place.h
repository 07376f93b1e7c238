/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_PLACE_H
#define FLYBALL_SHAPES_JSON_PLACE_H

#include <stddef.h>

/*
 * Finds the line, counted from 1, of a member in a JSON text, for messages about its value. The path of
 * "devices[1].energy_j" is "/devices/1/energy_j". When the path leads nowhere, returns the line of the last
 * value on the way. The text must be valid JSON and end with NUL; keys with escapes are not found.
 */
size_t json_place_line(const char *text, const char *path);

#endif
