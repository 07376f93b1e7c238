/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/amount.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { MINUTE_S = 60, HOUR_S = 3600, DECIMALS_MAX = 6 };

static const struct {
    const char *name;
    double size_j;
    double below_j; /* the unit is used below this */
} units[] = {{"J", 1, 1e4}, {"kJ", 1e3, 1e7}, {"MJ", 1e6, 1e10}, {"GJ", 1e9, INFINITY}};

/* Below it, all DECIMALS_MAX decimals are zeros. */
static const double least_j = 5e-7;

static char *unknown(char text[AMOUNT_MAX])
{
    snprintf(text, AMOUNT_MAX, "unknown");
    return text;
}

/* Returns how many decimals are meaningful with steps of this size. */
static int decimals_of(double step)
{
    int decimals = 0;

    for (; step < 3 && decimals < DECIMALS_MAX; decimals++)
        step *= 10;
    return decimals;
}

char *amount_energy(double energy_j, double uncertainty_j, const char *plus_minus, char text[AMOUNT_MAX])
{
    size_t unit = 0;
    int decimals;

    if (!isfinite(energy_j))
        return unknown(text);
    while (fabs(energy_j) >= units[unit].below_j)
        unit++;
    if (fabs(energy_j) < least_j && !isfinite(uncertainty_j)) {
        snprintf(text, AMOUNT_MAX, "0 J");
        return text;
    }
    if (!isfinite(uncertainty_j)) {
        snprintf(text, AMOUNT_MAX, "%.*f %s", decimals_of(fabs(energy_j) / units[unit].size_j / 100),
                 energy_j / units[unit].size_j, units[unit].name);
        return text;
    }
    decimals = decimals_of(uncertainty_j / units[unit].size_j);
    snprintf(text, AMOUNT_MAX, "%.*f %s %s %.*f %s", decimals, energy_j / units[unit].size_j,
             units[unit].name, plus_minus, decimals, uncertainty_j / units[unit].size_j, units[unit].name);
    return text;
}

char *amount_power(double power_w, char text[AMOUNT_MAX])
{
    if (!isfinite(power_w))
        return unknown(text);
    snprintf(text, AMOUNT_MAX, "%.*f W", fabs(power_w) < 99.95 ? 1 : 0, power_w);
    return text;
}

char *amount_time(double time_s, char text[AMOUNT_MAX])
{
    long long whole;

    if (!isfinite(time_s) || time_s < 0 || time_s > 1e15)
        return unknown(text);
    whole = llround(time_s);
    if (time_s < 10)
        snprintf(text, AMOUNT_MAX, "%.3f s", time_s);
    else if (time_s < MINUTE_S - 0.05)
        snprintf(text, AMOUNT_MAX, "%.1f s", time_s);
    else if (whole < HOUR_S)
        snprintf(text, AMOUNT_MAX, "%lld min %02lld s", whole / MINUTE_S, whole % MINUTE_S);
    else
        snprintf(text, AMOUNT_MAX, "%lld h %02lld min %02lld s", whole / HOUR_S, whole % HOUR_S / MINUTE_S,
                 whole % MINUTE_S);
    return text;
}

char *amount_share(double share, char text[AMOUNT_MAX])
{
    double percent = 100 * share;

    if (!isfinite(share))
        return unknown(text);
    snprintf(text, AMOUNT_MAX, "%.*f %%", percent != 0 && fabs(percent) < 0.95 ? 1 : 0, percent);
    return text;
}

bool amount_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *locale = getenv(variables[i]);

        if (locale == NULL || locale[0] == '\0')
            continue;
        for (const char *at = locale; *at != '\0'; at++) {
            if (strncasecmp(at, "UTF-8", 5) == 0 || strncasecmp(at, "UTF8", 4) == 0)
                return true;
        }
        return false;
    }
    return false;
}

const char *amount_plus_minus(void)
{
    return amount_utf8() ? "\xc2\xb1" : "+/-";
}
