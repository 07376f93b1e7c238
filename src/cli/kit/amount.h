/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_KIT_AMOUNT_H
#define FLYBALL_CLI_KIT_AMOUNT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes quantities for people, in a unit that suits their size. A value that is not finite reads
 * "unknown". Each function returns `text`, of AMOUNT_MAX bytes.
 */
enum { AMOUNT_MAX = 64 };

/* "1402 kJ ± 2 kJ", with as many decimals as the uncertainty justifies; "1402 kJ" if that is not finite. */
char *amount_energy(double energy_j, double uncertainty_j, const char *plus_minus, char text[AMOUNT_MAX]);

/* "324 W", "32.4 W". */
char *amount_power(double power_w, char text[AMOUNT_MAX]);

/* "1 h 12 min 08 s", "12.3 s", "0.503 s". */
char *amount_time(double time_s, char text[AMOUNT_MAX]);

/* "61 %", "0.4 %" of a share from 0 to 1. */
char *amount_share(double share, char text[AMOUNT_MAX]);

/* "±" if the environment's locale uses UTF-8, else "+/-". */
const char *amount_plus_minus(void);

/* Returns whether the environment's locale uses UTF-8. */
bool amount_utf8(void);

#endif
