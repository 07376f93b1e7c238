/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_COMMAND_H
#define FLYBALL_CLI_FRAME_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "shapes/meaning.h"

/*
 * Commands and options of the program as tables.
 *
 * One loop parses, checks, explains and documents these tables: the command line, the environment
 * variables, the configuration files, `flyball help`, the Markdown reference and the manual
 * pages. A command is one file `cmd_*.c` with one constant, named in the array of commands.c:
 *
 *     static const char *const generators[] = {"philox", "numpy", NULL};
 *     static const struct cli_option options[] = {
 *         {.name = "eta", .type = CLI_REAL, .placeholder = "WEIGHT", .minimum = 0, .maximum = 1,
 *          .default_text = "0.5", .key = "eta", .help = "Weight of energy against time in the score."},
 *         {.name = "generator", .type = CLI_CHOICE, .placeholder = "NAME", .choices = generators,
 *          .default_text = "philox", .key = "sim.generator", .help = "Source of random numbers."},
 *     };
 *
 *     const struct cli_command cmd_sim_job = {
 *         .words = "sim job",
 *         .summary = "replay a recurring job from recorded traces",
 *         .paragraphs = {"First paragraph.", "Second paragraph."},
 *         .options = options, .option_count = sizeof options / sizeof options[0],
 *         .examples = {{"flyball sim job --traces traces", "simulate every workload"}},
 *         .run = sim_job_run,
 *     };
 *
 * Everything is borrowed from static storage and constant.
 */

struct cli_call;

enum cli_type {
    CLI_TEXT,    /* any text that is not empty */
    CLI_CHOICE,  /* one of `choices` */
    CLI_LIST,    /* words separated by commas, each once; from `choices` if given, or `paths` */
    CLI_INTEGER, /* a whole number from minimum to maximum, both within 2^53 */
    CLI_REAL,    /* a finite number from minimum to maximum */
    CLI_FLAG,    /* present or absent; "yes" or "no" in variables and files */
};

struct cli_option {
    const char *name;  /* "gpu" is written --gpu */
    const char *alias; /* a second name, or NULL */
    char letter;       /* 'i' is written -i; '\0' for none */
    enum cli_type type;
    const char *placeholder;    /* of the value in help texts, "NAME"; NULL for a flag */
    double minimum;             /* of CLI_INTEGER and CLI_REAL: the range, always given; */
    double maximum;             /* -INFINITY and INFINITY leave a side of CLI_REAL open */
    bool above_minimum;         /* the minimum itself is outside the range */
    bool infinite;              /* CLI_REAL also accepts the word "inf" as INFINITY */
    const char *const *choices; /* of CLI_CHOICE and CLI_LIST, ends with NULL */
    bool paths;               /* CLI_LIST also accepts paths of shared objects: with a '/' or ending in .so */
    const char *default_text; /* the value if nothing else is given; NULL: unset */
    const char *key;          /* in configuration files, "sim.gpu"; NULL: command line only */
    bool sensitive; /* names code, an address, a token file or a file to write, or removes a protection: never
                       taken from the working directory's file */
    const char *help; /* one sentence, with its full stop, without the default */
    /* Where options of a command have this, 'help COMMAND' shows these alone, and the first paragraph. */
    bool often;
};

/* A table of options that several commands have. */
struct cli_options {
    const struct cli_option *rows;
    size_t count;
};
#define CLI_OPTIONS(rows)                      \
    {                                          \
        (rows), sizeof(rows) / sizeof(rows)[0] \
    }

struct cli_example {
    const char *command; /* the full command line */
    const char *effect;  /* what it does, without a full stop: "simulate every workload" */
};

enum { CLI_PARAGRAPHS_MAX = 8, CLI_EXAMPLES_MAX = 6, CLI_OUTPUTS_MAX = 4, CLI_SHARED_MAX = 16 };

struct cli_command {
    const char *words;   /* "sim job" */
    const char *summary; /* one line, lower case, without a full stop */
    const char *paragraphs[CLI_PARAGRAPHS_MAX];
    const struct cli_option *options; /* of this command alone */
    size_t option_count;
    const struct cli_options *shared[CLI_SHARED_MAX]; /* more options of its own, after those */
    const char *operands;                             /* in the synopsis, "[COMMAND...]"; NULL: takes none */
    size_t operand_maximum;

    /*
     * The first operand and all behind it are a program's command line: options end there, and there
     * may be any number of operands. If operand_maximum is not 0, the program is what stands behind
     * "--", and may be missing. With FLYBALL_DISABLE=1 no variable and no file is read for the
     * command, so that no fault in them keeps the program from running.
     */
    bool runs_program;

    const char *exit_status; /* a paragraph on statuses of its own, or NULL */
    struct cli_example examples[CLI_EXAMPLES_MAX];
    const struct quantities *outputs[CLI_OUTPUTS_MAX]; /* what its figures mean, for help --quantities */
    bool ignores_settings; /* reads no variable and no file, so that it works if those are broken */

    /*
     * Does the work. Reads options and operands by the getters of cli/frame/call.h; all are valid by
     * now. Returns 0, or a negative FLY_E code and the text that goes to stderr after "flyball: ".
     */
    int (*run)(const struct cli_call *call, struct fly_error *out_error);
};

/* The first word of several commands, "sim": has a line of its own in help. */
struct cli_group {
    const char *words;
    const char *summary;
};

/* A row of the front page: what a beginner looks for, and the commands for it. */
struct cli_section {
    const char *title; /* "train"; "" if it continues the row above */
    const char *words; /* of a command or a group */
    const char *summary;
};

/* An environment variable that does not stand for a key. */
struct cli_variable {
    const char *name;
    const char *help; /* one sentence */
};

/* The tables of the program, each list with its end mark. */
struct cli_program {
    const struct cli_command *const *commands; /* end with NULL */
    const struct cli_group *groups;            /* end with words NULL */
    const struct cli_section *sections;        /* of the front page, end with words NULL; NULL: it has none */
    const struct cli_variable *variables;      /* end with name NULL */
};

/* The command's own options and those of its tables; NULL behind the last. */
const struct cli_option *command_own_option(const struct cli_command *command, size_t index);

/* Options that every command has, after its own. */
extern const struct cli_option cli_common_options[];
extern const size_t cli_common_option_count;

/*
 * The options of a command: its own first, then the common ones, except those that its own
 * replace by name.
 */
size_t command_option_count(const struct cli_command *command);
const struct cli_option *command_option(const struct cli_command *command, size_t index);

/* Return the index of the option with that name or alias of `length` bytes, or with that letter; or -1. */
int command_option_index(const struct cli_command *command, const char *name, size_t length);
int command_letter_index(const struct cli_command *command, char letter);

/*
 * Return the command or the group that the first words of `words` name, or NULL. `out_used` is
 * how many words it took; untouched if NULL.
 */
const struct cli_command *command_find(const struct cli_program *program, const char *const *words,
                                       size_t count, size_t *out_used);
const struct cli_group *group_find(const struct cli_program *program, const char *const *words, size_t count,
                                   size_t *out_used);

/* Returns whether the command belongs to the group. */
bool command_in_group(const struct cli_command *command, const struct cli_group *group);

/* Fills in FLY_EUSAGE for words that are no command, with the nearest command; count > 0. */
int command_unknown(const struct cli_program *program, const char *const *words, size_t count,
                    struct fly_error *out_error);

#endif
