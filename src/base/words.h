/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_WORDS_H
#define FLYBALL_BASE_WORDS_H

#include <stddef.h>

/*
 * Finds which known word a user meant.
 *
 * `word_nearest` returns the index of the known word closest to `word` by Damerau-Levenshtein
 * distance (insert, delete, replace, swap neighbours), or -1 when none is within a third of the
 * longer word's length (1 from two letters on). Ties go to the first. A NULL in `known` is
 * skipped. O(count * length^2); words longer than 63 bytes never match.
 */
int word_nearest(const char *word, const char *const *known, size_t count);

/* Returns the index of the equal word, or -1. */
int word_index(const char *word, const char *const *known, size_t count);

/*
 * After snprintf, which returned `length`: ends a text that did not fit into `size` bytes behind a whole
 * word, with "...".
 */
void words_fit(char *text, size_t size, int length);

#endif
