/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_PARSE_H
#define FLYBALL_CLI_FRAME_PARSE_H

#include "cli/frame/command.h"

/*
 * The command line taken apart; values are still texts. Everything is borrowed
 * from the arguments.
 */
enum { LINE_OPTIONS_MAX = 64, LINE_OPERANDS_MAX = 4096, LINE_SPELLING_MAX = 48 };

struct line_option {
    const char *text;                 /* NULL: not given */
    char spelling[LINE_SPELLING_MAX]; /* "--gpu-model", as it was typed */
};

struct command_line {
    const struct cli_command *command;
    struct line_option options[LINE_OPTIONS_MAX]; /* by index of the command's options */
    const char *const *operands; /* of the arguments where the command runs a program, or `listed` */
    size_t operand_count;
    const char *const *program; /* what stands behind "--" where a program may and operands too */
    size_t program_count;
    const char *listed[LINE_OPERANDS_MAX];
};

/* What the arguments are about. */
struct line_subject {
    bool help;                         /* --help or -h stands among them, where options may */
    const struct cli_command *command; /* or NULL: then the next two may help */
    const struct cli_group *group;     /* the words are a group's, and nothing follows */
    size_t first;                      /* index of the command's first word, or the count */
    size_t words;                      /* how many words stand there: those of the command or group */
};

/*
 * Finds the command; common options may stand before it, and --version for it.
 * Unknown words and unknown options before the command are FLY_EUSAGE; no words
 * at all are not an error.
 */
int line_find_subject(const struct cli_program *program, const char *const *arguments, size_t count,
                      struct line_subject *out_subject, struct fly_error *out_error);

/*
 * Takes the options (--name value, --name=value, --flag; -n value, -nvalue, -f)
 * and operands apart; `--` ends the options, and so does the first operand of a
 * command that runs a program and has no operands of its own. Unknown, doubled and incomplete options and too
 * many operands are FLY_EUSAGE. `out_line` is not to be copied.
 */
int line_parse(const struct line_subject *subject, const char *const *arguments, size_t count,
               struct command_line *out_line, struct fly_error *out_error);

#endif
