/* SPDX-License-Identifier: Apache-2.0 */
/* Help for the terminal, wrapped for 80 columns. */
#include "cli/frame/help.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/frame/value.h"
#include "cli/kit/text_layout.h"

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

enum { LINE_WIDTH = 80, OPTION_COLUMN = 26, FACTS_MAX = 4096 };

struct page {
    const struct cli_program *program;
    bool all, color;
    struct buffer *out;
};

static void put_heading(const struct page *page, const char *text)
{
    buffer_printf(page->out, page->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

/* Writes a term and its meaning side by side, or below each other if the term is long. */
static void put_term(const struct page *page, const char *term, const char *text)
{
    int width = OPTION_COLUMN - 2;

    if (strlen(term) + 2 > (size_t)width)
        buffer_printf(page->out, "  %s\n%*s", term, OPTION_COLUMN, "");
    else
        buffer_printf(page->out, "  %-*s", width, term);
    text_wrap(page->out, text, OPTION_COLUMN, OPTION_COLUMN, LINE_WIDTH);
}

static void put_paragraph(const struct page *page, const char *text)
{
    buffer_puts(page->out, "\n");
    text_wrap(page->out, text, 0, 0, LINE_WIDTH);
}

static void put_option(const struct page *page, const struct cli_option *option)
{
    struct buffer term;
    struct buffer text;

    buffer_init(&term, FACTS_MAX);
    buffer_init(&text, FACTS_MAX);
    help_option_term(option, &term);
    buffer_printf(&text, "%s ", option->help);
    help_option_facts(option, &text);
    if (option->key != NULL)
        buffer_printf(&text, " Key: %s.", option->key);
    put_term(page, term.data, text.data);
    buffer_deinit(&term);
    buffer_deinit(&text);
}

/* Whether the command has so many options that some are marked as used often. */
static bool has_often(const struct cli_command *command)
{
    const struct cli_option *option;

    for (size_t i = 0; (option = command_own_option(command, i)) != NULL; i++) {
        if (option->often)
            return true;
    }
    return false;
}

static void put_own_options(const struct page *page, const struct cli_command *command, bool short_form)
{
    const struct cli_option *option;
    size_t left_out = 0;

    if (command_own_option(command, 0) == NULL)
        return;
    put_heading(page, short_form ? "Options used often:" : "Options:");
    for (size_t i = 0; (option = command_own_option(command, i)) != NULL; i++) {
        if (!short_form || option->often)
            put_option(page, option);
        else
            left_out++;
    }
    if (short_form)
        buffer_printf(page->out, "\nThere is more, and %zu more options: 'flyball help %s --all'.\n",
                      left_out, command->words);
}

static void put_command(const struct page *page, const struct cli_command *command)
{
    const struct cli_example *example = command->examples;
    bool short_form = !page->all && has_often(command);

    buffer_printf(page->out, "flyball %s - %s\n", command->words, command->summary);
    put_heading(page, "Usage:");
    buffer_printf(page->out, "  flyball %s [OPTION...]%s%s\n", command->words,
                  command->operands != NULL ? " " : "", command->operands != NULL ? command->operands : "");
    for (size_t i = 0; i < (short_form ? 1 : CLI_PARAGRAPHS_MAX) && command->paragraphs[i] != NULL; i++)
        put_paragraph(page, command->paragraphs[i]);
    put_own_options(page, command, short_form);
    put_heading(page, "Options of every command:");
    for (size_t i = 0; i < command_option_count(command); i++) {
        if (command_own_option(command, i) == NULL)
            put_option(page, command_option(command, i));
    }
    if (command->exit_status != NULL) {
        put_heading(page, "Exit status:");
        buffer_puts(page->out, "  ");
        text_wrap(page->out, command->exit_status, 2, 2, LINE_WIDTH);
    }
    put_heading(page, "Examples:");
    for (; example < command->examples + CLI_EXAMPLES_MAX && example->command != NULL; example++)
        buffer_printf(page->out, "  %s\n      %s\n", example->command, example->effect);
}

static void put_group(const struct page *page, const struct cli_group *group)
{
    buffer_printf(page->out, "flyball %s - %s\n", group->words, group->summary);
    put_heading(page, "Commands:");
    for (size_t i = 0; page->program->commands[i] != NULL; i++) {
        const struct cli_command *command = page->program->commands[i];

        if (command_in_group(command, group))
            put_term(page, command->words, command->summary);
    }
    buffer_printf(page->out, "\n'flyball help %s COMMAND' explains a command.\n", group->words);
}

static void put_exit_statuses(const struct page *page)
{
    struct buffer reasons;
    char term[8];

    put_heading(page, "Exit status:");
    buffer_init(&reasons, FACTS_MAX);
    for (int status = 0; status <= HELP_EXIT_MAX; status++) {
        buffer_clear(&reasons);
        help_exit_reasons(status, &reasons);
        snprintf(term, sizeof term, "%d", status);
        if (reasons.length > 0)
            put_term(page, term, reasons.data);
    }
    buffer_deinit(&reasons);
}

static const char title[] = "flyball - save energy, time and carbon in training neural networks\n";

/* Writes rows of a heading, a word and what it does; each fits on a line. */
static void put_front(const struct page *page)
{
    buffer_printf(page->out, "%sUsage: flyball COMMAND [OPTION...]\n\n", title);
    for (const struct cli_section *row = page->program->sections; row->words != NULL; row++)
        buffer_printf(page->out, page->color ? "\033[1m%-9s\033[0m %-9s %s\n" : "%-9s %-9s %s\n", row->title,
                      row->words, row->summary);
    buffer_puts(page->out, "\nAlso: selftest, token, config, version. 'flyball help COMMAND' explains a\n"
                           "command, 'flyball help --all' everything.\n");
}

static void put_everything(const struct page *page)
{
    buffer_puts(page->out, title);
    put_heading(page, "Usage:");
    buffer_puts(page->out, "  flyball COMMAND [OPTION...]\n");
    put_heading(page, "Commands:");
    for (size_t i = 0; page->program->commands[i] != NULL; i++)
        put_term(page, page->program->commands[i]->words, page->program->commands[i]->summary);
    put_heading(page, "Options of every command:");
    for (size_t i = 0; i < cli_common_option_count; i++)
        put_option(page, &cli_common_options[i]);
    put_heading(page, "Variables:");
    put_paragraph(page, help_variable_paragraphs[0]);
    buffer_puts(page->out, "\n");
    for (const struct cli_variable *variable = page->program->variables; variable->name != NULL; variable++)
        put_term(page, variable->name, variable->help);
    put_exit_statuses(page);
    buffer_puts(page->out, "\n'flyball help COMMAND' explains a command.\n");
}

int help_show(const struct cli_program *program, const char *const *words, size_t count, bool all, bool color,
              struct buffer *out, struct fly_error *out_error)
{
    struct page page = {program, all, color, out};
    size_t used = 0;
    const struct cli_command *command = command_find(program, words, count, &used);
    const struct cli_group *group = command == NULL ? group_find(program, words, count, &used) : NULL;

    if (used != count)
        return command_unknown(program, words, count, out_error);
    if (command != NULL)
        put_command(&page, command);
    else if (group != NULL)
        put_group(&page, group);
    else
        (program->sections != NULL && !all ? put_front : put_everything)(&page);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}
