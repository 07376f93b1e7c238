/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_PROGRAM_PROGRAM_WORDS_H
#define FLYBALL_CLI_PROGRAM_PROGRAM_WORDS_H

#include <stddef.h>

#include <flyball/error.h>

#include "cli/frame/call.h"

/* What commands that run a program share, besides cli/program/child.h. */

/*
 * Returns the words of a program's command line as exec needs them, ended by NULL, or NULL
 * without memory. The caller owns the list; the words are borrowed.
 */
char **program_words(const struct cli_call *call, size_t count,
                     const char *(*word)(const struct cli_call *call, size_t index));

/* Says by errno why a program cannot be run, as a shell would. `status` is the command's exit status. */
void program_say_not_run(const struct cli_call *call, const char *program, int error, int status);

/* Replaces this process by the program. Returns 0 only if that fails; the call then has the exit status. */
int program_replace(const struct cli_call *call, char *const *words);

#endif
