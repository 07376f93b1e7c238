/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_CALL_H
#define FLYBALL_CLI_FRAME_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/frame/command.h"
#include "cli/kit/progress.h"
#include "shapes/table.h"

/*
 * What a command's run function gets: checked values, operands, output.
 *
 * Ask for values by option name, "traces"; it does not matter whether the value came from the
 * command line, a variable, a file or the default. To ask for a name that the command does not
 * have, or by the wrong type, is a defect and aborts. Texts live as long as the call. Getters may
 * be used from any thread, the rest only from the main thread.
 *
 *     const char *traces = cli_text(call, "traces");
 *
 *     if (traces == NULL)
 *         return cli_usage(call, out_error, "no trace directory given; name one with --traces");
 *     for (size_t i = 0; i < cli_list(call, "policy")->count; i++)
 *         ...
 *     return cli_emit_table(call, table, out_error);
 */

enum cli_source { CLI_UNSET, CLI_DEFAULT, CLI_FILE, CLI_VARIABLE, CLI_OPTION };

enum { CLI_LIST_MAX = 64 };

struct cli_list {
    size_t count;
    const char *words[CLI_LIST_MAX];
    int choices[CLI_LIST_MAX]; /* index of each word in the option's choices; -1 for a path or without choices
                                */
};

/* The value as the user wrote it; NULL if unset and without default. For every type. */
const char *cli_text(const struct cli_call *call, const char *name);

/* For types CLI_INTEGER and CLI_REAL: the number. The option must have a default or be `cli_set`. */
int64_t cli_integer(const struct cli_call *call, const char *name);
double cli_real(const struct cli_call *call, const char *name);

/* For type CLI_FLAG; false if unset. */
bool cli_flag(const struct cli_call *call, const char *name);

/* For type CLI_CHOICE: the index in its choices, -1 if unset. */
int cli_choice(const struct cli_call *call, const char *name);

/* For type CLI_LIST: its words; count 0 if unset. Never NULL. */
const struct cli_list *cli_list(const struct cli_call *call, const char *name);

/*
 * cli_set: whether there is a value at all. cli_given: whether the user gave one, so that it is
 * not the default.
 */
bool cli_set(const struct cli_call *call, const char *name);
bool cli_given(const struct cli_call *call, const char *name);

/*
 * Return where the value came from. cli_origin is for messages: "--eta", "FLYBALL_ETA",
 * "./flyball.ini:7", "default", "unset".
 */
const char *cli_origin(const struct cli_call *call, const char *name);
enum cli_source cli_source(const struct cli_call *call, const char *name);

size_t cli_operand_count(const struct cli_call *call);
const char *cli_operand(const struct cli_call *call, size_t index);

/* The words behind "--": the program's command line, for a command that has operands too. */
size_t cli_program_count(const struct cli_call *call);
const char *cli_program_word(const struct cli_call *call, size_t index);

/* Returns the words by which the user called the command, "power set". */
const char *cli_words(const struct cli_call *call);

/*
 * Sets the status, 0 to 255, with which the program ends if the command's run returns 0; without
 * this it is 0.
 */
void cli_exit_with(const struct cli_call *call, int status);

/* The common options --format and --color; cli_color also considers what stdout is. */
enum table_format cli_format(const struct cli_call *call);
bool cli_color(const struct cli_call *call);

/*
 * Fills `out_error` with FLY_EUSAGE, the message, and a pointer to the command's help. Use
 * `cli_value_error` for the value of an option that passed the table but not the command's own
 * check; it says where the value came from (FLY_ECONFIG for variables and files):
 *
 *     bad value 'gtx' for option '--gpu': expected a GPU of the traces; ...
 */
__attribute__((format(printf, 3, 4))) int cli_usage(const struct cli_call *call, struct fly_error *out_error,
                                                    const char *format, ...);
int cli_value_error(const struct cli_call *call, const char *name, const char *value, const char *expected,
                    struct fly_error *out_error);

/*
 * Output on stdout. Each may be called several times in the format `table`, otherwise once. A
 * failure (disk full, closed) is FLY_EWRITE.
 *
 *     cli_emit_table   in the format of the call
 *     cli_emit_json    a document of the command's own; takes `document`, whose
 *                      first member "schema" must be a text; NULL is FLY_ENOMEM
 *     cli_emit_text    a text; replaces what a terminal would take as a command
 *                      (harmless.h)
 */
int cli_emit_table(const struct cli_call *call, const struct table *table, struct fly_error *out_error);
int cli_emit_json(const struct cli_call *call, json_t *document, struct fly_error *out_error);
int cli_emit_text(const struct cli_call *call, const char *text, struct fly_error *out_error);

/*
 * The streams themselves, for output that none of these can do: output that goes on as long as
 * the command runs.
 */
FILE *cli_out(const struct cli_call *call);
FILE *cli_err(const struct cli_call *call);
bool cli_out_is_terminal(const struct cli_call *call);

/* Writes "flyball: note: ..." to stderr, unless --quiet; "flyball: warning: ..." always. */
__attribute__((format(printf, 2, 3))) void cli_note(const struct cli_call *call, const char *format, ...);
__attribute__((format(printf, 2, 3))) void cli_warn(const struct cli_call *call, const char *format, ...);

/* Writes "flyball: <text>" to stderr, without control characters: an error that does not end the call. */
void cli_say(const struct cli_call *call, const char *text);

/*
 * Returns where a status line may be drawn (progress.h): standard error, or -1 if that is no
 * terminal or a dumb one, with NO_COLOR, and with --quiet.
 */
int cli_status_line_fd(const struct cli_call *call);

/* Starts a progress line of `total` units on stderr if one is wanted; end it with progress_end. */
void cli_progress_begin(const struct cli_call *call, struct progress *progress, const char *unit,
                        uint64_t total);

#endif
