/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the reference as Markdown. It is installed as a page, so it says nothing that
 * differs between builds: the system's file has its usual name here.
 */
#include <string.h>

#include "cli/frame/help.h"
#include "cli/frame/settings.h"

enum { FACTS_MAX = 4096 };

/* Writes a text so that no character has a meaning in Markdown. */
static void put_plain(const char *text, struct buffer *out)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\`*_<>[]|", *text) != NULL)
            buffer_puts(out, "\\");
        buffer_append(out, text, 1);
    }
}

static void put_paragraph(const char *text, struct buffer *out)
{
    put_plain(text, out);
    buffer_puts(out, "\n\n");
}

static void put_paragraphs(const char *const *texts, struct buffer *out)
{
    for (; *texts != NULL; texts++)
        put_paragraph(*texts, out);
}

static void put_option(const struct cli_option *option, struct buffer *out)
{
    char variable[KEY_VARIABLE_MAX];
    struct buffer facts;

    buffer_init(&facts, FACTS_MAX);
    help_option_facts(option, &facts);
    buffer_puts(out, "- ");
    if (option->letter != '\0')
        buffer_printf(out, "`-%c`, ", option->letter);
    buffer_printf(out, "`--%s%s%s`", option->name, option->placeholder != NULL ? " " : "",
                  option->placeholder != NULL ? option->placeholder : "");
    if (option->alias != NULL)
        buffer_printf(out, ", `--%s`", option->alias);
    buffer_puts(out, ": ");
    put_plain(option->help, out);
    buffer_puts(out, facts.length > 0 ? " " : "");
    put_plain(facts.data, out);
    if (option->key != NULL)
        buffer_printf(out, " Key `%s`, variable `%s`.", option->key, key_variable(option->key, variable));
    buffer_puts(out, "\n");
    buffer_deinit(&facts);
}

static void put_options(const char *heading, const struct cli_command *command, struct buffer *out)
{
    const struct cli_option *option = command_own_option(command, 0);

    if (option == NULL)
        return;
    buffer_printf(out, "%s\n\n", heading);
    for (size_t i = 1; option != NULL; option = command_own_option(command, i++))
        put_option(option, out);
    buffer_puts(out, "\n");
}

static void put_examples(const struct cli_command *command, struct buffer *out)
{
    const struct cli_example *example = command->examples;

    buffer_puts(out, "Examples:\n\n");
    for (; example < command->examples + CLI_EXAMPLES_MAX && example->command != NULL; example++) {
        buffer_printf(out, "- `%s`: ", example->command);
        put_plain(example->effect, out);
        buffer_puts(out, "\n");
    }
    buffer_puts(out, "\n");
}

static void put_command(const struct cli_command *command, struct buffer *out)
{
    buffer_printf(out, "## flyball %s\n\n    flyball %s [OPTION...]%s%s\n\n", command->words, command->words,
                  command->operands != NULL ? " " : "", command->operands != NULL ? command->operands : "");
    for (size_t i = 0; i < CLI_PARAGRAPHS_MAX && command->paragraphs[i] != NULL; i++)
        put_paragraph(command->paragraphs[i], out);
    put_options("Options:", command, out);
    if (command->exit_status != NULL) {
        buffer_puts(out, "Exit status: ");
        put_paragraph(command->exit_status, out);
    }
    put_examples(command, out);
}

static void put_command_list(const struct cli_program *program, struct buffer *out)
{
    for (size_t i = 0; program->commands[i] != NULL; i++) {
        buffer_printf(out, "- `flyball %s`: ", program->commands[i]->words);
        put_plain(program->commands[i]->summary, out);
        buffer_puts(out, "\n");
    }
    buffer_puts(out, "\n");
}

static void put_keys(const struct cli_program *program, struct buffer *out)
{
    char variable[KEY_VARIABLE_MAX];
    struct key_table keys;

    keys_collect(program, &keys);
    buffer_puts(out, "| Key | Variable | Default | Meaning |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < keys.count; i++) {
        const struct cli_option *option = keys.options[i];

        buffer_printf(out, "| `%s` | `%s` | %s | ", option->key, key_variable(option->key, variable),
                      option->default_text != NULL ? option->default_text : "unset");
        put_plain(option->help, out);
        buffer_puts(out, option->sensitive ? " " : "");
        put_plain(option->sensitive ? help_sensitive : "", out);
        buffer_puts(out, " |\n");
    }
    buffer_puts(out, "\n");
}

static void put_configuration(const struct cli_program *program, struct buffer *out)
{
    buffer_puts(out, "## Configuration\n\nWhere a value comes from, the strongest first:\n\n");
    for (size_t i = 0; help_precedence[i] != NULL; i++)
        buffer_printf(out, "%zu. %s\n", i + 1, help_precedence[i]);
    buffer_puts(out, "\nThe user's file is `$XDG_CONFIG_HOME/flyball/flyball.ini`, or "
                     "`~/.config/flyball/flyball.ini` without that variable; the system's file is normally "
                     "`/etc/flyball/flyball.ini`.\n\n");
    put_paragraphs(help_file_paragraphs, out);
    put_paragraphs(help_lock_paragraphs, out);
    buffer_printf(out, "```ini\n%s```\n\n", help_lock_example);
    put_keys(program, out);
    buffer_puts(out, "## Variables\n\n");
    put_paragraphs(help_variable_paragraphs, out);
    for (const struct cli_variable *variable = program->variables; variable->name != NULL; variable++) {
        buffer_printf(out, "- `%s`: ", variable->name);
        put_plain(variable->help, out);
        buffer_puts(out, "\n");
    }
}

static void put_exit_statuses(struct buffer *out)
{
    struct buffer reasons;

    buffer_init(&reasons, FACTS_MAX);
    buffer_puts(out, "\n## Exit status\n\n");
    for (int status = 0; status <= HELP_EXIT_MAX; status++) {
        buffer_clear(&reasons);
        help_exit_reasons(status, &reasons);
        if (reasons.length > 0)
            buffer_printf(out, "- %d: %s\n", status, reasons.data);
    }
    buffer_deinit(&reasons);
}

void help_markdown(const struct cli_program *program, struct buffer *out)
{
    buffer_puts(out, "# The program flyball\n\n"
                     "This page is the output of `flyball help --markdown`.\n\n");
    put_command_list(program, out);
    for (size_t i = 0; program->commands[i] != NULL; i++)
        put_command(program->commands[i], out);
    put_options("## Options of every command",
                &(struct cli_command){.options = cli_common_options, .option_count = cli_common_option_count},
                out);
    put_configuration(program, out);
    put_exit_statuses(out);
}

/* ---- what figures mean ---- */

static const char quantities_head[] =
    "# What the figures mean\n\n"
    "This page is the output of `flyball help --quantities`. For every command that puts out rows of figures "
    "it says what the columns of its CSV and the members of its JSON `rows` mean; the table on a terminal "
    "shows some of them. Of `flyball record` it tells the readings in a recording, of `flyball serve` the "
    "metrics.\n\n"
    "A *counter* adds up, over time and over what it is of: joules, seconds, trials. A *gauge* does not: it "
    "is of a moment, or a mean, a share or a change. A *fact* says what something is. What is not known is "
    "`null` in JSON, with the reason under the same name and `_unavailable`, and an empty field in CSV.\n\n";

static void put_meaning(const struct meaning *meaning, struct buffer *out)
{
    if (meaning->key[0] == '\0')
        return;
    buffer_printf(out, "| `%s` | %s | %s | %s | ", meaning->key, meaning->unit != NULL ? meaning->unit : "",
                  meaning_type_name(meaning->type), meaning_course_name(meaning->course));
    put_plain(meaning->help, out);
    buffer_puts(out, " |\n");
}

void help_quantities_tables(const struct quantities *const *tables, size_t count, struct buffer *out)
{
    const char *of = "";

    for (size_t i = 0; i < count; i++) {
        if (strcmp(tables[i]->of, of) != 0) {
            of = tables[i]->of;
            buffer_printf(out, "%sOf %s:\n\n| Key | Unit | Type | Is a | Meaning |\n", i > 0 ? "\n" : "", of);
            buffer_puts(out, "| --- | --- | --- | --- | --- |\n");
        }
        for (size_t k = 0; k < tables[i]->count; k++)
            put_meaning(quantities_at(tables[i], k), out);
    }
}

static void put_outputs(const struct cli_command *command, struct buffer *out)
{
    size_t count = 0;

    while (count < CLI_OUTPUTS_MAX && command->outputs[count] != NULL)
        count++;
    help_quantities_tables(command->outputs, count, out);
    buffer_puts(out, "\n");
}

/* Returns the first command with the same output, or the command itself. */
static const struct cli_command *first_with(const struct cli_program *program,
                                            const struct cli_command *command)
{
    size_t i = 0;

    while (program->commands[i]->outputs[0] != command->outputs[0])
        i++;
    return program->commands[i];
}

void help_quantities(const struct cli_program *program, struct buffer *out)
{
    buffer_puts(out, quantities_head);
    for (size_t i = 0; program->commands[i] != NULL; i++) {
        const struct cli_command *command = program->commands[i];

        if (command->outputs[0] == NULL)
            continue;
        buffer_printf(out, "## flyball %s\n\n", command->words);
        if (first_with(program, command) != command)
            buffer_printf(out, "The same as `flyball %s`.\n\n", first_with(program, command)->words);
        else
            put_outputs(command, out);
    }
}
