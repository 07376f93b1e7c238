/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line by table. getopt_long would do most of it, but it guesses
 * abbreviations, lets the last of two win, and cannot say which word was
 * probably meant.
 */
#include "cli/parse.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"

enum { SUBJECT_WORDS_MAX = 3, LINE_TEXT_MAX = 128 };

/* Walks over the arguments behind the command. */
struct walk {
    const char *const *arguments;
    size_t count;
    size_t next;
    struct command_line *line;
};

static bool looks_like_option(const char *argument)
{
    return argument[0] == '-' && argument[1] != '\0';
}

static bool is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static bool wants_help(const char *const *arguments, size_t count)
{
    for (size_t i = 0; i < count && strcmp(arguments[i], "--") != 0; i++) {
        if (is_help(arguments[i]))
            return true;
    }
    return false;
}

static int unknown_option(const struct cli_command *command, const char *argument,
                          struct fly_error *out_error)
{
    static const struct cli_command nothing = {.words = ""};
    const struct cli_command *of = command != NULL ? command : &nothing;
    const char *known[2 * LINE_OPTIONS_MAX];
    size_t count = 0;
    char name[LINE_TEXT_MAX];
    int nearest;

    for (size_t i = 0; i < command_option_count(of) && count + 1 < 2 * LINE_OPTIONS_MAX; i++) {
        known[count++] = command_option(of, i)->name;
        known[count++] = command_option(of, i)->alias;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(argument, "="), argument);
    nearest = word_nearest(name + strspn(name, "-"), known, count);
    if (nearest >= 0)
        return error_set(out_error, FLY_EUSAGE, "unknown option '%s' of 'flyball%s%s'; did you mean '--%s'?",
                         name, command != NULL ? " " : "", of->words, known[nearest]);
    return error_set(out_error, FLY_EUSAGE, "unknown option '%s' of 'flyball%s%s'; see 'flyball help%s%s'",
                     name, command != NULL ? " " : "", of->words, command != NULL ? " " : "", of->words);
}

/* The common option that an argument before the command names, or NULL. */
static const struct cli_option *common_option(const char *argument)
{
    size_t length = strcspn(argument, "=");

    for (size_t i = 0; i < cli_common_option_count; i++) {
        const char *name = cli_common_options[i].name;

        if (strlen(name) + 2 == length && strncmp(argument, "--", 2) == 0 &&
            strncmp(argument + 2, name, length - 2) == 0)
            return &cli_common_options[i];
    }
    return NULL;
}

/* Passes over the common options before the command; `*first` becomes the index of the first word. */
static int skip_common(const char *const *arguments, size_t count, size_t *first, struct fly_error *out_error)
{
    while (*first < count && looks_like_option(arguments[*first])) {
        const struct cli_option *option = common_option(arguments[*first]);

        if (option == NULL && !is_help(arguments[*first]))
            return unknown_option(NULL, arguments[*first], out_error);
        if (option != NULL && option->type != CLI_FLAG && strchr(arguments[*first], '=') == NULL)
            ++*first;
        ++*first;
    }
    if (*first > count)
        *first = count;
    return 0;
}

static size_t leading_words(const char *const *arguments, size_t count)
{
    size_t words = 0;

    while (words < count && words < SUBJECT_WORDS_MAX && !looks_like_option(arguments[words]))
        words++;
    return words;
}

int line_find_subject(const struct cli_program *program, const char *const *arguments, size_t count,
                      struct line_subject *out_subject, struct fly_error *out_error)
{
    static const char *const version[] = {"version"};
    struct line_subject subject = {.help = wants_help(arguments, count)};
    const char *const *words;
    size_t word_count;
    size_t used = 0;

    if (count > 0 && strcmp(arguments[0], "--version") == 0) {
        subject.command = command_find(program, version, 1, &subject.words);
        *out_subject = subject;
        return 0;
    }
    if (skip_common(arguments, count, &subject.first, out_error) < 0)
        return FLY_EUSAGE;
    words = arguments + subject.first;
    word_count = leading_words(words, count - subject.first);
    subject.command = command_find(program, words, word_count, &used);
    if (subject.command == NULL)
        subject.group = group_find(program, words, word_count, &used);
    if (subject.command == NULL && used != word_count)
        return command_unknown(program, words, word_count, out_error);
    subject.words = used;
    *out_subject = subject;
    return 0;
}

static int take_operand(struct walk *walk, const char *argument, struct fly_error *out_error)
{
    struct command_line *line = walk->line;

    if (line->operand_count >= line->command->operand_maximum || line->operand_count >= LINE_OPERANDS_MAX)
        return error_set(out_error, FLY_EUSAGE,
                         "unexpected operand '%.80s' of 'flyball %s'; see 'flyball help %s'", argument,
                         line->command->words, line->command->words);
    line->operands[line->operand_count++] = argument;
    return 0;
}

/*
 * The value of an option: behind its "=", or the next argument. One that begins
 * with "--" is the next option, and the value was forgotten.
 */
static const char *option_value(struct walk *walk, const struct cli_option *option, const char *equals)
{
    const char *next = walk->next < walk->count ? walk->arguments[walk->next] : NULL;

    if (equals != NULL)
        return equals + 1;
    if (option->type == CLI_FLAG)
        return "yes";
    if (next == NULL || strncmp(next, "--", 2) == 0)
        return NULL;
    walk->next++;
    return next;
}

static int take_option(struct walk *walk, const char *argument, struct fly_error *out_error)
{
    const struct cli_command *command = walk->line->command;
    size_t length = strcspn(argument, "=");
    const char *equals = argument[length] == '=' ? argument + length : NULL;
    int index =
        strncmp(argument, "--", 2) == 0 ? command_option_index(command, argument + 2, length - 2) : -1;
    struct line_option *given;

    if (index < 0)
        return unknown_option(command, argument, out_error);
    given = &walk->line->options[index];
    if (given->text != NULL)
        return error_set(out_error, FLY_EUSAGE,
                         "option '--%s' is given twice to 'flyball %s'; keep one of them",
                         command_option(command, (size_t)index)->name, command->words);
    snprintf(given->spelling, sizeof given->spelling, "%.*s", (int)length, argument);
    given->text = option_value(walk, command_option(command, (size_t)index), equals);
    if (given->text == NULL)
        return error_set(out_error, FLY_EUSAGE, "option '%s' needs a value, %s; see 'flyball help %s'",
                         given->spelling, command_option(command, (size_t)index)->placeholder,
                         command->words);
    return 0;
}

int line_parse(const struct line_subject *subject, const char *const *arguments, size_t count,
               struct command_line *out_line, struct fly_error *out_error)
{
    struct walk walk = {.arguments = arguments, .count = count, .line = out_line};
    bool options_ended = false;
    int result = 0;

    *out_line = (struct command_line){.command = subject->command};
    while (result == 0 && walk.next < count) {
        const char *argument = arguments[walk.next];

        if (walk.next == subject->first) {
            walk.next += subject->words;
            continue;
        }
        walk.next++;
        if (!options_ended && strcmp(argument, "--") == 0)
            options_ended = true;
        else if (!options_ended && looks_like_option(argument))
            result = take_option(&walk, argument, out_error);
        else
            result = take_operand(&walk, argument, out_error);
    }
    return result;
}
