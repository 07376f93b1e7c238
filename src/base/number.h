/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_NUMBER_H
#define FLYBALL_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Numbers in text, the same in every locale.
 *
 * Every reader needs the whole text to be the number: no blanks around it, no unit after it. It
 * returns whether it was, and otherwise leaves the out-parameter untouched. Thread-safe.
 */

/*
 * Reads a finite decimal number, correctly rounded: [+-]digits[.digits][e[+-]digits]. Refuses
 * hexadecimal, "inf", "nan" and numbers that overflow a double.
 */
bool number_parse_double(const char *text, double *out_value);

/* Reads decimal digits without a sign, at most `maximum`. */
bool number_parse_u64(const char *text, uint64_t maximum, uint64_t *out_value);

/*
 * The size of a text for number_format, which writes the fewest digits that read back as the same
 * double, or "inf", "-inf" or "nan", with a NUL. It returns `text`, which must hold at least
 * NUMBER_TEXT_MAX bytes.
 */
enum { NUMBER_TEXT_MAX = 32 };
char *number_format(double value, char *text);

/* The text as a value, for an argument of a message: number_text(energy_j).text. */
struct number_text {
    char text[NUMBER_TEXT_MAX];
};
struct number_text number_text(double value);

#endif
