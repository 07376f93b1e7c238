/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line by table. getopt_long would do most of it, but it guesses
 * abbreviations, lets the last of two options win, and cannot say which word was probably meant.
 */
#include "cli/frame/parse.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"

enum { SUBJECT_WORDS_MAX = 3, LINE_TEXT_MAX = 128 };

/* A walk over the arguments behind the command. */
struct walk {
    const char *const *arguments;
    size_t count;
    size_t next;
    struct command_line *line;
};

/*
 * Returns whether the first operand begins a program's command line; if operands may come before
 * it, "--" does.
 */
static bool operand_is_program(const struct cli_command *command)
{
    return command->runs_program && command->operand_maximum == 0;
}

static bool program_behind_operands(const struct cli_command *command)
{
    return command->runs_program && command->operand_maximum > 0;
}

static bool looks_like_option(const char *argument)
{
    return argument[0] == '-' && argument[1] != '\0';
}

/* An argument looked up in the table of options. */
struct spelled {
    int index;         /* index among the command's options; -1: none of them */
    size_t length;     /* of the spelling, without the value */
    const char *value; /* in the same argument, or NULL */
};

/* Before the command only the common options are known. */
static const struct cli_command no_command = {.words = ""};

/* The flag that a name negates: "no-verbose" the flag verbose, and "hook" the flag no-hook; -1: none. */
static int negated_flag(const struct cli_command *command, const char *name, size_t length)
{
    char negated[LINE_TEXT_MAX];
    int index;

    if (length > 3 && strncmp(name, "no-", 3) == 0)
        index = command_option_index(command, name + 3, length - 3);
    else
        index = command_option_index(
            command, negated,
            (size_t)snprintf(negated, sizeof negated, "no-%.*s", (int)(length % 100), name));
    return index >= 0 && command_option(command, (size_t)index)->type == CLI_FLAG ? index : -1;
}

static struct spelled spell_name(const struct cli_command *command, const char *argument)
{
    size_t length = strcspn(argument, "=");
    struct spelled spelled = {.index = command_option_index(command, argument + 2, length - 2),
                              .length = length,
                              .value = argument[length] == '=' ? argument + length + 1 : NULL};

    if (spelled.index < 0 && spelled.value == NULL) {
        spelled.index = negated_flag(command, argument + 2, length - 2);
        spelled.value = spelled.index >= 0 ? "no" : NULL;
    }
    return spelled;
}

/* "-i0": the rest behind the letter is its value; a flag takes none. */
static struct spelled spell_letter(const struct cli_command *command, const char *argument)
{
    struct spelled spelled = {.index = command_letter_index(command, argument[1]), .length = 2};

    if (argument[2] == '\0')
        return spelled;
    spelled.value = argument + 2;
    if (spelled.index >= 0 && command_option(command, (size_t)spelled.index)->type == CLI_FLAG)
        spelled.index = -1;
    return spelled;
}

static struct spelled spell(const struct cli_command *command, const char *argument)
{
    if (argument[0] == '-' && argument[1] == '-')
        return spell_name(command, argument);
    return spell_letter(command, argument);
}

/* Returns whether the next argument, if there is one, is the value of this one. */
static bool takes_next(const struct cli_command *command, const struct spelled *spelled)
{
    return spelled->index >= 0 && spelled->value == NULL &&
           command_option(command, (size_t)spelled->index)->type != CLI_FLAG;
}

/* Returns whether an argument can be that value. "--..." is the next option: the value was forgotten. */
static bool may_be_value(const char *argument)
{
    return strncmp(argument, "--", 2) != 0;
}

static bool is_help(const char *argument)
{
    struct spelled spelled = spell(&no_command, argument);

    return spelled.index >= 0 && spelled.value == NULL &&
           strcmp(command_option(&no_command, (size_t)spelled.index)->name, "help") == 0;
}

/*
 * Returns whether the user asks for help, whatever else the line says. Words behind the first
 * operand of a command that runs a program are the program's.
 */
