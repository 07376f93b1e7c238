/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_NUMBER_H
#define FLYBALL_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Numbers in text, the same in every locale.
 *
 * All readers want the whole text: no blanks around it, no unit behind it.
 * They return whether the text was such a number and leave the out-parameter
 * untouched otherwise. Thread-safe.
 */

/*
 * A finite decimal number, correctly rounded: [+-]digits[.digits][e[+-]digits].
 * Hexadecimal, "inf", "nan" and what overflows a double are refused.
 */
bool number_parse_double(const char *text, double *out_value);

/* Decimal digits without a sign, at most `maximum`. */
bool number_parse_u64(const char *text, uint64_t maximum, uint64_t *out_value);

/*
 * The fewest digits that read back as the same
 * double, "inf", "-inf" or "nan". NUL-terminated; `text` holds at least
 * NUMBER_TEXT_MAX bytes. Returns `text`.
 */
enum { NUMBER_TEXT_MAX = 32 };
char *number_format(double value, char *text);

/* The same as a value, for an argument of a message: number_text(energy_j).text. */
struct number_text {
    char text[NUMBER_TEXT_MAX];
};
struct number_text number_text(double value);

#endif
