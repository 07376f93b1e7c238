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
#include "cli/kit/table.h"

/*
 * What a command's run function gets: checked values, operands, output.
 *
 * Values are asked for by option name ("traces", also for what came from a
 * variable, a file or the default). Asking for a name that the command does not
 * have, or by the wrong type, is a defect and aborts. Texts live as long as the
 * call. Getters may be used from any thread, the rest from the main one.
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
    int choices[CLI_LIST_MAX]; /* index of each word in the option's choices, -1 for a path or without those
                                */
};

/* As the user wrote it; NULL when unset and without default. For every type. */
const char *cli_text(const struct cli_call *call, const char *name);

/* Of types CLI_INTEGER, CLI_REAL: the number; the option must have a default or be `cli_set`. */
int64_t cli_integer(const struct cli_call *call, const char *name);
double cli_real(const struct cli_call *call, const char *name);

/* Of type CLI_FLAG; false when unset. */
bool cli_flag(const struct cli_call *call, const char *name);

/* Of type CLI_CHOICE: the index in its choices, -1 when unset. */
int cli_choice(const struct cli_call *call, const char *name);

/* Of type CLI_LIST: its words; count 0 when unset. Never NULL. */
const struct cli_list *cli_list(const struct cli_call *call, const char *name);

/* Whether there is a value at all; whether somebody gave one, other than the default. */
bool cli_set(const struct cli_call *call, const char *name);
bool cli_given(const struct cli_call *call, const char *name);

/* Where the value came from, for messages: "--eta", "FLYBALL_ETA", "./flyball.ini:7", "default", "unset". */
const char *cli_origin(const struct cli_call *call, const char *name);
enum cli_source cli_source(const struct cli_call *call, const char *name);

size_t cli_operand_count(const struct cli_call *call);
const char *cli_operand(const struct cli_call *call, size_t index);

/* The program's words, of a command that has operands too: what stands behind "--". */
size_t cli_program_count(const struct cli_call *call);
const char *cli_program_word(const struct cli_call *call, size_t index);

/* The words by which the user called the command, "power set". */
const char *cli_words(const struct cli_call *call);

/* The status, 0 to 255, with which the program ends when the command's run returns 0; without this, 0. */
void cli_exit_with(const struct cli_call *call, int status);

/* The common options --format, and --color joined with what stdout is. */
enum table_format cli_format(const struct cli_call *call);
bool cli_color(const struct cli_call *call);

/*
 * Fills `out_error` with FLY_EUSAGE, the message, and a pointer to the help of
 * the command; `cli_value_error` does so for the value of an option that passed
 * the table but not the command, and says where it came from (FLY_ECONFIG for
 * variables and files):
 *
 *     bad value 'gtx' for option '--gpu': expected a GPU of the traces; ...
 */
__attribute__((format(printf, 3, 4))) int cli_usage(const struct cli_call *call, struct fly_error *out_error,
                                                    const char *format, ...);
int cli_value_error(const struct cli_call *call, const char *name, const char *value, const char *expected,
                    struct fly_error *out_error);

/*
 * Output on stdout; each may be called several times in the format `table`,
 * once otherwise. A failure (disk full, closed) is FLY_EWRITE.
 *
 * cli_emit_table   in the format of the call
 * cli_emit_json    a document of the command's own; takes `document`, whose
 *                  first member "schema" must be a text; NULL is FLY_ENOMEM
 * cli_emit_text    a text, of which what a terminal would take for a command is
 *                  replaced (harmless.h)
 */
int cli_emit_table(const struct cli_call *call, const struct table *table, struct fly_error *out_error);
int cli_emit_json(const struct cli_call *call, json_t *document, struct fly_error *out_error);
int cli_emit_text(const struct cli_call *call, const char *text, struct fly_error *out_error);

/* The streams themselves, for what none of these can do: output that goes on for as long as the command. */
FILE *cli_out(const struct cli_call *call);
FILE *cli_err(const struct cli_call *call);
bool cli_out_is_terminal(const struct cli_call *call);

/* "flyball: note: ..." on stderr, unless --quiet; "flyball: warning: ..." always. */
__attribute__((format(printf, 2, 3))) void cli_note(const struct cli_call *call, const char *format, ...);
__attribute__((format(printf, 2, 3))) void cli_warn(const struct cli_call *call, const char *format, ...);

/* "flyball: <text>" on stderr, without control characters: an error that does not end the call. */
void cli_say(const struct cli_call *call, const char *text);

/* Where a line that says how it goes may be drawn (status_line.h): standard error, or -1 where that is no
 * terminal or a dumb one, with NO_COLOR, and with --quiet. */
int cli_status_line_fd(const struct cli_call *call);

/* Starts a progress line of `total` units on stderr where that is wanted; ends with progress_end. */
void cli_progress_begin(const struct cli_call *call, struct progress *progress, const char *unit,
                        uint64_t total);

#endif
