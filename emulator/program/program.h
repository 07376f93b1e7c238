/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_PROGRAM_PROGRAM_H
#define FLYBALL_EMULATOR_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "emulator/control.h"

/*
 * The program flyball-emulator: a constant for each of its commands, in a file program_NAME.c, all listed in
 * the array of program.c. Options are rows of tables; `start` and `run` also take the rows of the emulator's
 * settings.
 */
enum { PROGRAM_OPTIONS_MAX = 16 };

struct program_option {
    const char *name;        /* "batch-size" is written --batch-size */
    const char *placeholder; /* of its value; NULL for a flag */
    const char *help;        /* one sentence, with the default */
};

struct program_call;

struct program_command {
    const char *name;
    const char *operands; /* in the synopsis, "[--] COMMAND..."; NULL: takes none */
    const char *summary;  /* one line, lower case, without a full stop */
    const char *text;     /* what else to know; NULL for nothing */
    struct program_option options[PROGRAM_OPTIONS_MAX]; /* ended by a NULL name */
    bool settings;                                      /* also takes the emulator's settings */

    /* Returns the exit status, or a negative FLY_E code with its text. */
    int (*run)(const struct program_call *call, struct fly_error *out_error);
};

struct program_call {
    const struct program_command *command;
    const char *values[PROGRAM_OPTIONS_MAX]; /* by the command's rows; a flag's is "yes"; NULL: not given */
    const char *state;                       /* --state, or NULL */
    struct emulator_settings settings;
    char *const *operands; /* ends with NULL */
    int operand_count;
};

/* The value of an option; NULL when it was not given. */
const char *program_value(const struct program_call *call, const char *name);

/* The value as a number from `lowest` to `highest`; `otherwise` when it was not given. Returns FLY_EUSAGE. */
int program_number(const struct program_call *call, const char *name, double lowest, double highest,
                   double otherwise, double *out_value, struct fly_error *out_error);

/*
 * The GPUs that a value such as "0,2" or "all" names, as bits; `otherwise` when the option was not given.
 * Returns FLY_EUSAGE for a malformed value, FLY_ENOTFOUND for a GPU that does not exist.
 */
int program_gpus(const struct program_call *call, const struct emulator *emulator, const char *otherwise,
                 unsigned *out_bits, struct fly_error *out_error);

/* Finds the directory with the emulator's libnvidia-ml.so.1: the program's own, or the installed one. */
int program_library_directory(char out_path[EMULATOR_PATH_MAX], struct fly_error *out_error);

/* Prints "flyball-emulator: ..." on standard error. */
__attribute__((format(printf, 1, 2))) void program_say(const char *format, ...);

/* Prints the manual page on standard output. */
int program_print_manual(struct fly_error *out_error);

/* All commands, ended by NULL, and the options of each, ended by a NULL name. */
extern const struct program_command *const program_commands[];
extern const struct program_option program_common_options[];

extern const struct program_command program_library;
extern const struct program_command program_mps;
extern const struct program_command program_run;
extern const struct program_command program_set;
extern const struct program_command program_show;
extern const struct program_command program_start;
extern const struct program_command program_stop;
extern const struct program_command program_train;

#endif
