/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_PARSE_H
#define FLYBALL_CLI_FRAME_PARSE_H

#include "cli/frame/command.h"

/* Splits the command line into parts; values are still texts. Everything is borrowed from the arguments. */
enum { LINE_OPTIONS_MAX = 96, LINE_OPERANDS_MAX = 4096, LINE_SPELLING_MAX = 48 };

struct line_option {
    const char *text;                 /* NULL: not given */
    char spelling[LINE_SPELLING_MAX]; /* "--gpu-model", as it was typed */
};

struct command_line {
    const struct cli_command *command;
    struct line_option options[LINE_OPTIONS_MAX]; /* by index of the command's options */
    const char *const *operands; /* within the arguments if the command runs a program, else `listed` */
    size_t operand_count;
    const char *const *program; /* the words behind "--", if the command takes operands and a program */
    size_t program_count;
    const char *listed[LINE_OPERANDS_MAX];
};

/* What the arguments ask for. */
struct line_subject {
    bool help;                         /* --help or -h is among them, where options may be */
    const struct cli_command *command; /* or NULL: then see the next fields */
    const struct cli_group *group;     /* the words name a group, and nothing follows */
    size_t first;                      /* index of the command's first word, or the count */
    size_t words;                      /* how many words name the command or group */
};

/*
 * Finds the command. Common options may come before it, and --version may replace it. FLY_EUSAGE
 * for unknown words and for unknown options before the command; no words at all are no error.
 */
int line_find_subject(const struct cli_program *program, const char *const *arguments, size_t count,
                      struct line_subject *out_subject, struct fly_error *out_error);

/*
 * Separates options (--name value, --name=value, --flag; -n value, -nvalue, -f) from operands.
 * `--` ends the options; so does the first operand of a command that runs a program and has no
 * operands of its own. FLY_EUSAGE for unknown, doubled and incomplete options and for too many
 * operands. Do not copy `out_line`.
 */
int line_parse(const struct line_subject *subject, const char *const *arguments, size_t count,
               struct command_line *out_line, struct fly_error *out_error);

#endif
