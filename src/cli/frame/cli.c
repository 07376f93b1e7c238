/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/frame/cli.h"

#include <string.h>

#include "base/error.h"
#include "cli/frame/help.h"
#include "cli/kit/table_print.h"

enum { WARNINGS_MAX = 1 << 16 };

static int fail(const struct cli_world *world, const struct fly_error *error)
{
    console_say(&world->console, "", error->text);
    return fly_error_exit_status(error->code);
}

/* Prints one warning per line. */
static void say_warnings(const struct cli_world *world, struct buffer *warnings)
{
    char *rest = warnings->data;
    char *line;

    while (warnings->length > 0 && (line = strsep(&rest, "\n")) != NULL) {
        if (line[0] != '\0')
            console_say(&world->console, "warning: ", line);
    }
}

/* Shows help on what the arguments name, and reads no more of them than that. */
static int show_help(const struct cli_world *world, const struct line_subject *subject)
{
    const char *const *words = world->arguments + subject->first;
    struct fly_error error;
    struct buffer text;
    int result;

    buffer_init(&text, HELP_TEXT_MAX);
    result = help_show(world->program, words, subject->words, false, console_color(&world->console), &text,
                       &error);
    if (result == 0)
        result = table_put(text.data, text.length, world->console.out, "standard output", &error);
    buffer_deinit(&text);
    return result < 0 ? fail(world, &error) : 0;
}

/* Without a command: lists the commands on stderr, since the user did not ask for them. */
static int need_command(const struct cli_world *world, const struct line_subject *subject)
{
    const char *group = subject->group != NULL ? subject->group->words : NULL;
    struct fly_error error;
    struct buffer text;

    buffer_init(&text, HELP_TEXT_MAX);
    if (help_show(world->program, &group, group != NULL ? 1 : 0, false, false, &text, &error) == 0)
        fprintf(world->console.err, "%s\n", text.data);
    buffer_deinit(&text);
    error_set(&error, FLY_EUSAGE, "'flyball%s%s' needs a command; choose one of those above",
              group != NULL ? " " : "", group != NULL ? group : "");
    return fail(world, &error);
}

static int run_command(const struct cli_world *world, const struct command_line *line,
                       const struct settings *settings)
{
    int status = 0;
    struct cli_call call = {.program = world->program,
                            .command = line->command,
                            .console = &world->console,
                            .settings = settings,
                            .paths = &world->paths,
                            .line = line,
                            .exit_status = &status};
    struct fly_error error = {.code = 0};
    int result = call_init(&call, &error);

    if (result == 0)
        result = line->command->run(&call, &error);
    call_deinit(&call);
    if (result == 0)
        return status;
    if (error.text[0] == '\0')
        error_set(&error, result, "%s", fly_error_sentence(result));
    return fail(world, &error);
}

/* Returns whether the user wants everything to run as if this program were absent. */
static bool disabled(const struct cli_world *world)
{
    for (const char *const *variable = world->environment; variable != NULL && *variable != NULL;
         variable++) {
        if (strcmp(*variable, "FLYBALL_DISABLE=1") == 0)
            return true;
    }
    return false;
}

static int run_line(const struct cli_world *world, const struct command_line *line)
{
    struct settings settings;
    struct buffer warnings;
    struct fly_error error;
    int status;
    int result = 0;
    bool runs =
        line->command->runs_program && (line->command->operand_maximum == 0 || line->program_count > 0);

    buffer_init(&warnings, WARNINGS_MAX);
    if (line->command->ignores_settings || (runs && disabled(world)))
        settings_init(world->program, &settings);
    else
        result =
            settings_load(world->program, &world->paths, world->environment, &settings, &warnings, &error);
    say_warnings(world, &warnings);
    status = result < 0 ? fail(world, &error) : run_command(world, line, &settings);
    settings_deinit(&settings);
    buffer_deinit(&warnings);
    return status;
}

int cli_main(const struct cli_world *world)
{
    struct line_subject subject;
    struct command_line line;
    struct fly_error error;

    if (line_find_subject(world->program, world->arguments, world->argument_count, &subject, &error) < 0)
        return fail(world, &error);
    if (subject.help)
        return show_help(world, &subject);
    if (subject.command == NULL)
        return need_command(world, &subject);
    if (line_parse(&subject, world->arguments, world->argument_count, &line, &error) < 0)
        return fail(world, &error);
    return run_line(world, &line);
}
