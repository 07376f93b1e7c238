/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/iso_time.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    YEAR_LEAST = 1,
    YEAR_MOST = 9999,
    DAY_S = 86400,
    HOUR_S = 3600,
    MINUTE_S = 60,
    NANOSECONDS = 1000000000,
    FRACTION_DIGITS = 9,
};

/* The civil calendar repeats every 400 years, which have this many days. */
static const int64_t era_days = 146097, epoch_days = 719468;
static const double duration_most_s = 1e10;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads exactly this many digits and moves on; -1 for anything else. */
static int take(const char **text, int digits)
{
    int value = 0;

    for (int i = 0; i < digits; i++) {
        if (!is_digit((*text)[i]))
            return -1;
        value = 10 * value + ((*text)[i] - '0');
    }
    *text += digits;
    return value;
}

static int count_digits(const char *text)
{
    int count = 0;

    while (is_digit(text[count]))
        count++;
    return count;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year));
}

bool iso_day_number(int year, int month, int day, int64_t *out_days)
{
    int64_t shifted, era, year_of_era, day_of_year;

    if (year < YEAR_LEAST || year > YEAR_MOST || month < 1 || month > 12 || day < 1 ||
        day > month_days(year, month))
        return false;
    /* In years that begin in March the leap day is the last day. */
    shifted = year - (month <= 2);
    era = shifted / 400;
    year_of_era = shifted - 400 * era;
    day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    *out_days =
        era * era_days + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - epoch_days;
    return true;
}

/* 0 is Monday. */
static int weekday_of(int64_t days)
{
    return (int)(((days + 3) % 7 + 7) % 7);
}

/* Returns the Monday of week 1, which contains the 4th of January. */
static int64_t first_week(int year)
{
    int64_t days = 0;

    (void)iso_day_number(year, 1, 4, &days);
    return days - weekday_of(days);
}

/*
 * Reads, after the year, "W47-7" or "W477". Here and below the day may be missing: then the date
 * is not whole.
 */
static bool take_week(const char **text, int year, bool extended, int64_t *out_days, bool *out_whole)
{
    int week, day = 1;
    int64_t weeks = year < YEAR_MOST ? (first_week(year + 1) - first_week(year)) / 7 : 52;

    (*text)++;
    week = take(text, 2);
    if (week < 1 || week > weeks)
        return false;
    *out_whole = extended ? **text == '-' : is_digit(**text);
    if (*out_whole) {
        *text += extended;
        day = take(text, 1);
    }
    *out_days = first_week(year) + 7 * (week - 1) + day - 1;
    return day >= 1 && day <= 7;
}

/* Reads, after a year of `digits` digits: a month and a day, a day of the year, or a month alone. */
static bool take_rest(const char **text, int year, bool extended, int digits, int64_t *out_days,
                      bool *out_whole)
{
    int month, day = 1;

    *out_whole = true;
    if (digits == 3) {
        day = take(text, 3);
        return day >= 1 && day <= 365 + is_leap(year) && iso_day_number(year, 1, 1, out_days) &&
               (*out_days += day - 1, true);
    }
    month = take(text, 2);
    if (extended ? **text == '-' : digits == 4) {
        *text += extended;
        day = take(text, 2);
    } else if (extended) {
        *out_whole = false;
    } else {
        return false; /* 202611 could be the 26th of November 2020 as well */
    }
    return iso_day_number(year, month, day, out_days);
}

static bool take_date(const char **text, int64_t *out_days, bool *out_whole)
{
    int year = take(text, 4);
    bool extended = **text == '-';

    if (year < YEAR_LEAST)
        return false;
    *text += extended;
    *out_whole = false;
    if (**text == 'W')
        return take_week(text, year, extended, out_days, out_whole);
    if (!extended && !is_digit(**text))
        return iso_day_number(year, 1, 1, out_days);
    return take_rest(text, year, extended, count_digits(*text), out_days, out_whole);
}

/* Reads a fraction of `unit_s`, and returns nanoseconds. */
static int64_t take_fraction(const char **text, int64_t unit_s)
{
    int64_t fraction = 0, scale = 1;
    int digits = 0;

    for ((*text)++; is_digit(**text); (*text)++) {
        if (digits++ < FRACTION_DIGITS) {
            fraction = 10 * fraction + (**text - '0');
            scale *= 10;
        }
    }
    return digits == 0 ? -1 : fraction * unit_s * (NANOSECONDS / scale);
}

/* Reads hours, then minutes, then seconds, each only after the one before; the last may have a fraction. */
static bool take_clock(const char **text, int64_t *out_ns)
{
    static const int units_s[] = {HOUR_S, MINUTE_S, 1}, most[] = {24, 59, 60};
    bool extended = false;
    int64_t ns = 0;
    int i = 0;

    for (; i < 3; i++) {
        int value;

        if (i == 1)
            extended = **text == ':';
        if (i > 0 && (extended ? **text != ':' : !is_digit(**text)))
            break;
        *text += i > 0 && extended;
        value = take(text, 2);
        if (value < 0 || value > most[i])
            return false;
        ns += (int64_t)value * units_s[i] * NANOSECONDS;
    }
    if (**text == '.' || **text == ',') {
        int64_t fraction = take_fraction(text, units_s[i - 1]);

        if (fraction < 0)
            return false;
        ns += fraction;
    }
    *out_ns = ns;
    /* 24:00 is the end of the day; only a leap second may come after it. */
    return ns <= (int64_t)DAY_S * NANOSECONDS;
}

