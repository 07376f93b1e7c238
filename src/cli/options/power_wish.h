/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_OPTIONS_POWER_WISH_H
#define FLYBALL_CLI_OPTIONS_POWER_WISH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Parses a power limit and a duration as people write them. Pure.
 *
 *     struct power_wish wish;
 *
 *     if (power_wish_parse("60%", &wish))
 *         limit_mw = power_wish_limit_mw(&wish, highest_mw);
 */

/* Exactly one of the two is above 0. */
struct power_wish {
    double power_w;
    double share; /* of a GPU's highest limit, at most 1 */
};

/* "150", "150W", "150 W", "187.5"; "60%". From 1 W to POWER_WISH_MAX_W. */
enum { POWER_WISH_MAX_W = 100000 };
bool power_wish_parse(const char *text, struct power_wish *out_wish);

/* Returns it in whole milliwatts, as drivers take it; a share is rounded to a whole watt. */
int64_t power_wish_limit_mw(const struct power_wish *wish, int64_t highest_mw);

/* "90", "90s", "15min", "2h", "1.5h", "1h30min": above 0, at most a year. */
bool span_parse(const char *text, double *out_time_s);

#endif
