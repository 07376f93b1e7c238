/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_COMMAND_WORDS_H
#define FLYBALL_KNOB_WAY_COMMAND_WORDS_H

#include "knob/way/command_file.h"

/* The words of a command, for command_file.c. */
enum { COMMAND_CAUSE_MAX = 160 };

/*
 * Splits a line in place and appends its words to the pool; false with the cause for a quote
 * without an end, no word, or too many.
 */
bool command_words_split(char *line, char *pool[COMMAND_POOL_MAX], size_t *count,
                         char cause[COMMAND_CAUSE_MAX]);

/* Checks that the operation knows every name in braces; false with the cause. */
bool command_words_check(char *const *words, size_t count, enum operation operation,
                         char cause[COMMAND_CAUSE_MAX]);

/* Returns a word with its values filled in; owned by the caller, NULL without memory. */
char *command_word_fill(const char *word, const struct operation_call *call);

#endif
