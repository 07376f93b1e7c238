/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/frame/help_parts.h"

#include <ctype.h>

#include "cli/frame/value.h"

const char *const help_precedence[] = {
    "an option of the command line",
    "a variable of the environment",
    "the file flyball.ini of the working directory",
    "the user's file",
    "the system's file",
    "the default",
    NULL,
};

const char *const help_file_paragraphs[] = {
    "Settings that are the same for many calls can stand in configuration files. A file has lines of the "
    "form "
    "'key = value'. Keys before the first section and in the section [flyball] are written as they are; a "
    "key "
    "with a dot, such as a.b, stands as b in the section [a]. A line that begins with # or ; is a comment, "
    "and so is what follows a ; behind a blank. A file may be missing.",
    "An unknown key, a key that stands twice in a file, a value that does not fit, a line that is too long "
    "and a file larger than 1 MiB are errors that name the file and the line.",
    "Flyball reads a file only if you or root own it and nobody else may write it: not a file that anybody "
    "may "
    "write, nor one that a group with others than its owner may write. A file of an owner whom this user "
    "namespace does not know counts on a read-only mount. A link counts if you or root made it. Any other "
    "file is passed over with a warning.",
    "A flag is also written --NAME=yes, --NAME=no or --no-NAME, so that it can be taken back where a file or "
    "a "
    "variable sets it.",
    "The file of the working directory comes along with whatever stands there, such as a clone of somebody's "
    "repository. A key that names a library, an address, a file of tokens, or what is written, or that gives "
    "up a protection, does not count in it: Flyball says so and goes on without.",
    NULL,
};

const char *const help_lock_paragraphs[] = {
    "The system's file can lock keys, in its section [lock]. A locked key has the value of the system's file "
    "or the default: variables and other files that set it are passed over with a warning, and an option "
    "that "
    "sets it is refused.",
    NULL,
};

const char *const help_lock_example = "format = csv\n\n[lock]\nformat = yes\n";

const char *const help_variable_paragraphs[] = {
    "Every key has a variable: FLYBALL_ and the key in upper case, with underscores for dots. A variable "
    "that "
    "is empty counts as not set. An unknown variable that begins with FLYBALL_ is warned of.",
    NULL,
};

const char *const help_sensitive = "Not from the working directory's file.";

/* Appends a clause as a sentence. */
static void put_sentence(const char *clause, struct buffer *out)
{
    buffer_printf(out, "%c%s.", toupper((unsigned char)clause[0]), clause + 1);
}

void help_option_facts(const struct cli_option *option, struct buffer *out)
{
    struct buffer clause;

    buffer_init(&clause, VALUE_TEXT_MAX);
    value_describe(option, &clause);
    if (clause.length > 0)
        put_sentence(clause.data, out);
    if (option->default_text != NULL)
        buffer_printf(out, "%sDefault: %s.", clause.length > 0 ? " " : "", option->default_text);
    buffer_deinit(&clause);
}

void help_option_term(const struct cli_option *option, struct buffer *out)
{
    if (option->letter != '\0')
        buffer_printf(out, "-%c, ", option->letter);
    buffer_printf(out, "--%s%s%s", option->name, option->placeholder != NULL ? " " : "",
                  option->placeholder != NULL ? option->placeholder : "");
    if (option->alias != NULL)
        buffer_printf(out, ", --%s", option->alias);
}

struct exit_row {
    int status;
    const char *reason;
};

#define EXIT_ROW(name, code, exit_status, http_status, sentence) {exit_status, sentence},
static const struct exit_row exit_rows[] = {{0, "success"}, FLY_ERROR_MAP(EXIT_ROW)};
#undef EXIT_ROW

void help_exit_reasons(int status, struct buffer *out)
{
    const char *separator = "";

    for (size_t i = 0; i < sizeof exit_rows / sizeof exit_rows[0]; i++) {
        if (exit_rows[i].status != status)
            continue;
        buffer_printf(out, "%s%s", separator, exit_rows[i].reason);
        separator = "; or ";
    }
}

void help_page_name(const struct cli_command *command, struct buffer *out)
{
    buffer_puts(out, "flyball-");
    for (const char *letter = command->words; *letter != '\0'; letter++)
        buffer_append(out, *letter == ' ' ? "-" : letter, 1);
}
