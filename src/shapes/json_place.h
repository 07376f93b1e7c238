/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SHAPES_JSON_PLACE_H
#define FLYBALL_SHAPES_JSON_PLACE_H

#include <stddef.h>

/*
 * The line, from 1, on which a member of a JSON text stands, for messages about
 * its value: "devices[1].energy_j" as a path is "/devices/1/energy_j". Where the
 * path leads nowhere, the line of the last value on the way. The text is valid
 * JSON and ends with a NUL; keys with escapes are not found.
 */
size_t json_place_line(const char *text, const char *path);

#endif
