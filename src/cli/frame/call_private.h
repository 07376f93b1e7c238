/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_CALL_PRIVATE_H
#define FLYBALL_CLI_FRAME_CALL_PRIVATE_H

#include "cli/frame/call.h"
#include "cli/frame/parse.h"
#include "cli/frame/settings.h"
#include "cli/frame/value.h"

/* The program's output streams; borrowed. */
struct cli_console {
    FILE *out;
    FILE *err;
    bool out_terminal;
    bool err_terminal;
    bool no_color; /* the user set NO_COLOR */
};

struct cli_call {
    const struct cli_program *program;
    const struct cli_command *command;
    const struct cli_console *console;
    const struct settings *settings;
    const struct settings_paths *paths;
    const struct command_line *line;
    struct cli_value *values; /* owned; one per option of the command */
    int *exit_status;         /* the program's, used if the run did not fail */
};

/*
 * Gives every option of the command its value: from the line, the settings or the default.
 * `out_call` has everything but `values` already. FLY_EPERM if the line sets a locked key.
 * Deinitialise it also on failure.
 */
int call_init(struct cli_call *call, struct fly_error *out_error);
void call_deinit(struct cli_call *call);

/* Returns whether stdout gets colour if no option says otherwise. */
bool console_color(const struct cli_console *console);

/*
 * Writes "flyball: <kind>text" to stderr, without control characters; `kind` is "", "note: " or
 * "warning: ".
 */
void console_say(const struct cli_console *console, const char *kind, const char *text);

#endif
