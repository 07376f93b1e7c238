/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_TEXT_NUMBER_LIST_H
#define FLYBALL_BASE_TEXT_NUMBER_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * Parses whole numbers as people list them: "7", "1-20", "1-5,8,10-12".
 *
 * Gives the numbers in the order written, in `arena`. FLY_EUSAGE for anything else, a range that
 * runs backwards, a number that occurs twice or lies outside minimum .. UINT32_MAX, and more than
 * `most` numbers. The error's text is then what was expected, and the caller adds for which
 * value: "whole numbers from 0 ...".
 */
int number_list_parse(const char *text, uint32_t minimum, size_t most, struct arena *arena,
                      uint32_t **out_numbers, size_t *out_count, struct fly_error *out_error);

#endif
