/* SPDX-License-Identifier: Apache-2.0 */
/* flyball-emulator: its commands, and how its command line is read. */
#include "emulator/program/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "base/words.h"

const struct program_command *const program_commands[] = {
    &program_start, &program_run,  &program_train,   &program_mps, &program_show,
    &program_set,   &program_stop, &program_library, NULL,
};

const struct program_option program_common_options[] = {
    {"state", "FILE",
     "The state to use, in place of FLYBALL_EMULATOR_STATE or /dev/shm/flyball-emulator-UID."},
    {"help", NULL, "Print this and do nothing else."},
    {.name = NULL},
};

static const char about[] = "flyball-emulator - GPUs to try Flyball on where there are none\n\n"
                            "It stands in for NVIDIA's driver library. Nothing it says was measured.\n\n"
                            "  flyball-emulator COMMAND [OPTION...]\n\n";

void program_say(const char *format, ...)
{
    va_list arguments;

    fputs("flyball-emulator: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static void print_option(const char *name, const char *placeholder, const char *help)
{
    char text[64];

    snprintf(text, sizeof text, "--%s%s%s", name, placeholder != NULL ? " " : "",
             placeholder != NULL ? placeholder : "");
    printf("  %-24s %s\n", text, help);
}

static void print_help(const struct program_command *command)
{
    if (command == NULL) {
        fputs(about, stdout);
        for (size_t i = 0; program_commands[i] != NULL; i++)
            printf("  %-10s %s\n", program_commands[i]->name, program_commands[i]->summary);
        puts("\n'flyball-emulator help COMMAND' explains a command, docs/howto/emulator.md the whole.");
        return;
    }
    printf("flyball-emulator %s - %s\n\n  flyball-emulator %s [OPTION...]%s%s\n", command->name,
           command->summary, command->name, command->operands != NULL ? " " : "",
           command->operands != NULL ? command->operands : "");
    printf("%s%s%s\n", command->text != NULL ? "\n" : "", command->text != NULL ? command->text : "",
           command->text != NULL ? "\n" : "");
    for (const struct program_option *option = command->options; option->name != NULL; option++)
        print_option(option->name, option->placeholder, option->help);
    for (const struct emulator_setting *setting = emulator_settings_table;
         command->settings && setting->key != NULL; setting++)
        print_option(setting->key, setting->placeholder, setting->help);
    for (const struct program_option *option = program_common_options; option->name != NULL; option++)
        print_option(option->name, option->placeholder, option->help);
}

static const struct program_command *find_command(const char *name)
{
    for (size_t i = 0; program_commands[i] != NULL; i++) {
        if (strcmp(program_commands[i]->name, name) == 0)
            return program_commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name, struct fly_error *out_error)
{
    const char *names[sizeof program_commands / sizeof program_commands[0]];
    size_t count = 0;
    int nearest;

    for (; program_commands[count] != NULL; count++)
        names[count] = program_commands[count]->name;
    nearest = word_nearest(name, names, count);
    if (nearest >= 0)
        return error_set(out_error, FLY_EUSAGE, "unknown command '%.40s'; did you mean '%s'?", name,
                         names[nearest]);
    return error_set(out_error, FLY_EUSAGE, "unknown command '%.40s'; 'flyball-emulator help' lists all",
                     name);
}

static int option_row(const struct program_command *command, const char *name)
{
    for (int i = 0; command->options[i].name != NULL; i++) {
        if (strcmp(command->options[i].name, name) == 0)
            return i;
    }
    return -1;
}

const char *program_value(const struct program_call *call, const char *name)
{
    int row = option_row(call->command, name);

    if (row < 0)
        abort();
    return call->values[row];
}

static const struct emulator_setting *setting_named(const char *name)
{
    for (const struct emulator_setting *setting = emulator_settings_table; setting->key != NULL; setting++) {
        if (strcmp(setting->key, name) == 0)
            return setting;
    }
    return NULL;
}

/* Stores an option's value; a flag and a yes-or-no setting need none. */
static int take_option(struct program_call *call, const char *name, const char *value, char *const *next,
                       int *out_used, struct fly_error *out_error)
{
    int row = option_row(call->command, name);
    const struct emulator_setting *setting = call->command->settings ? setting_named(name) : NULL;
    bool is_state = strcmp(name, "state") == 0;
    bool flag = row >= 0 ? call->command->options[row].placeholder == NULL
                         : setting != NULL && strcmp(setting->placeholder, "yes|no") == 0;

    *out_used = 0;
    if (row < 0 && setting == NULL && !is_state)
        return error_set(out_error, FLY_EUSAGE, "unknown option '--%.40s'; see 'flyball-emulator help %s'",
                         name, call->command->name);
    if (value == NULL && flag) {
        value = "yes";
    } else if (value == NULL) {
        value = *next;
        *out_used = 1;
    }
    if (value == NULL)
        return error_set(out_error, FLY_EUSAGE, "option '--%s' needs a value; see 'flyball-emulator help %s'",
                         name, call->command->name);
    if (row >= 0)
        call->values[row] = value;
    else if (is_state)
        call->state = value;
    else
        return emulator_settings_set(&call->settings, name, value, out_error);
    return 0;
}

/* Reads options up to the first operand or "--". */
static int parse(struct program_call *call, char *const *arguments, bool *out_help,
                 struct fly_error *out_error)
{
    int code = 0;

    while (code == 0 && *arguments != NULL && (*arguments)[0] == '-' && (*arguments)[1] != '\0') {
        const char *argument = *arguments++;
        const char *name = argument + 2;
        const char *equals = strchr(argument, '=');
        char text[64];
        int used;

        if (strcmp(argument, "--") == 0)
            break;
        if (strcmp(argument, "-h") == 0 || strcmp(argument, "--help") == 0) {
            *out_help = true;
            return 0;
        }
        if (argument[1] != '-')
            return error_set(out_error, FLY_EUSAGE, "unknown option '%.40s'; see 'flyball-emulator help %s'",
                             argument, call->command->name);
        snprintf(text, sizeof text, "%.*s", equals != NULL ? (int)(equals - name) : (int)strlen(name), name);
        code = take_option(call, text, equals != NULL ? equals + 1 : NULL, arguments, &used, out_error);
        arguments += code == 0 ? used : 0;
    }
    call->operands = arguments;
    while (code == 0 && arguments[call->operand_count] != NULL)
        call->operand_count++;
    if (code == 0 && call->operand_count > 0 && call->command->operands == NULL)
        code = error_set(out_error, FLY_EUSAGE, "unexpected operand '%.40s'; see 'flyball-emulator help %s'",
                         arguments[0], call->command->name);
    return code;
}

int program_number(const struct program_call *call, const char *name, double lowest, double highest,
                   double otherwise, double *out_value, struct fly_error *out_error)
{
    const char *text = program_value(call, name);
    double value = otherwise;

    if (text != NULL && (!number_parse_double(text, &value) || value < lowest || value > highest))
        return error_set(out_error, FLY_EUSAGE,
                         "bad value '%.40s' for option '--%s': expected a number from %g to %g", text, name,
                         lowest, highest);
    *out_value = value;
    return 0;
}

int program_gpus(const struct program_call *call, const struct emulator *emulator, const char *otherwise,
                 unsigned *out_bits, struct fly_error *out_error)
{
    const char *text = program_value(call, "gpu");
    unsigned count = emulator_gpu_count(emulator);
    unsigned bits = 0;

    if (text == NULL)
        text = otherwise;
    if (strcmp(text, "all") == 0) {
        *out_bits = (1U << count) - 1;
        return 0;
    }
    for (const char *rest = text; rest != NULL;
         rest = strchr(rest, ',') != NULL ? strchr(rest, ',') + 1 : NULL) {
        char digits[8];
        uint64_t gpu;

        snprintf(digits, sizeof digits, "%.*s", (int)strcspn(rest, ","), rest);
        if (!number_parse_u64(digits, 999, &gpu))
            return error_set(out_error, FLY_EUSAGE,
                             "bad value '%.40s' for option '--gpu': expected indices such as 0,2, or all",
                             text);
        if (gpu >= count)
            return error_set(out_error, FLY_ENOTFOUND, "GPU %u does not exist; the emulator has %u",
                             (unsigned)gpu, count);
        bits |= 1U << gpu;
    }
    *out_bits = bits;
    return 0;
}

/* The directory of this program's file; "" when it cannot be found. */
static void own_directory(char out_path[EMULATOR_PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", out_path, EMULATOR_PATH_MAX - 1);
    char *slash;

    out_path[length > 0 ? length : 0] = '\0';
    slash = strrchr(out_path, '/');
    if (slash != NULL)
        *slash = '\0';
}

static bool has_library(const char *directory)
{
    char path[EMULATOR_PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", directory);
    return access(path, R_OK) == 0;
}

/*
 * Looks beside the program (in a build), in the installed place relative to the program (if it was moved),
 * and in the place where it was installed.
 */
int program_library_directory(char out_path[EMULATOR_PATH_MAX], struct fly_error *out_error)
{
    char own[EMULATOR_PATH_MAX];

    own_directory(own);
    snprintf(out_path, EMULATOR_PATH_MAX, "%s", own);
    if (has_library(out_path))
        return 0;
    if ((size_t)snprintf(out_path, EMULATOR_PATH_MAX, "%s/%s", own, EMULATOR_LIBRARY_FROM_PROGRAM) <
            EMULATOR_PATH_MAX &&
        has_library(out_path))
        return 0;
    snprintf(out_path, EMULATOR_PATH_MAX, "%s", EMULATOR_LIBRARY_DIRECTORY);
    if (has_library(out_path))
        return 0;
    return error_set(out_error, FLY_ENOTFOUND,
                     "the emulator's libnvidia-ml.so.1 is not in '%s'; install Flyball again", out_path);
}

static int run_command(const struct program_command *command, char *const *arguments)
{
    struct program_call call = {.command = command, .settings = emulator_default_settings};
    const char *variable = getenv("FLYBALL_EMULATOR");
    struct fly_error error;
    bool help = false;
    int result = 0;

    if (command->settings && variable != NULL)
        result = emulator_settings_parse(&call.settings, variable, &error);
    if (result == 0)
        result = parse(&call, arguments, &help, &error);
    if (result == 0 && help)
        print_help(command);
    else if (result == 0)
        result = command->run(&call, &error);
    if (result == 0 && fflush(stdout) != 0)
        result = error_set(&error, FLY_EWRITE, "writing to standard output failed");
    if (result >= 0)
        return result;
    program_say("%s", error.text);
    return fly_error_exit_status(result);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    const struct program_command *command = word != NULL ? find_command(word) : NULL;
    struct fly_error error;

    if (command != NULL)
        return run_command(command, argv + 2);
    if (word != NULL && strcmp(word, "--version") == 0) {
        puts(EMULATOR_VERSION);
        return 0;
    }
    if (word != NULL &&
        (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        command = argc > 2 ? find_command(argv[2]) : NULL;
        if (argc == 3 && strcmp(argv[2], "--man") == 0)
            return program_print_manual(&error) < 0 ? fly_error_exit_status(error.code) : 0;
        if (argc <= 2 || command != NULL) {
            print_help(command);
            return 0;
        }
        word = argv[2];
    }
    if (word == NULL)
        error_set(&error, FLY_EUSAGE, "a command is missing; 'flyball-emulator help' lists all");
    else
        unknown_command(word, &error);
    program_say("%s", error.text);
    return fly_error_exit_status(FLY_EUSAGE);
}
