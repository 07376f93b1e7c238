/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_VIEWS_SAVING_WORDS_H
#define FLYBALL_CLI_VIEWS_SAVING_WORDS_H

#include "base/buffer.h"
#include "job/past/savings.h"

/* The words that every command uses to report a saving to people. */

/* Appends "12.3 % less energy (4.5 to 19.8 %)"; without the bounds if they are not known. */
void saving_words_change(struct buffer *text, const struct fly_job_range *saving, const char *what);

/* Appends why a saving is not known: "unknown; your default was measured in 1 of 4 runs needed". */
void saving_words_unknown(struct buffer *text, const struct job_savings *savings);

/* Returns whether the interval includes a saving of zero. */
bool saving_words_by_chance(const struct fly_job_range *saving);

/* "Whether any energy is saved cannot be told from chance." */
extern const char saving_words_chance[];

#endif
