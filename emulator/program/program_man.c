/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the manual page flyball-emulator(1), from the tables by which the program reads its command line. */
#include <stdio.h>

#include "base/error.h"
#include "cli/kit/mdoc.h"
#include "emulator/program/program.h"

enum { PAGE_MAX = 1 << 18 };

static void put_option(const char *name, const char *placeholder, const char *help, struct buffer *out)
{
    buffer_printf(out, ".It Fl \\-");
    for (; *name != '\0'; name++)
        buffer_printf(out, *name == '-' ? "\\-" : "%c", *name);
    if (placeholder != NULL) {
        buffer_puts(out, " Ar");
        mdoc_argument(placeholder, out);
    }
    buffer_puts(out, "\n");
    mdoc_text(help, out);
}

static void put_options(const struct program_option *options, struct buffer *out)
{
    buffer_puts(out, ".Bl -tag -width Ds\n");
    for (; options->name != NULL; options++)
        put_option(options->name, options->placeholder, options->help, out);
    buffer_puts(out, ".El\n");
}

static void put_command(const struct program_command *command, struct buffer *out)
{
    char heading[128];

    snprintf(heading, sizeof heading, "flyball-emulator %s [option ...]%s%s", command->name,
             command->operands != NULL ? " " : "", command->operands != NULL ? command->operands : "");
    buffer_puts(out, ".Ss");
    mdoc_argument(heading, out);
    buffer_puts(out, "\n");
    snprintf(heading, sizeof heading, "To %s.", command->summary);
    mdoc_text(heading, out);
    if (command->text != NULL)
        mdoc_literal(command->text, out);
    if (command->options[0].name != NULL)
        put_options(command->options, out);
    if (command->settings)
        mdoc_paragraph("Takes the settings below as options too.", out);
}

static void put_settings(struct buffer *out)
{
    mdoc_section("SETTINGS", out);
    mdoc_text("As options of start and run, or as words of FLYBALL_EMULATOR such as gpus=8,model=h100.", out);
    buffer_puts(out, ".Bl -tag -width Ds\n");
    for (const struct emulator_setting *setting = emulator_settings_table; setting->key != NULL; setting++)
        put_option(setting->key, setting->placeholder, setting->help, out);
    buffer_puts(out, ".El\n");
}

static void put_environment(struct buffer *out)
{
    mdoc_section("ENVIRONMENT", out);
    buffer_puts(out, ".Bl -tag -width Ds\n.It Ev FLYBALL_EMULATOR\n");
    mdoc_text("Settings of GPUs that are yet to be made.", out);
    buffer_puts(out, ".It Ev FLYBALL_EMULATOR_STATE\n");
    mdoc_text("The file that all processes share.", out);
    buffer_puts(out, ".It Ev LD_LIBRARY_PATH\n");
    mdoc_text("Where programs find the driver library; start prints it and run sets it.", out);
    buffer_puts(out, ".El\n");
}

int program_print_manual(struct fly_error *out_error)
{
    struct buffer page;
    bool written;

    buffer_init(&page, PAGE_MAX);
    mdoc_begin("flyball-emulator", 1, "GPUs to try Flyball on where there are none", &page);
    mdoc_section("SYNOPSIS", &page);
    buffer_puts(&page, ".Nm\n.Ar command\n.Op Ar option ...\n.Nm\n.Fl \\-version\n");
    mdoc_section("DESCRIPTION", &page);
    mdoc_text("Emulates NVIDIA GPUs behind a driver library of its own. Nothing that they say was measured.",
              &page);
    for (size_t i = 0; program_commands[i] != NULL; i++)
        put_command(program_commands[i], &page);
    mdoc_paragraph("Options of every command:", &page);
    put_options(program_common_options, &page);
    put_settings(&page);
    put_environment(&page);
    mdoc_section("EXIT STATUS", &page);
    mdoc_text(
        "0 for success; run passes on that of its command, 126 or 127 where it cannot be run, and 128 and "
        "the signal where that ended it; otherwise as flyball(1) says.",
        &page);
    mdoc_section("SEE ALSO", &page);
    buffer_puts(&page, ".Xr flyball 1\n");
    written = page.error == 0 && fwrite(page.data, 1, page.length, stdout) == page.length;
    buffer_deinit(&page);
    return written ? 0 : error_set(out_error, FLY_EWRITE, "writing to standard output failed");
}
