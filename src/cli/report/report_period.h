/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_REPORT_REPORT_PERIOD_H
#define FLYBALL_CLI_REPORT_REPORT_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Parses a moment in the past, as people write it:
 *
 *     30d                    so long before now; also 12h, 90m, 45s, 4w
 *     2026-11-22             the beginning of that day, local time
 *     2026-11-22T07:30       and what else carbon_options.h reads as a date
 *
 * Gives microseconds since 1970. Returns false for anything else; the out-parameter is then
 * untouched.
 */
bool report_moment_parse(const char *text, int64_t now_us, int64_t *out_us);

#endif