static bool wants_help(const struct line_subject *subject, const char *const *arguments, size_t count)
{
    const struct cli_command *command = subject->command != NULL ? subject->command : &no_command;
    bool value = false;

    for (size_t i = 0; i < count && strcmp(arguments[i], "--") != 0; i++) {
        bool option = looks_like_option(arguments[i]);

        if (option && is_help(arguments[i]))
            return true;
        if (i >= subject->first && i < subject->first + subject->words)
            continue;
        if (operand_is_program(command) && !option && !value)
            return false;
        if (option) {
            struct spelled spelled = spell(command, arguments[i]);

            value = takes_next(command, &spelled);
        } else {
            value = false;
        }
    }
    return false;
}

/* `command` is NULL before the command. */
static int unknown_option(const struct cli_command *command, const char *argument,
                          struct fly_error *out_error)
{
    const struct cli_command *of = command != NULL ? command : &no_command;
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

/* Skips the common options before the command; `*first` becomes the index of the first word. */
static int skip_common(const char *const *arguments, size_t count, size_t *first, struct fly_error *out_error)
{
    while (*first < count && looks_like_option(arguments[*first])) {
        struct spelled spelled = spell(&no_command, arguments[*first]);

        if (spelled.index < 0)
            return unknown_option(NULL, arguments[*first], out_error);
        *first += takes_next(&no_command, &spelled) ? 2 : 1;
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
    struct line_subject subject = {.help = false};
    const char *const *words;
    size_t word_count;
    size_t used = 0;

    if (count > 0 && strcmp(arguments[0], "--version") == 0) {
        subject.command = command_find(program, version, 1, &subject.words);
        subject.help = wants_help(&subject, arguments, count);
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
    subject.help = wants_help(&subject, arguments, count);
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
    line->listed[line->operand_count++] = argument;
    return 0;
}

/* The rest of the arguments is a program's command line. */
static void take_program(struct walk *walk, size_t first)
{
    struct command_line *line = walk->line;

    *(program_behind_operands(line->command) ? &line->program : &line->operands) = walk->arguments + first;
    *(program_behind_operands(line->command) ? &line->program_count : &line->operand_count) =
        walk->count - first;
    walk->next = walk->count;
}

/* Returns an option's value from its own argument or the next one; NULL: there is none. */
static const char *option_value(struct walk *walk, const struct spelled *spelled)
{
    if (spelled->value != NULL)
        return spelled->value;
    if (!takes_next(walk->line->command, spelled))
        return "yes";
    if (walk->next == walk->count || !may_be_value(walk->arguments[walk->next]))
        return NULL;
    return walk->arguments[walk->next++];
}

static int take_option(struct walk *walk, const char *argument, struct fly_error *out_error)
{
    const struct cli_command *command = walk->line->command;
    struct spelled spelled = spell(command, argument);
    const struct cli_option *option;
    struct line_option *given;

    if (spelled.index < 0)
        return unknown_option(command, argument, out_error);
    option = command_option(command, (size_t)spelled.index);
    given = &walk->line->options[spelled.index];
    if (given->text != NULL)
        return error_set(out_error, FLY_EUSAGE,
                         "option '--%s' is given twice to 'flyball %s'; keep one of them", option->name,
                         command->words);
    snprintf(given->spelling, sizeof given->spelling, "%.*s", (int)spelled.length, argument);
    given->text = option_value(walk, &spelled);
    if (given->text == NULL)
        return error_set(out_error, FLY_EUSAGE, "option '%s' needs a value, %s; see 'flyball help %s'",
                         given->spelling, option->placeholder, command->words);
    return 0;
}

int line_parse(const struct line_subject *subject, const char *const *arguments, size_t count,
               struct command_line *out_line, struct fly_error *out_error)
{
    struct walk walk = {.arguments = arguments, .count = count, .line = out_line};
    bool options_ended = false;
    int result = 0;

    *out_line = (struct command_line){.command = subject->command, .operands = out_line->listed};
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
        else if (operand_is_program(subject->command) ||
                 (options_ended && program_behind_operands(subject->command)))
            take_program(&walk, walk.next - 1);
        else
            result = take_operand(&walk, argument, out_error);
    }
    if (result == 0 && options_ended && program_behind_operands(subject->command) &&
        out_line->program_count == 0)
        return error_set(out_error, FLY_EUSAGE,
                         "no program behind '--' of 'flyball %s'; name one, or leave out the '--'",
                         subject->command->words);
    return result;
}
