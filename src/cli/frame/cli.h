/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_CLI_H
#define FLYBALL_CLI_FRAME_CLI_H

#include "cli/frame/call_private.h"

/*
 * The program from its arguments to its exit status. Tests can replace everything outside, since
 * it is passed in.
 */
struct cli_world {
    const struct cli_program *program;
    const char *const *arguments; /* without the program's name */
    size_t argument_count;
    const char *const *environment; /* ends with NULL */
    struct settings_paths paths;
    struct cli_console console;
};

/* Parses the arguments, reads the settings, runs the command; returns the exit status. */
int cli_main(const struct cli_world *world);

#endif
