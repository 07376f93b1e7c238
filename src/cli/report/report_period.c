/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report/report_period.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/carbon_options.h"

enum { US_PER_S = 1000000, DAY_LENGTH = 10, DIGITS_MAX = 6, DATE_SIZE = 64 };

static int64_t unit_s(char letter)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].letter == letter)
            return units[i].seconds;
    }
    return 0;
}

bool report_moment_parse(const char *text, int64_t now_us, int64_t *out_us)
{
    size_t digits = strspn(text, "0123456789");
    char date[DATE_SIZE];
    int64_t seconds;

    if (digits > 0 && digits <= DIGITS_MAX && text[digits] != '\0' && text[digits + 1] == '\0') {
        seconds = unit_s(text[digits]);
        if (seconds > 0)
            *out_us = now_us - strtoll(text, NULL, 10) * seconds * US_PER_S;
        return seconds > 0;
    }
    if (strchr(text, '-') == NULL) /* a time of day without its day */
        return false;
    snprintf(date, sizeof date, "%.40s%s", text, strlen(text) == DAY_LENGTH ? "T00:00" : "");
    if (!finish_time_parse(date, now_us / US_PER_S, &seconds))
        return false;
    *out_us = seconds * US_PER_S;
    return true;
}
