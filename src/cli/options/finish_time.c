/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/finish_time.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "base/text/iso_time.h"

enum { HOUR_TEXT = 5, HOURS = 24, MINUTES = 60 };

static int two_digits(const char *text)
{
    if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1]))
        return -1;
    return 10 * (text[0] - '0') + (text[1] - '0');
}

/* Finds the next moment at which the clock shows "07:30". */
static bool next_at(const char *text, int64_t now_s, int64_t *out_s)
{
    int hour = two_digits(text), minute = two_digits(text + 3);
    time_t now = (time_t)now_s, then = now;
    struct tm today;

    if (text[2] != ':' || hour < 0 || hour >= HOURS || minute < 0 || minute >= MINUTES ||
        localtime_r(&now, &today) == NULL)
        return false;
    for (int day = today.tm_mday, end = day + 2; day < end && then <= now; day++) {
        today.tm_mday = day;
        today.tm_hour = hour;
        today.tm_min = minute;
        today.tm_sec = 0;
        today.tm_isdst = -1;
        then = mktime(&today);
        if (then == (time_t)-1)
            return false;
    }
    *out_s = then;
    return true;
}

/* Converts what a wall clock shows to a time, if that time exists in this machine's zone. */
static bool local_time(int64_t shown_s, int64_t *out_s)
{
    time_t shown = (time_t)shown_s, then;
    struct tm parts;

    if (gmtime_r(&shown, &parts) == NULL)
        return false;
    parts.tm_isdst = -1;
    then = mktime(&parts);
    if (then == (time_t)-1)
        return false;
    *out_s = then;
    return true;
}

bool finish_time_parse(const char *text, int64_t now_s, int64_t *out_s)
{
    struct iso_time time;

    if (strlen(text) == HOUR_TEXT)
        return next_at(text, now_s, out_s);
    if (!iso_time_parse(text, &time) || !time.timed)
        return false;
    if (!time.zoned)
        return local_time(time.s, out_s);
    *out_s = time.s;
    return true;
}
