/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the manual pages from the tables. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/frame/help.h"
#include "cli/frame/settings.h"
#include "cli/kit/mdoc.h"

enum { FACTS_MAX = 4096, COMMANDS_MAX = 64 };

static const char user_path_text[] = "$XDG_CONFIG_HOME/flyball/flyball.ini";
static const char home_path_text[] = "~/.config/flyball/flyball.ini";
static const char local_path_text[] = "./flyball.ini";

static void put_list_begin(struct buffer *out)
{
    buffer_puts(out, ".Bl -tag -width Ds\n");
}

static void put_list_end(struct buffer *out)
{
    buffer_puts(out, ".El\n");
}

/* Writes ".It Macro text" and a text below it. */
static void put_item(const char *macro, const char *term, const char *text, struct buffer *out)
{
    buffer_printf(out, ".It %s", macro);
    mdoc_argument(term, out);
    buffer_puts(out, "\n");
    mdoc_text(text, out);
}

static void put_facts(const struct cli_option *option, struct buffer *out)
{
    struct buffer facts;

    buffer_init(&facts, FACTS_MAX);
    help_option_facts(option, &facts);
    mdoc_text(facts.data, out);
    buffer_deinit(&facts);
}

static void put_key_reference(const char *key, struct buffer *out)
{
    char variable[KEY_VARIABLE_MAX];

    buffer_puts(out, "Key\n.Cm");
    mdoc_argument(key, out);
    buffer_puts(out, " ,\nvariable\n.Ev");
    mdoc_argument(key_variable(key, variable), out);
    buffer_puts(out, " .\n");
}

static void put_option(const struct cli_option *option, struct buffer *out)
{
    buffer_puts(out, ".It Fl ");
    if (option->letter != '\0')
        buffer_printf(out, "%c , Fl ", option->letter);
    buffer_printf(out, "\\-%s", option->name);
    if (option->placeholder != NULL) {
        buffer_puts(out, " Ar");
        mdoc_argument(option->placeholder, out);
    }
    if (option->alias != NULL)
        buffer_printf(out, " , Fl \\-%s", option->alias);
    buffer_puts(out, "\n");
    mdoc_text(option->help, out);
    put_facts(option, out);
    if (option->key != NULL)
        put_key_reference(option->key, out);
}

static void put_options(const struct cli_command *command, struct buffer *out)
{
    const struct cli_option *option = command_own_option(command, 0);

    if (option == NULL)
        return;
    put_list_begin(out);
    for (size_t i = 1; option != NULL; option = command_own_option(command, i++))
        put_option(option, out);
    put_list_end(out);
}

static void put_variables(const struct cli_program *program, struct buffer *out)
{
    mdoc_section("ENVIRONMENT", out);
    for (size_t i = 0; help_variable_paragraphs[i] != NULL; i++)
        (i == 0 ? mdoc_text : mdoc_paragraph)(help_variable_paragraphs[i], out);
    put_list_begin(out);
    for (const struct cli_variable *variable = program->variables; variable->name != NULL; variable++)
        put_item("Ev", variable->name, variable->help, out);
    put_item("Ev", "NO_COLOR", "When it is not empty, no colour is used.", out);
    put_list_end(out);
}

static void put_files(const char *system_path, struct buffer *out)
{
    mdoc_section("FILES", out);
    put_list_begin(out);
    put_item("Pa", local_path_text, "Of the working directory; the strongest.", out);
    put_item("Pa", user_path_text, "Of the user.", out);
    put_item("Pa", home_path_text, "Of the user, without the variable XDG_CONFIG_HOME.", out);
    put_item("Pa", system_path, "Of the system; the only one that may lock keys.", out);
    put_list_end(out);
}

static void put_exit_statuses(struct buffer *out)
{
    struct buffer reasons;
    char term[8];

    mdoc_section("EXIT STATUS", out);
    put_list_begin(out);
    buffer_init(&reasons, FACTS_MAX);
    for (int status = 0; status <= HELP_EXIT_MAX; status++) {
        buffer_clear(&reasons);
        help_exit_reasons(status, &reasons);
        snprintf(term, sizeof term, "%d", status);
        if (reasons.length > 0)
            put_item("", term, reasons.data, out);
    }
    buffer_deinit(&reasons);
    put_list_end(out);
}

static int compare_words(const void *left, const void *right)
{
    const struct cli_command *const *a = left;
    const struct cli_command *const *b = right;

    return strcmp((*a)->words, (*b)->words);
}

/* Writes references to the pages of all commands, in alphabetical order. */
static void put_command_references(const struct cli_program *program, struct buffer *out)
{
    const struct cli_command *commands[COMMANDS_MAX] = {NULL};
    size_t count = 0;

    while (count < COMMANDS_MAX && program->commands[count] != NULL) {
        commands[count] = program->commands[count];
        count++;
    }
    qsort(commands, count, sizeof commands[0], compare_words);
    for (size_t i = 0; i < count; i++) {
        buffer_puts(out, ".Xr ");
        help_page_name(commands[i], out);
        buffer_puts(out, " 1 ,\n");
    }
}

static void put_program_page(const struct cli_program *program, const char *system_path, struct buffer *out)
{
    mdoc_begin("flyball", 1, "save energy, time and carbon in training neural networks", out);
    mdoc_section("SYNOPSIS", out);
    buffer_puts(out, ".Nm\n.Ar command\n.Op Ar option ...\n.Nm\n.Fl \\-version\n");
    mdoc_section("DESCRIPTION", out);
    mdoc_text("The commands, each with a page of its own:", out);
    put_list_begin(out);
    for (size_t i = 0; program->commands[i] != NULL; i++)
        put_item("Cm", program->commands[i]->words, program->commands[i]->summary, out);
    put_list_end(out);
    mdoc_paragraph("Options of every command:", out);
    put_options(&(struct cli_command){.options = cli_common_options, .option_count = cli_common_option_count},
                out);
    put_variables(program, out);
    put_files(system_path, out);
    put_exit_statuses(out);
    mdoc_section("SEE ALSO", out);
    put_command_references(program, out);
    buffer_puts(out, ".Xr flyball.ini 5\n");
}

