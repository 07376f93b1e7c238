/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_FINISH_TIME_H
#define FLYBALL_CLI_OPTIONS_FINISH_TIME_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Parses a time by which something must be finished, as people write it:
 *
 *     07:30                     the next time that the clock shows this
 *     2026-11-22T07:30          local time
 *     2026-11-22T07:30:00Z      universal time; also +01:00, and whatever else base/text/iso_time.h
 *                               reads as a date with a time
 *
 * Gives whole seconds since 1970. Returns false for anything else, and for days that do not
 * exist; the out-parameter is then untouched. `now_s` is the time to count from.
 */
bool finish_time_parse(const char *text, int64_t now_s, int64_t *out_s);

#endif
