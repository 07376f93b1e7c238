/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_HELP_PARTS_H
#define FLYBALL_CLI_FRAME_HELP_PARTS_H

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

#endif