static void put_examples(const struct cli_command *command, struct buffer *out)
{
    const struct cli_example *example = command->examples;
    struct buffer text;

    buffer_init(&text, FACTS_MAX);
    mdoc_section("EXAMPLES", out);
    for (; example < command->examples + CLI_EXAMPLES_MAX && example->command != NULL; example++) {
        buffer_puts(out, example == command->examples ? "" : ".Pp\n");
        buffer_printf(&text, "%c%s:", toupper((unsigned char)example->effect[0]), example->effect + 1);
        mdoc_text(text.data, out);
        buffer_clear(&text);
        buffer_puts(out, ".Pp\n.Dl");
        mdoc_argument(example->command, out);
        buffer_puts(out, "\n");
    }
    buffer_deinit(&text);
}

static void put_command_page(const struct cli_command *command, const char *page, struct buffer *out)
{
    mdoc_begin(page, 1, command->summary, out);
    mdoc_section("SYNOPSIS", out);
    buffer_printf(out, ".Nm flyball %s\n.Op Ar option ...\n", command->words);
    if (command->operands != NULL) {
        buffer_puts(out, ".Ar");
        mdoc_argument(command->operands, out);
        buffer_puts(out, "\n");
    }
    mdoc_section("DESCRIPTION", out);
    for (size_t i = 0; i < CLI_PARAGRAPHS_MAX && command->paragraphs[i] != NULL; i++)
        (i == 0 ? mdoc_text : mdoc_paragraph)(command->paragraphs[i], out);
    if (command_own_option(command, 0) != NULL)
        mdoc_paragraph("The options, beside those of every command in flyball(1):", out);
    put_options(command, out);
    mdoc_section("EXIT STATUS", out);
    mdoc_text(command->exit_status != NULL ? command->exit_status : "See flyball(1).", out);
    put_examples(command, out);
    mdoc_section("SEE ALSO", out);
    buffer_puts(out, ".Xr flyball 1 ,\n.Xr flyball.ini 5\n");
}

static void put_keys(const struct cli_program *program, struct buffer *out)
{
    char variable[KEY_VARIABLE_MAX];
    struct key_table keys;

    keys_collect(program, &keys);
    mdoc_section("KEYS", out);
    put_list_begin(out);
    for (size_t i = 0; i < keys.count; i++) {
        put_item("Cm", keys.options[i]->key, keys.options[i]->help, out);
        put_facts(keys.options[i], out);
        if (keys.options[i]->sensitive)
            mdoc_text(help_sensitive, out);
        buffer_puts(out, "Variable\n.Ev");
        mdoc_argument(key_variable(keys.options[i]->key, variable), out);
        buffer_puts(out, " .\n");
    }
    put_list_end(out);
}

static void put_file_page(const struct cli_program *program, const char *system_path, struct buffer *out)
{
    mdoc_begin("flyball.ini", 5, "configuration of flyball", out);
    mdoc_section("DESCRIPTION", out);
    for (size_t i = 0; help_file_paragraphs[i] != NULL; i++)
        (i == 0 ? mdoc_text : mdoc_paragraph)(help_file_paragraphs[i], out);
    mdoc_paragraph("Where a value comes from, the strongest first:", out);
    buffer_puts(out, ".Bl -enum -compact\n");
    for (size_t i = 0; help_precedence[i] != NULL; i++)
        buffer_printf(out, ".It\n%s\n", help_precedence[i]);
    put_list_end(out);
    put_keys(program, out);
    mdoc_section("LOCKS", out);
    for (size_t i = 0; help_lock_paragraphs[i] != NULL; i++)
        (i == 0 ? mdoc_text : mdoc_paragraph)(help_lock_paragraphs[i], out);
    mdoc_literal(help_lock_example, out);
    put_variables(program, out);
    put_files(system_path, out);
    mdoc_section("SEE ALSO", out);
    buffer_puts(out, ".Xr flyball 1\n");
}

/* Returns the command whose page is "flyball-sim-job.1", or NULL. */
static const struct cli_command *command_of_page(const struct cli_program *program, const char *page,
                                                 struct buffer *name)
{
    for (size_t i = 0; program->commands[i] != NULL; i++) {
        buffer_clear(name);
        help_page_name(program->commands[i], name);
        if (strncmp(page, name->data, name->length) == 0 && strcmp(page + name->length, ".1") == 0)
            return program->commands[i];
    }
    return NULL;
}

int help_man(const struct cli_program *program, const char *page, const char *system_path, struct buffer *out,
             struct fly_error *out_error)
{
    const struct cli_command *command;
    struct buffer name;
    int result = 0;

    buffer_init(&name, FACTS_MAX);
    command = command_of_page(program, page, &name);
    if (command != NULL)
        put_command_page(command, name.data, out);
    else if (strcmp(page, "flyball.1") == 0)
        put_program_page(program, system_path, out);
    else if (strcmp(page, "flyball.ini.5") == 0)
        put_file_page(program, system_path, out);
    else
        result =
            error_set(out_error, FLY_ENOTFOUND,
                      "there is no manual page '%.80s'; there are flyball.1, flyball.ini.5 and one for each "
                      "command, such as flyball-version.1",
                      page);
    buffer_deinit(&name);
    return result < 0 || out->error == 0 ? result : error_no_memory(out_error);
}
