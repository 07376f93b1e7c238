/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strtod and printf follow LC_NUMERIC of the program that loaded the library. With a decimal
 * comma they turn 1.5 into 1. The readers below use the C locale explicitly, and the writer
 * replaces the locale's decimal separator.
 */
#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void c_locale_make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static double c_strtod(const char *text, char **out_end)
{
    pthread_once(&c_locale_once, c_locale_make);
    return c_locale != (locale_t)0 ? strtod_l(text, out_end, c_locale) : strtod(text, out_end);
}

bool number_parse_double(const char *text, double *out_value)
{
    char *end;
    double value;

    if (text[0] == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0')
        return false;
    value = c_strtod(text, &end);
    if (*end != '\0' || !isfinite(value))
        return false;
    *out_value = value;
    return true;
}

bool number_parse_u64(const char *text, uint64_t maximum, uint64_t *out_value)
{
    uint64_t value = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        unsigned digit = (unsigned)(*text - '0');

        if (digit > 9 || digit > maximum || value > (maximum - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out_value = value;
    return true;
}

char *number_format(double value, char *text)
{
    if (!isfinite(value)) {
        snprintf(text, NUMBER_TEXT_MAX, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return text;
    }
    /*
     * Every decimal of up to 15 digits survives the round trip, except near 0, where doubles have
     * fewer digits.
     */
    for (int digits = fabs(value) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        char *comma;

        snprintf(text, NUMBER_TEXT_MAX, "%.*g", digits, value);
        comma = strpbrk(text, ",");
        if (comma != NULL)
            *comma = '.';
        if (c_strtod(text, NULL) == value)
            break;
    }
    return text;
}

struct number_text number_text(double value)
{
    struct number_text made = {.text = ""};

    number_format(value, made.text);
    return made;
}
