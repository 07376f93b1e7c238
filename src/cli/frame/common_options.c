/* SPDX-License-Identifier: Apache-2.0 */
/* The options that every command has. */
#include "cli/frame/command.h"

static const char *const formats[] = {"table", "json", "csv", NULL};
static const char *const colors[] = {"auto", "always", "never", NULL};

/* The order of `formats` and `colors` is that of enum table_format and enum color_choice. */
const struct cli_option cli_common_options[] = {
    {.name = "format",
     .type = CLI_CHOICE,
     .placeholder = "FORMAT",
     .choices = formats,
     .default_text = "table",
     .key = "format",
     .help = "Form of the output: a table for people, JSON or CSV for programs."},
    {.name = "color",
     .type = CLI_CHOICE,
     .placeholder = "WHEN",
     .choices = colors,
     .default_text = "auto",
     .key = "color",
     .help = "When to use colour; auto means on a terminal, unless the variable NO_COLOR is set."},
    {.name = "quiet", .type = CLI_FLAG, .help = "Print no notes and no progress on standard error."},
    {.name = "verbose",
     .letter = 'v',
     .type = CLI_FLAG,
     .help = "Print the details too, where the output begins with what matters."},
    {.name = "help",
     .letter = 'h',
     .type = CLI_FLAG,
     .help = "Print the help of the command and do nothing else."},
};
const size_t cli_common_option_count = sizeof cli_common_options / sizeof cli_common_options[0];
