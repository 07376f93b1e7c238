/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_TEXT_ISO_TIME_H
#define FLYBALL_BASE_TEXT_ISO_TIME_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Parses times and durations of ISO 8601, independent of the time zone and the locale of the
 * machine.
 *
 *     2026-11-22T07:30:00.25Z    2026-11-22 07:30+01:00    20261122T0730+01
 *     2026-W47-7T07Z             2026-326T07:30Z           2026-11-22, 2026-11, 2026
 *
 * Calendar, week and ordinal dates, basic and extended. Hours, minutes and seconds, of which the
 * last one given may have a fraction after '.' or ','. 'T', 't' or a blank in between. 'Z', 'z'
 * or an offset from -23:59 to +23:59. 24:00:00 for the end of a day. A leap second is the second
 * after it. A date alone is its first moment; only a date that names a day may have a time of
 * day. Years from 0001 to 9999; a time beyond the range of those is refused. The whole text must
 * be the time.
 *
 * Pure; thread-safe. On false the out-parameter is untouched.
 */
struct iso_time {
    int64_t s;           /* since 1970-01-01T00:00:00Z; as if in UTC if no zone is given */
    uint32_t nanosecond; /* cut, not rounded */
    bool zoned;          /* the text states its offset from UTC */
    bool timed;          /* more than a date */
};

bool iso_time_parse(const char *text, struct iso_time *out_time);

/* Parses a time that states its zone or, with `assume_utc`, has none; cut to whole seconds. */
bool iso_time_parse_utc(const char *text, bool assume_utc, int64_t *out_s);

/*
 * Parses a duration into seconds: PT30M, P1DT12H, PT0.5H, P2W, and the form 01:30:00 or
 * 1.02:30:00 (days before the point) that some services write. Years and months have no fixed
 * length and are refused. From 0 to 1e10 s.
 */
bool iso_duration_parse(const char *text, double *out_s);

/*
 * Writes "2026-11-22T07:30:00Z" into `text`, which holds ISO_TIME_TEXT_MAX bytes; "unknown"
 * beyond the years above.
 */
enum { ISO_TIME_TEXT_MAX = 40 };
char *iso_time_format(int64_t s, char *text);

/* Does the same for a time in microseconds, cut to its second. */
char *iso_time_format_us(int64_t us, char *text);

/* Gives the days from 1970-01-01 to a day of the Gregorian calendar; returns whether there is such a day. */
bool iso_day_number(int year, int month, int day, int64_t *out_days);

#endif
