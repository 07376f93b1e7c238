/* SPDX-License-Identifier: Apache-2.0 */
/* Help for the terminal, wrapped for 80 columns. */
#include "cli/frame/help.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/frame/help_parts.h"
#include "cli/kit/text_layout.h"

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
    for (size_t i = 0; i < command->option_count; i++) {
        if (command->options[i].often)
            return true;
    }
    return false;
}

static void put_own_options(const struct page *page, const struct cli_command *command, bool short_form)
{
    size_t left_out = 0;

    if (command->option_count == 0)
        return;
    put_heading(page, short_form ? "Options used often:" : "Options:");
    for (size_t i = 0; i < command->option_count; i++) {
        if (!short_form || command->options[i].often)
            put_option(page, &command->options[i]);
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
    for (size_t i = command->option_count; i < command_option_count(command); i++)
        put_option(page, command_option(command, i));
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
