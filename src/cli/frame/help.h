/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_HELP_H
#define FLYBALL_CLI_FRAME_HELP_H

#include "base/buffer.h"
#include "cli/frame/command.h"

/* Sentences that help, Markdown and manual pages share. */

/* The sources of the configuration, strongest first; ends with NULL. */
extern const char *const help_precedence[];

/* About configuration files, locks and variables; each ends with NULL. */
extern const char *const help_file_paragraphs[];

extern const char *const help_lock_paragraphs[];

extern const char *const help_lock_example;

extern const char *const help_variable_paragraphs[];

/* A sentence about a key that the working directory's file may not set. */
extern const char *const help_sensitive;

/* Writes what a value must be and its default: "A number from 0 to 1. Default: 0.5." */
void help_option_facts(const struct cli_option *option, struct buffer *out);

/* Writes the option as users type it, with its alias: "-i, --gpus GPUS". */
void help_option_term(const struct cli_option *option, struct buffer *out);

/* Writes why a program ends with this status, "a; or b"; appends nothing if no program does. */
void help_exit_reasons(int status, struct buffer *out);

enum { HELP_EXIT_MAX = 255 };

/* "flyball-sim-job" */
void help_page_name(const struct cli_command *command, struct buffer *out);

/*
 * Writes what the tables of commands say, in three forms. All functions append to `out`; check
 * its `error` at the end.
 */
enum { HELP_TEXT_MAX = 1 << 22 };

/*
 * For the terminal: the command or group of these words; without words the front page, which fits
 * on a screen, if the program has one. `all`: a command with all its options, and without words all
 * commands, common options, variables and exit statuses. FLY_EUSAGE for other words.
 */
int help_show(const struct cli_program *program, const char *const *words, size_t count, bool all, bool color,
              struct buffer *out, struct fly_error *out_error);

/* The whole reference as Markdown. */
void help_markdown(const struct cli_program *program, struct buffer *out);

/* The meaning of every figure that the commands print, as Markdown. */
void help_quantities(const struct cli_program *program, struct buffer *out);

/* Tables of that page, "Of a device: ..."; those that follow each other and are of the same are one. */
void help_quantities_tables(const struct quantities *const *tables, size_t count, struct buffer *out);

/*
 * A manual page in mdoc: "flyball.1", "flyball-sim-job.1" for every command, "flyball.ini.5".
 * `system_path` is where this build looks for the system's file. FLY_ENOTFOUND for other pages.
 */
int help_man(const struct cli_program *program, const char *page, const char *system_path, struct buffer *out,
             struct fly_error *out_error);

#endif
