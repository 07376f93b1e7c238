/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_PROGRAM_WORDS_H
#define FLYBALL_CLI_PROGRAM_PROGRAM_WORDS_H

#include <stddef.h>

#include <flyball/error.h>

#include "cli/frame/call.h"

/* What commands that run a program share, beside cli/program/child.h. */

/*
 * The words of a program as exec wants them, ended with NULL; the list is the caller's,
 * the words stay borrowed. NULL without memory.
 */
char **program_words(const struct cli_call *call, size_t count,
                     const char *(*word)(const struct cli_call *call, size_t index));

/* Says of a program that cannot be run what a shell would, by errno; the status is the command's. */
void program_say_not_run(const struct cli_call *call, const char *program, int error, int status);

/* Puts the program in this process's place; returns 0, with its status, only where that fails. */
int program_replace(const struct cli_call *call, char *const *words);

#endif