/* Reads "Z", "+01", "+0130" or "+01:30"; if there is nothing, `out_zoned` stays false. */
static bool take_zone(const char **text, int64_t *out_offset_s, bool *out_zoned)
{
    int sign = **text == '-' ? -1 : 1, hours, minutes = 0;

    *out_offset_s = 0;
    *out_zoned = **text != '\0';
    if (**text == '\0')
        return true;
    if (**text == 'Z' || **text == 'z') {
        (*text)++;
        return true;
    }
    if (**text != '+' && **text != '-')
        return false;
    (*text)++;
    hours = take(text, 2);
    if (**text == ':' || is_digit(**text)) {
        *text += **text == ':';
        minutes = take(text, 2);
    }
    *out_offset_s = (int64_t)sign * (HOUR_S * hours + MINUTE_S * minutes);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

bool iso_time_parse(const char *text, struct iso_time *out_time)
{
    struct iso_time time = {0};
    int64_t days = 0, ns = 0, offset_s = 0;
    bool whole;

    if (!take_date(&text, &days, &whole))
        return false;
    if (whole && (*text == 'T' || *text == 't' || *text == ' ')) {
        text++;
        time.timed = true;
        if (!take_clock(&text, &ns) || !take_zone(&text, &offset_s, &time.zoned))
            return false;
    }
    if (*text != '\0')
        return false;
    time.s = days * DAY_S + ns / NANOSECONDS - offset_s;
    time.nanosecond = (uint32_t)(ns % NANOSECONDS);
    *out_time = time;
    return true;
}

bool iso_time_parse_utc(const char *text, bool assume_utc, int64_t *out_s)
{
    struct iso_time time;

    if (!iso_time_parse(text, &time) || (!time.zoned && !assume_utc))
        return false;
    *out_s = time.s;
    return true;
}

/* Reads digits with or without a fraction. */
static bool take_number(const char **text, double *out_value)
{
    double value = 0.0, scale = 1.0;
    int digits = 0;

    for (; is_digit(**text) && digits < 16; (*text)++, digits++)
        value = 10.0 * value + (**text - '0');
    if (digits == 0)
        return false;
    if (**text == '.' || **text == ',') {
        for ((*text)++; is_digit(**text); (*text)++) {
            scale /= 10.0;
            value += scale * (**text - '0');
        }
    }
    *out_value = value;
    return true;
}

/* Parses "01:30:00" or "1.02:30:00". */
static bool parse_clock_duration(const char *text, double *out_s)
{
    double days = 0.0, seconds = 0.0;
    int hours, minutes;
    const char *point = strchr(text, '.'), *colon = strchr(text, ':');

    if (point != NULL && colon != NULL && point < colon) {
        int count = count_digits(text);

        if (count < 1 || count > 5 || text + count != point)
            return false;
        days = take(&text, count);
        text++;
    }
    hours = take(&text, 2);
    if (hours < 0 || hours > 23 || *text++ != ':')
        return false;
    minutes = take(&text, 2);
    if (minutes < 0 || minutes > 59 || *text++ != ':' || count_digits(text) != 2)
        return false;
    if (!take_number(&text, &seconds) || seconds >= MINUTE_S || *text != '\0')
        return false;
    *out_s = days * DAY_S + hours * HOUR_S + minutes * MINUTE_S + seconds;
    return true;
}

bool iso_duration_parse(const char *text, double *out_s)
{
    static const struct {
        char letter;
        bool timed;
        double unit_s;
    } units[] = {{'W', false, 7.0 * DAY_S},
                 {'D', false, DAY_S},
                 {'H', true, HOUR_S},
                 {'M', true, MINUTE_S},
                 {'S', true, 1.0}};
    enum { UNIT_COUNT = sizeof units / sizeof units[0] };
    double sum_s = 0.0, value;
    bool timed = false, any = false;
    int next = 0;

    if (*text != 'P')
        return parse_clock_duration(text, out_s);
    for (text++; *text != '\0'; text++) {
        if (*text == 'T' && !timed && text[1] != '\0') {
            timed = true;
            continue;
        }
        if (!take_number(&text, &value))
            return false;
        while (next < UNIT_COUNT && (units[next].letter != *text || units[next].timed != timed))
            next++;
        if (next == UNIT_COUNT)
            return false;
        sum_s += value * units[next++].unit_s;
        any = true;
    }
    if (!any || !(sum_s <= duration_most_s))
        return false;
    *out_s = sum_s;
    return true;
}

char *iso_time_format(int64_t s, char *text)
{
    int64_t days = s / DAY_S - (s % DAY_S < 0), second = s - days * DAY_S;
    int64_t shifted = days + epoch_days, era, day, year, day_of_year, month;

    if (s < -INT64_C(62135596800) || s > INT64_C(253402300799)) {
        snprintf(text, ISO_TIME_TEXT_MAX, "unknown");
        return text;
    }
    era = shifted / era_days;
    day = shifted - era * era_days;
    year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day_of_year = day - (365 * year + year / 4 - year / 100);
    month = (5 * day_of_year + 2) / 153;
    day = day_of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    year += 400 * era + (month <= 2);
    snprintf(text, ISO_TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)year % 10000, (int)month % 100,
             (int)day % 100, (int)(second / HOUR_S) % 100, (int)(second / MINUTE_S % 60), (int)(second % 60));
    return text;
}

char *iso_time_format_us(int64_t us, char *text)
{
    return iso_time_format(us / 1000000, text);
}
