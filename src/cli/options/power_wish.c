/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/power_wish.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/number.h"
#include "base/words.h"

enum { NUMBER_MAX = 32, YEAR_S = 31536000 };

/*
 * Takes the number at the beginning of the text: digits and one point, so that no unit is read as
 * part of it.
 */
static bool take_number(const char **text, double *out_value)
{
    size_t length = strspn(*text, "0123456789.");
    char number[NUMBER_MAX];

    if (length == 0 || length >= sizeof number)
        return false;
    memcpy(number, *text, length);
    number[length] = '\0';
    *text += length;
    return number_parse_double(number, out_value);
}

bool power_wish_parse(const char *text, struct power_wish *out_wish)
{
    static const char *const units[] = {"", "W", "w", " W", " w"};
    double value;

    if (!take_number(&text, &value))
        return false;
    if (strcmp(text, "%") == 0) {
        if (value <= 0 || value > 100)
            return false;
        *out_wish = (struct power_wish){.share = value / 100};
        return true;
    }
    if (word_index(text, units, sizeof units / sizeof units[0]) < 0)
        return false;
    if (value < 1 || value > POWER_WISH_MAX_W)
        return false;
    *out_wish = (struct power_wish){.power_w = value};
    return true;
}

int64_t power_wish_limit_mw(const struct power_wish *wish, int64_t highest_mw)
{
    if (wish->share > 0)
        return llround(wish->share * (double)highest_mw / 1e3) * 1000;
    return llround(wish->power_w * 1e3);
}

/*
 * Takes the unit at the beginning of the text and returns it in seconds; 0 for none. Longer units
 * are tried first.
 */
static double take_unit(const char **text)
{
    static const struct {
        const char *word;
        double unit_s;
    } units[] = {{"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"s", 1}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t length = strlen(units[i].word);

        if (strncmp(*text, units[i].word, length) == 0) {
            *text += length;
            return units[i].unit_s;
        }
    }
    return 0;
}

bool span_parse(const char *text, double *out_time_s)
{
    double total_s = 0;
    double last_s = INFINITY;
    double value;

    do {
        double unit_s;

        if (!take_number(&text, &value))
            return false;
        /* Only seconds alone may lack a unit; after another unit none is guessed. */
        unit_s = *text == '\0' && total_s <= 0 && isinf(last_s) ? 1 : take_unit(&text);
        if (unit_s <= 0 || unit_s >= last_s)
            return false;
        last_s = unit_s;
        total_s += value * unit_s;
    } while (*text != '\0');
    if (total_s <= 0 || total_s > YEAR_S)
        return false;
    *out_time_s = total_s;
    return true;
}
