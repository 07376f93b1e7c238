/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "cli/frame/call_private.h"
#include "cli/frame/frame_commands.h"
#include "cli/frame/help.h"
#include "cli/kit/table_print.h"

static const struct cli_option options[] = {
    {.name = "all",
     .type = CLI_FLAG,
     .help = "Print all options of the command; without one every command, variable and exit status."},
    {.name = "markdown", .type = CLI_FLAG, .help = "Print the reference of all commands as Markdown."},
    {.name = "quantities", .type = CLI_FLAG, .help = "Print what every figure means, as Markdown."},
    {.name = "man",
     .type = CLI_TEXT,
     .placeholder = "PAGE",
     .help = "Print a manual page in mdoc: flyball.1, flyball.ini.5, or one such as flyball-config-show.1."},
};

enum { OPERANDS_MAX = 4 };

/* Help has one form only; if the user names another, refuse it instead of ignoring it. */
static int check_call(const struct cli_call *call, struct fly_error *out_error)
{
    int asked = cli_flag(call, "markdown") + cli_flag(call, "quantities") + cli_set(call, "man");

    if (cli_format(call) != TABLE_FORMAT_TABLE)
        return cli_usage(call, out_error, "help has no format '%s'; leave '--format' out",
                         cli_text(call, "format"));
    if (asked + (cli_operand_count(call) > 0 || cli_flag(call, "all")) > 1)
        return cli_usage(call, out_error,
                         "'--markdown', '--quantities', '--man' and a command or '--all' exclude each other; "
                         "keep one");
    return 0;
}

static int help_append(const struct cli_call *call, struct buffer *out, struct fly_error *out_error)
{
    const char *words[OPERANDS_MAX];
    size_t count = cli_operand_count(call);

    if (cli_set(call, "man"))
        return help_man(call->program, cli_text(call, "man"), call->paths->system, out, out_error);
    if (!cli_flag(call, "markdown") && !cli_flag(call, "quantities")) {
        for (size_t i = 0; i < count; i++)
            words[i] = cli_operand(call, i);
        return help_show(call->program, words, count, cli_flag(call, "all"), cli_color(call), out, out_error);
    }
    if (cli_flag(call, "markdown"))
        help_markdown(call->program, out);
    else
        help_quantities(call->program, out);
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

static int help_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct buffer text;
    int result = check_call(call, out_error);

    buffer_init(&text, HELP_TEXT_MAX);
    if (result == 0)
        result = help_append(call, &text, out_error);
    if (result == 0)
        /* Keeps its colours: the text is the program's own. */
        result = table_put(text.data, text.length, call->console->out, "standard output", out_error);
    buffer_deinit(&text);
    return result;
}

const struct cli_command cmd_help = {
    .words = "help",
    .summary = "explain the program or a command",
    .paragraphs = {"Without words, shows the commands on one screen; with --all, all there is to know. With "
                   "the words of a command or of a group of commands, "
                   "explains that, and of a command with many options those that are used often; with --all "
                   "all of them. "
                   "'flyball COMMAND --help' does the same.",
                   "The manual pages and the reference in Markdown come from the same tables as these texts. "
                   "Reads no configuration, so that it works when that is broken."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands = "[COMMAND...]",
    .operand_maximum = OPERANDS_MAX,
    .examples = {{"flyball help config show", "explain 'flyball config show'"},
                 {"flyball help --man flyball.1 | man -l -", "show the manual page of the program"}},
    .ignores_settings = true,
    .run = help_run,
};
