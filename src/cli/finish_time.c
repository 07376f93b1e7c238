/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/finish_time.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

/* So many digits, and what has to follow them; moves on. -1 for anything else. */
static int take(const char **text, int digits, const char *following)
{
    int value = 0;

    for (int i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return -1;
        value = 10 * value + (**text - '0');
    }
    if (following == NULL)
        return value;
    if (**text == '\0' || strchr(following, **text) == NULL)
        return -1;
    (*text)++;
    return value;
}

static bool in_day(const struct tm *time)
{
    return time->tm_hour >= 0 && time->tm_hour < 24 && time->tm_min >= 0 && time->tm_min < 60 &&
           time->tm_sec >= 0 && time->tm_sec < 60;
}

/* The next moment at which the clock says so. */
static bool next_at(struct tm wanted, int64_t now_s, int64_t *out_s)
{
    time_t now = (time_t)now_s, then;
    struct tm today;

    if (!in_day(&wanted) || localtime_r(&now, &today) == NULL)
        return false;
    today.tm_hour = wanted.tm_hour;
    today.tm_min = wanted.tm_min;
    today.tm_sec = 0;
    today.tm_isdst = -1;
    then = mktime(&today);
    if (then != (time_t)-1 && then <= now) {
        today.tm_mday++;
        today.tm_hour = wanted.tm_hour;
        today.tm_min = wanted.tm_min;
        today.tm_isdst = -1;
        then = mktime(&today);
    }
    if (then == (time_t)-1)
        return false;
    *out_s = then;
    return true;
}

static bool at_date(struct tm wanted, bool universal, int64_t *out_s)
{
    struct tm made = wanted;
    time_t then;

    if (!in_day(&wanted) || wanted.tm_mon < 0 || wanted.tm_mon > 11 || wanted.tm_mday < 1)
        return false;
    made.tm_isdst = -1;
    then = universal ? timegm(&made) : mktime(&made);
    if (then == (time_t)-1 || made.tm_mday != wanted.tm_mday || made.tm_mon != wanted.tm_mon)
        return false;
    *out_s = then;
    return true;
}

bool finish_time_parse(const char *text, int64_t now_s, int64_t *out_s)
{
    struct tm wanted = {0};
    bool universal = false;

    if (strlen(text) == 5) {
        wanted.tm_hour = take(&text, 2, ":");
        wanted.tm_min = wanted.tm_hour >= 0 ? take(&text, 2, NULL) : -1;
        return *text == '\0' && next_at(wanted, now_s, out_s);
    }
    wanted.tm_year = take(&text, 4, "-") - 1900;
    wanted.tm_mon = wanted.tm_year >= 0 ? take(&text, 2, "-") - 1 : -1;
    wanted.tm_mday = wanted.tm_mon >= 0 ? take(&text, 2, "T ") : -1;
    wanted.tm_hour = wanted.tm_mday > 0 ? take(&text, 2, ":") : -1;
    wanted.tm_min = wanted.tm_hour >= 0 ? take(&text, 2, NULL) : -1;
    if (wanted.tm_min >= 0 && *text == ':') {
        text++;
        wanted.tm_sec = take(&text, 2, NULL);
    }
    if (*text == 'Z') {
        universal = true;
        text++;
    }
    return *text == '\0' && at_date(wanted, universal, out_s);
}
