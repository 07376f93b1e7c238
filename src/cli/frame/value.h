/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_VALUE_H
#define FLYBALL_CLI_FRAME_VALUE_H

#include "base/buffer.h"
#include "cli/frame/call.h"

/* The value of an option from any source, checked by the option's type. */
struct cli_value {
    enum cli_source source;
    const char *origin; /* "--eta", "FLYBALL_ETA", "./flyball.ini:7", "default", "unset"; borrowed */
    const char *text;   /* borrowed; NULL when unset */
    double real;
    int64_t integer;
    bool flag;
    int choice; /* -1 when unset */
    struct cli_list list;
    char *list_text; /* owned: the words of the list point into it */
};

enum { VALUE_TEXT_MAX = 4096 };

void value_init(struct cli_value *value);
void value_deinit(struct cli_value *value);

/*
 * Reads `text` as the option's type. If it does not fit: FLY_EUSAGE for an option of the command
 * line, else FLY_ECONFIG, with a message that names the origin, the text and what was expected.
 * `words` are the command's, for the pointer to its help; NULL for none. `text` and `origin` are
 * borrowed as long as the value lives.
 */
int value_set(struct cli_value *value, const struct cli_option *option, enum cli_source source,
              const char *origin, const char *text, const char *words, struct fly_error *out_error);

/* Makes the message of value_set for a text when something else was `expected`. */
int value_error(const struct cli_option *option, enum cli_source source, const char *origin, const char *text,
                const char *expected, const char *words, struct fly_error *out_error);

/* Describes what an option's value must be: "a number from 0 to 1"; nothing for a text or a flag. */
void value_describe(const struct cli_option *option, struct buffer *out_text);

/* Returns whether the text means yes or no, and which. */
bool value_parse_flag(const char *text, bool *out_flag);

#endif
