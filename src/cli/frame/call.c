/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a call, and its messages and output. */
#include "cli/frame/call.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/harmless.h"
#include "cli/frame/call_private.h"
#include "cli/kit/table_print.h"

static const char stdout_name[] = "standard output";

enum { SAID_AT_ONCE = 4096 };

enum color_choice { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Sets the value that applies if the command line does not set the option. */
static int set_from_settings(struct cli_value *value, const struct cli_option *option,
                             const struct setting *setting, struct fly_error *out_error)
{
    if (setting != NULL && setting->text != NULL)
        return value_set(value, option, setting->source, setting->origin, setting->text, NULL, out_error);
    if (option->default_text != NULL)
        return value_set(value, option, CLI_DEFAULT, "default", option->default_text, NULL, out_error);
    return 0;
}

static int set_value(struct cli_call *call, size_t index, struct fly_error *out_error)
{
    const struct cli_option *option = command_option(call->command, index);
    const struct setting *setting = option->key == NULL ? NULL : settings_find(call->settings, option->key);
    const struct line_option *given = &call->line->options[index];
    struct cli_value *value = &call->values[index];

    if (given->text == NULL)
        return set_from_settings(value, option, setting, out_error);
    if (setting != NULL && setting->lock != NULL)
        return error_set(out_error, FLY_EPERM,
                         "option '%s' is refused: '%s' locks the key '%s'; leave it out, or ask the "
                         "administrator",
                         given->spelling, setting->lock, option->key);
    return value_set(value, option, CLI_OPTION, given->spelling, given->text, call->command->words,
                     out_error);
}

int call_init(struct cli_call *call, struct fly_error *out_error)
{
    size_t count = command_option_count(call->command);

    call->values = calloc(count, sizeof *call->values);
    if (call->values == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count; i++)
        value_init(&call->values[i]);
    for (size_t i = 0; i < count; i++) {
        int result = set_value(call, i, out_error);

        if (result < 0)
            return result;
    }
    return 0;
}

void call_deinit(struct cli_call *call)
{
    for (size_t i = 0; call->values != NULL && i < command_option_count(call->command); i++)
        value_deinit(&call->values[i]);
    free(call->values);
    call->values = NULL;
}

_Noreturn static void defect(const char *what, const char *command, const char *name)
{
    fprintf(stderr, "flyball: defect: %s: option '%s' of 'flyball %s'\n", what, name, command);
    abort();
}

static const struct cli_value *value_of(const struct cli_call *call, const char *name)
{
    int index = command_option_index(call->command, name, strlen(name));

    if (index < 0)
        defect("asked for an unknown option", call->command->words, name);
    return &call->values[index];
}

static const struct cli_value *typed_value_of(const struct cli_call *call, const char *name, unsigned types)
{
    int index = command_option_index(call->command, name, strlen(name));

    if (index >= 0 && (1U << command_option(call->command, (size_t)index)->type & types) == 0)
        defect("asked for another type", call->command->words, name);
    return value_of(call, name);
}

static const struct cli_value *number_of(const struct cli_call *call, const char *name, unsigned types)
{
    const struct cli_value *value = typed_value_of(call, name, types);

    if (value->source == CLI_UNSET)
        defect("asked for a number that is not set", call->command->words, name);
    return value;
}

const char *cli_text(const struct cli_call *call, const char *name)
{
    return value_of(call, name)->text;
}

int64_t cli_integer(const struct cli_call *call, const char *name)
{
    return number_of(call, name, 1U << CLI_INTEGER)->integer;
}

double cli_real(const struct cli_call *call, const char *name)
{
    return number_of(call, name, 1U << CLI_INTEGER | 1U << CLI_REAL)->real;
}

bool cli_flag(const struct cli_call *call, const char *name)
{
    return typed_value_of(call, name, 1U << CLI_FLAG)->flag;
}

int cli_choice(const struct cli_call *call, const char *name)
{
    return typed_value_of(call, name, 1U << CLI_CHOICE)->choice;
}

const struct cli_list *cli_list(const struct cli_call *call, const char *name)
{
    return &typed_value_of(call, name, 1U << CLI_LIST)->list;
}

bool cli_set(const struct cli_call *call, const char *name)
{
    return cli_source(call, name) != CLI_UNSET;
}

bool cli_given(const struct cli_call *call, const char *name)
{
    return cli_source(call, name) > CLI_DEFAULT;
}

const char *cli_origin(const struct cli_call *call, const char *name)
{
    return value_of(call, name)->origin;
}

enum cli_source cli_source(const struct cli_call *call, const char *name)
{
    return value_of(call, name)->source;
}

size_t cli_operand_count(const struct cli_call *call)
{
    return call->line->operand_count;
}

const char *cli_operand(const struct cli_call *call, size_t index)
{
    return index < call->line->operand_count ? call->line->operands[index] : NULL;
}

size_t cli_program_count(const struct cli_call *call)
{
    return call->line->program_count;
}

const char *cli_program_word(const struct cli_call *call, size_t index)
{
    return index < call->line->program_count ? call->line->program[index] : NULL;
}

const char *cli_words(const struct cli_call *call)
{
    return call->command->words;
}

void cli_exit_with(const struct cli_call *call, int status)
{
    *call->exit_status = status;
}

enum table_format cli_format(const struct cli_call *call)
{
    return (enum table_format)cli_choice(call, "format");
}

bool console_color(const struct cli_console *console)
{
    return console->out_terminal && !console->no_color;
}

bool cli_color(const struct cli_call *call)
{
    int choice = cli_choice(call, "color");

    return choice == COLOR_ALWAYS || (choice == COLOR_AUTO && console_color(call->console));
}

int cli_usage(const struct cli_call *call, struct fly_error *out_error, const char *format, ...)
{
    char text[FLY_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(out_error, FLY_EUSAGE, "%s; see 'flyball help %s'", text, call->command->words);
}

int cli_value_error(const struct cli_call *call, const char *name, const char *value, const char *expected,
                    struct fly_error *out_error)
{
    int index = command_option_index(call->command, name, strlen(name));
    const struct cli_value *known = value_of(call, name);

    return value_error(command_option(call->command, (size_t)index), known->source, known->origin, value,
                       expected, call->command->words, out_error);
}

int cli_emit_table(const struct cli_call *call, const struct table *table, struct fly_error *out_error)
{
    struct buffer bytes;
    int result;

    buffer_init(&bytes, TABLE_OUTPUT_MAX);
    result = table_print(table, cli_format(call), cli_color(call), &bytes, out_error);
    if (result == 0)
        result = table_put(bytes.data, bytes.length, call->console->out, stdout_name, out_error);
    buffer_deinit(&bytes);
    return result;
}

int cli_emit_json(const struct cli_call *call, json_t *document, struct fly_error *out_error)
{
    struct buffer bytes;
    int result;

    buffer_init(&bytes, TABLE_OUTPUT_MAX);
    result = table_print_json(document, &bytes, out_error);
    if (result == 0)
        result = table_put(bytes.data, bytes.length, call->console->out, stdout_name, out_error);
    buffer_deinit(&bytes);
    json_decref(document);
    return result;
}

int cli_emit_text(const struct cli_call *call, const char *text, struct fly_error *out_error)
{
    struct buffer shown;
    int result;

    if (harmless_all(text, strlen(text), true))
        return table_put(text, strlen(text), call->console->out, stdout_name, out_error);
    buffer_init(&shown, TABLE_OUTPUT_MAX);
    harmless_put(&shown, text, true);
    result = shown.error < 0
                 ? error_no_memory(out_error)
                 : table_put(shown.data, shown.length, call->console->out, stdout_name, out_error);
    buffer_deinit(&shown);
    return result;
}

FILE *cli_out(const struct cli_call *call)
{
    return call->console->out;
}

FILE *cli_err(const struct cli_call *call)
{
    return call->console->err;
}

bool cli_out_is_terminal(const struct cli_call *call)
{
    return call->console->out_terminal;
}

/* Uses one write, so that lines of several processes do not mix. */
void console_say(const struct cli_console *console, const char *kind, const char *text)
{
    char line[SAID_AT_ONCE];
    size_t length = (size_t)snprintf(line, sizeof line, "flyball: %.40s", kind);

    for (size_t left = strlen(text), bytes; left > 0; text += bytes, left -= bytes) {
        uint32_t character;

        bytes = harmless_read(text, left, &character);
        if (length + bytes + 1 > sizeof line) {
            fwrite(line, 1, length, console->err);
            length = 0;
        }
        memcpy(line + length, harmless_is(character) ? text : "?", harmless_is(character) ? bytes : 1);
        length += harmless_is(character) ? bytes : 1;
    }
    line[length++] = '\n';
    fwrite(line, 1, length, console->err);
}

void cli_say(const struct cli_call *call, const char *text)
{
    console_say(call->console, "", text);
}

static void say(const struct cli_call *call, const char *kind, const char *format, va_list arguments)
{
    char text[FLY_ERROR_TEXT_MAX];

    vsnprintf(text, sizeof text, format, arguments);
    console_say(call->console, kind, text);
}

void cli_note(const struct cli_call *call, const char *format, ...)
{
    va_list arguments;

    if (cli_flag(call, "quiet"))
        return;
    va_start(arguments, format);
    say(call, "note: ", format, arguments);
    va_end(arguments);
}

void cli_warn(const struct cli_call *call, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(call, "warning: ", format, arguments);
    va_end(arguments);
}

void cli_progress_begin(const struct cli_call *call, struct progress *progress, const char *unit,
                        uint64_t total)
{
    bool wanted = call->console->err_terminal && !cli_flag(call, "quiet");

    progress_begin(progress, wanted ? call->console->err : NULL, unit, total);
}

static bool may_draw(void)
{
    const char *kind = getenv("TERM"), *no_colour = getenv("NO_COLOR");

    return kind != NULL && kind[0] != '\0' && strcmp(kind, "dumb") != 0 &&
           (no_colour == NULL || no_colour[0] == '\0');
}

int cli_status_line_fd(const struct cli_call *call)
{
    bool wanted = call->console->err_terminal && !cli_flag(call, "quiet") && may_draw();

    return wanted ? fileno(call->console->err) : -1;
}
